// What the API says about itself: every schema of its OpenAPI documents is whole, and says what the field tables do.
#include "controller/base/memory.h"
#include "schemas/kinds/tables.h"
#include "tests/support/api_rig.h"
#include <inttypes.h>
#include <regex.h>
#include <string.h>

#define REFERENCES OPENAPI_REFERENCES

static const char *const documents[] = {"/openapi/v3/api/v1", "/openapi/v3/apis/chat2shell.dev/v1", "/openapi/v3/apis/authorization.k8s.io/v1"};

static json_t *schemas_of(struct api_rig *api, const char *path)
{
    CLEANUP_JSON json_t *document = api_call(api, "GET", path, NULL, "", 200);
    return json_incref(api_at(document, "components/schemas"));
}

static json_t *field_at(const json_t *schema, const char *name)
{
    return json_object_get(json_object_get(schema, "properties"), name);
}

static const json_t *own_schema(const json_t *schemas, enum kind kind)
{
    const char *name;
    json_t *schema;
    json_object_foreach((json_t *)schemas, name, schema)
    {
        const char *at = api_text(schema, "x-kubernetes-group-version-kind/0/kind");
        if (strcmp(at, kind_info(kind)->name) == 0)
            return schema;
    }
    fail_msg("no schema of %s", kind_info(kind)->name);
    return NULL;
}

// ---- whole
// -----------------------------------------------------------------------------------------------------------------------
struct walk {
    const json_t *schemas;
    const char *document;
};

static const char *reference_of(const json_t *schema)
{
    const char *direct = json_get_text(schema, "$ref");
    return direct ? direct : json_get_text(json_array_get(json_object_get(schema, "allOf"), 0), "$ref");
}

static void check_schema(const struct walk *walk, const char *path, const json_t *schema);

static void check_reference(const struct walk *walk, const char *path, const char *reference)
{
    if (strncmp(reference, REFERENCES, strlen(REFERENCES)) != 0 || !json_object_get(walk->schemas, reference + strlen(REFERENCES)))
        fail_msg("%s %s: %s is not in the document", walk->document, path, reference);
}

static void check_keys(const struct walk *walk, const char *path, const json_t *schema)
{
    const json_t *items = json_object_get(schema, "items");
    const char *reference = reference_of(items);
    const json_t *one = reference ? json_object_get(walk->schemas, reference + strlen(REFERENCES)) : items;
    size_t i;
    json_t *key;
    json_array_foreach(json_object_get(schema, "x-kubernetes-list-map-keys"), i, key)
        if (!field_at(one, json_string_value(key)))
            fail_msg("%s %s: the list's key %s is no field of its items", walk->document, path, json_string_value(key));
}

static void check_list(const struct walk *walk, const char *path, const json_t *schema)
{
    const char *type = json_get_text(schema, "x-kubernetes-list-type");
    CLEANUP_FREE char *items = mem_format("%s[]", path);
    bool is_list = strstr(path, "List.items") != NULL; // of a kind: always new as a whole
    if (!json_is_object(json_object_get(schema, "items")))
        fail_msg("%s %s: a list without items", walk->document, path);
    if (!is_list && (!type || (strcmp(type, "atomic") != 0 && strcmp(type, "set") != 0 && strcmp(type, "map") != 0)))
        fail_msg("%s %s: a list of no list type", walk->document, path);
    if (type && (strcmp(type, "map") == 0) != (json_array_size(json_object_get(schema, "x-kubernetes-list-map-keys")) > 0))
        fail_msg("%s %s: keys and list type contradict", walk->document, path);
    check_keys(walk, path, schema);
    check_schema(walk, items, json_object_get(schema, "items"));
}

static void check_fields(const struct walk *walk, const char *path, const json_t *schema)
{
    const char *name;
    json_t *field;
    size_t i;
    json_object_foreach(json_object_get(schema, "properties"), name, field)
    {
        CLEANUP_FREE char *at = mem_format("%s.%s", path, name);
        const char *doc = json_get_text(field, "description");
        if (!doc || !*doc || doc[strlen(doc) - 1] != '.')
            fail_msg("%s %s: described by '%s'", walk->document, at, doc ? doc : "nothing");
        check_schema(walk, at, field);
    }
    json_array_foreach(json_object_get(schema, "required"), i, field)
        if (!field_at(schema, json_string_value(field)))
            fail_msg("%s %s: requires %s, which it does not have", walk->document, path, json_string_value(field));
}

static void check_schema(const struct walk *walk, const char *path, const json_t *schema)
{
    static const char *const types[] = {"string", "integer", "number", "boolean", "array", "object"};
    const char *reference = reference_of(schema), *type = json_get_text(schema, "type");
    bool is_known = false;
    for (size_t i = 0; type && i < ARRAY_LEN(types); i++)
        is_known |= strcmp(types[i], type) == 0;
    if (reference)
        check_reference(walk, path, reference);
    else if (!is_known && !json_object_get(schema, "anyOf") && !json_object_get(schema, "x-kubernetes-preserve-unknown-fields"))
        fail_msg("%s %s: of no type", walk->document, path);
    if (type && strcmp(type, "array") == 0)
        check_list(walk, path, schema);
    if (json_is_object(json_object_get(schema, "additionalProperties")))
        check_schema(walk, path, json_object_get(schema, "additionalProperties"));
    check_fields(walk, path, schema);
}

