// JSON values as YAML in block style, so that our own reader (and any other) reads back the same values.
#include "cli/printers/print.h"
#include "controller/base/cleanup.h"
#include "controller/base/json.h"
#include "controller/base/memory.h"
#include "controller/base/utf8.h"
#include <stdio.h>
#include <string.h>
#include <strings.h>

#define YAML_MAX_BYTES (256u * 1024 * 1024)

// Words that some YAML reader takes for something else than text.
static bool is_special_word(const char *text)
{
    static const char *const words[] = {"true", "false", "null", "yes", "no", "on", "off", "y", "n"};
    for (size_t i = 0; i < ARRAY_LEN(words); i++)
        if (strcasecmp(words[i], text) == 0)
            return true;
    return false;
}

static bool is_plain(const char *text, size_t len)
{
    static const char inside[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./@+,=:()- ";
    if (!len || strspn(text, inside) != len || is_special_word(text))
        return false;
    bool begins_well = (text[0] | 0x20) >= 'a' && (text[0] | 0x20) <= 'z';
    begins_well |= text[0] == '_' || text[0] == '/';
    return begins_well && text[len - 1] != ' ' && text[len - 1] != ':' && !strstr(text, ": ");
}

// U+FFFE and U+FFFF are characters of JSON, but not of YAML's text: they go out as escapes.
static void append_readable(struct buffer *out, const char *text)
{
    for (const char *at = text; *at;) {
        const char *odd = strstr(at, "\xEF\xBF\xBE"), *other = strstr(at, "\xEF\xBF\xBF");
        if (!odd || (other && other < odd))
            odd = other;
        if (!odd) {
            buffer_append_text(out, at);
            return;
        }
        buffer_append(out, at, (size_t)(odd - at));
        buffer_append_text(out, odd[2] == '\xBE' ? "\\ufffe" : "\\uffff");
        at = odd + 3;
    }
}

static void write_text(struct buffer *out, const char *text, size_t len)
{
    if (strlen(text) == len && is_plain(text, len)) {
        buffer_append(out, text, len);
        return;
    }
    CLEANUP_JSON json_t *value = json_stringn(text, len);
    CLEANUP_FREE char *quoted = json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT);
    CLEANUP_FREE char *printable = utf8_to_printable(quoted, strlen(quoted), false);
    append_readable(out, printable);
}

static void write_scalar(struct buffer *out, const json_t *value)
{
    if (json_is_string(value)) {
        write_text(out, json_string_value(value), json_string_length(value));
        return;
    }
    CLEANUP_FREE char *text = json_to_text(value);
    buffer_append_text(out, text);
}

static void indent(struct buffer *out, int depth)
{
    for (int i = 0; i < depth; i++)
        buffer_append_text(out, "  ");
}

static void write_block(struct buffer *out, const json_t *value, int depth, bool is_inline);

static bool is_block(const json_t *value)
{
    return json_object_size(value) || json_array_size(value);
}

// Readers look for the colon at most 1,024 characters far, and a byte may become six.
#define SIMPLE_KEY_MAX_BYTES 160

static bool is_short_written(const char *key, size_t len)
{
    return len < 1000 && is_plain(key, len);
}

static void write_key(struct buffer *out, const char *key, int depth)
{
    size_t len = strlen(key);
    if (len > SIMPLE_KEY_MAX_BYTES && !is_short_written(key, len)) {
        buffer_append_text(out, "? ");
        write_text(out, key, len);
        buffer_append_char(out, '\n');
        indent(out, depth);
    } else {
        write_text(out, key, len);
    }
}

static void write_member(struct buffer *out, const char *key, const json_t *value, int depth)
{
    write_key(out, key, depth);
    buffer_append_text(out, is_block(value) ? ":\n" : ": ");
    if (is_block(value)) {
        write_block(out, value, json_is_array(value) ? depth : depth + 1, false); // lists stand below their key, as kubectl has it
        return;
    }
    write_scalar(out, value);
    buffer_append_char(out, '\n');
}

// is_inline: the cursor stands behind "- " already.
static void write_object(struct buffer *out, const json_t *object, int depth, bool is_inline)
{
    const char *key;
    json_t *member;
    json_object_foreach((json_t *)object, key, member)
    {
        if (!is_inline)
            indent(out, depth);
        is_inline = false;
        write_member(out, key, member, depth);
    }
}

static void write_array(struct buffer *out, const json_t *array, int depth, bool is_inline)
{
    for (size_t i = 0; i < json_array_size(array); i++) {
        if (!is_inline)
            indent(out, depth);
        is_inline = false;
        buffer_append_text(out, "- ");
        write_block(out, json_array_get(array, i), depth + 1, true);
    }
}

static void write_block(struct buffer *out, const json_t *value, int depth, bool is_inline)
{
    if (json_object_size(value)) {
        write_object(out, value, depth, is_inline);
    } else if (json_array_size(value)) {
        write_array(out, value, depth, is_inline);
    } else {
        write_scalar(out, value);
        buffer_append_char(out, '\n');
    }
}

void yaml_write(struct buffer *out, const json_t *value)
{
    write_block(out, value, 0, false);
}

void print_yaml(const json_t *value)
{
    CLEANUP(buffer_free) struct buffer out = BUFFER_INIT(YAML_MAX_BYTES);
    yaml_write(&out, value);
    fwrite(buffer_text(&out), 1, out.len, stdout);
}
