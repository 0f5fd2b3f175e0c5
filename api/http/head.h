// The strict check of a request's head, as far as the HTTP library shows it. Pure: no I/O, no library types.
#pragma once
#include "controller/base/error.h"
#include <stddef.h>

#define HTTP_FIELDS_MAX 100

struct http_field {
    const char *name, *value;
    size_t name_len, value_len;
};
struct http_head {
    const char *method, *target, *version; // target: as it stood in the request line
    struct http_field fields[HTTP_FIELDS_MAX];
    size_t field_count;
    bool has_too_many; // more fields than room
};

// 0, or -1 with err and *ret_status (400, 501, 505, 431). After a failure the connection must be closed: its
// framing is in doubt.
int http_head_check(const struct http_head *head, int *ret_status, struct error *err);
// First field of that name (any case), or NULL.
const struct http_field *http_head_find(const struct http_head *head, const char *name);
