// RFC 6901 pointers. Inside api/operator/json_p*.c only.
#pragma once
#include "controller/base/json.h"

// The parent of what a pointer names, and its last step.
struct json_place {
    json_t *parent; // borrowed; NULL: the pointer is "", the document itself
    char *name;     // of an object's member; owned
    size_t index;   // of a list's item; its length for "-"
    bool is_end;    // "-"
};
void json_place_clear(struct json_place *place);
// ERROR_USAGE: not a pointer. ERROR_INVALID: the way to the parent is not there.
int json_place_find(json_t *document, const char *pointer, struct json_place *ret, struct error *err);
json_t *json_place_get(json_t *document, const struct json_place *place); // borrowed; NULL if there is none
