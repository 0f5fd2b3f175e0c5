#include "tests/support/support.h"
#include "controller/base/utf8.h"
#include <stdlib.h>
#include <string.h>

static void cut_holds_back_an_incomplete_character_and_nothing_else(void **state)
{
    (void)state;
    const char *euro = "a\xE2\x82\xAC";
    assert_int_equal(utf8_cut(euro, 4), 4);
    assert_int_equal(utf8_cut(euro, 3), 1);
    assert_int_equal(utf8_cut(euro, 2), 1);
    assert_int_equal(utf8_cut("a\x80", 2), 2);         // a stray continuation will never become valid
    assert_int_equal(utf8_cut("\xF0\x9F\x98", 3), 0);
    assert_int_equal(utf8_cut("\xE0\x80", 2), 2);      // overlong: already wrong
    assert_int_equal(utf8_cut("", 0), 0);
}

static void each_maximal_bad_piece_becomes_one_replacement(void **state)
{
    (void)state;
    size_t len;
    char *text = utf8_to_valid("x\xE2\x82y\xFF\xFEz", 7, &len);
    assert_string_equal(text, "x\xEF\xBF\xBDy\xEF\xBF\xBD\xEF\xBF\xBDz");
    assert_int_equal(len, strlen(text));
    free(text);
}

static void surrogates_and_overlong_forms_are_invalid(void **state)
{
    (void)state;
    assert_false(utf8_is_valid("\xED\xA0\x80", 3));
    assert_false(utf8_is_valid("\xC0\x80", 2));
    assert_false(utf8_is_valid("\xF4\x90\x80\x80", 4));
    assert_true(utf8_is_valid("\xF4\x8F\xBF\xBF", 4));
    assert_true(utf8_is_valid("a\0b", 3));
}

static void printable_text_shows_controls_and_bidi_as_escapes(void **state)
{
    (void)state;
    char *text = utf8_to_printable("a\x1b[31m\xE2\x80\xAEz\n", 11, false);
    assert_string_equal(text, "a\\u001b[31m\\u202ez\\u000a");
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cut_holds_back_an_incomplete_character_and_nothing_else),
        cmocka_unit_test(each_maximal_bad_piece_becomes_one_replacement),
        cmocka_unit_test(surrogates_and_overlong_forms_are_invalid),
        cmocka_unit_test(printable_text_shows_controls_and_bidi_as_escapes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
