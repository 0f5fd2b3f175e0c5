#include "controller/base/json_span.h"
#include "controller/base/json.h"
#include "controller/base/memory.h"
#include <string.h>

static bool is_escaped(const char *begin, const char *quote)
{
    const char *at = quote;
    while (at > begin && at[-1] == '\\')
        at--;
    return (quote - at) % 2;
}

// Each skip ends behind what it names, or at `end` where that is cut off.
static const char *skip_string(const char *at, const char *end)
{
    const char *begin = ++at;
    while (at < end && (at = memchr(at, '"', (size_t)(end - at)))) {
        if (!is_escaped(begin, at))
            return at + 1;
        at++;
    }
    return end;
}

static const char *skip_nested(const char *at, const char *end)
{
    enum { PLAIN, QUOTE, OPENING, CLOSING };
    static const unsigned char classes[256] = {['"'] = QUOTE, ['{'] = OPENING, ['['] = OPENING, ['}'] = CLOSING, [']'] = CLOSING};
    size_t depth = 0;
    while (at < end) {
        unsigned char class = classes[(unsigned char)*at];
        if (class == QUOTE) {
            at = skip_string(at, end);
            continue;
        }
        at++;
        depth += class == OPENING;
        if (class == CLOSING && --depth == 0)
            return at;
    }
    return end;
}

static const char *skip_value(const char *at, const char *end)
{
    if (at < end && *at == '"')
        return skip_string(at, end);
    if (at < end && (*at == '{' || *at == '['))
        return skip_nested(at, end);
    while (at < end && *at != ',' && *at != '}' && *at != ']')
        at++;
    return at;
}

// Where the next member or item begins, NULL behind the last one.
static const char *begin_next(struct json_span in, char opening, size_t cursor)
{
    if (!in.at || in.len < 2 || in.at[0] != opening || cursor >= in.len)
        return NULL;
    const char *at = in.at + (cursor ? cursor : 1);
    if (cursor && *at != ',')
        return NULL;
    at += cursor != 0;
    return at < in.at + in.len - 1 ? at : NULL;
}

bool json_next_member(struct json_span object, size_t *cursor, struct json_span *ret_name, struct json_span *ret_value)
{
    const char *at = begin_next(object, '{', *cursor), *end = object.at + object.len;
    if (!at || *at != '"')
        return false;
    const char *colon = skip_string(at, end);
    if (colon - at < 2 || colon == end || *colon != ':')
        return false;
    const char *behind = skip_value(colon + 1, end);
    *ret_name = (struct json_span){at + 1, (size_t)(colon - at) - 2};
    *ret_value = (struct json_span){colon + 1, (size_t)(behind - colon) - 1};
    *cursor = (size_t)(behind - object.at);
    return true;
}

bool json_next_item(struct json_span array, size_t *cursor, struct json_span *ret)
{
    const char *at = begin_next(array, '[', *cursor);
    if (!at)
        return false;
    const char *behind = skip_value(at, array.at + array.len);
    *ret = (struct json_span){at, (size_t)(behind - at)};
    *cursor = (size_t)(behind - array.at);
    return behind > at;
}

void json_find_members(struct json_span object, const char *const names[], size_t count, struct json_span ret[])
{
    size_t cursor = 0, found = 0;
    struct json_span at, value;
    for (size_t i = 0; i < count; i++)
        ret[i] = (struct json_span){0};
    while (found < count && json_next_member(object, &cursor, &at, &value))
        for (size_t i = 0; i < count; i++)
            if (!ret[i].at && json_span_is(at, names[i])) {
                ret[i] = value;
                found++;
            }
}

struct json_span json_member(struct json_span object, const char *name)
{
    struct json_span value;
    json_find_members(object, &name, 1, &value);
    return value;
}

bool json_span_is(struct json_span span, const char *text)
{
    return span.at && strlen(text) == span.len && memcmp(span.at, text, span.len) == 0;
}

bool json_span_is_string(struct json_span span)
{
    return span.len >= 2 && span.at[0] == '"';
}

bool json_span_is_integer(struct json_span span)
{
    bool is_integer = span.len > 0 && (span.at[0] == '-' || (span.at[0] >= '0' && span.at[0] <= '9'));
    for (size_t i = 1; is_integer && i < span.len; i++)
        is_integer = span.at[i] >= '0' && span.at[i] <= '9';
    return is_integer;
}

char *json_span_to_text(struct json_span span)
{
    CLEANUP_JSON json_t *value = NULL;
    if (!json_span_is_string(span))
        return NULL;
    if (!memchr(span.at, '\\', span.len))
        return mem_strndup(span.at + 1, span.len - 2);
    return json_parse(span.at, span.len, &value, NULL) == 0 ? mem_strdup_or_null(json_string_value(value)) : NULL;
}

void json_put_span(struct buffer *to, struct json_span span)
{
    buffer_append(to, span.at, span.len);
}

static bool is_plain(const char *text)
{
    while (*text >= ' ' && *text <= '~' && *text != '"' && *text != '\\')
        text++;
    return !*text;
}

void json_put_string(struct buffer *to, const char *text)
{
    if (is_plain(text)) {
        buffer_append_char(to, '"');
        buffer_append_text(to, text);
        buffer_append_char(to, '"');
        return;
    }
    CLEANUP_JSON json_t *value = json_from_text(text);
    CLEANUP_FREE char *escaped = json_to_text(value);
    buffer_append_text(to, escaped);
}
