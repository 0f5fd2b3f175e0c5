// JSON → struct: one reader a field type.
#include "controller/base/cleanup.h"
#include "controller/base/json.h"
#include "controller/base/memory.h"
#include "controller/base/time.h"
#include "controller/base/buffer.h"
#include "controller/fields/read.h"
#include "controller/record.h"
#include <inttypes.h>
#include <string.h>

#define MILLI_MAX 1000000000000.0 // beyond this a JSON number is not exact in thousandths

const char *fields_type_word(const json_t *json)
{
    static const char *const words[] = {
        [JSON_OBJECT] = "an object",   [JSON_ARRAY] = "a list",  [JSON_STRING] = "a string",
        [JSON_INTEGER] = "an integer", [JSON_REAL] = "a number", [JSON_TRUE] = "a boolean",
        [JSON_FALSE] = "a boolean",    [JSON_NULL] = "null",
    };
    return json ? words[json_typeof(json)] : "nothing";
}

static void report_type(struct reading *r, const char *wanted, const json_t *json,
                        const struct field_path *path)
{
    problems_add(&r->problems, path, CAUSE_TYPE, "must be %s, not %s", wanted, fields_type_word(json));
}

static bool read_string(struct reading *r, const json_t *json, const char **ret,
                        const struct field_path *path)
{
    if (!json_is_string(json)) {
        report_type(r, "a string", json, path);
        return false;
    }
    *ret = json_string_value(json);
    if (strlen(*ret) == json_string_length(json))
        return true;
    problems_add(&r->problems, path, CAUSE_INVALID, "must not contain NUL characters");
    return false;
}

static bool is_text_short(struct reading *r, const char *text, size_t max, const struct field_path *path)
{
    if (!r->is_strict || strlen(text) <= max)
        return true;
    problems_add(&r->problems, path, CAUSE_INVALID, "must be no more than %zu bytes", max);
    return false;
}

static size_t text_max(const struct field *field)
{
    return field->max ? (size_t)field->max : FIELDS_TEXT_MAX;
}

static void read_text(struct reading *r, const struct field *field, const json_t *json, void *at,
                      const struct field_path *path)
{
    const char *text;
    if (!read_string(r, json, &text, path) || !is_text_short(r, text, text_max(field), path))
        return;
    if (r->is_strict && field->is_required && !*text)
        problems_add(&r->problems, path, CAUSE_REQUIRED, "must not be empty");
    else
        mem_replace(at, text);
}

static void read_bool(struct reading *r, const struct field *field, const json_t *json, void *at,
                      const struct field_path *path)
{
    (void)field;
    if (json_is_boolean(json))
        *(bool *)at = json_is_true(json);
    else
        report_type(r, "a boolean ('true' or 'false')", json, path);
}

static void word_bound(const struct field *field, int64_t bound, char text[QUANTITY_TEXT_SIZE])
{
    if (field->type == FIELD_QUANTITY)
        quantity_format(bound, text);
    else if (field->type == FIELD_MILLI)
        milli_format(bound, text);
    else
        snprintf(text, QUANTITY_TEXT_SIZE, "%" PRId64, bound);
}

static void put_number(struct reading *r, const struct field *field, int64_t value, void *at,
                       const struct field_path *path)
{
    if (!r->is_strict || field->max <= field->min || (value >= field->min && value <= field->max)) {
        *(int64_t *)at = value;
        return;
    }
    char given[QUANTITY_TEXT_SIZE], min[QUANTITY_TEXT_SIZE], max[QUANTITY_TEXT_SIZE];
    word_bound(field, value, given);
    word_bound(field, field->min, min);
    word_bound(field, field->max, max);
    if (field->max == INT64_MAX)
        problems_add(&r->problems, path, CAUSE_INVALID, "must be at least %s, not %s", min, given);
    else
        problems_add(&r->problems, path, CAUSE_INVALID, "must be between %s and %s, inclusive, not %s", min,
                     max, given);
}

static void read_int(struct reading *r, const struct field *field, const json_t *json, void *at,
                     const struct field_path *path)
{
    if (json_is_integer(json))
        put_number(r, field, json_integer_value(json), at, path);
    else
        report_type(r, "an integer", json, path);
}

static void report_form(struct reading *r, const char *form, const char *given, const struct field_path *path)
{
    CLEANUP_FREE char *quoted = problems_quote(given);
    problems_add(&r->problems, path, CAUSE_INVALID, "must be %s, not %s", form, quoted);
}

