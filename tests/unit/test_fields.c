#include "tests/support/support.h"
#include "controller/base/cleanup.h"
#include "controller/base/json.h"
#include "controller/base/memory.h"
#include "controller/fields/fields.h"
#include "controller/record.h"
#include "schemas/kinds/common.h"
#include <string.h>

// A table with every field type, so that the engine is tested apart from the kinds.
struct part {
    char *name;
    int64_t size;
};
struct part_list {
    struct part *items;
    size_t count;
};
struct sample {
    char *text;
    bool is_on;
    int64_t port, memory, cpus;
    int color;
    struct wall_time at;
    struct part part;
    struct part_list parts;
    struct text_list words;
    struct text_map labels;
    json_t *any;
};
static const char *const colors[] = {"", "red", "green", NULL};

static const char *check_even(const void *value)
{
    return *(const int64_t *)value % 2 ? "must be even" : NULL;
}

static int check_sample(const void *value, struct error *err)
{
    const struct sample *sample = value;
    if (sample->is_on && sample->port == 22)
        return error_set(err, ERROR_INVALID, NULL, "port: may not be 22 when `on` is 'true'");
    return 0;
}

static const struct field part_fields[] = {
    FIELD(struct part, name, "name", FIELD_TEXT, "Its name.", .is_required = true, .max = 8),
    FIELD(struct part, size, "size", FIELD_INT, "Its size.", .min = 1, .max = 10, .default_json = "2"),
};
static const struct field_table part_table = FIELD_TABLE(struct part, part_fields, "A part.");
static const struct field sample_fields[] = {
    FIELD(struct sample, text, "text", FIELD_TEXT, "Text.", .max = 10),
    FIELD(struct sample, is_on, "on", FIELD_BOOL, "On."),
    FIELD(struct sample, port, "port", FIELD_INT, "Port.", .min = 0, .max = 65535, .check = check_even),
    FIELD(struct sample, memory, "memory", FIELD_QUANTITY, "Memory.", .min = 1024, .max = 1LL << 40),
    FIELD(struct sample, cpus, "cpus", FIELD_MILLI, "Cpus.", .min = 100, .max = 8000),
    FIELD(struct sample, color, "color", FIELD_ENUM, "Color.", .words = colors),
    FIELD(struct sample, at, "at", FIELD_TIME, "When."),
    FIELD(struct sample, part, "part", FIELD_OBJECT, "One part.", .fields = &part_table),
    FIELD(struct sample, parts, "parts", FIELD_LIST, "Parts.", .fields = &part_table, .key = "name"),
    FIELD(struct sample, words, "words", FIELD_TEXT_LIST, "Words."),
    FIELD(struct sample, labels, "labels", FIELD_TEXT_MAP, "Labels.", .is_immutable = true),
    FIELD(struct sample, any, "any", FIELD_JSON, "Anything."),
};
static const struct field_table sample_table =
    FIELD_TABLE(struct sample, sample_fields, "A sample.", .check = check_sample);

static json_t *parse(const char *text)
{
    json_t *value = NULL;
    struct error err = ERROR_INIT;
    assert_ok(json_parse(text, strlen(text), &value, &err));
    return value;
}

static void assert_json(json_t *got, const char *wanted)
{
    CLEANUP_JSON json_t *value = got;
    CLEANUP_JSON json_t *expected = parse(wanted);
    CLEANUP_FREE char *text = json_to_text(value);
    if (!json_equal(value, expected))
        fail_msg("got %s, wanted %s", text, wanted);
}

#define FULL                                                                                                 \
    "{\"text\":\"hi\",\"on\":true,\"port\":80,\"memory\":\"512Mi\",\"cpus\":\"1.5\",\"color\":\"green\","    \
    "\"at\":\"2026-11-29T18:12:59.250Z\",\"part\":{\"name\":\"a\",\"size\":3},"                              \
    "\"parts\":[{\"name\":\"x\",\"size\":1},{\"name\":\"y\",\"size\":2}],\"words\":[\"b\",\"a\"],"           \
    "\"labels\":{\"k\":\"v\",\"a\":\"\"},\"any\":[1,{\"x\":null}]}"

