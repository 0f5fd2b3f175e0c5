// Field sets: what differs, what is merged and removed, and how the sets combine.
#include "tests/support/support.h"
#include "controller/base/json.h"
#include "controller/base/memory.h"
#include "controller/fields/owned.h"
#include "schemas/kinds/kinds.h"
#include <string.h>

struct port {
    char *name;
    int64_t number;
};
struct thing {
    struct port *ports;
    size_t port_count;
    struct text_list words, tags;
    int64_t size;
};
static const struct field port_fields[] = {
    FIELD(struct port, name, "name", FIELD_TEXT, "Name."),
    FIELD(struct port, number, "number", FIELD_INT, "Number."),
};
static const struct field_table port_table = FIELD_TABLE(struct port, port_fields, "A port.");
static const struct field thing_fields[] = {
    FIELD(struct thing, ports, "ports", FIELD_LIST, "Ports.", .fields = &port_table, .key = "name"),
    FIELD(struct thing, words, "words", FIELD_TEXT_LIST, "Owned as a whole."),
    FIELD(struct thing, tags, "tags", FIELD_TEXT_LIST, "Owned one by one.", .is_set = true),
    FIELD(struct thing, size, "size", FIELD_QUANTITY, "Size."),
};
static const struct field_table thing_table = FIELD_TABLE(struct thing, thing_fields, "A thing.");

static json_t *parse(const char *text)
{
    json_t *json = NULL;
    struct error err = ERROR_INIT;
    if (json_parse(text, strlen(text), &json, &err) < 0)
        fail_msg("%s: %s", text, err.message);
    return json;
}

static void assert_is(json_t *got, const char *wanted) // got: taken
{
    CLEANUP_JSON json_t *taken = got;
    CLEANUP_JSON json_t *expected = parse(wanted);
    CLEANUP_FREE char *text = json_to_text(taken);
    if (!json_equal(taken, expected))
        fail_msg("got %s, wanted %s", text, wanted);
}

#define OLD "{\"ports\": [{\"name\": \"a\", \"number\": 1}, {\"name\": \"b\"}], \"words\": [\"x\"], \"tags\": [\"t\", \"u\"], \"size\": \"1Gi\"}"

static void lists_are_owned_by_key_sets_by_value_and_others_as_a_whole(void **state)
{
    (void)state;
    CLEANUP_JSON json_t *old = parse(OLD);
    CLEANUP_JSON json_t *new = parse("{\"ports\": [{\"name\": \"a\", \"number\": 2}, {\"name\": \"c\"}], \"words\": [\"x\", \"y\"], \"tags\": [\"u\", \"v\"]}");
    assert_is(owned_diff(&thing_table, old, new),
              "{\"f:ports\": {\"k:{\\\"name\\\":\\\"a\\\"}\": {\"f:number\": {}}, \"k:{\\\"name\\\":\\\"c\\\"}\": {\".\": {}, \"f:name\": {}}},"
              "\"f:words\": {}, \"f:tags\": {\"v:\\\"v\\\"\": {}}}");
    CLEANUP_JSON json_t *set = owned_all(&thing_table, new);
    assert_is(owned_paths(set, 100), "[\".ports[name=\\\"a\\\"]\", \".ports[name=\\\"a\\\"].name\", \".ports[name=\\\"a\\\"].number\","
                                     "\".ports[name=\\\"c\\\"]\", \".ports[name=\\\"c\\\"].name\", \".words\", \".tags[=\\\"u\\\"]\", \".tags[=\\\"v\\\"]\"]");
}

static void a_merge_keeps_what_it_does_not_name(void **state)
{
    (void)state;
    CLEANUP_JSON json_t *old = parse(OLD);
    CLEANUP_JSON json_t *new = parse("{\"ports\": [{\"name\": \"b\", \"number\": 7}, {\"name\": \"c\"}], \"words\": [\"y\"], \"tags\": [\"v\"], \"size\": null}");
    assert_is(owned_merge(&thing_table, old, new),
              "{\"ports\": [{\"name\": \"a\", \"number\": 1}, {\"name\": \"b\", \"number\": 7}, {\"name\": \"c\"}], \"words\": [\"y\"],"
              "\"tags\": [\"t\", \"u\", \"v\"], \"size\": \"1Gi\"}");
}

