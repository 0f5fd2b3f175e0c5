// Scripted approvals: what an ApprovalRule decides, and what no rule can.
#include "controller/base/memory.h"
#include "reconcilers/approval_rules.h"
#include "tests/support/world_fixture.h"
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

// ---- making and asking ----------------------------------------------------------------------------------------------------
struct wanted_rule {
    const char *name, *decision, *glob, *mode, *requester;
    int64_t max_count, expires_in_ms;
    struct record *made;
};

static int make_in_tx(struct store_tx *tx, void *arg, struct error *err)
{
    struct wanted_rule *wanted = arg;
    struct record *rule = record_new(KIND_APPROVAL_RULE);
    struct approval_rule_spec *spec = &rule->spec.approval_rule;
    wanted->made = rule;
    rule->meta.name = mem_strdup(wanted->name);
    spec->decision = wanted->decision && strcmp(wanted->decision, "rejected") == 0 ? APPROVAL_REJECTED : APPROVAL_APPROVED; // the most of them approve
    spec->reason = mem_strdup("by the book");
    spec->max_count = wanted->max_count;
    spec->expires_at.ms = wanted->expires_in_ms ? tx_now(tx).ms + wanted->expires_in_ms : 0;
    text_list_add(&spec->paths, wanted->glob);
    text_list_add(&spec->modes, wanted->mode ? wanted->mode : "clone");
    if (wanted->requester)
        text_list_add(&spec->requesters, wanted->requester);
    if (rule_check_room(tx, err) < 0)
        return -1;
    return tx_create(tx, &(struct store_actor){"operator:uid=0", "test"}, rule, err);
}

// A rule, settled. Returns its uid (the caller's).
static char *make_rule(struct world_fixture *fx, struct wanted_rule wanted)
{
    struct error err = ERROR_INIT;
    assert_ok(store_transact(fx->world.store, make_in_tx, &wanted, &err));
    char *uid = mem_strdup(wanted.made->meta.uid);
    record_free(wanted.made);
    world_settle(fx);
    return uid;
}
#define RULE(...) make_rule(fx, (struct wanted_rule){__VA_ARGS__})

static char *all_of(struct world_fixture *fx, const char *rest)
{
    return mem_format("%s/repositories/%s", fx->dir, rest);
}

// Asks for the path, and lets the rules be asked. *ret is the approval as it is then, the caller's.
static void ask_as(struct world_fixture *fx, const char *principal, const char *path, const char *mode, struct record **ret)
{
    CLEANUP_RECORD struct record *asked = NULL;
    struct error err = ERROR_INIT;
    enum sandbox_outcome outcome;
    assert_ok(world_create(fx, &(struct sandbox_request){.principal = principal, .manager = "mcp", .workspace_path = path, .workspace_mode = mode}, &outcome,
                           &asked, &err));
    assert_int_equal(outcome, SANDBOX_NEEDS_APPROVAL);
    world_settle(fx);
    *ret = world_get_record(fx, KIND_APPROVAL, asked->meta.uid);
}

static void ask(struct world_fixture *fx, const char *path, const char *mode, struct record **ret)
{
    ask_as(fx, PRINCIPAL_MCP, path, mode, ret);
}

static int decision(const struct record *approval)
{
    return (int)approval->spec.approval.decision;
}

static int64_t used(struct world_fixture *fx, const char *rule_uid)
{
    CLEANUP_RECORD struct record *rule = world_get_record(fx, KIND_APPROVAL_RULE, rule_uid);
    return rule->status.approval_rule.used_count;
}

static void has_event(struct world_fixture *fx, const char *uid, const char *reason, const char *piece)
{
    struct store_event_row *rows;
    size_t count;
    struct error err = ERROR_INIT;
    bool is_there = false;
    assert_ok(store_list_events(fx->world.store, uid, 100, &rows, &count, &err));
    for (size_t i = 0; i < count; i++)
        is_there |= strcmp(rows[i].reason, reason) == 0 && strstr(rows[i].message, piece);
    store_events_free(rows, count);
    if (!is_there)
        fail_msg("no event %s with '%s'", reason, piece);
}

