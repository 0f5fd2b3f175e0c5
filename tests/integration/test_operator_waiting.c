// Sandboxes and exposures whose spec names what is not there yet: they are made, say what they wait for, and go on as soon as it comes.
#include "controller/base/memory.h"
#include "controller/policy.h"
#include "schemas/kinds/conditions.h"
#include "tests/support/api_rig.h"
#include <string.h>

#define WORKSPACES API_KINDS "/workspaces"
#define SANDBOXES API_KINDS "/sandboxes"
#define EXPOSURES API_KINDS "/exposures"
#define GET(path, expected) api_call(api, "GET", path, NULL, "", expected)
#define POST(path, body, expected) api_call(api, "POST", path, API_JSON, body, expected)
#define DELETE(path, expected) api_check(api, "DELETE", path, NULL, "", expected)
#define HOUR_MS (3600LL * 1000)

static json_t *post_sandbox(struct api_rig *api, const char *name, const char *workspace, int expected)
{
    CLEANUP_FREE char *body = mem_format("{\"metadata\": {\"name\": \"%s\"}, \"spec\": {\"workspaceRef\": \"%s\"}}", name, workspace);
    return POST(SANDBOXES, body, expected);
}

static json_t *post_exposure(struct api_rig *api, const char *name, const char *sandbox, int port, int expected)
{
    CLEANUP_FREE char *body =
        mem_format("{\"metadata\": {\"name\": \"%s\"}, \"spec\": {\"sandboxRef\": \"%s\", \"port\": %d}}", name, sandbox, port);
    return POST(EXPOSURES, body, expected);
}

static void make_workspace(struct api_rig *api, const char *name)
{
    CLEANUP_FREE char *body = mem_format("{\"metadata\": {\"name\": \"%s\"}}", name);
    json_decref(POST(WORKSPACES, body, 201));
}

static json_t *condition_of(const json_t *object, const char *type)
{
    json_t *at;
    size_t i;
    json_array_foreach(api_at(object, "status/conditions"), i, at) if (strcmp(json_get_text(at, "type"), type) == 0) return at;
    return NULL;
}

// "True Reason", or "" where there is no such condition.
static void assert_condition(const json_t *object, const char *type, const char *wanted)
{
    const json_t *at = condition_of(object, type);
    CLEANUP_FREE char *got = at ? mem_format("%s %s", json_get_text(at, "status"), json_get_text(at, "reason")) : mem_strdup("");
    assert_string_equal(got, wanted);
}

static void assert_shown(struct api_rig *api, const char *path, const char *type, const char *wanted)
{
    CLEANUP_JSON json_t *shown = GET(path, 200);
    assert_condition(shown, type, wanted);
}

static void assert_phase(struct api_rig *api, const char *path, const char *wanted)
{
    CLEANUP_JSON json_t *shown = GET(path, 200);
    assert_string_equal(api_text(shown, "status/phase"), wanted);
}

static int creates(struct api_rig *api)
{
    return fake_driver_calls(api->fixture->world.driver, FAKE_CREATE);
}

// ---- sandboxes
static void a_sandbox_waits_for_its_workspace_and_says_so(void **state)
{
    struct api_rig *api = *state;
    CLEANUP_JSON json_t *made = post_sandbox(api, "dev", "soon", 201);
    assert_string_equal(api->warning, "299 - \"there is no workspace named soon yet; the sandbox waits for it\"");
    assert_condition(made, CONDITION_REF_NOT_FOUND, "True WorkspaceNotFound");
    assert_condition(made, CONDITION_READY, "False WorkspaceNotFound");
    assert_non_null(strstr(json_get_text(condition_of(made, CONDITION_READY), "message"), "there is no workspace named soon yet"));
    assert_string_equal(api_text(made, "status/phase"), "creating");
    assert_string_equal(api_text(made, "metadata/finalizers/0"), FINALIZER_RUNTIME);
    world_settle(api->fixture);
    CLEANUP_JSON json_t *waiting = GET(SANDBOXES "/dev", 200);
    make_workspace(api, "another");
    world_settle(api->fixture); // it looked again
    CLEANUP_JSON json_t *still = GET(SANDBOXES "/dev", 200);
    assert_string_equal(api_text(still, "metadata/resourceVersion"), api_text(waiting, "metadata/resourceVersion")); // nothing new, no write
    assert_int_equal(creates(api), 0);
    make_workspace(api, "soon");
    world_settle(api->fixture); // without moving the clock: nothing polls
    CLEANUP_JSON json_t *running = GET(SANDBOXES "/dev", 200);
    assert_string_equal(api_text(running, "status/phase"), "running");
    assert_condition(running, CONDITION_REF_NOT_FOUND, "");
    CLEANUP_JSON json_t *workspace = GET(WORKSPACES "/soon", 200);
    assert_string_equal(api_text(workspace, "status/boundSandbox"), api_text(running, "metadata/uid"));
    assert_string_equal(api_text(running, "status/workspaceUid"), api_text(workspace, "metadata/uid"));
}

