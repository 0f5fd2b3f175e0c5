// Records in the store: life, versions, writes that change nothing, tombstones.
#include "tests/support/store_fixture.h"
#include "schemas/kinds/conditions.h"
#include "controller/base/memory.h"
#include "controller/ids.h"
#include "controller/policy.h"
#include <stdlib.h>
#include <string.h>

#define TEST(name) cmocka_unit_test_setup_teardown(name, store_fixture_setup, store_fixture_teardown)

static void a_created_record_reads_back_by_name_uid_and_prefix(void **state)
{
    struct store_fixture *fixture = *state;
    struct error err = ERROR_INIT;
    CLEANUP_RECORD struct record *made = store_fixture_create(fixture, store_fixture_workspace("dev"));
    assert_true(id_is_of(KIND_WORKSPACE, made->meta.uid));
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

static void resolving_names_what_is_missing_short_or_ambiguous(void **state)
{
    struct store_fixture *fixture = *state;
    struct error err = ERROR_INIT;
    for (int i = 0; i < 2; i++) {
        CLEANUP_RECORD struct record *record = store_fixture_workspace(i ? "b" : "a");
        record->meta.uid = mem_strdup(i ? "ws_aaaaaaaaaaaaaaaaaaaaaaaaab" : "ws_aaaaaaaaaaaaaaaaaaaaaaaaaa");
        store_fixture_create(fixture, record);
    }
    struct record *found = NULL;
    assert_error(store_resolve(fixture->store, KIND_WORKSPACE, "ws_aaaaa", &found, &err), ERROR_INVALID);
    assert_non_null(strstr(err.message, "ws_aaaaaaaaaaaaaaaaaaaaaaaaab"));
    assert_error(store_resolve(fixture->store, KIND_WORKSPACE, "ws_aaaa", &found, &err), ERROR_NOT_FOUND);
    assert_error(store_resolve(fixture->store, KIND_WORKSPACE, "ws_%%%%%%%%", &found, &err), ERROR_NOT_FOUND);
    assert_error(store_resolve(fixture->store, KIND_SANDBOX, "ws_aaaaaaaaaaaaaaaaaaaaaaaaaa", &found, &err), ERROR_NOT_FOUND);
    assert_null(found);
}

static void a_record_without_a_name_gets_one_from_its_uid(void **state)
{
    CLEANUP_RECORD struct record *made = store_fixture_create(*state, store_fixture_workspace(NULL));
    char name[ID_TEXT_SIZE];
    id_to_name(made->meta.uid, name);
    assert_string_equal(made->meta.name, name);
}

static void a_bad_name_or_uid_is_refused_and_leaves_the_record_as_it_was(void **state)
{
    struct store_fixture *fixture = *state;
    struct error err = ERROR_INIT;
    CLEANUP_RECORD struct record *bad_name = store_fixture_workspace("No_Good");
    assert_error(store_fixture_try_create(fixture->store, bad_name, &err), ERROR_INVALID);
    assert_null(bad_name->meta.uid);
    CLEANUP_RECORD struct record *bad_uid = store_fixture_workspace("fine");
    bad_uid->meta.uid = mem_strdup("sbx_aaaaaaaaaaaaaaaaaaaaaaaaaa");
    assert_error(store_fixture_try_create(fixture->store, bad_uid, &err), ERROR_INVALID);
}

static void a_live_name_is_taken_and_a_removed_one_free(void **state)
{
    struct store_fixture *fixture = *state;
    struct error err = ERROR_INIT;
    CLEANUP_RECORD struct record *first = store_fixture_create(fixture, store_fixture_workspace("dev"));
    CLEANUP_RECORD struct record *second = store_fixture_workspace("dev");
    assert_error(store_fixture_try_create(fixture->store, second, &err), ERROR_EXISTS);
    assert_ok(store_fixture_delete(fixture->store, KIND_WORKSPACE, first->meta.uid, &err));
    store_fixture_create(fixture, second);
    assert_string_not_equal(first->meta.uid, second->meta.uid);
    CLEANUP_RECORD struct record *sandbox = store_fixture_create(fixture, store_fixture_sandbox("dev", second)); // another kind
    assert_string_equal(sandbox->meta.name, "dev");
}

static void a_uid_is_never_given_twice(void **state)
{
    struct store_fixture *fixture = *state;
    struct error err = ERROR_INIT;
    CLEANUP_RECORD struct record *first = store_fixture_create(fixture, store_fixture_workspace("dev"));
    assert_ok(store_fixture_delete(fixture->store, KIND_WORKSPACE, first->meta.uid, &err));
    CLEANUP_RECORD struct record *second = store_fixture_workspace("other");
    second->meta.uid = mem_strdup(first->meta.uid);
    assert_error(store_fixture_try_create(fixture->store, second, &err), ERROR_EXISTS);
}

static void a_stale_version_is_a_conflict_and_changes_nothing(void **state)
{
    struct store_fixture *fixture = *state;
    struct error err = ERROR_INIT;
    CLEANUP_RECORD struct record *approval = store_fixture_create(fixture, store_fixture_approval("/srv/a"));
    CLEANUP_RECORD struct record *stale = record_copy(approval);
    approval->spec.approval.decision = APPROVAL_APPROVED;
    assert_ok(store_fixture_write_spec(fixture->store, approval, &err));
    assert_int_equal(approval->meta.generation, 2);
    int64_t revision = store_revision(fixture->store);
    stale->spec.approval.decision = APPROVAL_REJECTED;
    assert_error(store_fixture_write_spec(fixture->store, stale, &err), ERROR_CONFLICT);
    text_map_set(&stale->meta.labels, "a", "b");
    assert_error(store_fixture_write_meta(fixture->store, stale, &err), ERROR_CONFLICT);
    stale->meta.generation = 2; // even so its version is old
    assert_error(store_write_status(fixture->store, stale, &err), ERROR_CONFLICT);
    assert_int_equal(store_revision(fixture->store), revision);
    CLEANUP_RECORD struct record *fresh = store_fixture_get(fixture, approval);
    assert_int_equal(fresh->spec.approval.decision, APPROVAL_APPROVED);
}

static void a_status_from_an_older_generation_is_a_conflict(void **state)
{
    struct store_fixture *fixture = *state;
    struct error err = ERROR_INIT;
    CLEANUP_RECORD struct record *approval = store_fixture_create(fixture, store_fixture_approval("/srv/a"));
    CLEANUP_RECORD struct record *computed = record_copy(approval);
    approval->spec.approval.decision = APPROVAL_APPROVED;
    assert_ok(store_fixture_write_spec(fixture->store, approval, &err));
    computed->meta.resource_version = 0;
    assert_error(store_write_status(fixture->store, computed, &err), ERROR_CONFLICT);
    assert_non_null(strstr(err.message, "generation 1"));
}

static void a_write_that_changes_nothing_is_no_write(void **state)
{
    struct store_fixture *fixture = *state;
    struct error err = ERROR_INIT;
    CLEANUP_RECORD struct record *approval = store_fixture_create(fixture, store_fixture_approval("/srv/a"));
    record_set_condition(approval, "Decided", CONDITION_FALSE, clock_wall(fixture->clock), "Waiting", "nobody decided yet");
    assert_ok(store_write_status(fixture->store, approval, &err));
    assert_int_equal(approval->status.approval.observed_generation, 1);
    int64_t revision = store_revision(fixture->store);
    clock_advance(fixture->clock, 5000);
    assert_ok(store_write_status(fixture->store, approval, &err));
    assert_ok(store_fixture_write_meta(fixture->store, approval, &err));
    assert_ok(store_fixture_write_spec(fixture->store, approval, &err));
    assert_int_equal(store_revision(fixture->store), revision);
    struct store_stats stats;
    assert_ok(store_stats(fixture->store, &stats, &err));
    assert_int_equal(stats.writes, 2);
}

static void an_immutable_field_is_refused_by_name(void **state)
{
    struct store_fixture *fixture = *state;
    struct error err = ERROR_INIT;
    CLEANUP_RECORD struct record *approval = store_fixture_create(fixture, store_fixture_approval("/srv/a"));
    mem_replace(&approval->spec.approval.path, "/srv/b");
    assert_error(store_fixture_write_spec(fixture->store, approval, &err), ERROR_INVALID);
    assert_non_null(strstr(err.message, "spec.path"));
}

static void spec_meta_and_status_writes_leave_each_others_part_alone(void **state)
{
    struct store_fixture *fixture = *state;
    struct error err = ERROR_INIT;
    CLEANUP_RECORD struct record *approval = store_fixture_create(fixture, store_fixture_approval("/srv/a"));
    CLEANUP_RECORD struct record *mixed = record_copy(approval);
    mixed->spec.approval.decision = APPROVAL_APPROVED;
    text_map_set(&mixed->meta.labels, "sneaked", "in");
    record_set_condition(mixed, "Decided", CONDITION_TRUE, clock_wall(fixture->clock), "Sneaked", "in");
    assert_ok(store_fixture_write_spec(fixture->store, mixed, &err));
    assert_null(text_map_get(&mixed->meta.labels, "sneaked"));
    assert_null(record_condition(mixed, "Decided"));
    mixed->spec.approval.decision = APPROVAL_REJECTED;
    text_map_set(&mixed->meta.labels, "team", "core");
    assert_ok(store_fixture_write_meta(fixture->store, mixed, &err));
    assert_int_equal(mixed->spec.approval.decision, APPROVAL_APPROVED);
    assert_string_equal(text_map_get(&mixed->meta.labels, "team"), "core");
    assert_int_equal(mixed->meta.generation, 2);
}

static void the_last_finalizer_of_a_deleted_record_removes_it(void **state)
{
    struct store_fixture *fixture = *state;
    struct error err = ERROR_INIT;
    CLEANUP_RECORD struct record *workspace = store_fixture_create(fixture, store_fixture_workspace("dev"));
    CLEANUP_RECORD struct record *sandbox = store_fixture_create(fixture, store_fixture_sandbox("box", workspace));
    assert_ok(store_fixture_delete(fixture->store, KIND_SANDBOX, sandbox->meta.uid, &err));
    int64_t revision = store_revision(fixture->store);
    assert_ok(store_fixture_delete(fixture->store, KIND_SANDBOX, sandbox->meta.uid, &err)); // again: no write
    assert_int_equal(store_revision(fixture->store), revision);
    CLEANUP_RECORD struct record *dying = store_fixture_get(fixture, sandbox);
    assert_int_equal(dying->meta.deletion_at.ms, STORE_FIXTURE_START_MS);
    assert_int_equal(dying->meta.removed_at.ms, 0);
    assert_string_equal(dying->status.sandbox.phase, "destroying");
    text_list_add(&dying->meta.finalizers, "late");
    assert_error(store_fixture_write_meta(fixture->store, dying, &err), ERROR_INVALID);
    text_list_clear(&dying->meta.finalizers);
    assert_ok(store_fixture_write_meta(fixture->store, dying, &err));
    assert_int_equal(dying->meta.removed_at.ms, STORE_FIXTURE_START_MS);
    struct record *live = NULL;
    assert_error(store_get(fixture->store, KIND_SANDBOX, "box", &live, &err), ERROR_NOT_FOUND);
    assert_error(store_write_status(fixture->store, dying, &err), ERROR_NOT_FOUND);
    assert_ok(store_fixture_delete(fixture->store, KIND_SANDBOX, sandbox->meta.uid, &err));
}

static void a_tombstone_is_readable_by_uid_for_30_days_and_then_gone(void **state)
{
    struct store_fixture *fixture = *state;
    struct error err = ERROR_INIT;
    CLEANUP_RECORD struct record *workspace = store_fixture_create(fixture, store_fixture_workspace("dev"));
    assert_ok(store_fixture_delete(fixture->store, KIND_WORKSPACE, workspace->meta.uid, &err));
    clock_advance(fixture->clock, TOMBSTONE_KEEP_MS);
    assert_ok(store_upkeep(fixture->store, &err));
    CLEANUP_RECORD struct record *tombstone = store_fixture_get(fixture, workspace);
    assert_int_equal(tombstone->meta.removed_at.ms, STORE_FIXTURE_START_MS);
    clock_advance(fixture->clock, 60 * 1000);
    assert_ok(store_upkeep(fixture->store, &err));
    struct record *none = NULL;
    assert_error(store_get_uid(fixture->store, KIND_WORKSPACE, workspace->meta.uid, &none, &err), ERROR_NOT_FOUND);
}

static void a_tombstone_that_a_live_record_is_bound_to_stays(void **state)
{
    struct store_fixture *fixture = *state;
    struct error err = ERROR_INIT;
    CLEANUP_RECORD struct record *workspace = store_fixture_create(fixture, store_fixture_workspace("dev"));
    CLEANUP_RECORD struct record *sandbox = store_fixture_create(fixture, store_fixture_sandbox("box", workspace));
    assert_ok(store_fixture_delete(fixture->store, KIND_WORKSPACE, workspace->meta.uid, &err));
    clock_advance(fixture->clock, 2 * TOMBSTONE_KEEP_MS);
    assert_ok(store_upkeep(fixture->store, &err));
    CLEANUP_RECORD struct record *kept = store_fixture_get(fixture, workspace);
    text_list_clear(&sandbox->meta.finalizers);
    assert_ok(store_fixture_write_meta(fixture->store, sandbox, &err));
    assert_ok(store_fixture_delete(fixture->store, KIND_SANDBOX, sandbox->meta.uid, &err));
    clock_advance(fixture->clock, TOMBSTONE_KEEP_MS + 1);
    assert_ok(store_upkeep(fixture->store, &err)); // the sandbox
    assert_ok(store_upkeep(fixture->store, &err)); // then what it held
    struct record *none = NULL;
    assert_error(store_get_uid(fixture->store, KIND_WORKSPACE, workspace->meta.uid, &none, &err), ERROR_NOT_FOUND);
}

static void a_list_is_live_records_oldest_first_as_of_one_revision(void **state)
{
    struct store_fixture *fixture = *state;
    struct error err = ERROR_INIT;
    const char *const names[] = {"zeta", "alpha", "mid"};
    for (size_t i = 0; i < 3; i++)
        record_free(store_fixture_create(fixture, store_fixture_workspace(names[i])));
    CLEANUP_RECORD struct record *gone = store_fixture_create(fixture, store_fixture_workspace("gone"));
    assert_ok(store_fixture_delete(fixture->store, KIND_WORKSPACE, gone->meta.uid, &err));
    struct record_list list;
    int64_t revision;
    assert_ok(store_list(fixture->store, KIND_WORKSPACE, &list, &revision, &err));
    assert_int_equal(revision, store_revision(fixture->store));
    assert_int_equal(list.count, 3);
    for (size_t i = 0; i < 3; i++)
        assert_string_equal(list.items[i]->meta.name, names[i]);
    record_list_free(&list);
}

static void check_bound(struct store_fixture *fixture, enum kind kind, const char *to_uid, const char *name)
{
    struct error err = ERROR_INIT;
    struct record_list list;
    assert_ok(store_list_bound(fixture->store, kind, to_uid, &list, &err));
    assert_int_equal(list.count, name ? 1 : 0);
    if (name)
        assert_string_equal(list.items[0]->meta.name, name);
    record_list_free(&list);
}

static void a_list_of_bound_records_holds_only_live_ones_of_that_record(void **state)
{
    struct store_fixture *fixture = *state;
    struct error err = ERROR_INIT;
    CLEANUP_RECORD struct record *first = store_fixture_create(fixture, store_fixture_workspace("first"));
    CLEANUP_RECORD struct record *second = store_fixture_create(fixture, store_fixture_workspace("second"));
    CLEANUP_RECORD struct record *box = store_fixture_create(fixture, store_fixture_sandbox("box", first));
    CLEANUP_RECORD struct record *loose = store_fixture_sandbox("loose", second);
    mem_replace(&loose->status.sandbox.workspace_uid, NULL);
    store_fixture_create(fixture, loose);
    CLEANUP_RECORD struct record *port = store_fixture_create(fixture, store_fixture_exposure("port", box, 8000));
    check_bound(fixture, KIND_SANDBOX, first->meta.uid, "box");
    check_bound(fixture, KIND_SANDBOX, second->meta.uid, NULL);
    check_bound(fixture, KIND_SANDBOX, NULL, "loose");
    check_bound(fixture, KIND_EXPOSURE, box->meta.uid, "port");
    check_bound(fixture, KIND_SESSION, box->meta.uid, NULL);
    check_bound(fixture, KIND_EXPOSURE, NULL, NULL);
    assert_ok(store_fixture_delete(fixture->store, KIND_EXPOSURE, port->meta.uid, &err));
    check_bound(fixture, KIND_EXPOSURE, box->meta.uid, NULL);
}

static void take_uid(void *arg, const char *uid)
{
    text_list_add(arg, uid);
}

static int count_starting(struct store_tx *tx, void *arg, struct error *err)
{
    struct record_list list;
    if (tx_list_starting(tx, "digest", &list, err) < 0)
        return -1;
    *(size_t *)arg = list.count;
    record_list_free(&list);
    return 0;
}

static void check_starting(struct store_fixture *fixture, size_t expected)
{
    struct error err = ERROR_INIT;
    size_t count = 99;
    assert_ok(store_transact(fixture->store, count_starting, &count, &err));
    assert_int_equal(count, expected);
}

static struct record *make_starting(struct store_fixture *fixture, const char *name, const char *request)
{
    CLEANUP_RECORD struct record *workspace = store_fixture_create(fixture, store_fixture_workspace(name));
    struct record *box = store_fixture_sandbox(name, workspace);
    text_map_set(&box->meta.annotations, ANNOTATION_REQUEST, request);
    return store_fixture_create(fixture, box);
}

static void a_sandbox_is_found_by_its_request_only_while_it_is_on_its_way(void **state)
{
    struct store_fixture *fixture = *state;
    struct error err = ERROR_INIT;
    struct wall_time now = {STORE_FIXTURE_START_MS};
    CLEANUP_RECORD struct record *ran = make_starting(fixture, "ran", "digest"), *failed = make_starting(fixture, "failed", "digest");
    CLEANUP_RECORD struct record *gone = make_starting(fixture, "gone", "digest"), *other = make_starting(fixture, "other", "of another");
    check_starting(fixture, 3);
    ran->status.sandbox.started_at = now;
    assert_ok(store_write_status(fixture->store, ran, &err));
    check_starting(fixture, 2);
    record_set_condition(failed, CONDITION_FAILED, CONDITION_TRUE, now, "Test", "test");
    assert_ok(store_write_status(fixture->store, failed, &err));
    check_starting(fixture, 1);
    assert_ok(store_fixture_delete(fixture->store, KIND_SANDBOX, gone->meta.uid, &err));
    check_starting(fixture, 0);
}

static void check_waiting(struct store_fixture *fixture, const char *workspace, const char *expected)
{
    struct error err = ERROR_INIT;
    struct text_list uids = {0};
    assert_ok(store_each_waiting(fixture->store, workspace, take_uid, &uids, &err));
    assert_int_equal(uids.count, expected ? 1 : 0);
    if (expected)
        assert_string_equal(uids.items[0], expected);
    text_list_clear(&uids);
}

static void who_waits_for_a_workspace_is_found_by_its_name_until_it_is_bound(void **state)
{
    struct store_fixture *fixture = *state;
    struct error err = ERROR_INIT;
    CLEANUP_RECORD struct record *workspace = store_fixture_create(fixture, store_fixture_workspace("dev"));
    struct record *box = store_fixture_sandbox("box", workspace);
    mem_replace(&box->status.sandbox.workspace_uid, NULL);
    CLEANUP_RECORD struct record *waiting = store_fixture_create(fixture, box);
    check_waiting(fixture, "dev", waiting->meta.uid);
    check_waiting(fixture, "other", NULL);
    check_waiting(fixture, NULL, waiting->meta.uid);
    mem_replace(&waiting->status.sandbox.workspace_uid, workspace->meta.uid);
    assert_ok(store_write_status(fixture->store, waiting, &err));
    check_waiting(fixture, "dev", NULL);
    check_waiting(fixture, NULL, NULL);
}

static void uids_are_those_of_live_records_oldest_first(void **state)
{
    struct store_fixture *fixture = *state;
    struct error err = ERROR_INIT;
    CLEANUP_RECORD struct record *old = store_fixture_create(fixture, store_fixture_workspace("old"));
    CLEANUP_RECORD struct record *gone = store_fixture_create(fixture, store_fixture_workspace("gone"));
    CLEANUP_RECORD struct record *young = store_fixture_create(fixture, store_fixture_workspace("young"));
    assert_ok(store_fixture_delete(fixture->store, KIND_WORKSPACE, gone->meta.uid, &err));
    struct text_list uids = {0};
    int64_t at = 0;
    assert_ok(store_each_uid(fixture->store, KIND_WORKSPACE, 10, &at, take_uid, &uids, &err));
    assert_int_equal(uids.count, 2);
    assert_string_equal(uids.items[0], old->meta.uid);
    assert_string_equal(uids.items[1], young->meta.uid);
    assert_int_equal(at, 0);
    text_list_clear(&uids);
}

static void uids_in_parts_are_all_of_them_and_then_begin_anew(void **state)
{
    struct store_fixture *fixture = *state;
    struct error err = ERROR_INIT;
    struct text_list all = {0}, part = {0};
    int64_t at = 0, parts = 0;
    for (const char *name = "abcde"; *name; name++)
        record_free(store_fixture_create(fixture, store_fixture_workspace((char[2]){*name})));
    do {
        assert_ok(store_each_uid(fixture->store, KIND_WORKSPACE, 2, &at, take_uid, &all, &err));
        parts++;
    } while (at);
    assert_int_equal(parts, 3);
    assert_int_equal(all.count, 5); // a list has none twice
    assert_ok(store_each_uid(fixture->store, KIND_WORKSPACE, 2, &at, take_uid, &part, &err));
    assert_string_equal(part.items[0], all.items[0]);
    text_list_clear(&all);
    text_list_clear(&part);
}

static void add_phase(void *arg, const char *phase, int64_t count)
{
    char **text = arg;
    char *old = *text;
    *text = mem_format("%s%s=%lld ", old, phase, (long long)count);
    free(old);
}

static void phases_are_counted_of_live_records_of_the_kind(void **state)
{
    struct store_fixture *fixture = *state;
    struct error err = ERROR_INIT;
    CLEANUP_FREE char *before = mem_strdup(""), *after = mem_strdup("");
    CLEANUP_RECORD struct record *one = store_fixture_create(fixture, store_fixture_approval("/srv/one"));
    CLEANUP_RECORD struct record *two = store_fixture_create(fixture, store_fixture_approval("/srv/two"));
    record_free(store_fixture_create(fixture, store_fixture_workspace("w")));
    assert_ok(store_count_phases(fixture->store, KIND_APPROVAL, add_phase, &before, &err));
    assert_string_equal(before, "pending=2 ");
    one->spec.approval.decision = APPROVAL_APPROVED;
    assert_ok(store_fixture_write_spec(fixture->store, one, &err));
    assert_ok(store_count_phases(fixture->store, KIND_APPROVAL, add_phase, &after, &err));
    assert_string_equal(after, "approved=1 pending=1 ");
}

static void all_of_a_record_survives_a_restart(void **state)
{
    struct store_fixture *fixture = *state;
    struct error err = ERROR_INIT;
    CLEANUP_RECORD struct record *workspace = store_fixture_create(fixture, store_fixture_workspace("dev"));
    CLEANUP_RECORD struct record *sandbox = store_fixture_sandbox("box", workspace);
    text_map_set(&sandbox->meta.labels, "team", "core");
    text_map_set(&sandbox->meta.annotations, "note", "ü ☃ \"quoted\"");
    sandbox->status.sandbox.attempt = 7;
    sandbox->status.sandbox.runtime_name = mem_strdup("c2s-x-7");
    store_fixture_create(fixture, sandbox);
    CLEANUP_JSON json_t *before = record_to_json(sandbox);
    int64_t revision = store_revision(fixture->store);
    store_fixture_reopen(fixture);
    CLEANUP_RECORD struct record *after_restart = store_fixture_get(fixture, sandbox);
    CLEANUP_JSON json_t *after = record_to_json(after_restart);
    assert_true(json_equal(before, after));
    assert_int_equal(store_revision(fixture->store), revision);
    assert_int_equal(after_restart->meta.created_at.ms, sandbox->meta.created_at.ms);
    struct record *none = NULL;
    assert_error(store_get(fixture->store, KIND_SANDBOX, "nothing", &none, &err), ERROR_NOT_FOUND);
}

static int put_secret(struct store_tx *tx, void *arg, struct error *err)
{
    return tx_put_secret(tx, arg, "token", "s3cret", err);
}

static void a_secret_is_in_no_image_and_goes_with_its_record(void **state)
{
    struct store_fixture *fixture = *state;
    struct error err = ERROR_INIT;
    CLEANUP_RECORD struct record *workspace = store_fixture_create(fixture, store_fixture_workspace("dev"));
    assert_ok(store_transact(fixture->store, put_secret, workspace->meta.uid, &err));
    CLEANUP_FREE char *secret = NULL;
    assert_ok(store_get_secret(fixture->store, workspace->meta.uid, "token", &secret, &err));
    assert_string_equal(secret, "s3cret");
    CLEANUP_RECORD struct record *fresh = store_fixture_get(fixture, workspace);
    CLEANUP_JSON json_t *image = record_to_json(fresh);
    CLEANUP_FREE char *text = json_to_text(image);
    assert_null(strstr(text, "s3cret"));
    assert_ok(store_fixture_delete(fixture->store, KIND_WORKSPACE, workspace->meta.uid, &err));
    char *none = NULL;
    assert_error(store_get_secret(fixture->store, workspace->meta.uid, "token", &none, &err), ERROR_NOT_FOUND);
    assert_error(store_transact(fixture->store, put_secret, workspace->meta.uid, &err), ERROR_NOT_FOUND);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_created_record_reads_back_by_name_uid_and_prefix),
        TEST(resolving_names_what_is_missing_short_or_ambiguous),
        TEST(a_record_without_a_name_gets_one_from_its_uid),
        TEST(a_bad_name_or_uid_is_refused_and_leaves_the_record_as_it_was),
        TEST(a_live_name_is_taken_and_a_removed_one_free),
        TEST(a_uid_is_never_given_twice),
        TEST(a_stale_version_is_a_conflict_and_changes_nothing),
        TEST(a_status_from_an_older_generation_is_a_conflict),
        TEST(a_write_that_changes_nothing_is_no_write),
        TEST(an_immutable_field_is_refused_by_name),
        TEST(spec_meta_and_status_writes_leave_each_others_part_alone),
        TEST(the_last_finalizer_of_a_deleted_record_removes_it),
        TEST(a_tombstone_is_readable_by_uid_for_30_days_and_then_gone),
        TEST(a_tombstone_that_a_live_record_is_bound_to_stays),
        TEST(a_list_is_live_records_oldest_first_as_of_one_revision),
        TEST(a_list_of_bound_records_holds_only_live_ones_of_that_record),
        TEST(uids_are_those_of_live_records_oldest_first),
        TEST(a_sandbox_is_found_by_its_request_only_while_it_is_on_its_way),
        TEST(who_waits_for_a_workspace_is_found_by_its_name_until_it_is_bound),
        TEST(uids_in_parts_are_all_of_them_and_then_begin_anew),
        TEST(phases_are_counted_of_live_records_of_the_kind),
        TEST(all_of_a_record_survives_a_restart),
        TEST(a_secret_is_in_no_image_and_goes_with_its_record),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
