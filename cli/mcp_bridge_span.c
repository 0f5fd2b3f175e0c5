#include "cli/mcp_bridge_span.h"
#include <string.h>

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

struct mcp_span mcp_span_trim(struct mcp_span span)
{
    while (span.len && is_blank(span.text[0]))
        span = (struct mcp_span){span.text + 1, span.len - 1};
    while (span.len && is_blank(span.text[span.len - 1]))
        span.len--;
    return span;
}

bool mcp_span_equals(struct mcp_span span, const char *text)
{
    return span.text && span.len == strlen(text) && memcmp(span.text, text, span.len) == 0;
}

// ---- a value's end ------------------------------------------------------------------------------------------------
static size_t string_len(const char *text, size_t len) // text[0] is the quote; len if it does not end
{
    for (size_t i = 1; i < len; i++) {
        if (text[i] == '\\')
            i++;
        else if (text[i] == '"')
            return i + 1;
    }
    return len;
}

static size_t nested_len(const char *text, size_t len)
{
    size_t depth = 0;
    for (size_t i = 0; i < len; i++) {
        if (text[i] == '"')
            i += string_len(text + i, len - i) - 1;
        else if (text[i] == '{' || text[i] == '[')
            depth++;
        else if ((text[i] == '}' || text[i] == ']') && --depth == 0)
            return i + 1;
    }
    return len;
}

static size_t value_len(const char *text, size_t len)
{
    if (len && text[0] == '"')
        return string_len(text, len);
    if (len && (text[0] == '{' || text[0] == '['))
        return nested_len(text, len);
    size_t at = 0;
    while (at < len && !is_blank(text[at]) && !memchr(",]}", text[at], 3))
        at++;
    return at;
}

// ---- walking ------------------------------------------------------------------------------------------------------
static struct mcp_span skip(struct mcp_span span, size_t count)
{
    return (struct mcp_span){span.text + count, span.len - count};
}

static struct mcp_span skip_blanks(struct mcp_span span)
{
    while (span.len && is_blank(span.text[0]))
        span = skip(span, 1);
    return span;
}

static bool take_char(struct mcp_span *at, char c)
{
    *at = skip_blanks(*at);
    if (!at->len || at->text[0] != c)
        return false;
    *at = skip(*at, 1);
    return true;
}

static bool take_value(struct mcp_span *at, struct mcp_span *ret)
{
    *at = skip_blanks(*at);
    size_t len = value_len(at->text, at->len);
    *ret = (struct mcp_span){at->text, len};
    *at = skip(*at, len);
    return len > 0;
}

bool mcp_span_member(struct mcp_span object, const char *name, struct mcp_span *ret)
{
    struct mcp_span at = object, key, value;
    if (!object.text || !take_char(&at, '{'))
        return false;
    size_t name_len = strlen(name);
    do {
        at = skip_blanks(at);
        if (!at.len || at.text[0] != '"' || !take_value(&at, &key) || !take_char(&at, ':') || !take_value(&at, &value))
            return false;
        if (key.len == name_len + 2 && memcmp(key.text + 1, name, name_len) == 0) {
            *ret = value;
            return true;
        }
    } while (take_char(&at, ','));
    return false;
}

bool mcp_span_element(struct mcp_span *at, struct mcp_span *ret)
{
    return at->text && (take_char(at, '[') || take_char(at, ',')) && take_value(at, ret);
}

// ---- the id of a long line ------------------------------------------------------------------------------------------
static void end_member(struct mcp_id_search *search)
{
    bool is_id = search->key_len == 2 && memcmp(search->key, "id", 2) == 0;
    search->is_found = search->is_found || (is_id && !search->is_over);
    if (!search->is_found)
        search->id_len = 0;
    search->is_over = false;
    search->place = MCP_AT_KEY;
}

static void take_value_char(struct mcp_id_search *search, char c)
{
    bool is_id = search->key_len == 2 && memcmp(search->key, "id", 2) == 0;
    if (!is_id || search->is_found)
        return;
    if (search->id_len < sizeof(search->id))
        search->id[search->id_len++] = c;
    else
        search->is_over = true;
}

static void feed_string(struct mcp_id_search *search, char c)
{
    bool is_end = c == '"' && !search->is_escaped;
    search->is_escaped = c == '\\' && !search->is_escaped;
    search->is_in_string = !is_end;
    if (search->place == MCP_IN_VALUE)
        take_value_char(search, c);
    else if (search->place == MCP_IN_KEY && is_end)
        search->place = MCP_AT_COLON;
    else if (search->place == MCP_IN_KEY && search->key_len < sizeof(search->key))
        search->key[search->key_len++] = c;
}

static void feed_outside(struct mcp_id_search *search, char c)
{
    bool is_close = c == '}' || c == ']';
    if (search->depth == 1 && search->place == MCP_IN_VALUE && (c == ',' || is_close))
        end_member(search);
    else if (search->place == MCP_IN_VALUE)
        take_value_char(search, c);
    if (search->depth == 1 && c == ':' && search->place == MCP_AT_COLON)
        search->place = MCP_IN_VALUE;
    if (search->depth == 1 && c == '"' && search->place == MCP_AT_KEY) {
        search->place = MCP_IN_KEY;
        search->key_len = 0;
    }
    search->is_in_string = c == '"';
    if (c == '{' || c == '[')
        search->depth++;
    else if (is_close && search->depth)
        search->depth--;
}

void mcp_id_search_feed(struct mcp_id_search *search, const char *bytes, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        if (search->is_in_string)
            feed_string(search, bytes[i]);
        else
            feed_outside(search, bytes[i]);
    }
}

struct mcp_span mcp_id_search_result(const struct mcp_id_search *search)
{
    return search->is_found ? mcp_span_trim((struct mcp_span){search->id, search->id_len}) : (struct mcp_span){0};
}