static void every_type_survives_json_to_struct_to_json(void **state)
{
    (void)state;
    struct error err = ERROR_INIT;
    struct sample sample = {0};
    CLEANUP_JSON json_t *json = parse(FULL);
    assert_ok(fields_from_json(&sample_table, json, &sample, true, "spec", NULL, &err));
    assert_int_equal(sample.memory, 512 << 20);
    assert_int_equal(sample.cpus, 1500);
    assert_int_equal(sample.at.ms % 1000, 250);
    assert_string_equal(sample.labels.items[0].key, "a");
    assert_json(fields_to_json(&sample_table, &sample), FULL);
    fields_clear(&sample_table, &sample);
}

static void copies_are_equal_and_share_nothing(void **state)
{
    (void)state;
    struct error err = ERROR_INIT;
    struct sample sample = {0}, copy;
    CLEANUP_JSON json_t *json = parse(FULL);
    assert_ok(fields_from_json(&sample_table, json, &sample, true, "spec", NULL, &err));
    fields_copy(&sample_table, &sample, &copy);
    assert_true(fields_equal(&sample_table, &sample, &copy));
    mem_replace(&copy.parts.items[1].name, "z");
    assert_false(fields_equal(&sample_table, &sample, &copy));
    fields_clear(&sample_table, &sample);
    assert_string_equal(copy.parts.items[0].name, "x");
    fields_clear(&sample_table, &copy);
    assert_true(fields_equal(&sample_table, &sample, &copy));
}

static void absent_values_are_left_out_and_an_empty_object_is_the_zero_struct(void **state)
{
    (void)state;
    struct error err = ERROR_INIT;
    struct sample sample = {0}, zero = {0};
    assert_json(fields_to_json(&sample_table, &zero), "{}");
    CLEANUP_JSON json_t *json = parse("{\"text\":null,\"parts\":[],\"labels\":{},\"color\":\"\"}");
    assert_ok(fields_from_json(&sample_table, json, &sample, true, "", NULL, &err));
    assert_true(fields_equal(&sample_table, &sample, &zero));
    fields_clear(&sample_table, &sample);
}