// ---- deciding -------------------------------------------------------------------------------------------------------------
static void a_rule_approves_what_it_holds_and_says_so_on_both_sides(void **state)
{
    struct world_fixture *fx = *state;
    CLEANUP_FREE char *glob = all_of(fx, "*");
    CLEANUP_FREE char *rule = RULE(.name = "mine", .glob = glob);
    CLEANUP_FREE char *repo = world_make_repository(fx, "repo");
    CLEANUP_RECORD struct record *approval = NULL, *sandbox = NULL;
    struct error err = ERROR_INIT;
    enum sandbox_outcome outcome;
    ask(fx, repo, NULL, &approval);
    assert_int_equal(decision(approval), APPROVAL_APPROVED);
    assert_string_equal(approval->status.approval.decided_by, "rule/mine");
    assert_string_equal(approval->spec.approval.reason, "by the book");
    assert_true(approval->spec.approval.shown_resource_version > 0);
    assert_non_null(approval->status.approval.workspace_ref);
    assert_int_equal(used(fx, rule), 1);
    has_event(fx, approval->meta.uid, "ApprovedByRule", "rule/mine");
    has_event(fx, rule, "Approved", approval->meta.name);
    assert_ok(world_create(fx, REQUEST_MCP(.workspace_path = repo), &outcome, &sandbox, &err));
    assert_int_equal(outcome, SANDBOX_CREATED);
    CLEANUP_JSON json_t *seen = render_approval(approval);
    CLEANUP_FREE char *words = json_to_text(seen);
    assert_null(strstr(words, "rule")); // a caller hears the result, not by whom
    assert_null(strstr(words, "book"));
    world_settle(fx);
}

static void what_no_rule_holds_waits_for_the_operator(void **state)
{
    struct world_fixture *fx = *state;
    CLEANUP_FREE char *glob = all_of(fx, "other/*");
    CLEANUP_FREE char *mine = all_of(fx, "*");
    CLEANUP_FREE char *path_rule = RULE(.name = "a", .glob = glob);
    CLEANUP_FREE char *mode_rule = RULE(.name = "b", .glob = mine, .mode = "direct");
    CLEANUP_FREE char *caller_rule = RULE(.name = "c", .glob = mine, .requester = "mcp:token:*");
    CLEANUP_FREE char *repo = world_make_repository(fx, "repo");
    CLEANUP_RECORD struct record *approval = NULL, *named = NULL;
    ask(fx, repo, NULL, &approval);
    assert_int_equal(decision(approval), APPROVAL_PENDING);
    assert_true(approval_is_waiting(approval));
    assert_int_equal(used(fx, path_rule) + used(fx, mode_rule) + used(fx, caller_rule), 0);
    CLEANUP_FREE char *other = world_make_repository(fx, "repo2");
    ask_as(fx, "mcp:token:laptop", other, NULL, &named);
    assert_int_equal(decision(named), APPROVAL_APPROVED);
    assert_int_equal(used(fx, caller_rule), 1);
}

static void rejecting_wins_over_approving_then_the_first_name(void **state)
{
    struct world_fixture *fx = *state;
    CLEANUP_FREE char *all = all_of(fx, "**");
    CLEANUP_FREE char *secret = all_of(fx, "secret*");
    CLEANUP_FREE char *b = RULE(.name = "b", .glob = all);
    CLEANUP_FREE char *a = RULE(.name = "a", .glob = all);
    CLEANUP_FREE char *z = RULE(.name = "z", .glob = secret, .decision = "rejected");
    CLEANUP_FREE char *repo = world_make_repository(fx, "repo");
    CLEANUP_FREE char *hidden = world_make_repository(fx, "secret-plans");
    CLEANUP_RECORD struct record *approved = NULL, *rejected = NULL;
    ask(fx, repo, NULL, &approved);
    assert_string_equal(approved->status.approval.decided_by, "rule/a");
    ask(fx, hidden, NULL, &rejected);
    assert_int_equal(decision(rejected), APPROVAL_REJECTED);
    assert_string_equal(rejected->status.approval.decided_by, "rule/z");
    assert_null(rejected->status.approval.workspace_ref);
    assert_int_equal(used(fx, b), 0);
}

static void a_new_rule_decides_what_waits_already(void **state)
{
    struct world_fixture *fx = *state;
    CLEANUP_FREE char *glob = all_of(fx, "*");
    CLEANUP_FREE char *repo = world_make_repository(fx, "repo");
    CLEANUP_RECORD struct record *approval = NULL, *after = NULL;
    ask(fx, repo, NULL, &approval);
    assert_int_equal(decision(approval), APPROVAL_PENDING);
    CLEANUP_FREE char *rule = RULE(.name = "late", .glob = glob);
    after = world_get_record(fx, KIND_APPROVAL, approval->meta.uid);
    assert_int_equal(decision(after), APPROVAL_APPROVED);
    assert_string_equal(after->status.approval.decided_by, "rule/late");
}

