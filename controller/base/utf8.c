#include "controller/base/utf8.h"
#include "controller/base/buffer.h"
#include "controller/base/memory.h"
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// What may follow a lead byte: total length and the allowed range of the second byte (Unicode table 3-7).
struct lead {
    unsigned char len, low, high;
};

static struct lead lead_of(unsigned char byte)
{
    if (byte < 0x80)
        return (struct lead){1, 0, 0};
    if (byte >= 0xC2 && byte <= 0xDF)
        return (struct lead){2, 0x80, 0xBF};
    if (byte >= 0xE0 && byte <= 0xEF)
        return (struct lead){3, byte == 0xE0 ? 0xA0 : 0x80, byte == 0xED ? 0x9F : 0xBF};
    if (byte >= 0xF0 && byte <= 0xF4)
        return (struct lead){4, byte == 0xF0 ? 0x90 : 0x80, byte == 0xF4 ? 0x8F : 0xBF};
    return (struct lead){0, 0, 0};
}

// How many bytes at `bytes` agree with the character that its lead byte starts; 0 for a byte that starts none.
static size_t matching_len(const unsigned char *bytes, size_t len, struct lead lead)
{
    if (lead.len == 0)
        return 0;
    size_t n = 1;
    while (n < lead.len && n < len) {
        unsigned char low = n == 1 ? lead.low : 0x80, high = n == 1 ? lead.high : 0xBF;
        if (bytes[n] < low || bytes[n] > high)
            break;
        n++;
    }
    return n;
}

size_t utf8_char_len(const char *bytes, size_t len, size_t *ret_bad)
{
    const unsigned char *at = (const unsigned char *)bytes;
    if (len == 0) {
        if (ret_bad)
            *ret_bad = 0;
        return 0;
    }
    struct lead lead = lead_of(at[0]);
    size_t match = matching_len(at, len, lead);
    if (lead.len && match == lead.len)
        return lead.len;
    if (ret_bad)
        *ret_bad = match ? match : 1;
    return 0;
}

bool utf8_is_valid(const char *bytes, size_t len)
{
    for (size_t i = 0; i < len;) {
        size_t n = (unsigned char)bytes[i] < 0x80 ? 1 : utf8_char_len(bytes + i, len - i, NULL);
        if (!n)
            return false;
        i += n;
    }
    return true;
}

size_t utf8_cut(const char *bytes, size_t len)
{
    for (size_t back = 1; back <= 3 && back <= len; back++) {
        const unsigned char *at = (const unsigned char *)bytes + len - back;
        struct lead lead = lead_of(*at);
        if (lead.len > back && matching_len(at, back, lead) == back)
            return len - back;
        if (lead.len)
            break; // a complete or broken character ends the tail
    }
    return len;
}

char *utf8_to_valid(const char *bytes, size_t len, size_t *ret_len)
{
    struct buffer out = BUFFER_INIT(SIZE_MAX / 2);
    size_t start = 0, i = 0;
    while (i < len) {
        size_t bad = 0, n = (unsigned char)bytes[i] < 0x80 ? 1 : utf8_char_len(bytes + i, len - i, &bad);
        if (n) {
            i += n;
            continue;
        }
        buffer_append(&out, bytes + start, i - start);
        buffer_append(&out, "\xEF\xBF\xBD", 3);
        i += bad;
        start = i;
    }
    buffer_append(&out, bytes + start, len - start);
    if (ret_len)
        *ret_len = out.len;
    return buffer_take_string(&out);
}

static uint32_t decode(const char *bytes, size_t n)
{
    const unsigned char *at = (const unsigned char *)bytes;
    if (n == 1)
        return at[0];
    uint32_t value = at[0] & (0x7F >> n);
    for (size_t i = 1; i < n; i++)
        value = value << 6 | (at[i] & 0x3F);
    return value;
}

static bool is_deceptive(uint32_t c)
{
    return c < 0x20 || (c >= 0x7F && c < 0xA0) || (c >= 0x200B && c <= 0x200F) || (c >= 0x202A && c <= 0x202E) ||
           (c >= 0x2060 && c <= 0x2069) || c == 0x2028 || c == 0x2029 || c == 0xFEFF || c == 0x061C;
}

char *utf8_to_printable(const char *bytes, size_t len, bool keep_newlines)
{
    size_t valid_len;
    char *valid = utf8_to_valid(bytes, len, &valid_len);
    struct buffer out = BUFFER_INIT(SIZE_MAX / 2);
    for (size_t i = 0; i < valid_len;) {
        size_t n = utf8_char_len(valid + i, valid_len - i, NULL);
        uint32_t c = decode(valid + i, n);
        if (is_deceptive(c) && !(keep_newlines && (c == '\n' || c == '\t')))
            buffer_format(&out, "\\u%04x", c);
        else
            buffer_append(&out, valid + i, n);
        i += n;
    }
    free(valid);
    return buffer_take_string(&out);
}

size_t utf8_cut_piece(const char *bytes, size_t have, size_t limit, bool is_final)
{
    size_t len = have < limit ? have : limit;
    if (is_final && len == have)
        return len;
    size_t cut = utf8_cut(bytes, len);
    while (!cut && len < have)
        cut = utf8_cut(bytes, ++len);
    return cut || !is_final ? cut : have;
}
