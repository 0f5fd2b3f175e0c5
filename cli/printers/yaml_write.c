// JSON values as YAML in block style, so that our own reader (and any other) reads back the same values.
#include "cli/printers/print.h"
#include "controller/base/cleanup.h"
#include "controller/base/json.h"
#include "controller/base/memory.h"
#include "controller/base/utf8.h"
#include <assert.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

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
static void append_readable(FILE *out, const char *text)
{
    for (const char *at = text; *at;) {
        const char *odd = strstr(at, "\xEF\xBF\xBE"), *other = strstr(at, "\xEF\xBF\xBF");
        if (!odd || (other && other < odd))
            odd = other;
        if (!odd) {
            fputs(at, out);
            return;
        }
        fwrite(at, 1, (size_t)(odd - at), out);
        fputs(odd[2] == '\xBE' ? "\\ufffe" : "\\uffff", out);
        at = odd + 3;
    }
}

static void write_text(FILE *out, const char *text, size_t len)
{
    if (strlen(text) == len && is_plain(text, len)) {
        fwrite(text, 1, len, out);
        return;
    }
    CLEANUP_JSON json_t *value = json_stringn(text, len);
    CLEANUP_FREE char *quoted = json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT);
    CLEANUP_FREE char *printable = utf8_to_printable(quoted, strlen(quoted), false);
    append_readable(out, printable);
}

static void write_scalar(FILE *out, const json_t *value)
{
    if (json_is_string(value)) {
        write_text(out, json_string_value(value), json_string_length(value));
        return;
    }
    CLEANUP_FREE char *text = json_to_text(value);
    fputs(text, out);
}

static void indent(FILE *out, int depth)
{
    for (int i = 0; i < depth; i++)
        fputs("  ", out);
}

static void write_block(FILE *out, const json_t *value, int depth, bool is_inline);

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

static void write_key(FILE *out, const char *key, int depth)
{
    size_t len = strlen(key);
    if (len > SIMPLE_KEY_MAX_BYTES && !is_short_written(key, len)) {
        fputs("? ", out);
        write_text(out, key, len);
        fputc('\n', out);
        indent(out, depth);
    } else {
        write_text(out, key, len);
    }
}

static void write_member(FILE *out, const char *key, const json_t *value, int depth)
{
    write_key(out, key, depth);
    fputs(is_block(value) ? ":\n" : ": ", out);
    if (is_block(value)) {
        write_block(out, value, json_is_array(value) ? depth : depth + 1, false); // lists stand below their key, as kubectl has it
        return;
    }
    write_scalar(out, value);
    fputc('\n', out);
}

// is_inline: the cursor stands behind "- " already.
static void write_object(FILE *out, const json_t *object, int depth, bool is_inline)
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

static void write_array(FILE *out, const json_t *array, int depth, bool is_inline)
{
    for (size_t i = 0; i < json_array_size(array); i++) {
        if (!is_inline)
            indent(out, depth);
        is_inline = false;
        fputs("- ", out);
        write_block(out, json_array_get(array, i), depth + 1, true);
    }
}

static void write_block(FILE *out, const json_t *value, int depth, bool is_inline)
{
    if (json_object_size(value)) {
        write_object(out, value, depth, is_inline);
    } else if (json_array_size(value)) {
        write_array(out, value, depth, is_inline);
    } else {
        write_scalar(out, value);
        fputc('\n', out);
    }
}

static ssize_t append_to_buffer(void *buffer, const char *bytes, size_t len)
{
    return buffer_append(buffer, bytes, len) < 0 ? 0 : (ssize_t)len;
}

void yaml_write(struct buffer *out, const json_t *value)
{
    FILE *stream = fopencookie(out, "w", (cookie_io_functions_t){.write = append_to_buffer});
    assert(stream); // it needs nothing but memory
    write_block(stream, value, 0, false);
    fclose(stream);
}

// Straight to where it goes: however much it is, none of it waits in memory.
void print_yaml(const json_t *value)
{
    write_block(stdout, value, 0, false);
}
