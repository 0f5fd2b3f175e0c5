#include "tests/support/support.h"
#include "controller/base/memory.h"
#include "controller/record.h"
#include <string.h>

static const struct wall_time early = {1000000000000}, late = {1000000060000};

static void the_transition_time_changes_only_on_a_flip(void **state)
{
    (void)state;
    CLEANUP_RECORD struct record *record = record_new(KIND_SANDBOX);
    assert_true(record_set_condition(record, CONDITION_READY, CONDITION_FALSE, early, "Starting",
                                     "the runtime starts"));
    assert_true(record_set_condition(record, CONDITION_READY, CONDITION_FALSE, late, "Starting", "still %s",
                                     "starting"));
    const struct condition *ready = record_condition(record, CONDITION_READY);
    assert_int_equal(ready->last_transition_time.ms, early.ms);
    assert_string_equal(ready->message, "still starting");
    assert_true(
        record_set_condition(record, CONDITION_READY, CONDITION_TRUE, late, "Answering", "it answers"));
    assert_int_equal(record_condition(record, CONDITION_READY)->last_transition_time.ms, late.ms);
    assert_int_equal(record_conditions(record)->count, 1);
}

static void setting_the_same_again_changes_nothing(void **state)
{
    (void)state;
    CLEANUP_RECORD struct record *record = record_new(KIND_EXPOSURE);
    record_set_condition(record, CONDITION_PUBLISHED, CONDITION_TRUE, early, "Bound", "bound to %d", 8080);
    assert_false(record_set_condition(record, CONDITION_PUBLISHED, CONDITION_TRUE, late, "Bound",
                                      "bound to %d", 8080));
    record->meta.generation = 2;
    assert_true(record_set_condition(record, CONDITION_PUBLISHED, CONDITION_TRUE, late, "Bound",
                                     "bound to %d", 8080));
    assert_int_equal(record_condition(record, CONDITION_PUBLISHED)->observed_generation, 2);
    assert_int_equal(record_condition(record, CONDITION_PUBLISHED)->last_transition_time.ms, early.ms);
}

static void an_absent_or_unknown_condition_is_neither_true_nor_false(void **state)
{
    (void)state;
    CLEANUP_RECORD struct record *record = record_new(KIND_WORKSPACE);
    assert_null(record_condition(record, CONDITION_READY));
    assert_false(record_is_true(record, CONDITION_READY) || record_is_false(record, CONDITION_READY));
    record_set_condition(record, CONDITION_READY, CONDITION_UNKNOWN, early, "Looking", "not looked yet");
    assert_false(record_is_true(record, CONDITION_READY) || record_is_false(record, CONDITION_READY));
}

static void a_dropped_condition_is_gone_and_the_others_stay(void **state)
{
    (void)state;
    static const char *const types[] = {CONDITION_READY, CONDITION_FAILED, CONDITION_STALLED};
    CLEANUP_RECORD struct record *record = record_new(KIND_SANDBOX);
    for (size_t i = 0; i < 3; i++)
        record_set_condition(record, types[i], CONDITION_TRUE, early, "Test", "text %zu", i);
    assert_true(record_drop_condition(record, CONDITION_FAILED));
    assert_false(record_drop_condition(record, CONDITION_FAILED));
    assert_int_equal(record_conditions(record)->count, 2);
    assert_string_equal(record_condition(record, CONDITION_READY)->message, "text 0");
    assert_string_equal(record_condition(record, CONDITION_STALLED)->message, "text 2");
}