static void one_wrong_value_gives_one_problem_with_its_path(void **state)
{
    (void)state;
    static const struct {
        const char *json, *message;
    } rows[] = {
        {"{\"text\":1}", "spec.text: must be a string, not an integer"},
        {"{\"text\":\"01234567890\"}", "spec.text: must be no more than 10 bytes"},
        {"{\"on\":\"yes\"}", "spec.on: must be a boolean ('true' or 'false'), not a string"},
        {"{\"port\":70000}", "spec.port: must be between 0 and 65535, inclusive, not 70000"},
        {"{\"port\":-2}", "spec.port: must be between 0 and 65535, inclusive, not -2"},
        {"{\"port\":1.5}", "spec.port: must be an integer, not a number"},
        {"{\"port\":81}", "spec.port: must be even"},
        {"{\"port\":22,\"on\":true}", "spec.port: may not be 22 when `on` is 'true'"},
        {"{\"memory\":\"1Zi\"}",
         "spec.memory: must be a whole number of bytes like '512Mi', '2Gi' or '1G', not '1Zi'"},
        {"{\"memory\":\"1\"}", "spec.memory: must be between 1Ki and 1Ti, inclusive, not 1"},
        {"{\"memory\":true}",
         "spec.memory: must be a whole number of bytes like '512Mi', '2Gi' or '1G', not a boolean"},
        {"{\"cpus\":\"9\"}", "spec.cpus: must be between 0.1 and 8, inclusive, not 9"},
        {"{\"cpus\":0.0001}",
         "spec.cpus: must be a number like '2', '1.5' or '500m' with at most three decimals, not '0.0001'"},
        {"{\"color\":\"blue\"}", "spec.color: must be one of 'red', 'green', not 'blue'"},
        {"{\"at\":\"yesterday\"}",
         "spec.at: must be a time like '2026-11-29T18:12:59Z' (RFC 3339, UTC), not 'yesterday'"},
        {"{\"part\":[]}", "spec.part: must be an object, not a list"},
        {"{\"part\":{}}", "spec.part.name: must be specified"},
        {"{\"part\":{\"name\":\"\"}}", "spec.part.name: must not be empty"},
        {"{\"parts\":{}}", "spec.parts: must be a list, not an object"},
        {"{\"parts\":[{\"name\":\"a\"},{\"name\":\"b\",\"size\":11}]}",
         "spec.parts[1].size: must be between 1 and 10, inclusive, not 11"},
        {"{\"parts\":[{\"name\":\"a\"},{\"name\":\"a\"}]}", "spec.parts[1]: must not repeat `name` 'a'"},
        {"{\"words\":[\"a\",2]}", "spec.words[1]: must be a string, not an integer"},
        {"{\"labels\":{\"a.b\":3}}", "spec.labels.a.b: must be a string, not an integer"},
        {"{\"prot\":80}", "spec.prot: unknown field 'prot'; did you mean `port`?"},
        {"{\"banana\":80}", "spec.banana: unknown field 'banana'"},
        {"{\"part\":{\"name\":\"a\",\"siez\":1}}",
         "spec.part.siez: unknown field 'siez'; did you mean `size`?"},
        {"[]", "spec: must be an object, not a list"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct error err = ERROR_INIT;
        struct sample sample = {.text = mem_strdup("kept")};
        CLEANUP_JSON json_t *json = parse(rows[i].json);
        CLEANUP_JSON json_t *causes = json_array();
        assert_error(fields_from_json(&sample_table, json, &sample, true, "spec", causes, &err),
                     ERROR_INVALID);
        assert_string_equal(err.message, rows[i].message);
        assert_int_equal(json_array_size(causes), 1);
        assert_string_equal(sample.text, "kept");
        fields_clear(&sample_table, &sample);
    }
}

static void all_problems_are_collected_up_to_twenty(void **state)
{
    (void)state;
    struct error err = ERROR_INIT;
    struct sample sample = {0};
    CLEANUP_JSON json_t *causes = json_array();
    CLEANUP_JSON json_t *json = json_object();
    for (int i = 0; i < 50; i++) {
        CLEANUP_FREE char *name = mem_format("unheardOf%d", i);
        json_object_set_new(json, name, json_true());
    }
    assert_error(fields_from_json(&sample_table, json, &sample, true, "spec", causes, &err), ERROR_INVALID);
    assert_int_equal(json_array_size(causes), FIELDS_MAX_PROBLEMS);
    assert_non_null(strstr(err.message, "spec.unheardOf0"));
    assert_non_null(strstr(err.message, "more problems"));
}

static void a_lenient_reader_skips_unknown_fields_and_bounds_but_not_wrong_types(void **state)
{
    (void)state;
    struct error err = ERROR_INIT;
    struct sample sample = {0};
    CLEANUP_JSON json_t *newer =
        parse("{\"newer\":1,\"port\":70001,\"part\":{},\"text\":\"longer than its maximum\"}");
    assert_ok(fields_from_json(&sample_table, newer, &sample, false, "spec", NULL, &err));
    assert_int_equal(sample.port, 70001);
    CLEANUP_JSON json_t *wrong = parse("{\"port\":\"x\"}");
    assert_error(fields_from_json(&sample_table, wrong, &sample, false, "spec", NULL, &err), ERROR_INVALID);
    assert_int_equal(sample.port, 70001);
    fields_clear(&sample_table, &sample);
}

static void defaults_fill_absent_members_of_items_too(void **state)
{
    (void)state;
    struct error err = ERROR_INIT;
    struct sample sample = {0};
    CLEANUP_JSON json_t *json = parse("{\"parts\":[{\"name\":\"a\"}]}");
    assert_ok(fields_from_json(&sample_table, json, &sample, true, "spec", NULL, &err));
    assert_int_equal(sample.parts.items[0].size, 2);
    assert_json(fields_to_json(&sample_table, &sample), "{\"parts\":[{\"name\":\"a\",\"size\":2}]}");
    fields_clear(&sample_table, &sample);
}

static void hostile_values_are_quoted_printable_and_short_in_messages(void **state)
{
    (void)state;
    struct error err = ERROR_INIT;
    struct sample sample = {0};
    char value[9000];
    memset(value, 'x', sizeof(value) - 1);
    value[sizeof(value) - 1] = '\0';
    memcpy(value, "\x1b[31m", 5);
    CLEANUP_JSON json_t *json = json_pack("{s:s, s:i}", "color", value, value, 1);
    assert_error(fields_from_json(&sample_table, json, &sample, true, "spec", NULL, &err), ERROR_INVALID);
    assert_null(strchr(err.message, '\x1b'));
    assert_non_null(strstr(err.message, "'\\u001b[31mxxx"));
    CLEANUP_JSON json_t *key = parse("{\"\\u001b[31m\":1}");
    assert_error(fields_from_json(&sample_table, key, &sample, true, "spec", NULL, &err), ERROR_INVALID);
    assert_string_equal(err.message, "spec.\\u001b[31m: unknown field '\\u001b[31m'");
}

static void changed_immutable_fields_are_named(void **state)
{
    (void)state;
    struct error err = ERROR_INIT;
    struct sample before = {.port = 1}, after = {.port = 2};
    assert_ok(fields_check_immutable(&sample_table, &before, &after, "spec", NULL, &err));
    text_map_set(&after.labels, "a", "b");
    assert_error(fields_check_immutable(&sample_table, &before, &after, "spec", NULL, &err), ERROR_INVALID);
    assert_string_equal(err.message, "spec.labels: may not be changed: the field is immutable");
    fields_clear(&sample_table, &after);
}

static void quantities_print_in_their_shortest_exact_form_and_read_back(void **state)
{
    (void)state;
    static const struct {
        int64_t bytes;
        const char *text;
    } rows[] = {{0, "0"},           {1, "1"},
                {1000, "1k"},       {1024, "1Ki"},
                {1500, "1500"},     {512 << 20, "512Mi"},
                {1LL << 30, "1Gi"}, {1000000000, "1G"},
                {1LL << 60, "1Ei"}, {INT64_MAX, "9223372036854775807"}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        char text[QUANTITY_TEXT_SIZE];
        int64_t bytes = -1;
        quantity_format(rows[i].bytes, text);
        assert_string_equal(text, rows[i].text);
        assert_int_equal(quantity_parse(text, &bytes), 0);
        assert_int_equal(bytes, rows[i].bytes);
    }
}

static void quantities_that_are_no_whole_number_of_bytes_are_refused(void **state)
{
    (void)state;
    static const char *const wrong[] = {"",    "Mi",    "-1",   "+1",  " 1",
                                        "1 ",  "1mi",   "1e3",  "0.3", "9223372036854775808",
                                        "8Ei", "1.5.2", "1KiB", "nan", "0x10"};
    int64_t bytes = 7;
    for (size_t i = 0; i < ARRAY_LEN(wrong); i++)
        assert_int_equal(quantity_parse(wrong[i], &bytes), -1);
    assert_int_equal(bytes, 7);
    assert_int_equal(quantity_parse("1.5Gi", &bytes), 0);
    assert_int_equal(bytes, 1536LL << 20);
    assert_int_equal(quantity_parse("0.5k", &bytes), 0);
    assert_int_equal(bytes, 500);
}

static void thousandths_read_back_and_finer_parts_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *in, *out;
        int64_t milli;
    } rows[] = {{"2", "2", 2000},     {"1.5", "1.5", 1500},  {"500m", "0.5", 500},
                {".25", "0.25", 250}, {"0.001", "0.001", 1}, {"10", "10", 10000}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        char text[QUANTITY_TEXT_SIZE];
        int64_t milli;
        assert_int_equal(milli_parse(rows[i].in, &milli), 0);
        assert_int_equal(milli, rows[i].milli);
        milli_format(milli, text);
        assert_string_equal(text, rows[i].out);
    }
    int64_t milli;
    assert_int_equal(milli_parse("0.0001", &milli), -1);
    assert_int_equal(milli_parse("1.5m", &milli), -1);
    assert_int_equal(milli_parse("m", &milli), -1);
    assert_int_equal(milli_parse("9223372036854775807", &milli), -1);
}

