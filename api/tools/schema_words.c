#include "api/tools/schema_words.h"
#include "controller/base/buffer.h"
#include "controller/base/memory.h"
#include <string.h>

#define WORDS_MAX_BYTES 700 // an error's message has 1024

static void append_place(struct buffer *out, const struct schema_place *at)
{
    if (!at || !at->up)
        return;
    append_place(out, at->up);
    if (at->name)
        buffer_format(out, "%s%.64s", out->len ? "." : "", at->name);
    else
        buffer_format(out, "[%zu]", at->index);
}

static char *place_text(const struct schema_place *at)
{
    struct buffer out = BUFFER_INIT(WORDS_MAX_BYTES);
    append_place(&out, at);
    if (!out.len)
        buffer_append_text(&out, "arguments");
    return buffer_take_string(&out);
}

// Borrowed; NULL if nothing is said.
static const char *description_of(const struct schema_place *at)
{
    for (; at; at = at->up)
        if (json_get_text(at->schema, "description"))
            return json_get_text(at->schema, "description");
    return NULL;
}

static const char *article(const char *word)
{
    return strchr("aeio", word[0]) ? "an" : "a";
}

static void append_range(struct buffer *out, const json_t *min, const json_t *max)
{
    if (min && max)
        buffer_format(out, " from %lld to %lld", json_integer_value(min), json_integer_value(max));
    else if (min)
        buffer_format(out, " of at least %lld", json_integer_value(min));
    else if (max)
        buffer_format(out, " of at most %lld", json_integer_value(max));
}

static void append_lengths(struct buffer *out, json_int_t min, const json_t *max)
{
    json_int_t most = json_integer_value(max);
    if (max && min == most)
        buffer_format(out, " of exactly %lld characters", most);
    else if (max && min > 1)
        buffer_format(out, " of %lld to %lld characters", min, most);
    else if (max)
        buffer_format(out, " of at most %lld characters%s", most, min ? ", not empty" : "");
    else if (min)
        buffer_append_text(out, " that is not empty");
}

static void append_enum(struct buffer *out, const json_t *allowed)
{
    size_t i;
    json_t *one;
    buffer_append_text(out, "one of: ");
    json_array_foreach(allowed, i, one)
        buffer_format(out, "%s%s", i ? ", " : "", json_string_value(one) ? json_string_value(one) : "?");
}

static void append_type(struct buffer *out, const json_t *schema, const char *word)
{
    buffer_format(out, "%s %s", article(word), word);
    if (strcmp(word, "boolean") == 0)
        buffer_append_text(out, " (true or false)");
    else if (strcmp(word, "integer") == 0 || strcmp(word, "number") == 0)
        append_range(out, json_object_get(schema, "minimum"), json_object_get(schema, "maximum"));
    else if (strcmp(word, "string") == 0)
        append_lengths(out, json_get_int(schema, "minLength", 0), json_object_get(schema, "maxLength"));
}

static void append_allowed(struct buffer *out, const json_t *schema)
{
    const json_t *type = json_object_get(schema, "type"), *allowed = json_object_get(schema, "enum");
    size_t i;
    json_t *word;
    if (allowed)
        append_enum(out, allowed);
    else if (json_is_string(type))
        append_type(out, schema, json_string_value(type));
    json_array_foreach(type, i, word)
    {
        buffer_append_text(out, i ? " or " : "");
        append_type(out, schema, json_string_value(word));
    }
}

// What came, without its own words.
static void append_found(struct buffer *out, const json_t *value)
{
    static const char *const kinds[] = {
        [JSON_OBJECT] = "an object",   [JSON_ARRAY] = "an array", [JSON_STRING] = "a string",
        [JSON_INTEGER] = "an integer", [JSON_REAL] = "a number",  [JSON_TRUE] = "true",
        [JSON_FALSE] = "false",        [JSON_NULL] = "null"};
    if (json_is_integer(value))
        buffer_format(out, "%lld", json_integer_value(value));
    else if (json_is_real(value))
        buffer_format(out, "%.17g", json_real_value(value));
    else
        buffer_append_text(out, kinds[json_typeof(value)]);
}

static bool is_text_schema(const json_t *schema)
{
    const char *type = json_get_text(schema, "type");
    return type && strcmp(type, "string") == 0;
}

static void append_length(struct buffer *out, const json_t *text)
{
    const char *bytes = json_string_value(text);
    size_t count = 0;
    for (size_t i = 0; i < json_string_length(text); i++)
        count += ((unsigned char)bytes[i] & 0xC0) != 0x80;
    if (count)
        buffer_format(out, ", not of %zu", count);
}

int schema_fail_misfit(const json_t *value, const struct schema_place *at, struct error *err)
{
    const json_t *schema = at->schema;
    CLEANUP_FREE char *place = place_text(at);
    CLEANUP(buffer_free) struct buffer words = BUFFER_INIT(WORDS_MAX_BYTES);
    bool is_text = json_is_string(value) && is_text_schema(schema);
    if (is_text && json_get_int(schema, "minLength", 0) > 0 && !json_string_length(value))
        return error_set(err, ERROR_INVALID, description_of(at), "%s must not be empty", place);
    append_allowed(&words, schema);
    if (!is_text) {
        buffer_append_text(&words, ", not ");
        append_found(&words, value);
    } else if (!json_object_get(schema, "enum")) {
        append_length(&words, value);
    }
    return error_set(err, ERROR_INVALID, description_of(at), "%s must be %s", place, buffer_text(&words));
}

int schema_fail_missing(const char *name, const struct schema_place *at, struct error *err)
{
    const json_t *rule = json_object_get(json_object_get(at->schema, "properties"), name);
    const struct schema_place inner = {.up = at, .schema = rule, .name = name};
    CLEANUP_FREE char *place = place_text(&inner);
    return error_set(err, ERROR_INVALID, description_of(&inner), "%s is required", place);
}

int schema_fail_unknown(const char *name, const struct schema_place *at, struct error *err)
{
    const struct schema_place inner = {.up = at, .name = name};
    CLEANUP_FREE char *place = place_text(&inner);
    CLEANUP(buffer_free) struct buffer names = BUFFER_INIT(512);
    const char *key;
    json_t *ignored;
    json_object_foreach(json_object_get(at->schema, "properties"), key, ignored)
        buffer_format(&names, "%s%s", names.len ? ", " : "", key);
    error_set(err, ERROR_INVALID, NULL, "unknown argument %s", place);
    return error_hint(err,
                      names.len ? "leave it out; accepted are: %s" : "leave it out: there are no arguments%s",
                      buffer_text(&names));
}
