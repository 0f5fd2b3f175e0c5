#include "controller/base/shared_text.h"
#include "tests/support/support.h"
#include <string.h>

static void it_is_a_copy_that_ends_in_a_nul_and_may_hold_some(void **state)
{
    (void)state;
    char bytes[] = "a\0b";
    struct shared_text *text = shared_text_new(bytes, 3);
    memset(bytes, 'x', sizeof(bytes));
    assert_int_equal(text->len, 3);
    assert_memory_equal(text->bytes, "a\0b", 4);
    shared_text_unref(text);
}

static void it_lives_until_the_last_owner_lets_go(void **state)
{
    (void)state;
    struct shared_text *text = shared_text_new("text", 4), *other = shared_text_ref(text);
    shared_text_unref(text);
    assert_string_equal(other->bytes, "text");
    shared_text_unref(other); // ASan's leak check tells if it did not end here
    shared_text_unref(NULL);
}

static void two_pieces_are_joined(void **state)
{
    (void)state;
    struct shared_text *text = shared_text_join("{\"a\":1}", 6, ",\"b\":2}", 7);
    assert_string_equal(text->bytes, "{\"a\":1,\"b\":2}");
    shared_text_unref(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_is_a_copy_that_ends_in_a_nul_and_may_hold_some),
        cmocka_unit_test(two_pieces_are_joined),
        cmocka_unit_test(it_lives_until_the_last_owner_lets_go),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
