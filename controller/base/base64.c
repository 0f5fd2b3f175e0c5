#include "controller/base/json.h"
#include "controller/base/memory.h"
#include <string.h>

static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

json_t *json_encode_base64(const void *bytes, size_t len)
{
    const unsigned char *from = bytes;
    CLEANUP_FREE char *text = mem_alloc((len + 2) / 3 * 4 + 1);
    char *to = text;
    for (size_t i = 0; i < len; i += 3) {
        size_t n = len - i < 3 ? len - i : 3;
        unsigned value = (unsigned)from[i] << 16 | (n > 1 ? (unsigned)from[i + 1] << 8 : 0) | (n > 2 ? from[i + 2] : 0);
        *to++ = alphabet[value >> 18 & 63];
        *to++ = alphabet[value >> 12 & 63];
        *to++ = n > 1 ? alphabet[value >> 6 & 63] : '=';
        *to++ = n > 2 ? alphabet[value & 63] : '=';
    }
    return json_stringn_nocheck(text, (size_t)(to - text));
}

int base64_digit(char c, char of_62, char of_63)
{
    if (c >= 'A' && c <= 'Z')
        return c - 'A';
    if (c >= 'a' && c <= 'z')
        return c - 'a' + 26;
    if (c >= '0' && c <= '9')
        return c - '0' + 52;
    return c == of_62 ? 62 : c == of_63 ? 63 : -1;
}

// One group of four; n = how many bytes it carries (3, or fewer with padding). -1 if it is malformed.
static int decode_group(const char *text, bool is_last, unsigned char to[3])
{
    int n = text[3] != '=' ? 3 : text[2] != '=' ? 2 : 1;
    if (n < 3 && !is_last)
        return -1;
    unsigned value = 0;
    for (int i = 0; i < 4; i++) {
        int digit = i <= n ? base64_digit(text[i], '+', '/') : 0;
        if (digit < 0)
            return -1;
        value = value << 6 | (unsigned)digit;
    }
    if (n < 3 && (value & (n == 2 ? 0xFF : 0xFFFF)))
        return -1; // bits beyond the end: not canonical
    to[0] = (unsigned char)(value >> 16);
    to[1] = (unsigned char)(value >> 8);
    to[2] = (unsigned char)value;
    return n;
}

int json_decode_base64(const char *text, char **ret_bytes, size_t *ret_len, struct error *err)
{
    size_t len = text ? strlen(text) : 0, out = 0;
    CLEANUP_FREE char *bytes = mem_alloc(len / 4 * 3 + 1);
    if (len % 4)
        return error_set(err, ERROR_INVALID, "encode the bytes as padded base64", "base64 text has %zu characters, no multiple of four", len);
    for (size_t i = 0; i < len; i += 4) {
        unsigned char group[3];
        int n = decode_group(text + i, i + 4 == len, group);
        if (n < 0)
            return error_set(err, ERROR_INVALID, "encode the bytes as padded base64", "base64 text is malformed at character %zu", i);
        memcpy(bytes + out, group, (size_t)n);
        out += (size_t)n;
    }
    *ret_bytes = TAKE_PTR(bytes);
    *ret_len = out;
    return 0;
}