static int raise_in_tx(struct store_tx *tx, void *arg, struct error *err)
{
    CLEANUP_RECORD struct record *rule = NULL;
    if (tx_get_uid(tx, KIND_APPROVAL_RULE, arg, &rule, err) < 0)
        return -1;
    rule->spec.approval_rule.max_count++;
    return tx_write_spec(tx, &(struct store_actor){"operator:uid=0", "test"}, rule, err);
}

static void a_rule_decides_as_often_as_it_may_and_more_when_it_may_more(void **state)
{
    struct world_fixture *fx = *state;
    CLEANUP_FREE char *glob = all_of(fx, "*");
    CLEANUP_FREE char *rule = RULE(.name = "twice", .glob = glob, .max_count = 2);
    struct record *asked[5];
    int approved = 0;
    for (int i = 0; i < 5; i++) { // asked for at once: all are reconciled together
        CLEANUP_FREE char *name = mem_format("repo%d", i);
        CLEANUP_FREE char *repo = world_make_repository(fx, name);
        struct error err = ERROR_INIT;
        assert_ok(world_create(fx, REQUEST_MCP(.workspace_path = repo), NULL, &asked[i], &err));
    }
    world_settle(fx);
    for (int i = 0; i < 5; i++) {
        CLEANUP_RECORD struct record *approval = world_get_record(fx, KIND_APPROVAL, asked[i]->meta.uid);
        approved += decision(approval) == APPROVAL_APPROVED;
        record_free(asked[i]);
    }
    assert_int_equal(approved, 2);
    CLEANUP_RECORD struct record *full = world_get_record(fx, KIND_APPROVAL_RULE, rule);
    assert_true(record_is_true(full, CONDITION_EXHAUSTED));
    assert_string_equal(full->status.approval_rule.phase, "exhausted");
    struct error err = ERROR_INIT;
    assert_ok(store_transact(fx->world.store, raise_in_tx, rule, &err));
    world_settle(fx);
    assert_int_equal(used(fx, rule), 3); // one of those that waited
}

static void an_expired_rule_decides_nothing_even_before_its_condition_says_so(void **state)
{
    struct world_fixture *fx = *state;
    CLEANUP_FREE char *glob = all_of(fx, "*");
    CLEANUP_FREE char *uid = RULE(.name = "short", .glob = glob, .expires_in_ms = 90000);
    CLEANUP_FREE char *repo = world_make_repository(fx, "repo");
    CLEANUP_RECORD struct record *rule = world_get_record(fx, KIND_APPROVAL_RULE, uid), *approval = NULL;
    assert_string_equal(rule->status.approval_rule.phase, "active");
    assert_true(rule_is_active(rule, (struct wall_time){rule->spec.approval_rule.expires_at.ms - 1}));
    assert_false(rule_is_active(rule, rule->spec.approval_rule.expires_at));
    clock_advance(fx->world.clock, 90000);
    ask(fx, repo, NULL, &approval);
    assert_int_equal(decision(approval), APPROVAL_PENDING);
    CLEANUP_RECORD struct record *over = world_get_record(fx, KIND_APPROVAL_RULE, uid);
    assert_string_equal(over->status.approval_rule.phase, "expired");
    assert_true(record_is_false(over, CONDITION_READY));
}

static void a_deleted_rule_leaves_what_it_decided_and_decides_no_more(void **state)
{
    struct world_fixture *fx = *state;
    CLEANUP_FREE char *glob = all_of(fx, "*");
    CLEANUP_FREE char *rule = RULE(.name = "gone", .glob = glob);
    CLEANUP_FREE char *repo = world_make_repository(fx, "repo");
    CLEANUP_FREE char *later = world_make_repository(fx, "later");
    CLEANUP_RECORD struct record *before = NULL, *kept = NULL, *after = NULL;
    struct error err = ERROR_INIT;
    ask(fx, repo, NULL, &before);
    assert_ok(world_delete(fx, KIND_APPROVAL_RULE, rule, &err));
    kept = world_get_record(fx, KIND_APPROVAL, before->meta.uid);
    assert_int_equal(decision(kept), APPROVAL_APPROVED);
    assert_non_null(kept->status.approval.workspace_ref);
    ask(fx, later, NULL, &after);
    assert_int_equal(decision(after), APPROVAL_PENDING);
}

