#include "controller/base/frames.h"
#include "controller/base/cleanup.h"
#include <string.h>

#define HINT "is the other side of another version?"

static const struct {
    size_t min, max;
} lengths[FRAME_TYPE_COUNT] = {
    [FRAME_DATA] = {1, FRAME_MAX_BYTES}, [FRAME_ERRORS] = {1, FRAME_MAX_BYTES},        [FRAME_END] = {0, 0},
    [FRAME_RESIZE] = {4, 4},             [FRAME_SIGNAL] = {1, 1},                      [FRAME_TAKEN] = {4, 4},
    [FRAME_EXIT] = {1, 1},               [FRAME_FAILED] = {2, FRAME_FAILED_MAX_BYTES},
};

uint32_t frame_number(const char *bytes, size_t size)
{
    uint32_t value = 0;
    for (size_t i = 0; i < size; i++)
        value = value << 8 | (unsigned char)bytes[i];
    return value;
}

static void put_number(char *to, uint32_t value, size_t size)
{
    for (size_t i = size; i-- > 0; value >>= 8)
        to[i] = (char)(value & 0xff);
}

int frame_read(const char *bytes, size_t len, struct frame *ret, size_t *ret_size, struct error *err)
{
    if (!len)
        return 0;
    unsigned type = (unsigned char)bytes[0];
    if (type >= FRAME_TYPE_COUNT)
        return error_set(err, ERROR_INVALID, HINT, "a frame of type %u, which there is none of", type);
    if (len < FRAME_HEAD_BYTES)
        return 0;
    size_t size = frame_number(bytes + 1, 3);
    if (size < lengths[type].min || size > lengths[type].max)
        return error_set(err, ERROR_INVALID, HINT, "a frame of type %u with %zu bytes", type, size);
    if (len < FRAME_HEAD_BYTES + size)
        return 0;
    *ret = (struct frame){(enum frame_type)type, bytes + FRAME_HEAD_BYTES, size};
    *ret_size = FRAME_HEAD_BYTES + size;
    return 1;
}

size_t frame_size(size_t len)
{
    size_t count = (len + FRAME_MAX_BYTES - 1) / FRAME_MAX_BYTES;
    return len + (count ? count : 1) * FRAME_HEAD_BYTES;
}

static void append_one(struct buffer *out, enum frame_type type, const char *bytes, size_t len)
{
    char head[FRAME_HEAD_BYTES] = {(char)type};
    put_number(head + 1, (uint32_t)len, 3);
    buffer_append(out, head, sizeof(head));
    if (len)
        buffer_append(out, bytes, len);
}

int frame_append(struct buffer *out, enum frame_type type, const void *bytes, size_t len)
{
    if (out->max - out->len < frame_size(len))
        return -1;
    const char *at = bytes;
    size_t left = len;
    do {
        size_t piece = left < FRAME_MAX_BYTES ? left : FRAME_MAX_BYTES;
        append_one(out, type, at, piece);
        at = piece ? at + piece : at;
        left -= piece;
    } while (left);
    return 0;
}

int frame_append_number(struct buffer *out, enum frame_type type, uint32_t value, size_t size)
{
    char bytes[4];
    put_number(bytes, value, size);
    return frame_append(out, type, bytes, size);
}

int frame_append_size(struct buffer *out, uint16_t columns, uint16_t rows)
{
    return frame_append_number(out, FRAME_RESIZE, (uint32_t)columns << 16 | rows, 4);
}
