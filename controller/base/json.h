// JSON at the edges. Everything that arrives is untrusted: bounded before parsing, at most JSON_MAX_DEPTH
// deep, duplicate keys refused (two readers must not see two documents), numbers as jansson has them.
// Getters answer with a fallback instead of failing where the type is wrong; validation is the field
// tables' and the tool schemas' work, not theirs.
#pragma once
#include "controller/base/cleanup.h"
#include "controller/base/error.h"
#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#define JSON_MAX_DEPTH 64

#define CLEANUP_JSON CLEANUP(json_cleanup)
static inline void json_cleanup(json_t **at)
{
    json_decref(*at);
}

// Parses exactly one JSON text of len bytes (scalars too). ERROR_INVALID with line and column, or
// ERROR_TOO_LARGE beyond the depth. The result is the caller's.
int json_parse(const char *bytes, size_t len, json_t **ret, struct error *err);
// The same, but strings may hold U+0000 (file content, shell output): readers must use json_string_length.
int json_parse_with_nul(const char *bytes, size_t len, json_t **ret, struct error *err);
// Objects may have a member more than once; the last one counts. The second one says which, as paths ("spec.items[0].x", at
// most JSON_MAX_REPEATS), appended to `repeated`: for callers that must tell somebody.
#define JSON_MAX_REPEATS 20
int json_parse_last_counts(const char *bytes, size_t len, json_t **ret, struct error *err);
int json_parse_with_repeats(const char *bytes, size_t len, json_t **ret, json_t *repeated, struct error *err);
// Compact text, all non-ASCII escaped (U+2028/2029 too). The caller owns it. Never NULL for a value json_parse
// or these builders made.
char *json_to_text(const json_t *value);
char *json_to_pretty_text(const json_t *value); // two blanks indent, UTF-8 kept, for people
// A JSON string of any bytes: bad UTF-8 becomes U+FFFD; NUL is kept.
json_t *json_from_bytes(const char *bytes, size_t len);
json_t *json_from_text(const char *text);          // NULL gives JSON null
const char *json_get_text(const json_t *object, const char *key);                      // NULL if absent or not a string
json_int_t json_get_int(const json_t *object, const char *key, json_int_t fallback);
bool json_get_bool(const json_t *object, const char *key, bool fallback);
// Sets object[key] = text unless text is NULL.
void json_set_text(json_t *object, const char *key, const char *text);
// Strict base64 (RFC 4648, padded, no blanks). text NULL counts as "". *ret_bytes is the caller's.
int json_decode_base64(const char *text, char **ret_bytes, size_t *ret_len, struct error *err);
json_t *json_encode_base64(const void *bytes, size_t len);
// The value of a digit, 0 to 63, or -1: alphabets differ in their last two (RFC 4648: "+/", and "-_" in URLs).
int base64_digit(char c, char of_62, char of_63);
