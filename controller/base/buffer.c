#include "controller/base/buffer.h"
#include "controller/base/memory.h"
#include <assert.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void buffer_free(struct buffer *buf)
{
    free(buf->data);
    *buf = (struct buffer){.max = buf->max};
}

char *buffer_reserve(struct buffer *buf, size_t more)
{
    if (more > buf->max - buf->len) {
        buf->is_over = true;
        return NULL;
    }
    size_t need = buf->len + more + 1;
    if (need > buf->cap) {
        size_t cap = buf->cap ? buf->cap : 64;
        while (cap < need)
            cap = cap > SIZE_MAX / 2 ? need : cap * 2;
        buf->data = mem_realloc(buf->data, cap);
        buf->cap = cap;
    }
    return buf->data + buf->len;
}

int buffer_append(struct buffer *buf, const void *bytes, size_t len)
{
    char *at = buffer_reserve(buf, len);
    if (!at)
        return -1;
    if (len)
        memcpy(at, bytes, len);
    buf->len += len;
    buf->data[buf->len] = '\0';
    return 0;
}

int buffer_append_text(struct buffer *buf, const char *text)
{
    return buffer_append(buf, text, strlen(text));
}

int buffer_append_char(struct buffer *buf, char c)
{
    return buffer_append(buf, &c, 1);
}

int buffer_format(struct buffer *buf, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    char *text = mem_vformat(format, args);
    va_end(args);
    int r = buffer_append_text(buf, text);
    free(text);
    return r;
}

void buffer_consume(struct buffer *buf, size_t len)
{
    assert(len <= buf->len);
    if (!len)
        return;
    memmove(buf->data, buf->data + len, buf->len - len);
    buf->len -= len;
    buf->data[buf->len] = '\0';
}

const char *buffer_text(struct buffer *buf)
{
    if (!buf->data)
        return "";
    buf->data[buf->len] = '\0';
    return buf->data;
}

char *buffer_take_string(struct buffer *buf)
{
    char *text = buf->data ? buf->data : mem_strdup("");
    text[buf->data ? buf->len : 0] = '\0';
    *buf = (struct buffer){.max = buf->max};
    return text;
}
