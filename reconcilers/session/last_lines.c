#include "reconcilers/session/last_lines.h"
#include "reconcilers/session/line_channel.h"
#include "controller/base/memory.h"
#include "controller/base/utf8.h"
#include <stdlib.h>
#include <string.h>

// Cuts valid UTF-8 after `chars` characters.
static void cut_chars(char *text, size_t chars)
{
    char *at = text;
    for (size_t n = 0; *at; at++) {
        bool is_start = ((unsigned char)*at & 0xC0) != 0x80;
        if (is_start && ++n > chars)
            break;
    }
    *at = '\0';
}

static void push(struct last_lines *last, char *line)
{
    struct text_list *lines = &last->lines;
    if (!lines->items)
        lines->items = mem_alloc(LAST_LINES_MAX * sizeof(char *));
    if (lines->count == LAST_LINES_MAX) {
        free(lines->items[0]);
        memmove(lines->items, lines->items + 1, (LAST_LINES_MAX - 1) * sizeof(char *));
        lines->count--;
    }
    lines->items[lines->count++] = line;
    if (last->told)
        last->told(last->arg, line);
}

void last_lines_end(struct last_lines *last)
{
    if (!last->partial.len)
        return;
    size_t len = last->partial.len;
    if (last->partial.data[len - 1] == '\r')
        len--;
    char *line = utf8_to_printable(last->partial.data, len, false);
    cut_chars(line, LAST_LINE_CHARS);
    buffer_free(&last->partial);
    push(last, line);
}

// Keeps what fits; a longer line loses its end.
static void extend(struct last_lines *last, const char *bytes, size_t len)
{
    size_t room = last->partial.max - last->partial.len;
    buffer_append(&last->partial, bytes, len < room ? len : room);
}

void last_lines_add(struct last_lines *last, const char *bytes, size_t len)
{
    while (len) {
        const char *newline = memchr(bytes, '\n', len);
        size_t part = newline ? (size_t)(newline - bytes) : len;
        extend(last, bytes, part);
        if (newline)
            last_lines_end(last);
        part += newline != NULL;
        bytes += part;
        len -= part;
    }
}

void last_lines_free(struct last_lines *last)
{
    for (size_t i = 0; i < last->lines.count; i++)
        free(last->lines.items[i]);
    free(last->lines.items);
    last->lines = (struct text_list){0};
    buffer_free(&last->partial);
}
