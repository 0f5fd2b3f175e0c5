#include "tests/support/support.h"
#include "controller/ids.h"
#include "controller/record.h"
#include <string.h>

static void an_id_has_the_prefix_of_its_kind_and_26_base32_characters(void **state)
{
    (void)state;
    for (int kind = 0; kind < KIND_COUNT; kind++) {
        char id[ID_TEXT_SIZE];
        id_make((enum kind)kind, id);
        const char *prefix = kind_info((enum kind)kind)->uid_prefix;
        assert_memory_equal(id, prefix, strlen(prefix));
        assert_int_equal(strlen(id), strlen(prefix) + 26);
        assert_true(id_is_of((enum kind)kind, id));
    }
}

static void two_ids_are_never_the_same(void **state)
{
    (void)state;
    char ids[200][ID_TEXT_SIZE];
    for (size_t i = 0; i < 200; i++) {
        id_make(KIND_SANDBOX, ids[i]);
        for (size_t j = 0; j < i; j++)
            assert_string_not_equal(ids[i], ids[j]);
    }
}

static void an_id_of_another_kind_length_or_alphabet_is_refused(void **state)
{
    (void)state;
    assert_true(id_is_of(KIND_SANDBOX, "sbx_abcdefghijklmnopqrstuvwxyz"));
    assert_false(id_is_of(KIND_WORKSPACE, "sbx_abcdefghijklmnopqrstuvwxyz"));
    assert_false(id_is_of(KIND_SANDBOX, "sbx_abcdefghijklmnopqrstuvwxy"));
    assert_false(id_is_of(KIND_SANDBOX, "sbx_abcdefghijklmnopqrstuvwxyza"));
    assert_false(id_is_of(KIND_SANDBOX, "sbx_Abcdefghijklmnopqrstuvwxyz"));
    assert_false(id_is_of(KIND_SANDBOX, "sbx_0bcdefghijklmnopqrstuvwxyz"));
    assert_false(id_is_of(KIND_SANDBOX, "sbx-abcdefghijklmnopqrstuvwxyz"));
    assert_false(id_is_of(KIND_SANDBOX, ""));
    assert_false(id_is_of(KIND_SANDBOX, NULL));
}

static void a_name_made_from_any_uid_is_a_dns_label(void **state)
{
    (void)state;
    struct error err = ERROR_INIT;
    for (int kind = 0; kind < KIND_COUNT; kind++) {
        char id[ID_TEXT_SIZE], name[ID_TEXT_SIZE];
        id_make((enum kind)kind, id);
        id_to_name(id, name);
        assert_ok(record_check_name(name, &err));
    }
}

static void a_bash_session_id_has_32_hex_digits(void **state)
{
    (void)state;
    char id[ID_TEXT_SIZE];
    id_make_bash_session(id);
    assert_memory_equal(id, "bash_", 5);
    assert_int_equal(strspn(id + 5, "0123456789abcdef"), 32);
    assert_int_equal(strlen(id), 37);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_id_has_the_prefix_of_its_kind_and_26_base32_characters),
        cmocka_unit_test(two_ids_are_never_the_same),
        cmocka_unit_test(an_id_of_another_kind_length_or_alphabet_is_refused),
        cmocka_unit_test(a_name_made_from_any_uid_is_a_dns_label),
        cmocka_unit_test(a_bash_session_id_has_32_hex_digits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