#define QUANTITY_FORM "a whole number of bytes like '512Mi', '2Gi' or '1G'"
static void read_quantity(struct reading *r, const struct field *field, const json_t *json, void *at,
                          const struct field_path *path)
{
    int64_t value;
    if (json_is_integer(json))
        put_number(r, field, json_integer_value(json), at, path);
    else if (!json_is_string(json))
        report_type(r, QUANTITY_FORM, json, path);
    else if (quantity_parse(json_string_value(json), &value) < 0)
        report_form(r, QUANTITY_FORM, json_string_value(json), path);
    else
        put_number(r, field, value, at, path);
}

// 1.5 → 1500; only numbers that are whole in thousandths.
static int milli_from_number(const json_t *json, int64_t *ret)
{
    double milli = json_number_value(json) * 1000;
    if (!(milli >= 0 && milli < MILLI_MAX))
        return -1;
    int64_t whole = (int64_t)(milli + 0.5);
    double rest = milli - (double)whole;
    if (rest > 1e-6 || rest < -1e-6)
        return -1;
    *ret = whole;
    return 0;
}

#define MILLI_FORM "a number like '2', '1.5' or '500m' with at most three decimals"
static void read_milli(struct reading *r, const struct field *field, const json_t *json, void *at,
                       const struct field_path *path)
{
    int64_t value;
    if (!json_is_number(json) && !json_is_string(json)) {
        report_type(r, MILLI_FORM, json, path);
        return;
    }
    int bad =
        json_is_string(json) ? milli_parse(json_string_value(json), &value) : milli_from_number(json, &value);
    CLEANUP_FREE char *given = json_to_text(json);
    if (bad < 0)
        report_form(r, MILLI_FORM, json_is_string(json) ? json_string_value(json) : given, path);
    else
        put_number(r, field, value, at, path);
}

static void report_word(struct reading *r, const struct field *field, const char *given,
                        const struct field_path *path)
{
    CLEANUP(buffer_free) struct buffer words = BUFFER_INIT(512);
    for (const char *const *word = field->words; *word; word++)
        if (**word)
            buffer_format(&words, "%s'%s'", words.len ? ", " : "", *word);
    CLEANUP_FREE char *quoted = problems_quote(given);
    problems_add(&r->problems, path, CAUSE_WORD, "must be one of %s, not %s", buffer_text(&words), quoted);
}

static void read_enum(struct reading *r, const struct field *field, const json_t *json, void *at,
                      const struct field_path *path)
{
    const char *text;
    if (!read_string(r, json, &text, path))
        return;
    for (int i = 0; field->words[i]; i++)
        if (strcmp(field->words[i], text) == 0) {
            *(int *)at = i;
            return;
        }
    report_word(r, field, text, path);
}

static void read_time(struct reading *r, const struct field *field, const json_t *json, void *at,
                      const struct field_path *path)
{
    const char *text;
    (void)field;
    if (read_string(r, json, &text, path) && wall_time_parse(text, at) < 0)
        report_form(r, "a time like '2026-11-29T18:12:59Z' (RFC 3339, UTC)", text, path);
}

static void read_object(struct reading *r, const struct field *field, const json_t *json, void *at,
                        const struct field_path *path)
{
    read_table(r, field->fields, json, at, path);
}

static bool is_array(struct reading *r, const struct field *field, const json_t *json, const struct field_path *path)
{
    int max = field->max_items && r->is_strict ? field->max_items : FIELDS_LIST_MAX;
    if (!json_is_array(json)) {
        report_type(r, "a list", json, path);
        return false;
    }
    if (json_array_size(json) <= (size_t)max)
        return true;
    problems_add(&r->problems, path, CAUSE_INVALID, "must have no more than %d items", max);
    return false;
}

static const char *item_key(const struct field *field, const char *item)
{
    const struct field *key = field_by_name(field->fields, field->key, strlen(field->key));
    return *(char *const *)FIELD_AT(item, key);
}

// The merge key names an item: two of the same name would make an apply ambiguous.
static void check_item_key(struct reading *r, const struct field *field, const struct any_list *list,
                           size_t at, const struct field_path *path)
{
    const char *key = item_key(field, list->items + at * field->fields->size);
    for (size_t i = 0; key && i < at; i++) {
        const char *other = item_key(field, list->items + i * field->fields->size);
        if (other && strcmp(other, key) == 0) {
            CLEANUP_FREE char *quoted = problems_quote(key);
            problems_add(&r->problems, path, CAUSE_DUPLICATE, "must not repeat `%s` %s", field->key, quoted);
            return;
        }
    }
}

