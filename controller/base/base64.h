// Base 64 (RFC 4648, section 4) with padding.
#pragma once
#include "controller/base/buffer.h"
#include <stddef.h>

char *base64_encode(const void *bytes, size_t len); // the caller owns it
// Appends the decoded bytes; -1 if text is not strictly base 64 (no blanks, right padding) or out is full.
int base64_decode(const char *text, size_t len, struct buffer *out);
