#include "controller/base/base64.h"
#include "controller/base/memory.h"
#include <stdint.h>
#include <string.h>

static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

char *base64_encode(const void *bytes, size_t len)
{
    const unsigned char *at = bytes;
    char *text = mem_alloc((len + 2) / 3 * 4 + 1), *to = text;
    for (size_t i = 0; i < len; i += 3) {
        size_t left = len - i;
        uint32_t value = (uint32_t)at[i] << 16 | (left > 1 ? (uint32_t)at[i + 1] << 8 : 0) | (left > 2 ? at[i + 2] : 0);
        *to++ = alphabet[value >> 18];
        *to++ = alphabet[value >> 12 & 63];
        *to++ = left > 1 ? alphabet[value >> 6 & 63] : '=';
        *to++ = left > 2 ? alphabet[value & 63] : '=';
    }
    return text;
}

static int digit_of(char c)
{
    const char *at = c ? strchr(alphabet, c) : NULL;
    return at ? (int)(at - alphabet) : -1;
}

int base64_decode(const char *text, size_t len, struct buffer *out)
{
    if (len % 4)
        return -1;
    size_t padding = len && text[len - 1] == '=' ? 1 + (text[len - 2] == '=') : 0;
    for (size_t i = 0; i < len; i += 4) {
        size_t digits = i + 4 == len ? 4 - padding : 4;
        uint32_t value = 0;
        for (size_t k = 0; k < 4; k++) {
            int digit = k < digits ? digit_of(text[i + k]) : 0;
            if (digit < 0)
                return -1;
            value = value << 6 | (uint32_t)digit;
        }
        if (value & (digits == 4 ? 0u : digits == 3 ? 0xFFu : 0xFFFFu))
            return -1;
        char bytes[3] = {(char)(value >> 16), (char)(value >> 8), (char)value};
        if (buffer_append(out, bytes, digits - 1) < 0)
            return -1;
    }
    return 0;
}
