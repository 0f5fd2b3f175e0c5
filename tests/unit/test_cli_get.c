// What `get` does with answers before it prints them: order, columns, widths.
#include "cli/printers/columns.h"
#include "cli/server_table.h"
#include "controller/base/cleanup.h"
#include "controller/base/memory.h"
#include "tests/support/support.h"
#include <string.h>

static json_t *parse(const char *text)
{
    json_t *value = NULL;
    struct error err = ERROR_INIT;
    assert_ok(json_parse(text, strlen(text), &value, &err));
    return value;
}

static void assert_order(const char *values, const char *wanted)
{
    CLEANUP_JSON json_t *keys = parse(values), *items = json_array();
    struct json_expression by = {0};
    struct error err = ERROR_INIT;
    CLEANUP(buffer_free) struct buffer out = BUFFER_INIT(1024);
    for (size_t i = 0; i < json_array_size(keys); i++)
        json_array_append_new(items, json_is_null(json_array_get(keys, i)) ? json_pack("{s:i}", "i", i)
                                                                            : json_pack("{s:i, s:O}", "i", i, "k", json_array_get(keys, i)));
    assert_ok(json_expression_parse(".k", &by, &err));
    assert_ok(server_items_sort(items, &by, &err));
    for (size_t i = 0; i < json_array_size(items); i++)
        buffer_format(&out, "%d", (int)json_get_int(json_array_get(items, i), "i", -1));
    assert_string_equal(buffer_text(&out), wanted);
    json_expression_free(&by);
}

static void what_is_sorted_by_a_field_has_the_order_of_its_values(void **state)
{
    (void)state;
    assert_order("[\"b\", \"a\", \"c\"]", "102");
    assert_order("[10, 9, 100]", "102");
    assert_order("[\"10\", \"9\", \"100\"]", "102");
    assert_order("[\"1Gi\", \"512Mi\", 5]", "210");
    assert_order("[\"500m\", \"1.5\", \"1\"]", "021");
    assert_order("[\"a\", null, 1, null]", "1320"); // nothing, then numbers, then text
    assert_order("[\"x\", \"x\", \"x\"]", "012");
    assert_order("[]", "");
}

static void columns_of_labels_are_added_to_rows_and_headings(void **state)
{
    (void)state;
    CLEANUP_JSON json_t *table = parse("{\"columnDefinitions\":[{\"name\":\"Name\",\"priority\":0}],\"rows\":["
                                       "{\"cells\":[\"a\"],\"object\":{\"metadata\":{\"name\":\"a\",\"labels\":{\"x/team\":\"red\",\"n\":\"1\"}}}},"
                                       "{\"cells\":[\"b\"],\"object\":{\"metadata\":{\"name\":\"b\"}}}]}");
    CLEANUP(text_table_free) struct text_table text = {0};
    CLEANUP(buffer_free) struct buffer out = BUFFER_INIT(4096);
    server_table_add_label(table, "x/team");
    server_table_add_labels(table);
    server_table_qualify(table, "workspace");
    server_table_add_word(table, "Event", "ADDED");
    assert_int_equal(text_table_from_server(table, false, &text), 0);
    text_table_write(&text, true, &out);
    assert_string_equal(buffer_text(&out), "EVENT   NAME          TEAM     LABELS\n"
                                           "ADDED   workspace/a   red      x/team=red,n=1\n"
                                           "ADDED   workspace/b   <none>   <none>\n");
}

static void rows_of_a_later_table_stand_below_those_of_an_earlier_one(void **state)
{
    (void)state;
    CLEANUP(text_table_free) struct text_table first = {0}, second = {0};
    CLEANUP(buffer_free) struct buffer out = BUFFER_INIT(4096);
    text_table_add_row(&first, (const char *[]){"NAME", "AGE"}, 2);
    text_table_add_row(&first, (const char *[]){"a-long-name", "1s"}, 2);
    text_table_write(&first, true, &out);
    text_table_add_row(&second, (const char *[]){"NAME", "AGE"}, 2);
    text_table_add_row(&second, (const char *[]){"b", "2s"}, 2);
    text_table_widths(&first, 0, second.least_widths);
    text_table_write(&second, false, &out);
    assert_string_equal(buffer_text(&out), "NAME          AGE\na-long-name   1s\nb             2s\n");
}

static void custom_columns_have_a_cell_for_every_object(void **state)
{
    (void)state;
    CLEANUP(custom_columns_free) struct custom_columns *columns = NULL;
    CLEANUP(text_table_free) struct text_table table = {0};
    CLEANUP(buffer_free) struct buffer out = BUFFER_INIT(4096);
    CLEANUP_JSON json_t *object = parse("{\"a\":\"x\",\"l\":[{\"n\":\"p,q\",\"v\":1},{\"n\":\"r\",\"v\":2}]}");
    struct error err = ERROR_INIT;
    assert_ok(custom_columns_parse("A:.a,V:{.l[*].v},F:.l[?(@.n==\"p,q\")].v,NONE:b.c", &columns, &err));
    custom_columns_add_heading(columns, &table);
    assert_ok(custom_columns_add_row(columns, object, &table, &err));
    text_table_write(&table, true, &out);
    assert_string_equal(buffer_text(&out), "A   V     F   NONE\nx   1,2   1   <none>\n");
}

static void wrong_columns_are_refused(void **state)
{
    (void)state;
    static const char *const wrong[] = {"", "A", "A:", ":.a", "A:.a,", "A:.a,,B:.b", "A:.a[", "A:.a B"};
    for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
        CLEANUP(custom_columns_free) struct custom_columns *columns = NULL;
        struct error err = ERROR_INIT;
        if (custom_columns_parse(wrong[i], &columns, &err) == 0)
            fail_msg("accepted: %s", wrong[i]);
        assert_int_equal(err.code, ERROR_USAGE);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_sorted_by_a_field_has_the_order_of_its_values),
        cmocka_unit_test(columns_of_labels_are_added_to_rows_and_headings),
        cmocka_unit_test(rows_of_a_later_table_stand_below_those_of_an_earlier_one),
        cmocka_unit_test(custom_columns_have_a_cell_for_every_object),
        cmocka_unit_test(wrong_columns_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