static void openapi_states_types_bounds_words_defaults_and_merge_keys(void **state)
{
    (void)state;
    CLEANUP_JSON json_t *schema = fields_to_openapi(&sample_table);
    json_t *properties = json_object_get(schema, "properties");
    assert_int_equal(json_object_size(properties), ARRAY_LEN(sample_fields));
    assert_json(json_incref(json_object_get(properties, "port")),
                "{\"description\":\"Port.\",\"type\":\"integer\",\"format\":\"int64\",\"minimum\":0,"
                "\"maximum\":65535}");
    assert_json(json_incref(json_object_get(json_object_get(properties, "color"), "enum")),
                "[\"\",\"red\",\"green\"]");
    assert_json(json_incref(json_object_get(json_object_get(properties, "at"), "format")), "\"date-time\"");
    assert_json(
        json_incref(json_object_get(properties, "parts")),
        "{\"description\":\"Parts.\",\"type\":\"array\",\"maxItems\":1000,\"x-kubernetes-list-type\":\"map\","
        "\"x-kubernetes-list-map-keys\":[\"name\"],\"items\":{\"type\":\"object\",\"description\":\"A "
        "part.\","
        "\"required\":[\"name\"],\"properties\":{\"name\":{\"description\":\"Its "
        "name.\",\"type\":\"string\",\"minLength\":1,\"maxLength\":8},"
        "\"size\":{\"description\":\"Its "
        "size.\",\"type\":\"integer\",\"format\":\"int64\",\"minimum\":1,\"maximum\":10,\"default\":2}}}}");
    json_t *part = json_object_get(properties, "part");
    assert_string_equal(json_get_text(part, "description"), "One part.");
    assert_non_null(json_object_get(part, "required"));
}