// Each row sets at most two conditions and metadata; the phase must be exactly `word`.
struct phase_row {
    enum kind kind;
    const char *true_types[2];
    bool is_deleting, is_removed;
    int decision;
    const char *word;
};
static const struct phase_row phase_rows[] = {
    {KIND_WORKSPACE, {NULL}, .word = "pending"},
    {KIND_WORKSPACE, {CONDITION_READY}, .word = "approved"},
    {KIND_WORKSPACE, {CONDITION_READY, CONDITION_RETAINED}, .word = "retained"},
    {KIND_WORKSPACE, {CONDITION_RETAINED, CONDITION_REVOKED}, .word = "revoked"},
    {KIND_WORKSPACE, {CONDITION_REVOKED, CONDITION_TRASHED}, .word = "trashed"},
    {KIND_APPROVAL, {NULL}, .word = "pending"},
    {KIND_APPROVAL, {NULL}, .decision = APPROVAL_APPROVED, .word = "approved"},
    {KIND_APPROVAL, {NULL}, .decision = APPROVAL_REJECTED, .word = "rejected"},
    {KIND_APPROVAL, {CONDITION_REVOKED}, .decision = APPROVAL_APPROVED, .word = "revoked"},
    {KIND_SANDBOX, {NULL}, .word = "creating"},
    {KIND_SANDBOX, {CONDITION_READY}, .word = "running"},
    {KIND_SANDBOX, {CONDITION_READY, CONDITION_FAILED}, .word = "failed"},
    {KIND_SANDBOX, {CONDITION_FAILED}, .is_deleting = true, .word = "destroying"},
    {KIND_SANDBOX, {CONDITION_RUNTIME_REMOVED, CONDITION_FAILED}, .word = "failed"},
    {KIND_SANDBOX, {CONDITION_RUNTIME_REMOVED}, .is_deleting = true, .word = "destroyed"},
    {KIND_SANDBOX, {CONDITION_READY}, .is_deleting = true, .is_removed = true, .word = "destroyed"},
    {KIND_SESSION, {NULL}, .word = "starting"},
    {KIND_SESSION, {CONDITION_READY}, .word = "ready"},
    {KIND_SESSION, {CONDITION_READY, CONDITION_FAILED}, .word = "failed"},
    {KIND_EXPOSURE, {NULL}, .word = "pending"},
    {KIND_EXPOSURE, {CONDITION_FAILED}, .word = "failed"},
    {KIND_EXPOSURE, {CONDITION_PUBLISHED, CONDITION_FAILED}, .word = "published"},
    {KIND_APPROVAL_RULE, {NULL}, .word = "pending"},
    {KIND_APPROVAL_RULE, {CONDITION_READY}, .word = "active"},
    {KIND_APPROVAL_RULE, {CONDITION_EXHAUSTED}, .word = "exhausted"},
    {KIND_APPROVAL_RULE, {CONDITION_EXHAUSTED, CONDITION_EXPIRED}, .word = "expired"},
};

static void the_phase_follows_from_conditions_and_metadata_alone(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(phase_rows) / sizeof(phase_rows[0]); i++) {
        const struct phase_row *row = &phase_rows[i];
        CLEANUP_RECORD struct record *record = record_new(row->kind);
        for (size_t c = 0; c < 2 && row->true_types[c]; c++)
            record_set_condition(record, row->true_types[c], CONDITION_TRUE, early, "Test", "test");
        record->meta.deletion_at.ms = row->is_deleting;
        record->meta.removed_at.ms = row->is_removed;
        if (row->kind == KIND_APPROVAL)
            record->spec.approval.decision = (enum approval_decision)row->decision;
        assert_string_equal(record_compute_phase(record), row->word);
        assert_string_equal(record_compute_phase(record), row->word);
    }
}

static void a_stored_phase_is_never_read(void **state)
{
    (void)state;
    CLEANUP_RECORD struct record *record = record_new(KIND_SANDBOX);
    mem_replace(&record->status.sandbox.phase, "running");
    assert_string_equal(record_compute_phase(record), "creating");
    assert_string_equal(record->status.sandbox.phase, "creating");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_transition_time_changes_only_on_a_flip),
        cmocka_unit_test(setting_the_same_again_changes_nothing),
        cmocka_unit_test(an_absent_or_unknown_condition_is_neither_true_nor_false),
        cmocka_unit_test(a_dropped_condition_is_gone_and_the_others_stay),
        cmocka_unit_test(the_phase_follows_from_conditions_and_metadata_alone),
        cmocka_unit_test(a_stored_phase_is_never_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