static void every_way_of_creating_may_name_what_comes_later(void **state)
{
    struct api_rig *api = *state;
    const char *spec = "{\"metadata\": {\"name\": \"dev\"}, \"spec\": {\"workspaceRef\": \"soon\"}}";
    json_decref(api_call(api, "PATCH", SANDBOXES "/dev?fieldManager=me&dryRun=All", API_APPLY, spec, 201));
    json_decref(GET(SANDBOXES "/dev", 404));
    json_decref(api_call(api, "PATCH", SANDBOXES "/dev?fieldManager=me", API_APPLY, spec, 201));
    assert_non_null(strstr(api->warning, "the sandbox waits for it"));
    json_decref(api_call(api, "PATCH", SANDBOXES "/dev?fieldManager=me", API_APPLY, spec, 200)); // again: nothing changes
    json_decref(post_sandbox(api, "dev", "soon", 409));
    json_decref(POST(SANDBOXES, "{\"spec\": {\"workspaceRef\": \"Not_A_Name\"}}", 422));
    json_decref(POST(SANDBOXES, "{\"spec\": {\"workspaceRef\": \"ws_aaaaaaaaaaaaaaaaaaaaaaaaaa\"}}", 422)); // a uid never comes
    json_decref(POST(SANDBOXES, "{\"spec\": {\"workspaceRef\": \"soon\", \"driver\": \"sbx\"}}", 422));
}

static void of_two_that_wait_exactly_one_gets_the_workspace(void **state)
{
    struct api_rig *api = *state;
    json_decref(post_sandbox(api, "one", "soon", 201));
    json_decref(post_sandbox(api, "two", "soon", 201));
    world_settle(api->fixture);
    make_workspace(api, "soon");
    world_settle(api->fixture);
    CLEANUP_JSON json_t *one = GET(SANDBOXES "/one", 200), *two = GET(SANDBOXES "/two", 200);
    bool is_one = strcmp(api_text(one, "status/phase"), "running") == 0;
    const json_t *loser = is_one ? two : one;
    assert_string_equal(api_text(is_one ? one : two, "status/phase"), "running");
    assert_string_equal(api_text(loser, "status/phase"), "creating");
    assert_condition(loser, CONDITION_READY, "False WorkspaceInUse");
    assert_condition(loser, CONDITION_REF_NOT_FOUND, "");
    assert_int_equal(creates(api), 1);
    DELETE(is_one ? SANDBOXES "/one" : SANDBOXES "/two", 200);
    world_settle(api->fixture); // its going lets the other one in
    assert_phase(api, is_one ? SANDBOXES "/two" : SANDBOXES "/one", "running");
}

static void one_that_waits_ends_at_once_and_asks_the_driver_for_nothing(void **state)
{
    struct api_rig *api = *state;
    json_decref(post_sandbox(api, "dev", "soon", 201));
    json_decref(post_exposure(api, "web", "none", 80, 201));
    world_settle(api->fixture);
    DELETE(SANDBOXES "/dev", 200);
    DELETE(EXPOSURES "/web", 200);
    world_settle(api->fixture);
    json_decref(GET(SANDBOXES "/dev", 404));
    json_decref(GET(EXPOSURES "/web", 404));
    make_workspace(api, "soon");
    world_settle(api->fixture);
    for (int call = 0; call < FAKE_CALL_COUNT; call++)
        assert_int_equal(fake_driver_calls(api->fixture->world.driver, (enum fake_call)call), 0);
}