static void a_restart_in_between_decides_once(void **state)
{
    struct world_fixture *fx = *state;
    CLEANUP_FREE char *glob = all_of(fx, "*");
    CLEANUP_FREE char *rule = RULE(.name = "kept", .glob = glob);
    CLEANUP_FREE char *repo = world_make_repository(fx, "repo");
    CLEANUP_RECORD struct record *asked = NULL;
    struct error err = ERROR_INIT;
    assert_ok(world_create(fx, REQUEST_MCP(.workspace_path = repo), NULL, &asked, &err));
    world_restart(fx);
    world_settle(fx);
    CLEANUP_RECORD struct record *approval = world_get_record(fx, KIND_APPROVAL, asked->meta.uid);
    assert_int_equal(decision(approval), APPROVAL_APPROVED);
    assert_int_equal(used(fx, rule), 1);
    world_restart(fx);
    world_settle(fx);
    assert_int_equal(used(fx, rule), 1);
}

// ---- what no rule can -----------------------------------------------------------------------------------------------------
static void a_link_is_judged_by_where_it_leads(void **state)
{
    struct world_fixture *fx = *state;
    CLEANUP_FREE char *glob = all_of(fx, "open/*");
    CLEANUP_FREE char *rule = RULE(.name = "open", .glob = glob);
    CLEANUP_FREE char *open_dir = world_make_host_dir(fx, "open");
    CLEANUP_FREE char *closed = world_make_repository(fx, "closed");
    CLEANUP_FREE char *link = mem_format("%s/link", open_dir);
    CLEANUP_RECORD struct record *approval = NULL;
    assert_int_equal(symlink(closed, link), 0);
    ask(fx, link, NULL, &approval);
    assert_string_equal(approval->spec.approval.path, closed);
    assert_int_equal(decision(approval), APPROVAL_PENDING);
    assert_int_equal(used(fx, rule), 0);
}

static void a_directory_that_was_replaced_since_it_was_asked_for_is_not_approved(void **state)
{
    struct world_fixture *fx = *state;
    CLEANUP_FREE char *repo = world_make_repository(fx, "repo");
    CLEANUP_FREE char *aside = mem_format("%s-old", repo);
    CLEANUP_FREE char *glob = all_of(fx, "*");
    CLEANUP_RECORD struct record *approval = NULL, *after = NULL;
    ask(fx, repo, NULL, &approval);
    assert_int_equal(rename(repo, aside), 0);
    CLEANUP_FREE char *other = world_make_repository(fx, "repo");
    CLEANUP_FREE char *rule = RULE(.name = "all", .glob = glob);
    after = world_get_record(fx, KIND_APPROVAL, approval->meta.uid);
    assert_int_equal(decision(after), APPROVAL_PENDING);
    assert_true(approval_is_waiting(after));
    assert_string_equal(record_condition(after, CONDITION_DECIDED)->reason, "RuleCannotApprove");
    assert_non_null(strstr(record_condition(after, CONDITION_DECIDED)->message, "replaced"));
    has_event(fx, approval->meta.uid, "RuleCannotApprove", "rule/all");
    assert_int_equal(used(fx, rule), 0);
}

static void a_directory_that_is_replaced_after_the_decision_is_not_mounted(void **state)
{
    struct world_fixture *fx = *state;
    CLEANUP_FREE char *glob = all_of(fx, "*");
    CLEANUP_FREE char *rule = RULE(.name = "all", .glob = glob, .max_count = 1);
    CLEANUP_FREE char *repo = world_make_repository(fx, "repo");
    CLEANUP_FREE char *aside = mem_format("%s-old", repo);
    CLEANUP_RECORD struct record *approval = NULL, *again = NULL;
    ask(fx, repo, NULL, &approval);
    assert_int_equal(decision(approval), APPROVAL_APPROVED);
    assert_int_equal(rename(repo, aside), 0);
    CLEANUP_FREE char *other = world_make_repository(fx, "repo");
    ask(fx, repo, NULL, &again); // another directory, another question
    assert_string_not_equal(again->meta.uid, approval->meta.uid);
    assert_int_equal(decision(again), APPROVAL_PENDING);
}