static void a_path_finds_its_row(void **state)
{
    (void)state;
    assert_ptr_equal(fields_find(&sample_table, "parts.size"), &part_fields[1]);
    assert_ptr_equal(fields_find(&sample_table, "port"), &sample_fields[2]);
    assert_null(fields_find(&sample_table, "parts.siz"));
    assert_null(fields_find(&sample_table, "port.x"));
    assert_null(fields_find(&sample_table, ""));
}

// ---- the kinds' own tables
// -----------------------------------------------------------------------------------------
static void check_rows(const struct field_table *table)
{
    assert_non_null(table->doc);
    assert_true(strlen(table->doc) > 5);
    for (size_t i = 0; i < table->count; i++) {
        const struct field *field = &table->fields[i];
        assert_non_null(field->doc);
        if (strlen(field->doc) < 5 || field->doc[strlen(field->doc) - 1] != '.' || strchr(field->doc, '\n'))
            fail_msg("field %s: its doc is not one line that ends with a full stop", field->name);
        assert_true(field->offset < table->size);
        assert_true(field->type == FIELD_TEXT_LIST || (field->type == FIELD_ENUM) == (field->words != NULL));
        assert_true((field->type == FIELD_OBJECT || field->type == FIELD_LIST) == (field->fields != NULL));
        if (field->fields)
            check_rows(field->fields);
        if (field->key)
            assert_int_equal(fields_find(field->fields, field->key)->type, FIELD_TEXT);
        for (size_t j = 0; j < i; j++)
            assert_string_not_equal(table->fields[j].name, field->name);
    }
}

static void every_row_of_every_kind_is_documented_and_sound(void **state)
{
    (void)state;
    for (int kind = 0; kind < KIND_COUNT; kind++) {
        check_rows(kind_spec_table((enum kind)kind));
        check_rows(kind_status_table((enum kind)kind));
    }
    check_rows(&record_meta_table);
}

static void every_default_is_valid_for_its_own_row(void **state)
{
    (void)state;
    for (int kind = 0; kind < KIND_COUNT; kind++) {
        const struct field_table *table = kind_spec_table((enum kind)kind);
        for (size_t i = 0; i < table->count; i++) {
            struct error err = ERROR_INIT;
            const struct field *field = &table->fields[i];
            if (!field->default_json)
                continue;
            const struct field_table alone = {
                .doc = "One row.", .size = table->size, .fields = field, .count = 1};
            CLEANUP_FREE void *value = mem_alloc(table->size);
            CLEANUP_JSON json_t *json = json_object();
            json_object_set_new(json, field->name, parse(field->default_json));
            assert_ok(fields_from_json(&alone, json, value, true, "", NULL, &err));
            fields_clear(&alone, value);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_type_survives_json_to_struct_to_json),
        cmocka_unit_test(copies_are_equal_and_share_nothing),
        cmocka_unit_test(absent_values_are_left_out_and_an_empty_object_is_the_zero_struct),
        cmocka_unit_test(one_wrong_value_gives_one_problem_with_its_path),
        cmocka_unit_test(all_problems_are_collected_up_to_twenty),
        cmocka_unit_test(a_lenient_reader_skips_unknown_fields_and_bounds_but_not_wrong_types),
        cmocka_unit_test(defaults_fill_absent_members_of_items_too),
        cmocka_unit_test(hostile_values_are_quoted_printable_and_short_in_messages),
        cmocka_unit_test(changed_immutable_fields_are_named),
        cmocka_unit_test(quantities_print_in_their_shortest_exact_form_and_read_back),
        cmocka_unit_test(quantities_that_are_no_whole_number_of_bytes_are_refused),
        cmocka_unit_test(thousandths_read_back_and_finer_parts_are_refused),
        cmocka_unit_test(openapi_states_types_bounds_words_defaults_and_merge_keys),
        cmocka_unit_test(a_path_finds_its_row),
        cmocka_unit_test(every_row_of_every_kind_is_documented_and_sound),
        cmocka_unit_test(every_default_is_valid_for_its_own_row),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
