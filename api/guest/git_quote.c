#include "api/guest/git_quote.h"
#include "controller/base/cleanup.h"
#include "controller/base/memory.h"
#include <string.h>

static const char letters[] = "abtnvfr\"\\", meanings[] = "\a\b\t\n\v\f\r\"\\";

static bool needs_quotes(unsigned char c)
{
    return c < 0x20 || c >= 0x7f || c == '"' || c == '\\';
}

static void quote_char(struct buffer *out, char c)
{
    const char *known = strchr(meanings, c);
    if (known)
        buffer_format(out, "\\%c", letters[known - meanings]);
    else
        buffer_format(out, "\\%03o", (unsigned char)c);
}

void git_quote(struct buffer *out, const char *name)
{
    const char *first = name;
    while (*first && !needs_quotes((unsigned char)*first))
        first++;
    if (!*first) {
        buffer_append_text(out, name);
        return;
    }
    buffer_append_char(out, '"');
    for (; *name; name++) {
        if (needs_quotes((unsigned char)*name))
            quote_char(out, *name);
        else
            buffer_append_char(out, *name);
    }
    buffer_append_char(out, '"');
}

// One escape behind its backslash: its length, or 0.
static size_t unescape(const char *text, size_t len, char *ret)
{
    const char *known = len && *text ? strchr(letters, *text) : NULL;
    if (known) {
        *ret = meanings[known - letters];
        return 1;
    }
    if (len < 3 || text[0] < '0' || text[0] > '3' || text[1] < '0' || text[1] > '7' || text[2] < '0' ||
        text[2] > '7')
        return 0;
    *ret = (char)((text[0] - '0') << 6 | (text[1] - '0') << 3 | (text[2] - '0'));
    return *ret ? 3 : 0;
}

size_t git_unquote(const char *text, size_t len, char **ret_name)
{
    CLEANUP(buffer_free) struct buffer name = BUFFER_INIT(len);
    for (size_t i = 1; i < len; i++) {
        char c = text[i];
        if (c == '"') {
            buffer_text(&name);
            *ret_name = buffer_take_string(&name);
            return i + 1;
        }
        size_t escape = 0;
        if (!c || (c == '\\' && !(escape = unescape(text + i + 1, len - i - 1, &c))))
            return 0;
        buffer_append_char(&name, c);
        i += escape;
    }
    return 0;
}