static void every_schema_is_described_typed_and_whole(void **state)
{
    struct api_rig *api = *state;
    for (size_t i = 0; i < ARRAY_LEN(documents); i++) {
        CLEANUP_JSON json_t *schemas = schemas_of(api, documents[i]);
        const struct walk walk = {schemas, documents[i]};
        const char *name;
        json_t *schema;
        assert_true(json_object_size(schemas) > 5);
        json_object_foreach(schemas, name, schema)
        {
            assert_true(*api_text(schema, "description"));
            check_schema(&walk, name, schema);
        }
    }
}

// ---- as the tables
// ---------------------------------------------------------------------------------------------------------------
// Reads {name: value} strictly: what the server would make of it.
static bool is_taken(const struct field_table *table, const struct field *field, json_t *value)
{
    CLEANUP_JSON json_t *object = json_pack("{s:o}", field->name, value);
    const struct field_table alone = {.doc = table->doc, .size = table->size, .fields = field, .count = 1};
    void *to = mem_alloc(table->size);
    struct error ignored = ERROR_INIT;
    bool is_right = fields_from_json(&alone, object, to, true, "", NULL, &ignored) == 0;
    fields_clear(&alone, to);
    free(to);
    return is_right;
}

static json_t *number_of(const struct field *field, int64_t value)
{
    char text[QUANTITY_TEXT_SIZE];
    if (field->type == FIELD_INT)
        return json_integer(value);
    (field->type == FIELD_MILLI ? milli_format : quantity_format)(value, text);
    return json_string(text);
}

static void check_number(const struct field_table *table, const struct field *field, const json_t *schema)
{
    double scale = field->type == FIELD_MILLI ? 1000 : 1;
    if (field->max <= field->min) {
        assert_null(json_object_get(schema, "minimum"));
        return;
    }
    assert_true(json_number_value(json_object_get(schema, "minimum")) * scale == (double)field->min);
    assert_true(is_taken(table, field, number_of(field, field->min)));
    assert_false(is_taken(table, field, number_of(field, field->min - 1)));
    if (field->max == INT64_MAX)
        return;
    assert_true(json_number_value(json_object_get(schema, "maximum")) * scale == (double)field->max);
    assert_true(is_taken(table, field, number_of(field, field->max)));
    assert_false(is_taken(table, field, number_of(field, field->max + 1)));
}

static json_t *text_of_length(size_t len)
{
    CLEANUP_FREE char *text = mem_alloc(len + 1);
    memset(text, 'a', len);
    if (len)
        text[0] = '/'; // a path at least
    return json_string(text);
}

// What the check takes, the pattern takes.
static void check_pattern(const char *path, const struct field *field, const char *pattern)
{
    static const char *const samples[] = {"a", "a-1", "-", "A", "", "/", "/a/b c", "/a/../b", "a b", "\x01", "/a\n", "ü", "/ü", "0"};
    regex_t regex;
    CLEANUP_FREE char *posix = mem_strdup(pattern);
    char *at = strstr(posix, "\\x00-\\x1f\\x7f"); // which POSIX cannot say
    if (at)
        memcpy(at, "\x01-\x1f\x7f\x7f\x7f\x7f\x7f\x7f\x7f\x7f\x7f\x7f", 13);
    assert_int_equal(regcomp(&regex, posix, REG_EXTENDED | REG_NOSUB), 0);
    size_t refused = 0;
    for (size_t i = 0; i < ARRAY_LEN(samples); i++) {
        bool fits = regexec(&regex, samples[i], 0, NULL, 0) == 0;
        refused += !fits;
        if (!field->check(samples[i]) && !fits)
            fail_msg("%s: the pattern %s does not take '%s', which is right", path, pattern, samples[i]);
    }
    assert_true(refused > 0);
    regfree(&regex);
}

static void check_text(const char *path, const struct field_table *table, const struct field *field, const json_t *schema)
{
    size_t max = (size_t)json_get_int(schema, "maxLength", 0);
    const char *pattern = json_get_text(schema, "pattern");
    assert_int_equal(max, field->max ? field->max : FIELDS_TEXT_MAX);
    if (!field->check)
        assert_true(is_taken(table, field, text_of_length(max)));
    assert_false(is_taken(table, field, text_of_length(max + 1)));
    if (!field->check != !pattern)
        fail_msg("%s: its check and the schema's pattern do not go together", path);
    if (pattern)
        check_pattern(path, field, pattern);
    assert_int_equal(json_get_int(schema, "minLength", 0), field->is_required ? 1 : 0);
    if (field->is_required)
        assert_false(is_taken(table, field, json_string("")));
}

