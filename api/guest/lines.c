#include "api/guest/lines.h"
#include "controller/base/memory.h"
#include "controller/base/utf8.h"
#include <string.h>

struct cursor {
    const char *line, *end;
    size_t number;
};

static size_t line_len(const struct cursor *cursor)
{
    const char *stop = memchr(cursor->line, '\n', (size_t)(cursor->end - cursor->line));
    return (size_t)((stop ? stop : cursor->end) - cursor->line);
}

static void skip_line(struct cursor *cursor)
{
    cursor->line += line_len(cursor);
    cursor->line += cursor->line < cursor->end;
    cursor->number++;
}

// Jumps over lines that cannot match: most of them, for a plain text.
static void skip_to(struct cursor *cursor, const char *literal, size_t literal_len)
{
    const char *hit = memmem(cursor->line, (size_t)(cursor->end - cursor->line), literal, literal_len);
    if (!hit)
        cursor->line = cursor->end;
    for (const char *next; hit && (next = memchr(cursor->line, '\n', (size_t)(hit - cursor->line)));) {
        cursor->line = next + 1;
        cursor->number++;
    }
}

int lines_match(struct matcher *matcher, const char *text, size_t len,
                int (*found)(void *context, const struct line_match *match), void *context, struct error *err)
{
    struct cursor cursor = {text, text + len, 1};
    size_t literal_len;
    const char *literal = matcher_literal(matcher, &literal_len);
    while (cursor.line < cursor.end) {
        if (literal)
            skip_to(&cursor, literal, literal_len);
        if (cursor.line >= cursor.end)
            break;
        size_t n = line_len(&cursor);
        struct line_match match = {cursor.number, cursor.line, n - (n && cursor.line[n - 1] == '\r')};
        int result = matcher_match(matcher, match.at, match.len, err);
        if (result > 0)
            result = found(context, &match);
        if (result)
            return result;
        skip_line(&cursor);
    }
    return 0;
}

char *line_cut(const char *at, size_t len)
{
    size_t chars = 0, i = 0;
    while (i < len && chars < LINE_MAX_CHARS) {
        size_t n = utf8_char_len(at + i, len - i, NULL);
        i += n ? n : 1;
        chars++;
    }
    return i < len ? mem_format("%.*s…", (int)i, at) : mem_strndup(at, len);
}