static void those_that_wait_count_as_sandboxes(void **state)
{
    struct api_rig *api = *state;
    api->fixture->config.max_sandboxes = 2;
    json_decref(post_sandbox(api, "one", "soon", 201));
    json_decref(post_sandbox(api, "two", "later", 201));
    CLEANUP_JSON json_t *refused = post_sandbox(api, "three", "never", 429);
    api_assert_status(refused, "TooManyRequests", "there are 2 sandboxes already");
    json_decref(POST(SANDBOXES "?dryRun=All", "{\"spec\": {\"workspaceRef\": \"never\"}}", 429));
}

static void a_workspace_that_goes_again_is_waited_for_by_name(void **state)
{
    struct api_rig *api = *state;
    CLEANUP_FREE char *dir = world_make_host_dir(api->fixture, "project");
    CLEANUP_FREE char *revocable = mem_format("{\"metadata\": {\"name\": \"w\", \"finalizers\": [\"example.com/hold\"]}, "
                                              "\"spec\": {\"mode\": \"direct\", \"path\": \"%s\"}}", dir);
    json_decref(post_sandbox(api, "one", "w", 201));
    json_decref(post_sandbox(api, "two", "w", 201));
    json_decref(POST(WORKSPACES, revocable, 201));
    world_settle(api->fixture);
    CLEANUP_JSON json_t *one = GET(SANDBOXES "/one", 200);
    bool is_one = *api_text(one, "status/workspaceUid");
    const char *winner = is_one ? SANDBOXES "/one" : SANDBOXES "/two", *loser = is_one ? SANDBOXES "/two" : SANDBOXES "/one";
    DELETE(WORKSPACES "/w", 200); // revoked, and it stays for its finalizer
    world_settle(api->fixture);
    assert_shown(api, loser, CONDITION_READY, "False WorkspaceDeleting");
    DELETE(winner, 200);
    world_settle(api->fixture);
    assert_shown(api, loser, CONDITION_READY, "False WorkspaceDeleting");
    api_check(api, "PATCH", WORKSPACES "/w", API_MERGE, "{\"metadata\": {\"finalizers\": null}}", 200);
    world_settle(api->fixture);
    assert_shown(api, loser, CONDITION_REF_NOT_FOUND, "True WorkspaceNotFound");
    make_workspace(api, "w");
    world_settle(api->fixture);
    assert_phase(api, loser, "running");
}

static void overlapping_direct_mounts_are_kept_apart_at_binding_too(void **state)
{
    struct api_rig *api = *state;
    CLEANUP_FREE char *outer = world_make_host_dir(api->fixture, "outer"), *inner = world_make_host_dir(api->fixture, "outer/inner");
    CLEANUP_FREE char *first = mem_format("{\"metadata\": {\"name\": \"a\"}, \"spec\": {\"mode\": \"direct\", \"path\": \"%s\"}}", outer);
    CLEANUP_FREE char *second = mem_format("{\"metadata\": {\"name\": \"b\"}, \"spec\": {\"mode\": \"direct\", \"path\": \"%s\"}}", inner);
    json_decref(post_sandbox(api, "on-b", "b", 201));
    json_decref(POST(WORKSPACES, first, 201));
    json_decref(post_sandbox(api, "on-a", "a", 201));
    world_settle(api->fixture);
    json_decref(POST(WORKSPACES, second, 201));
    world_settle(api->fixture);
    assert_shown(api, SANDBOXES "/on-b", CONDITION_READY, "False WorkspaceOverlaps");
    DELETE(SANDBOXES "/on-a", 200);
    world_settle(api->fixture);
    assert_phase(api, SANDBOXES "/on-b", "running");
}