static void read_list(struct reading *r, const struct field *field, const json_t *json, void *at,
                      const struct field_path *path)
{
    struct any_list *list = at;
    if (!is_array(r, field, json, path) || !json_array_size(json))
        return;
    list->items = mem_alloc(json_array_size(json) * field->fields->size);
    for (size_t i = 0; i < json_array_size(json); i++) {
        struct field_path item = {.up = path, .index = i};
        read_table(r, field->fields, json_array_get(json, i), list->items + i * field->fields->size, &item);
        list->count = i + 1;
        if (field->key)
            check_item_key(r, field, list, i, &item);
    }
}

static bool has_word(const struct field *field, const char *text)
{
    const char *const *word = field->words;
    while (word && *word && strcmp(*word, text) != 0)
        word++;
    return !word || *word;
}

static bool is_item_right(struct reading *r, const struct field *field, const struct text_list *before, const char *text,
                          const struct field_path *path)
{
    if (!is_text_short(r, text, text_max(field), path))
        return false;
    if (!r->is_strict)
        return true;
    const char *wrong = field->check_item ? field->check_item(text) : NULL;
    if (!has_word(field, text))
        report_word(r, field, text, path);
    else if (field->is_set && text_list_has(before, text))
        problems_add(&r->problems, path, CAUSE_DUPLICATE, "must not be there twice");
    else if (wrong)
        problems_add(&r->problems, path, CAUSE_INVALID, "%s", wrong);
    else
        return true;
    return false;
}

static void read_text_list(struct reading *r, const struct field *field, const json_t *json, void *at,
                           const struct field_path *path)
{
    struct text_list *list = at;
    const char *text;
    if (!is_array(r, field, json, path))
        return;
    if (!json_array_size(json)) {
        if (field->is_required && r->is_strict)
            problems_add(&r->problems, path, CAUSE_REQUIRED, "must not be empty");
        return;
    }
    list->items = mem_alloc(json_array_size(json) * sizeof(*list->items));
    for (size_t i = 0; i < json_array_size(json); i++) {
        struct field_path item = {.up = path, .index = i};
        if (read_string(r, json_array_get(json, i), &text, &item) && is_item_right(r, field, list, text, &item))
            list->items[list->count++] = mem_strdup(text);
    }
}

static void read_text_map(struct reading *r, const struct field *field, const json_t *json, void *at,
                          const struct field_path *path)
{
    const char *key, *text;
    json_t *value;
    if (!json_is_object(json)) {
        report_type(r, "an object of strings", json, path);
        return;
    }
    if (json_object_size(json) > FIELDS_LIST_MAX) {
        problems_add(&r->problems, path, CAUSE_INVALID, "must have no more than %d entries", FIELDS_LIST_MAX);
        return;
    }
    json_object_foreach((json_t *)json, key, value)
    {
        struct field_path item = {.up = path, .name = key};
        if (read_string(r, value, &text, &item) && is_text_short(r, text, text_max(field), &item))
            text_map_set(at, key, text);
    }
}

static void read_json(struct reading *r, const struct field *field, const json_t *json, void *at,
                      const struct field_path *path)
{
    (void)field;
    CLEANUP_FREE char *text = json_to_text(json);
    if (r->is_strict && strlen(text) > FIELDS_JSON_MAX)
        problems_add(&r->problems, path, CAUSE_INVALID, "must be no more than %d bytes of JSON",
                     FIELDS_JSON_MAX);
    else
        *(json_t **)at = json_deep_copy(json);
}

typedef void reader(struct reading *r, const struct field *field, const json_t *json, void *at,
                    const struct field_path *path);
static reader *const readers[] = {
    [FIELD_TEXT] = read_text,           [FIELD_BOOL] = read_bool,         [FIELD_INT] = read_int,
    [FIELD_QUANTITY] = read_quantity,   [FIELD_MILLI] = read_milli,       [FIELD_ENUM] = read_enum,
    [FIELD_TIME] = read_time,           [FIELD_OBJECT] = read_object,     [FIELD_LIST] = read_list,
    [FIELD_TEXT_LIST] = read_text_list, [FIELD_TEXT_MAP] = read_text_map, [FIELD_JSON] = read_json,
};

void read_value(struct reading *r, const struct field *field, const json_t *json, void *at,
                const struct field_path *path)
{
    readers[field->type](r, field, json, at, path);
}
