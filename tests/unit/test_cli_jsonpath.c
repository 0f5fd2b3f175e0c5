#include "cli/printers/jsonpath.h"
#include "controller/base/cleanup.h"
#include "controller/base/json.h"
#include "controller/base/memory.h"
#include "tests/support/support.h"
#include <string.h>

static const char document[] =
    "{\"kind\":\"List\",\"items\":["
    "{\"metadata\":{\"name\":\"a\",\"labels\":{\"x.y/z\":\"1\"}},\"spec\":{\"port\":80,\"on\":true},\"list\":[1,2,3,4]},"
    "{\"metadata\":{\"name\":\"b\"},\"spec\":{\"port\":443},\"text\":\"it's\",\"list\":[]}]}";

static void assert_prints(const char *template, const char *wanted)
{
    CLEANUP_JSON json_t *root = NULL;
    CLEANUP(jsonpath_free) struct jsonpath *jsonpath = NULL;
    CLEANUP(buffer_free) struct buffer out = BUFFER_INIT(65536);
    struct error err = ERROR_INIT;
    assert_ok(json_parse(document, strlen(document), &root, &err));
    if (jsonpath_parse(template, &jsonpath, &err) < 0 || jsonpath_write(jsonpath, root, &out, &err) < 0)
        fail_msg("%s: %s", template, err.message);
    if (strcmp(buffer_text(&out), wanted) != 0)
        fail_msg("%s: got '%s', wanted '%s'", template, buffer_text(&out), wanted);
}