static void no_rule_holds_for_paths_that_the_policy_refuses(void **state)
{
    struct world_fixture *fx = *state;
    CLEANUP_FREE char *glob = all_of(fx, "**");
    CLEANUP_FREE char *rule = RULE(.name = "all", .glob = glob, .mode = "direct");
    CLEANUP_FREE char *slash = make_rule(fx, (struct wanted_rule){.name = "everything", .decision = "approved", .glob = "/**", .mode = "direct"});
    CLEANUP_FREE char *ssh = world_make_host_dir(fx, ".ssh");
    const char *paths[] = {ssh, "/etc", fx->config.data_root, fx->dir};
    for (size_t i = 0; i < ARRAY_LEN(paths); i++) {
        struct record *none = NULL;
        struct error err = ERROR_INIT;
        assert_error(world_create(fx, REQUEST_MCP(.workspace_path = paths[i], .workspace_mode = "direct"), NULL, &none, &err), ERROR_REFUSED);
        assert_string_equal(err.message, PATH_REFUSED_MESSAGE); // the very words without rules
    }
    assert_int_equal(used(fx, rule) + used(fx, slash), 0);
    CLEANUP_RECORD struct record *outside = world_get_record(fx, KIND_APPROVAL_RULE, slash);
    assert_true(record_is_false(outside, CONDITION_READY));
    assert_string_equal(record_condition(outside, CONDITION_READY)->reason, "OutsideAllowedRoots");
    assert_string_equal(outside->status.approval_rule.phase, "outside");
}

static void a_listening_socket_that_came_after_the_question_keeps_rule_and_operator_from_approving(void **state)
{
    struct world_fixture *fx = *state;
    CLEANUP_FREE char *dir = world_make_host_dir(fx, "direct");
    CLEANUP_FREE char *glob = all_of(fx, "*");
    CLEANUP_RECORD struct record *approval = NULL, *after = NULL;
    struct error err = ERROR_INIT;
    ask(fx, dir, "direct", &approval);
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    snprintf(address.sun_path, sizeof(address.sun_path), "%s/sock", dir);
    CLEANUP_CLOSE int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
    assert_int_equal(listen(fd, 1), 0);
    CLEANUP_FREE char *rule = RULE(.name = "all", .glob = glob, .mode = "direct");
    after = world_get_record(fx, KIND_APPROVAL, approval->meta.uid);
    assert_int_equal(decision(after), APPROVAL_PENDING);
    assert_error(world_decide(fx, approval->meta.uid, "approved", 0, &err), ERROR_REFUSED);
    assert_ok(world_decide(fx, approval->meta.uid, "rejected", 0, &err));
}

static void a_glob_below_a_link_to_a_root_is_told_where_the_root_leads(void **state)
{
    struct world_fixture *fx = *state;
    CLEANUP_FREE char *link = mem_format("%s/shortcut", fx->dir);
    CLEANUP_FREE char *real = mem_format("%s/repositories", fx->dir);
    CLEANUP_FREE char *glob = mem_format("%s/*", link);
    assert_int_equal(symlink(real, link), 0);
    text_list_add(&fx->config.allowed_host_roots, link);
    CLEANUP_FREE char *uid = RULE(.name = "link", .glob = glob);
    CLEANUP_RECORD struct record *rule = world_get_record(fx, KIND_APPROVAL_RULE, uid);
    assert_string_equal(rule->status.approval_rule.phase, "outside");
    assert_non_null(strstr(record_condition(rule, CONDITION_READY)->message, real));
}

// ---- asking again and again -----------------------------------------------------------------------------------------------
static void a_rejection_by_rule_stands_a_while_then_the_same_record_is_asked_again(void **state)
{
    struct world_fixture *fx = *state;
    CLEANUP_FREE char *glob = all_of(fx, "*");
    CLEANUP_FREE char *rule = RULE(.name = "no", .glob = glob, .decision = "rejected");
    CLEANUP_FREE char *repo = world_make_repository(fx, "repo");
    CLEANUP_RECORD struct record *first = NULL, *second = NULL, *third = NULL, *fourth = NULL, *other = NULL;
    struct error err = ERROR_INIT;
    ask(fx, repo, NULL, &first);
    assert_int_equal(decision(first), APPROVAL_REJECTED);
    ask(fx, repo, NULL, &second);
    assert_string_equal(second->meta.uid, first->meta.uid);
    assert_int_equal(used(fx, rule), 1); // nothing was asked
    clock_advance(fx->world.clock, REJECTION_STANDS_MS);
    ask(fx, repo, NULL, &third);
    assert_string_equal(third->meta.uid, first->meta.uid);
    assert_int_equal(decision(third), APPROVAL_REJECTED);
    assert_int_equal(used(fx, rule), 2);
    ask_as(fx, "mcp:token:other", repo, NULL, &other); // somebody else's question
    assert_string_not_equal(other->meta.uid, first->meta.uid);
    assert_ok(world_delete(fx, KIND_APPROVAL_RULE, rule, &err));
    clock_advance(fx->world.clock, REJECTION_STANDS_MS);
    ask(fx, repo, NULL, &fourth);
    assert_string_equal(fourth->meta.uid, first->meta.uid);
    assert_int_equal(decision(fourth), APPROVAL_PENDING);
    assert_null(fourth->status.approval.decided_by);
    assert_null(fourth->spec.approval.reason);
    assert_true(approval_is_waiting(fourth));
}

