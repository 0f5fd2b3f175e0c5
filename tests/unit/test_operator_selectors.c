// Label and field selectors of the operator API.
#include "api/operator/selectors.h"
#include "controller/base/cleanup.h"
#include "controller/base/memory.h"
#include "controller/record.h"
#include "tests/support/support.h"
#include <string.h>

// labels: "app=web tier=" as pairs
static struct text_map make_labels(void)
{
    struct text_map labels = {0};
    text_map_set(&labels, "app", "web");
    text_map_set(&labels, "tier", "");
    text_map_set(&labels, "example.com/owner", "me");
    return labels;
}

static void clear_labels(struct text_map *labels)
{
    while (labels->count) {
        CLEANUP_FREE char *key = mem_strdup(labels->items[0].key);
        text_map_set(labels, key, NULL);
    }
    free(labels->items);
}

static void every_form_of_a_label_selector_is_understood(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        bool fits;
    } rows[] = {
        {"", true},
        {"app=web", true},
        {"app==web", true},
        {"app=db", false},
        {"app!=db", true},
        {"app!=web", false},
        {"other!=x", true},
        {"app", true},
        {"other", false},
        {"!other", true},
        {"!app", false},
        {"app in (db, web)", true},
        {"app in (db)", false},
        {"app notin (db,web)", false},
        {"other notin (x)", true},
        {"tier=", true},
        {"example.com/owner=me", true},
        {"app=web,tier=,!other", true},
        {" app = web , tier in () ", true},
        {"app=web,other", false},
    };
    CLEANUP(clear_labels) struct text_map labels = make_labels();
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        CLEANUP(selector_clear) struct selector selector = {0};
        struct error err = ERROR_INIT;
        if (selector_parse_labels(rows[i].text, &selector, &err) < 0)
            fail_msg("'%s' is refused: %s", rows[i].text, err.message);
        if (selector_fits_labels(&selector, &labels) != rows[i].fits)
            fail_msg("'%s' is misunderstood", rows[i].text);
    }
}

static void malformed_label_selectors_are_refused_in_a_sentence(void **state)
{
    (void)state;
    static const char *const texts[] = {"=", "a=b,", ",",    "a b",  "a in", "a in (b", "a in b)",  "a=b c",
                                        "!", "a!b",  "-a=b", "a=-b", "a=b)", "a==b==c", "a in (x))"};
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        struct selector selector = {0};
        struct error err = ERROR_INIT;
        if (selector_parse_labels(texts[i], &selector, &err) == 0)
            fail_msg("'%s' is taken", texts[i]);
        assert_int_equal(err.code, ERROR_USAGE);
        assert_true(err.hint[0]);
    }
}

static void a_selector_of_too_many_terms_is_refused(void **state)
{
    (void)state;
    char text[2 * SELECTOR_MAX_TERMS + 3] = "";
    struct selector selector = {0};
    struct error err = ERROR_INIT;
    for (size_t i = 0; i <= SELECTOR_MAX_TERMS; i++)
        memcpy(text + 2 * i, "a,", 2);
    text[2 * SELECTOR_MAX_TERMS + 1] = '\0';
    assert_error(selector_parse_labels(text, &selector, &err), ERROR_USAGE);
    CLEANUP_FREE char *longest = mem_alloc(SELECTOR_MAX_BYTES + 10);
    memset(longest, 'a', SELECTOR_MAX_BYTES + 9);
    assert_error(selector_parse_labels(longest, &selector, &err), ERROR_USAGE);
}

static const char *const fields[] = {"metadata.name", "metadata.uid", NULL};

static const char *get(const void *arg, const char *field)
{
    (void)arg;
    return strcmp(field, "metadata.name") == 0 ? "dev" : "sbx_1";
}

static void field_selectors_choose_by_known_fields_only(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int result; // -1 refused, else whether it fits
    } rows[] = {
        {"", 1},
        {"metadata.name=dev", 1},
        {"metadata.name==dev", 1},
        {"metadata.name=other", 0},
        {"metadata.name!=other", 1},
        {"metadata.name=dev,metadata.uid=sbx_1", 1},
        {"metadata.name=dev,metadata.uid!=sbx_1", 0},
        {"spec.mode=clone", -1},
        {"metadata.name", -1},
        {"=x", -1},
        {"metadata.name=dev,,", -1},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        CLEANUP(selector_clear) struct selector selector = {0};
        struct error err = ERROR_INIT;
        int r = selector_parse_fields(rows[i].text, fields, &selector, &err);
        if (r == 0)
            r = selector_fits(&selector, get, NULL);
        else
            assert_non_null(strstr(err.hint, "metadata.uid"));
        if (r != rows[i].result)
            fail_msg("'%s' gives %d", rows[i].text, r);
    }
}

static void the_value_that_a_field_must_have_is_known(void **state)
{
    (void)state;
    CLEANUP(selector_clear) struct selector selector = {0};
    struct error err = ERROR_INIT;
    assert_ok(selector_parse_fields("metadata.name!=x,metadata.uid=sbx_1", fields, &selector, &err));
    assert_string_equal(selector_wanted(&selector, "metadata.uid"), "sbx_1");
    assert_null(selector_wanted(&selector, "metadata.name"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_form_of_a_label_selector_is_understood),
        cmocka_unit_test(malformed_label_selectors_are_refused_in_a_sentence),
        cmocka_unit_test(a_selector_of_too_many_terms_is_refused),
        cmocka_unit_test(field_selectors_choose_by_known_fields_only),
        cmocka_unit_test(the_value_that_a_field_must_have_is_known),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
