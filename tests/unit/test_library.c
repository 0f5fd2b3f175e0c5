#include "controller/library.h"
#include "tests/support/support.h"
#include <string.h>

static int load_count;
static const char *file = "libno-such-library.so.9", *function = "no_such_function";

static int load(struct error *err)
{
    load_count++;
    void *handle = library_open(file, "that library", "install it", err);
    return handle && library_find(handle, function, "library", "install another", err) ? 0 : -1;
}

static void what_is_missing_is_named_and_asked_for_again_until_it_is_there(void **state)
{
    (void)state;
    struct library library = LIBRARY_INIT(load);
    struct error err = ERROR_INIT;
    assert_false(library_is_loaded(&library, &err));
    assert_int_equal(err.code, ERROR_UNSUPPORTED);
    assert_non_null(strstr(err.message, "that library is needed and cannot be loaded: "));
    assert_string_equal(err.hint, "install it");
    file = "libc.so.6";
    assert_false(library_is_loaded(&library, &err));
    assert_string_equal(err.message, "this library has no function no_such_function");
    assert_string_equal(err.hint, "install another");
    function = "strlen";
    assert_true(library_is_loaded(&library, &err));
    assert_true(library_is_loaded(&library, &err));
    assert_int_equal(load_count, 3); // loaded once, then never again
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_missing_is_named_and_asked_for_again_until_it_is_there),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
