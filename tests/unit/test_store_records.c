// Records in the store: life, versions, writes that change nothing, invariants settled in the transaction.
#include "tests/support/store_fixture.h"
#include "controller/base/memory.h"
#include <string.h>

static void a_created_record_reads_back_by_name_uid_and_prefix(void **state)
{
    struct store_fixture *fixture = *state;
    struct error err = ERROR_INIT;
    CLEANUP_RECORD struct record *made = store_fixture_create(fixture, store_fixture_workspace("dev"));
    assert_non_null(made->meta.uid);
    assert_int_equal(made->meta.generation, 1);
    assert_int_equal(made->meta.created_at.ms, STORE_FIXTURE_START_MS);
    assert_string_equal(made->meta.created_by, "operator:uid=0");
    assert_int_equal(made->meta.resource_version, store_revision(fixture->store));
    assert_true(json_array_size(made->meta.managed_fields) > 0);
    char prefix[9];
    snprintf(prefix, sizeof(prefix), "%s", made->meta.uid);
    const char *const words[] = {"dev", made->meta.uid, prefix};
    for (size_t i = 0; i < 3; i++) {
        CLEANUP_RECORD struct record *found = NULL;
        assert_ok(store_resolve(fixture->store, KIND_WORKSPACE, words[i], &found, &err));
        assert_string_equal(found->meta.uid, made->meta.uid);
        assert_true(record_spec_equals(found, made));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_created_record_reads_back_by_name_uid_and_prefix, store_fixture_setup, store_fixture_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
