// Base64url as JWS and JWK have it (RFC 7515): no padding, no blanks, and no bits beyond the end, so that one value has one
// spelling.
#pragma once
#include <stddef.h>

// The most bytes that len characters can carry.
#define BASE64URL_DECODED_MAX(len) ((len) / 4 * 3 + 2)

// ret has room for BASE64URL_DECODED_MAX(len). 0, or -1 where the text is anything else.
int base64url_decode(const char *text, size_t len, unsigned char *ret, size_t *ret_len);
