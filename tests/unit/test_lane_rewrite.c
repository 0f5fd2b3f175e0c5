// The tool server's own workspace id in results.
#include "tests/support/support.h"
#include "controller/base/json.h"
#include "reconcilers/session/rewrite.h"
#include <stdlib.h>

#define INNER "ws_0123456789abcdef01234567"
#define PUBLIC "ws_pppppppppppppppppppppppppp"

static void expect_rewritten_with(char **inner, const char *before, const char *after)
{
    CLEANUP_JSON json_t *result = json_loads(before, JSON_ALLOW_NUL, NULL), *expected = json_loads(after, JSON_ALLOW_NUL, NULL);
    assert_non_null(result);
    assert_non_null(expected);
    rewrite_workspace_ids(result, PUBLIC, inner);
    char *text = json_dumps(result, JSON_SORT_KEYS);
    char *expected_text = json_dumps(expected, JSON_SORT_KEYS);
    assert_string_equal(text, expected_text);
    free(text);
    free(expected_text);
}

static void expect_rewritten(const char *before, const char *after)
{
    CLEANUP_FREE char *inner = NULL;
    expect_rewritten_with(&inner, before, after);
}

static void both_keys_and_every_text_get_the_public_id(void **state)
{
    (void)state;
    expect_rewritten("{\"content\":[{\"type\":\"text\",\"text\":\"" INNER " and " INNER "!\"},{\"type\":\"image\",\"data\":\"" INNER
                     "\"},{\"type\":\"text\",\"text\":\"none\"}],"
                     "\"structuredContent\":{\"workspace_id\":\"" INNER "\",\"selected_workspace_id\":\"" INNER "\",\"root\":\"/w\"}}",
                     "{\"content\":[{\"type\":\"text\",\"text\":\"" PUBLIC " and " PUBLIC "!\"},{\"type\":\"image\",\"data\":\"" INNER
                     "\"},{\"type\":\"text\",\"text\":\"none\"}],"
                     "\"structuredContent\":{\"workspace_id\":\"" PUBLIC "\",\"selected_workspace_id\":\"" PUBLIC "\",\"root\":\"/w\"}}");
}

static void results_without_the_keys_pass_unchanged(void **state)
{
    static const char *const results[] = {
        "{\"content\":[{\"type\":\"text\",\"text\":\"" INNER "\"}]}",
        "{\"content\":[{\"type\":\"text\",\"text\":\"" INNER "\"}],\"structuredContent\":{\"cache\":{\"workspace_id\":\"" INNER "\"}}}",
        "{\"content\":[],\"structuredContent\":[]}",
        "{\"content\":[],\"structuredContent\":{\"workspace_id\":7}}",
        "{\"content\":\"" INNER "\",\"structuredContent\":null}",
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(results); i++)
        expect_rewritten(results[i], results[i]);
}

// A hostile server could name its workspace "e": the key is replaced, texts are not.
static void an_id_of_another_form_is_not_replaced_in_texts(void **state)
{
    (void)state;
    expect_rewritten("{\"content\":[{\"type\":\"text\",\"text\":\"eee\"}],\"structuredContent\":{\"workspace_id\":\"e\"}}",
                     "{\"content\":[{\"type\":\"text\",\"text\":\"eee\"}],\"structuredContent\":{\"workspace_id\":\"" PUBLIC "\"}}");
    expect_rewritten("{\"content\":[{\"type\":\"text\",\"text\":\"\"}],\"structuredContent\":{\"workspace_id\":\"\"}}",
                     "{\"content\":[{\"type\":\"text\",\"text\":\"\"}],\"structuredContent\":{\"workspace_id\":\"" PUBLIC "\"}}");
}

static void texts_with_nul_bytes_keep_them(void **state)
{
    (void)state;
    expect_rewritten("{\"content\":[{\"type\":\"text\",\"text\":\"a\\u0000" INNER "\\u0000b\"}],\"structuredContent\":{\"workspace_id\":\"" INNER
                     "\"}}",
                     "{\"content\":[{\"type\":\"text\",\"text\":\"a\\u0000" PUBLIC "\\u0000b\"}],\"structuredContent\":{\"workspace_id\":\"" PUBLIC "\"}}");
}

static void strings_at_any_depth_get_the_public_id_and_keys_stay(void **state)
{
    (void)state;
    expect_rewritten("{\"content\":[{\"type\":\"resource\",\"resource\":{\"uri\":\"x://" INNER "/a\"}}],\"structuredContent\":{"
                     "\"workspace_id\":\"" INNER "\",\"cache\":{\"key\":\"" INNER ":7\",\"" INNER "\":1},\"list\":[[\"" INNER "\"],2,null]}}",
                     "{\"content\":[{\"type\":\"resource\",\"resource\":{\"uri\":\"x://" PUBLIC "/a\"}}],\"structuredContent\":{"
                     "\"workspace_id\":\"" PUBLIC "\",\"cache\":{\"key\":\"" PUBLIC ":7\",\"" INNER "\":1},\"list\":[[\"" PUBLIC
                     "\"],2,null]}}");
}

static void an_id_that_was_named_once_is_replaced_in_results_that_only_mention_it(void **state)
{
    (void)state;
    CLEANUP_FREE char *inner = NULL;
    expect_rewritten_with(&inner, "{\"content\":[],\"structuredContent\":{\"workspace_id\":\"" INNER "\"}}",
                          "{\"content\":[],\"structuredContent\":{\"workspace_id\":\"" PUBLIC "\"}}");
    assert_string_equal(inner, INNER);
    expect_rewritten_with(&inner, "{\"content\":[{\"type\":\"text\",\"text\":\"Error: " INNER "\"}],\"isError\":true}",
                          "{\"content\":[{\"type\":\"text\",\"text\":\"Error: " PUBLIC "\"}],\"isError\":true}");
}

static void an_id_of_another_form_is_not_remembered(void **state)
{
    static const char *const ids[] = {"e", "", "ws_0123456789abcdef0123456G", "ws_0123456789abcdef012345678"};
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(ids); i++) {
        CLEANUP_FREE char *inner = NULL;
        CLEANUP_JSON json_t *result = json_pack("{s:[], s:{s:s}}", "content", "structuredContent", "workspace_id", ids[i]);
        rewrite_workspace_ids(result, PUBLIC, &inner);
        assert_null(inner);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(both_keys_and_every_text_get_the_public_id),
        cmocka_unit_test(results_without_the_keys_pass_unchanged),
        cmocka_unit_test(an_id_of_another_form_is_not_replaced_in_texts),
        cmocka_unit_test(texts_with_nul_bytes_keep_them),
        cmocka_unit_test(strings_at_any_depth_get_the_public_id_and_keys_stay),
        cmocka_unit_test(an_id_that_was_named_once_is_replaced_in_results_that_only_mention_it),
        cmocka_unit_test(an_id_of_another_form_is_not_remembered),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