static void check_enum(const struct field_table *table, const struct field *field, const json_t *words)
{
    size_t count = 0;
    for (; field->words[count]; count++) {
        assert_string_equal(json_string_value(json_array_get(words, count)), field->words[count]);
        if (field->type == FIELD_ENUM)
            assert_true(is_taken(table, field, json_string(field->words[count])));
    }
    assert_int_equal(json_array_size(words), count);
    if (field->type == FIELD_ENUM)
        assert_false(is_taken(table, field, json_string("another")));
}

static void check_table(const char *path, const struct field_table *table, const json_t *schema, bool is_written);

static void check_field(const char *path, const struct field_table *table, const struct field *field, const json_t *schema, bool is_written)
{
    const json_t *items = json_object_get(schema, "items");
    assert_non_null(schema);
    assert_memory_equal(json_get_text(schema, "description"), field->doc, strlen(field->doc));
    assert_int_equal(!field->is_immutable, !strstr(json_get_text(schema, "description"), "Cannot be changed."));
    if (field->default_json) {
        CLEANUP_JSON json_t *value = json_loads(field->default_json, JSON_DECODE_ANY, NULL);
        assert_true(json_equal(json_object_get(schema, "default"), value));
        assert_true(is_taken(table, field, json_incref(value)));
    }
    switch (field->type) {
    case FIELD_INT:
    case FIELD_QUANTITY:
    case FIELD_MILLI:
        check_number(table, field, schema);
        break;
    case FIELD_TEXT:
        if (is_written)
            check_text(path, table, field, schema);
        break;
    case FIELD_ENUM:
        check_enum(table, field, json_object_get(schema, "enum"));
        break;
    case FIELD_TIME:
        assert_string_equal(json_get_text(schema, "format"), "date-time");
        break;
    case FIELD_LIST:
        assert_string_equal(json_get_text(schema, "x-kubernetes-list-type"), field->key ? "map" : "atomic");
        if (field->key)
            assert_string_equal(api_text(schema, "x-kubernetes-list-map-keys/0"), field->key);
        check_table(path, field->fields, items, is_written);
        break;
    case FIELD_TEXT_LIST:
        assert_string_equal(json_get_text(schema, "x-kubernetes-list-type"), field->is_set ? "set" : "atomic");
        if (field->words)
            check_enum(table, field, json_object_get(items, "enum"));
        break;
    default:
        break;
    }
}

static bool is_required(const json_t *schema, const char *name)
{
    size_t i;
    json_t *each;
    json_array_foreach(json_object_get(schema, "required"), i, each)
        if (strcmp(json_string_value(each), name) == 0)
            return true;
    return false;
}

static void check_table(const char *path, const struct field_table *table, const json_t *schema, bool is_written)
{
    assert_int_equal(json_object_size(json_object_get(schema, "properties")), table->count);
    for (size_t i = 0; i < table->count; i++) {
        const struct field *field = &table->fields[i];
        CLEANUP_FREE char *at = mem_format("%s.%s", path, field->name);
        check_field(at, table, field, field_at(schema, field->name), is_written);
        assert_int_equal(is_required(schema, field->name), field->is_required && !field->default_json);
    }
    assert_int_equal(table->check != NULL, table->rule != NULL);
    if (table->rule)
        assert_string_equal(api_text(schema, "x-kubernetes-validations/0/rule"), table->rule);
}

static void every_field_table_is_in_the_schemas_with_bounds_that_hold(void **state)
{
    struct api_rig *api = *state;
    CLEANUP_JSON json_t *schemas = schemas_of(api, documents[1]);
    for (int kind = 0; kind < KIND_COUNT; kind++) {
        const json_t *schema = own_schema(schemas, (enum kind)kind), *status = field_at(schema, "status");
        CLEANUP_FREE char *path = mem_format("%s.spec", kind_info((enum kind)kind)->name);
        check_table(path, kind_spec_table((enum kind)kind), field_at(schema, "spec"), true);
        check_table("status", kind_status_table((enum kind)kind), status, false);
        assert_true(json_is_true(json_object_get(status, "readOnly")));
    }
}

static void quantities_are_a_type_of_their_own(void **state)
{
    struct api_rig *api = *state;
    CLEANUP_JSON json_t *schemas = schemas_of(api, documents[1]);
    const json_t *spec = field_at(own_schema(schemas, KIND_SANDBOX), "spec");
    assert_string_equal(reference_of(field_at(spec, "memory")), OPENAPI_REFERENCES OPENAPI_QUANTITY);
    assert_string_equal(reference_of(field_at(spec, "cpus")), OPENAPI_REFERENCES OPENAPI_QUANTITY);
    assert_non_null(strstr(json_get_text(field_at(spec, "memory"), "description"), "From 16Mi to 1Ti."));
    assert_true(json_is_true(api_at(json_object_get(schemas, OPENAPI_QUANTITY), "x-kubernetes-int-or-string")));
}

#define API_TEST(name) cmocka_unit_test_setup_teardown(name, api_rig_setup, api_rig_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        API_TEST(every_schema_is_described_typed_and_whole),
        API_TEST(every_field_table_is_in_the_schemas_with_bounds_that_hold),
        API_TEST(quantities_are_a_type_of_their_own),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