static void waiting_is_not_idleness(void **state)
{
    struct api_rig *api = *state;
    json_decref(post_sandbox(api, "dev", "soon", 201));
    world_settle(api->fixture);
    for (int hour = 0; hour < 30; hour++)
        world_advance(api->fixture, HOUR_MS);
    CLEANUP_JSON json_t *waiting = GET(SANDBOXES "/dev", 200);
    struct wall_time expires = {0};
    assert_int_equal(wall_time_parse(api_text(waiting, "status/expiresAt"), &expires), 0);
    assert_true(expires.ms > clock_wall(api->fixture->world.clock).ms);
    make_workspace(api, "soon");
    world_settle(api->fixture);
    world_advance(api->fixture, 23 * HOUR_MS);
    assert_phase(api, SANDBOXES "/dev", "running");
    world_advance(api->fixture, 2 * HOUR_MS);
    json_decref(GET(SANDBOXES "/dev", 404)); // a day after it was bound
}

static void the_daemons_restart_changes_nothing_for_those_that_wait(void **state)
{
    struct world_fixture *fx = *state;
    CLEANUP_RECORD struct record *sandbox = NULL, *workspace = NULL;
    struct error err = ERROR_INIT;
    const struct sandbox_request request = {.principal = "operator:uid=0", .manager = "me", .workspace_name = "soon", .name = "dev"};
    assert_ok(world_create(fx, &request, NULL, &sandbox, &err));
    world_settle(fx);
    world_restart(fx);
    world_settle(fx);
    assert_string_equal(world_word(fx, sandbox->meta.uid), "creating");
    const struct sandbox_request other = {.principal = "operator:uid=0", .manager = "me", .name = "other"};
    assert_ok(world_create(fx, &other, NULL, &workspace, &err)); // some workspace, and not the one of that name
    world_settle(fx);
    assert_string_equal(world_word(fx, sandbox->meta.uid), "creating");
    CLEANUP_RECORD struct record *fresh = world_get_record(fx, KIND_SANDBOX, sandbox->meta.uid);
    assert_true(record_is_true(fresh, CONDITION_REF_NOT_FOUND));
    assert_false(record_is_true(fresh, CONDITION_FAILED));
}

// ---- exposures
static void an_exposure_waits_for_its_sandbox_and_says_so(void **state)
{
    struct api_rig *api = *state;
    CLEANUP_JSON json_t *made = post_exposure(api, "web", "dev", 8080, 201);
    assert_string_equal(api->warning, "299 - \"there is no sandbox named dev yet; the exposure waits for it\"");
    assert_condition(made, CONDITION_REF_NOT_FOUND, "True SandboxNotFound");
    assert_condition(made, CONDITION_PUBLISHED, "False SandboxNotFound");
    assert_condition(made, CONDITION_READY, "False SandboxNotFound");
    assert_string_equal(api_text(made, "status/phase"), "pending");
    assert_string_equal(api_text(made, "metadata/finalizers/0"), FINALIZER_MAPPING);
    world_settle(api->fixture);
    json_decref(post_sandbox(api, "dev", "soon", 201)); // which waits, too
    world_settle(api->fixture);
    assert_shown(api, EXPOSURES "/web", CONDITION_PUBLISHED, "False SandboxNotReady");
    make_workspace(api, "soon");
    world_settle(api->fixture);
    assert_phase(api, EXPOSURES "/web", "published");
    assert_shown(api, EXPOSURES "/web", CONDITION_REF_NOT_FOUND, "");
    DELETE(SANDBOXES "/dev", 200);
    world_settle(api->fixture);
    json_decref(GET(EXPOSURES "/web", 404)); // bound, it goes with its sandbox
}

static void a_port_is_exposed_once_and_so_many_ports_are_waited_for(void **state)
{
    struct api_rig *api = *state;
    for (int i = 0; i < LIMIT_EXPOSURES_A_SANDBOX; i++) {
        CLEANUP_FREE char *name = mem_format("p%d", i);
        json_decref(post_exposure(api, name, "dev", 9000 + i, 201));
    }
    CLEANUP_JSON json_t *twice = post_exposure(api, "again", "dev", 9000, 409);
    api_assert_status(twice, "AlreadyExists", "port 9000 of the sandbox 'dev' is exposed already by 'p0'");
    CLEANUP_JSON json_t *more = post_exposure(api, "more", "dev", 8999, 429);
    api_assert_status(more, "TooManyRequests", "32 exposed ports already");
    json_decref(post_exposure(api, "other", "elsewhere", 9000, 201));
}

