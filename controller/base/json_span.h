// Looking into JSON text without parsing it. For text that json_to_text wrote and nobody else: compact, valid, ASCII. Of
// anything else the answers are wrong, but nothing outside the span is read. A span borrows its text.
//
//     struct json_span phase = json_member(json_member(image, "status"), "phase"); // at NULL: not there
#pragma once
#include "controller/base/buffer.h"
#include <stdbool.h>
#include <stddef.h>

struct json_span {
    const char *at; // NULL: no value
    size_t len;
};

struct json_span json_member(struct json_span object, const char *name);
// Several members in one pass over the object: ret[i] is that of names[i].
void json_find_members(struct json_span object, const char *const names[], size_t count, struct json_span ret[]);
// The members, or items, one after the other: *cursor begins at 0. Names as they stand between their quotes. False at the end.
bool json_next_member(struct json_span object, size_t *cursor, struct json_span *ret_name, struct json_span *ret_value);
bool json_next_item(struct json_span array, size_t *cursor, struct json_span *ret);
bool json_span_is(struct json_span span, const char *text); // exactly this
bool json_span_is_string(struct json_span span);
bool json_span_is_integer(struct json_span span);
// A string's value. The caller owns it; NULL if it is none.
char *json_span_to_text(struct json_span span);

void json_put_span(struct buffer *to, struct json_span span); // as it stands
void json_put_string(struct buffer *to, const char *text);    // quoted and escaped as json_to_text does