static void a_minute_has_so_many_new_questions(void **state)
{
    struct world_fixture *fx = *state;
    CLEANUP_FREE char *glob = all_of(fx, "*");
    CLEANUP_FREE char *rule = RULE(.name = "yes", .glob = glob, .mode = "direct");
    struct error err = ERROR_INIT;
    struct record *approval = NULL;
    for (int i = 0; i < LIMIT_APPROVALS_A_MINUTE; i++) {
        CLEANUP_FREE char *name = mem_format("dir%d", i);
        CLEANUP_FREE char *dir = world_make_host_dir(fx, name);
        assert_ok(world_create(fx, REQUEST_MCP(.workspace_path = dir, .workspace_mode = "direct"), NULL, &approval, &err));
        record_free(approval);
        if (i % 40 == 39)
            world_settle(fx); // decided: not too many wait at once
    }
    CLEANUP_FREE char *extra = world_make_host_dir(fx, "extra");
    assert_error(world_create(fx, REQUEST_MCP(.workspace_path = extra, .workspace_mode = "direct"), NULL, &approval, &err), ERROR_LIMIT);
    clock_advance(fx->world.clock, 60000);
    assert_ok(world_create(fx, REQUEST_MCP(.workspace_path = extra, .workspace_mode = "direct"), NULL, &approval, &err));
    record_free(approval);
    world_settle(fx);
    assert_int_equal(used(fx, rule), LIMIT_APPROVALS_A_MINUTE + 1);
}

static void so_many_rules_may_be_there(void **state)
{
    struct world_fixture *fx = *state;
    struct error err = ERROR_INIT;
    for (int i = 0; i <= LIMIT_APPROVAL_RULES; i++) {
        CLEANUP_FREE char *name = mem_format("rule-%d", i);
        struct wanted_rule wanted = {.name = name, .decision = "approved", .glob = "/r/*"};
        int r = store_transact(fx->world.store, make_in_tx, &wanted, &err);
        record_free(wanted.made);
        assert_int_equal(r, i < LIMIT_APPROVAL_RULES ? 0 : -1);
    }
    assert_int_equal(err.code, ERROR_LIMIT);
    world_settle(fx);
}

#define RULE_TEST(name) cmocka_unit_test_setup_teardown(name, world_setup, world_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        RULE_TEST(a_rule_approves_what_it_holds_and_says_so_on_both_sides),
        RULE_TEST(what_no_rule_holds_waits_for_the_operator),
        RULE_TEST(rejecting_wins_over_approving_then_the_first_name),
        RULE_TEST(a_new_rule_decides_what_waits_already),
        RULE_TEST(a_rule_decides_as_often_as_it_may_and_more_when_it_may_more),
        RULE_TEST(an_expired_rule_decides_nothing_even_before_its_condition_says_so),
        RULE_TEST(a_deleted_rule_leaves_what_it_decided_and_decides_no_more),
        RULE_TEST(a_restart_in_between_decides_once),
        RULE_TEST(a_link_is_judged_by_where_it_leads),
        RULE_TEST(a_directory_that_was_replaced_since_it_was_asked_for_is_not_approved),
        RULE_TEST(a_directory_that_is_replaced_after_the_decision_is_not_mounted),
        RULE_TEST(no_rule_holds_for_paths_that_the_policy_refuses),
        RULE_TEST(a_listening_socket_that_came_after_the_question_keeps_rule_and_operator_from_approving),
        RULE_TEST(a_glob_below_a_link_to_a_root_is_told_where_the_root_leads),
        RULE_TEST(a_rejection_by_rule_stands_a_while_then_the_same_record_is_asked_again),
        RULE_TEST(a_minute_has_so_many_new_questions),
        RULE_TEST(so_many_rules_may_be_there),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