static void on_exposed(void *arg, int result, struct record *record, json_t *unsaved, const struct error *err)
{
    (void)result, (void)unsaved, (void)err;
    *(struct record **)arg = record;
}

static int nothing_in_tx(struct store_tx *tx, void *arg, struct error *err)
{
    (void)tx, (void)arg, (void)err;
    return 0;
}

static void a_port_that_somebody_exposed_first_is_waited_for(void **state)
{
    struct world_fixture *fx = *state; // where reconciles run when the test says so
    struct error err = ERROR_INIT;
    CLEANUP_RECORD struct record *mine = NULL, *sandbox = NULL, *theirs = NULL;
    const struct expose_request wanted = {.principal = "operator:uid=0", .manager = "me", .sandbox_name = "dev", .port = 9000};
    request_expose_as(&fx->world, &wanted, on_exposed, &mine);
    assert_ok(store_transact(fx->world.store, nothing_in_tx, NULL, &err)); // behind it
    world_settle(fx);
    const struct sandbox_request request = {.principal = "operator:uid=0", .manager = "me", .name = "dev"};
    assert_ok(world_create(fx, &request, NULL, &sandbox, &err));
    assert_ok(world_expose(fx, sandbox->meta.uid, 9000, &theirs, &err));
    assert_string_not_equal(theirs->meta.uid, mine->meta.uid);
    world_settle(fx);
    CLEANUP_RECORD struct record *waiting = world_get_record(fx, KIND_EXPOSURE, mine->meta.uid);
    assert_null(waiting->status.exposure.sandbox_uid);
    assert_string_equal(record_condition(waiting, CONDITION_PUBLISHED)->reason, "PortExposed");
    assert_ok(world_delete(fx, KIND_EXPOSURE, theirs->meta.uid, &err));
    world_settle(fx);
    CLEANUP_RECORD struct record *bound = world_get_record(fx, KIND_EXPOSURE, mine->meta.uid);
    assert_true(record_is_true(bound, CONDITION_PUBLISHED));
}

static void an_exposure_follows_its_sandbox_into_failure(void **state)
{
    struct api_rig *api = *state;
    struct world_fixture *fx = api->fixture;
    json_decref(post_exposure(api, "web", "dev", 80, 201));
    world_settle(fx);
    fake_driver_inject(fx->world.driver, FAKE_CREATE, FAKE_FAIL, -1);
    json_decref(post_sandbox(api, "dev", "soon", 201));
    make_workspace(api, "soon");
    for (int i = 0; i < 5; i++)
        world_advance(fx, 60 * 1000);
    assert_phase(api, SANDBOXES "/dev", "failed");
    CLEANUP_JSON json_t *bound = GET(EXPOSURES "/web", 200); // it was there when the sandbox came
    assert_condition(bound, CONDITION_PUBLISHED, "False SandboxFailed");
    json_decref(post_exposure(api, "late", "dev", 81, 409));
}

#define API_TEST(name) cmocka_unit_test_setup_teardown(name, api_rig_setup, api_rig_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        API_TEST(a_sandbox_waits_for_its_workspace_and_says_so),
        API_TEST(every_way_of_creating_may_name_what_comes_later),
        API_TEST(of_two_that_wait_exactly_one_gets_the_workspace),
        API_TEST(one_that_waits_ends_at_once_and_asks_the_driver_for_nothing),
        API_TEST(those_that_wait_count_as_sandboxes),
        API_TEST(a_workspace_that_goes_again_is_waited_for_by_name),
        API_TEST(overlapping_direct_mounts_are_kept_apart_at_binding_too),
        API_TEST(waiting_is_not_idleness),
        cmocka_unit_test_setup_teardown(the_daemons_restart_changes_nothing_for_those_that_wait, world_setup, world_teardown),
        API_TEST(an_exposure_waits_for_its_sandbox_and_says_so),
        API_TEST(a_port_is_exposed_once_and_so_many_ports_are_waited_for),
        cmocka_unit_test_setup_teardown(a_port_that_somebody_exposed_first_is_waited_for, world_setup, world_teardown),
        API_TEST(an_exposure_follows_its_sandbox_into_failure),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