static void a_removal_takes_the_members_and_keeps_items_that_others_have_parts_of(void **state)
{
    (void)state;
    json_t *json = parse(OLD);
    CLEANUP_JSON json_t *set = parse("{\"f:ports\": {\"k:{\\\"name\\\":\\\"a\\\"}\": {\".\": {}, \"f:name\": {}}, \"k:{\\\"name\\\":\\\"b\\\"}\": {\".\": {}, \"f:name\": {}}},"
                                     "\"f:words\": {}, \"f:tags\": {\"v:\\\"t\\\"\": {}, \"v:\\\"z\\\"\": {}}}");
    owned_remove(&thing_table, json, set);
    assert_is(json, "{\"ports\": [{\"name\": \"a\", \"number\": 1}], \"tags\": [\"u\"], \"size\": \"1Gi\"}");
}

static void values_have_one_form(void **state)
{
    (void)state;
    CLEANUP_JSON json_t *json = parse("{\"size\": \"1024Mi\", \"ports\": [{\"name\": \"a\", \"extra\": 1}], \"words\": 7, \"other\": true}");
    assert_is(owned_normalize(&thing_table, json), "{\"size\": \"1Gi\", \"ports\": [{\"name\": \"a\", \"extra\": 1}], \"words\": 7, \"other\": true}");
}

static void sets_combine_member_by_member(void **state)
{
    (void)state;
    static const struct {
        const char *a, *b, *both, *either, *only_a;
    } rows[] = {
        {"{\"f:x\": {}, \"f:y\": {}}", "{\"f:y\": {}, \"f:z\": {}}", "{\"f:y\": {}}", "{\"f:x\": {}, \"f:y\": {}, \"f:z\": {}}", "{\"f:x\": {}}"},
        {"{\"f:x\": {}}", "{\"f:x\": {\"f:y\": {}}}", "{}", "{\"f:x\": {\".\": {}, \"f:y\": {}}}", "{\"f:x\": {}}"},
        {"{\"f:x\": {\".\": {}, \"f:y\": {}}}", "{\"f:x\": {}}", "{\"f:x\": {}}", "{\"f:x\": {\".\": {}, \"f:y\": {}}}", "{\"f:x\": {\"f:y\": {}}}"},
        {"{\"f:x\": {\"f:y\": {}}}", "{\"f:x\": {\"f:y\": {}}}", "{\"f:x\": {\"f:y\": {}}}", "{\"f:x\": {\"f:y\": {}}}", "{}"},
        {"{}", "{\"f:x\": {}}", "{}", "{\"f:x\": {}}", "{}"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        CLEANUP_JSON json_t *a = parse(rows[i].a);
        CLEANUP_JSON json_t *b = parse(rows[i].b);
        json_t *either = json_deep_copy(a), *only_a = json_deep_copy(a);
        assert_is(owned_intersect(a, b), rows[i].both);
        owned_add(either, b);
        assert_is(either, rows[i].either);
        owned_subtract(only_a, b);
        assert_is(only_a, rows[i].only_a);
    }
}

static void sets_of_clients_are_looked_at(void **state)
{
    (void)state;
    static const struct {
        const char *set;
        bool is_valid;
    } rows[] = {
        {"{}", true},
        {"{\"f:a\": {\".\": {}, \"k:{\\\"n\\\":1}\": {}, \"v:\\\"x\\\"\": {}, \"v:7\": {}}}", true},
        {"{\"a\": {}}", false},
        {"{\"f:\": {}}", false},
        {"{\"f:a\": 1}", false},
        {"{\"k:[]\": {}}", false},
        {"{\"k:{}\": {}}", false},
        {"{\"v:{\": {}}", false},
        {"{\".\": {\"f:a\": {}}}", false},
        {"[]", false},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        CLEANUP_JSON json_t *set = parse(rows[i].set);
        if (owned_is_valid(set) != rows[i].is_valid)
            fail_msg("%s", rows[i].set);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lists_are_owned_by_key_sets_by_value_and_others_as_a_whole),
        cmocka_unit_test(a_merge_keeps_what_it_does_not_name),
        cmocka_unit_test(a_removal_takes_the_members_and_keeps_items_that_others_have_parts_of),
        cmocka_unit_test(values_have_one_form),
        cmocka_unit_test(sets_combine_member_by_member),
        cmocka_unit_test(sets_of_clients_are_looked_at),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