static void paths_lead_where_kubectls_do(void **state)
{
    (void)state;
    static const struct {
        const char *template, *wanted;
    } rows[] = {
        {"{.kind}", "List"},
        {".kind", "List"},
        {"{$.kind}", "List"},
        {"{ .kind }", "List"},
        {"k={.kind}!", "k=List!"},
        {"{.items[0].metadata.name}", "a"},
        {"{.items[-1].metadata.name}", "b"},
        {"{.items[9].metadata.name}", ""},
        {"{.items[*].metadata.name}", "a b"},
        {"{.items[*].spec.port}", "80 443"},
        {"{.items[0].list[1:3]}", "2 3"},
        {"{.items[0].list[:2]}", "1 2"},
        {"{.items[0].list[-2:]}", "3 4"},
        {"{.items[0].list[::2]}", "1 3"},
        {"{.items[0].list[1::2]}", "2 4"},
        {"{.items[0].list[0:3:2]}", "1 3"},
        {"{.items[0].list[0,2]}", "1 3"},
        {"{.items[0].list[-1, 0:2]}", "4 1 2"},
        {"{.items[*]['kind','text']}", "it's"},
        {"{.items[*]['metadata.name','spec.port']}", "a 80 b 443"},
        {"{.items[*][\"metadata\"]['name', \"nothing\"]}", "a b"},
        {"{.items[*]['spec'].port}", "80 443"},
        {"{.items[0].metadata.labels['x\\.y/z']}", "1"},
        {"{.items[0].spec['on']}", "true"},
        {"{.items[0].metadata.labels.x\\.y/z}", "1"},
        {"{.items[0].metadata.labels['x.y/z']}", "1"},
        {"{..port}", "80 443"},
        {"{.items[0].spec}", "{\"port\":80,\"on\":true}"},
        {"{.items[0].metadata.*}", "a {\"x.y/z\":\"1\"}"},
        {"{.nothing.at.all}", ""},
        {"{.items[?(@.metadata.name==\"b\")].spec.port}", "443"},
        {"{.items[?(@.metadata.name!='b')].spec.port}", "80"},
        {"{.items[?(@.spec.port>80)].metadata.name}", "b"},
        {"{.items[?(@.spec.port <= 80)].metadata.name}", "a"},
        {"{.items[?(@.spec.on)].metadata.name}", "a"},
        {"{.items[?(@.spec.on==true)].metadata.name}", "a"},
        {"{.items[?(@.text==\"it's\")].metadata.name}", "b"},
        {"{range .items[*]}{.metadata.name}:{.spec.port}{\"\\n\"}{end}.", "a:80\nb:443\n."},
        {"{range .items[*]}{range .list[*]}{@},{end};{end}", "1,2,3,4,;;"},
        {"{.kind}{\"\\t\"}{'x'}", "List\tx"},
        {"plain", "plain"},
        {"", ""},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        assert_prints(rows[i].template, rows[i].wanted);
}

static void filters_stand_in_each_other_only_so_deep(void **state)
{
    CLEANUP(buffer_free) struct buffer template = BUFFER_INIT(JSONPATH_MAX_BYTES);
    struct json_expression made = {0};
    struct error err = ERROR_INIT;
    (void)state;
    while (buffer_append_text(&template, "[?(@") == 0)
        ;
    assert_int_equal(json_expression_parse(buffer_text(&template), &made, &err), -1);
    assert_non_null(strstr(err.message, "too many filters stand in each other"));
}

static void a_wrong_template_is_refused_with_its_position(void **state)
{
    (void)state;
    static const struct {
        const char *template, *why;
    } rows[] = {
        {"{", "a } is missing at character 2"},
        {"{}", "the braces are empty"},
        {"{.a", "a } is missing"},
        {"{.a[}", "an index, * or ?( is expected at character 5"},
        {"{.a[1}", "a ] is missing"},
        {"{.a['b',}", "an index, * or ?( is expected"},
        {"{.a['b','c'}", "a ] is missing"},
        {"{.a[1:2:0]}", "the step of a slice is 1 or more"},
        {"{.a[1:2:-1]}", "the step of a slice is 1 or more"},
        {"{.a[99999999999]}", "the index is too large"},
        {"{.a['x]}", "a closing quote is missing"},
        {"{.a.}", "a field's name is missing"},
        {"{.a[?(.b)]}", "a filter begins with @"},
        {"{.a[?(@.b==)]}", "is expected"},
        {"{.a[?(@.b==1]}", "a ) is missing"},
        {"{a}", "a path begins with a dot"},
        {"{range .a}x", "not closed by {end}"},
        {"{end}", "this end has no range"},
        {"{.a | .b}", "a path begins with a dot"},
        {"{range .a}{range .b}{range .c}{range .d}{end}{end}{end}{end}", "too many ranges"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        CLEANUP(jsonpath_free) struct jsonpath *jsonpath = NULL;
        struct error err = ERROR_INIT;
        if (jsonpath_parse(rows[i].template, &jsonpath, &err) == 0)
            fail_msg("accepted: %s", rows[i].template);
        assert_int_equal(err.code, ERROR_USAGE);
        if (!strstr(err.message, rows[i].why))
            fail_msg("%s: %s", rows[i].template, err.message);
    }
}

static void templates_have_their_bounds(void **state)
{
    (void)state;
    struct error err = ERROR_INIT;
    CLEANUP(jsonpath_free) struct jsonpath *jsonpath = NULL;
    CLEANUP_FREE char *steps = mem_alloc(3 * JSONPATH_MAX_STEPS + 10), *longest = mem_alloc(JSONPATH_MAX_BYTES + 10);
    memset(longest, 'x', JSONPATH_MAX_BYTES + 1);
    assert_int_equal(jsonpath_parse(longest, &jsonpath, &err), -1);
    steps[0] = '{';
    for (int i = 0; i <= JSONPATH_MAX_STEPS; i++)
        memcpy(steps + 1 + 2 * i, ".a", 2);
    strcat(steps, "}");
    assert_int_equal(jsonpath_parse(steps, &jsonpath, &err), -1);
    assert_non_null(strstr(err.message, "too many steps"));
    CLEANUP_JSON json_t *root = json_array();
    for (int i = 0; i < 400; i++) {
        json_t *row = json_array();
        for (int n = 0; n < 300; n++)
            json_array_append_new(row, json_null());
        json_array_append_new(root, row);
    }
    assert_ok(jsonpath_parse("{[*][*]}", &jsonpath, &err));
    CLEANUP(buffer_free) struct buffer out = BUFFER_INIT(1024);
    assert_int_equal(jsonpath_write(jsonpath, root, &out, &err), -1);
    assert_int_equal(err.code, ERROR_TOO_LARGE);
    assert_non_null(strstr(err.message, "more than 100000 values"));
}

// Whatever stands there, it is refused or understood, and nothing is read beyond its end.
static void every_piece_of_a_template_is_understood_or_refused(void **state)
{
    (void)state;
    static const char whole[] = "{range .items[?(@.a.b=='c')]}{.d[1:-2]['e\\'f']..g}{\"\\n\"}{end}";
    for (size_t from = 0; from < sizeof(whole); from++)
        for (size_t until = from; until < sizeof(whole); until++) {
            CLEANUP(jsonpath_free) struct jsonpath *jsonpath = NULL;
            CLEANUP_FREE char *piece = mem_strndup(whole + from, until - from);
            struct json_expression expression = {0};
            struct error err = ERROR_INIT;
            if (jsonpath_parse(piece, &jsonpath, &err) < 0)
                assert_int_equal(err.code, ERROR_USAGE);
            if (json_expression_parse(piece, &expression, &err) == 0)
                json_expression_free(&expression);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(paths_lead_where_kubectls_do),
        cmocka_unit_test(filters_stand_in_each_other_only_so_deep),
        cmocka_unit_test(a_wrong_template_is_refused_with_its_position),
        cmocka_unit_test(templates_have_their_bounds),
        cmocka_unit_test(every_piece_of_a_template_is_understood_or_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
