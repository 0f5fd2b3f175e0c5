// How objects of the operator API begin and end: races of the first applies, tombstones, owners, and what deleting means for each kind
// in every way of asking for it.
#include "controller/base/memory.h"
#include "tests/support/api_rig.h"
#include "tests/support/http_client.h"
#include "controller/base/socket.h"
#include <string.h>
#include <sys/stat.h>

#define WORKSPACES API_KINDS "/workspaces"
#define ASK(method, path, type, body, expected) api_call(api, method, path, type, body, expected)
#define GET(path, expected) ASK("GET", path, NULL, "", expected)
#define POST(path, body, expected) ASK("POST", path, API_JSON, body, expected)
#define MERGE(path, body, expected) ASK("PATCH", path, API_MERGE, body, expected)
#define APPLY(path, body, expected) ASK("PATCH", path, API_APPLY, body, expected)

// ---- tombstones
// --------------------------------------------------------------------------------------------------------------
static void a_removed_object_is_read_by_its_whole_uid_only(void **state)
{
    struct api_rig *api = *state;
    CLEANUP_JSON json_t *made = POST(WORKSPACES, "{\"metadata\": {\"name\": \"w\", \"labels\": {\"a\": \"b\"}}}", 201);
    const char *uid = api_text(made, "metadata/uid");
    CLEANUP_FREE char *by_uid = mem_format(WORKSPACES "/%s", uid), *status = mem_format("%s/status", by_uid);
    CLEANUP_FREE char *by_prefix = mem_format(WORKSPACES "/%.12s", uid);
    json_decref(ASK("DELETE", WORKSPACES "/w", NULL, "", 200));
    world_settle(api->fixture);
    json_decref(GET(WORKSPACES "/w", 404));
    json_decref(GET(by_prefix, 404));
    CLEANUP_JSON json_t *tombstone = GET(by_uid, 200);
    assert_string_equal(api_text(tombstone, "metadata/name"), "w");
    assert_string_equal(api_text(tombstone, "metadata/labels/a"), "b");
    assert_string_equal(api_text(tombstone, "status/phase"), "trashed");
    assert_true(*api_text(tombstone, "metadata/deletionTimestamp"));
    assert_non_null(json_get_text(api_at(tombstone, "metadata/annotations"), ANNOTATION_REMOVED_AT));
    assert_null(api_at(tombstone, "metadata/finalizers"));
    json_decref(GET(status, 200));
    CLEANUP_JSON json_t *list = GET(WORKSPACES, 200);
    assert_int_equal(json_array_size(api_at(list, "items")), 0);
}

static void a_tombstone_is_written_by_nobody_and_holds_no_name(void **state)
{
    struct api_rig *api = *state;
    CLEANUP_JSON json_t *made = POST(WORKSPACES, "{\"metadata\": {\"name\": \"w\"}}", 201);
    CLEANUP_FREE char *by_uid = mem_format(WORKSPACES "/%s", api_text(made, "metadata/uid"));
    json_decref(ASK("DELETE", WORKSPACES "/w", NULL, "", 200));
    world_settle(api->fixture);
    json_decref(MERGE(by_uid, "{\"metadata\": {\"labels\": {\"a\": \"b\"}}}", 404));
    json_decref(ASK("PUT", by_uid, API_JSON, "{\"metadata\": {\"name\": \"w\"}}", 404));
    json_decref(ASK("DELETE", by_uid, NULL, "", 404));
    CLEANUP_JSON json_t *next = POST(WORKSPACES, "{\"metadata\": {\"name\": \"w\"}}", 201);
    CLEANUP_JSON json_t *old = GET(by_uid, 200);
    assert_string_not_equal(api_text(next, "metadata/uid"), api_text(old, "metadata/uid"));
}

static void a_tombstone_that_is_too_old_is_gone(void **state)
{
    struct api_rig *api = *state;
    struct error err = ERROR_INIT;
    CLEANUP_JSON json_t *made = POST(WORKSPACES, "{\"metadata\": {\"name\": \"w\"}}", 201);
    CLEANUP_FREE char *by_uid = mem_format(WORKSPACES "/%s", api_text(made, "metadata/uid"));
    json_decref(ASK("DELETE", WORKSPACES "/w", NULL, "", 200));
    world_settle(api->fixture);
    clock_advance(api->fixture->world.clock, TOMBSTONE_KEEP_MS + 1000);
    assert_ok(store_upkeep(api->fixture->world.store, &err));
    CLEANUP_JSON json_t *gone = GET(by_uid, 404);
    api_assert_status(gone, "NotFound", "there is no workspace");
}

// ---- first applies
// -----------------------------------------------------------------------------------------------------------------
#define RACERS 12

static void send_apply(int fd, const char *manager, const char *path, const char *body)
{
    CLEANUP_FREE char *text = mem_format("PATCH %s?fieldManager=%s HTTP/1.1\r\nHost: localhost\r\nContent-Type: " API_APPLY
                                         "\r\nContent-Length: %zu\r\n\r\n%s", path, manager, strlen(body), body);
    http_client_send_text(fd, text);
}

static void first_applies_at_once_make_one_object_that_all_of_them_own(void **state)
{
    struct api_rig *api = *state;
    struct error err = ERROR_INIT;
    CLEANUP_FREE char *socket = mem_format("%s/" OPERATOR_SOCKET_NAME, api->fixture->config.state_dir);
    for (int round = 0; round < 20; round++) {
        int fds[RACERS], made = 0;
        CLEANUP_FREE char *path = mem_format(WORKSPACES "/race%d", round);
        for (int i = 0; i < RACERS; i++)
            assert_ok(fds[i] = socket_connect_path(socket, SOCK_STREAM, SUPPORT_PATIENCE_MS, &err));
        for (int i = 0; i < RACERS; i++) {
            CLEANUP_FREE char *manager = mem_format("m%d", i);
            CLEANUP_FREE char *body = mem_format("{\"metadata\": {\"labels\": {\"l%d\": \"1\", \"all\": \"1\"}}}", i);
            send_apply(fds[i], manager, path, body);
        }
        for (int i = 0; i < RACERS; i++) {
            struct http_answer answer;
            http_client_read(fds[i], &answer, SUPPORT_PATIENCE_MS);
            if (answer.status != 200 && answer.status != 201)
                fail_msg("an apply was answered %d: %s", answer.status, answer.body);
            made += answer.status == 201;
            http_answer_clear(&answer);
            close(fds[i]);
        }
        assert_int_equal(made, 1);
        CLEANUP_JSON json_t *object = GET(path, 200);
        assert_int_equal(json_object_size(api_at(object, "metadata/labels")), RACERS + 1);
        assert_int_equal(json_array_size(api_at(object, "metadata/managedFields")), RACERS);
    }
}

// ---- owners
// ------------------------------------------------------------------------------------------------------------------------
#define OWNER(version, kind, uid, more)                                                                                       \
    "{\"apiVersion\": \"" version "\", \"kind\": \"" kind "\", \"name\": \"o\", \"uid\": \"" uid "\"" more "}"
#define OWNERS(list) "{\"metadata\": {\"name\": \"w\", \"ownerReferences\": [" list "]}}"

static void owner_references_come_back_as_a_client_gave_them(void **state)
{
    struct api_rig *api = *state;
    const char *body = OWNERS(OWNER("apps/v1", "Deployment", "u1", ", \"controller\": true, \"blockOwnerDeletion\": false") ", " OWNER("chat2shell.dev/v1", "Sandbox", "sbx_1", ""));
    CLEANUP_JSON json_t *given = json_loads(body, 0, NULL);
    CLEANUP_JSON json_t *made = POST(WORKSPACES, body, 201);
    assert_string_equal(api->warning, "");
    assert_true(json_equal(api_at(made, "metadata/ownerReferences"), api_at(given, "metadata/ownerReferences")));
    world_settle(api->fixture);
    CLEANUP_JSON json_t *read = GET(WORKSPACES "/w", 200);
    assert_true(json_equal(api_at(read, "metadata/ownerReferences"), api_at(given, "metadata/ownerReferences")));
    CLEANUP_JSON json_t *same = ASK("PUT", WORKSPACES "/w", API_JSON, body, 200);
    assert_string_equal(api_text(same, "metadata/resourceVersion"), api_text(read, "metadata/resourceVersion"));
    CLEANUP_JSON json_t *none = MERGE(WORKSPACES "/w", "{\"metadata\": {\"ownerReferences\": null}}", 200);
    assert_null(api_at(none, "metadata/ownerReferences"));
}

static void appliers_own_the_owner_references_that_they_name(void **state)
{
    struct api_rig *api = *state;
    json_decref(APPLY(WORKSPACES "/w?fieldManager=one", OWNERS(OWNER("a/v1", "A", "u1", "")), 201));
    CLEANUP_JSON json_t *both = APPLY(WORKSPACES "/w?fieldManager=two", OWNERS(OWNER("b/v1", "B", "u2", "")), 200);
    assert_int_equal(json_array_size(api_at(both, "metadata/ownerReferences")), 2);
    CLEANUP_JSON json_t *conflict = APPLY(WORKSPACES "/w?fieldManager=two", OWNERS(OWNER("c/v1", "A", "u1", "")), 409);
    api_assert_status(conflict, "Conflict", ".metadata.ownerReferences");
    CLEANUP_JSON json_t *left = APPLY(WORKSPACES "/w?fieldManager=one", "{}", 200);
    assert_int_equal(json_array_size(api_at(left, "metadata/ownerReferences")), 1);
    assert_string_equal(api_text(left, "metadata/ownerReferences/0/uid"), "u2");
}

static void owner_references_are_checked(void **state)
{
    struct api_rig *api = *state;
    CLEANUP_JSON json_t *missing = POST(WORKSPACES, OWNERS("{\"kind\": \"A\", \"name\": \"o\", \"uid\": \"u\"}"), 422);
    assert_true(api_has_cause(missing, "metadata.ownerReferences[0].apiVersion", "FieldValueRequired"));
    CLEANUP_JSON json_t *word = POST(WORKSPACES, OWNERS(OWNER("a/v1", "A", "u", ", \"controller\": \"yes\"")), 422);
    assert_true(api_has_cause(word, "metadata.ownerReferences[0].controller", "FieldValueInvalid"));
    CLEANUP_JSON json_t *unknown = POST(WORKSPACES, OWNERS(OWNER("a/v1", "A", "u", ", \"colour\": 1")), 400);
    api_assert_status(unknown, "BadRequest", "metadata.ownerReferences[0].colour");
    CLEANUP_JSON json_t *two = POST(WORKSPACES, OWNERS(OWNER("a/v1", "A", "u", ", \"controller\": true") ", " OWNER("a/v1", "A", "v", ", \"controller\": true")), 422);
    api_assert_status(two, "Invalid", "controller");
    CLEANUP_JSON json_t *twice = POST(WORKSPACES, OWNERS(OWNER("a/v1", "A", "u", "") ", " OWNER("a/v1", "B", "u", "")), 422);
    api_assert_status(twice, "Invalid", "ownerReferences");
    CLEANUP_JSON json_t *list = GET(WORKSPACES, 200);
    assert_int_equal(json_array_size(api_at(list, "items")), 0);
}

static void an_owner_that_goes_takes_nothing_along(void **state)
{
    struct api_rig *api = *state;
    CLEANUP_JSON json_t *owner = POST(WORKSPACES, "{\"metadata\": {\"name\": \"owner\"}}", 201);
    CLEANUP_FREE char *body = mem_format(OWNERS(OWNER("chat2shell.dev/v1", "Workspace", "%s", "")), api_text(owner, "metadata/uid"));
    json_decref(POST(WORKSPACES, body, 201));
    json_decref(ASK("DELETE", WORKSPACES "/owner", API_JSON, "{\"propagationPolicy\": \"Foreground\"}", 200));
    world_settle(api->fixture);
    json_decref(GET(WORKSPACES "/owner", 404));
    CLEANUP_JSON json_t *kept = GET(WORKSPACES "/w", 200);
    assert_null(api_at(kept, "metadata/deletionTimestamp"));
}

static void the_namespace_has_an_age(void **state)
{
    struct api_rig *api = *state;
    CLEANUP_JSON json_t *one = GET("/api/v1/namespaces/default", 200);
    CLEANUP_JSON json_t *list = GET("/api/v1/namespaces", 200);
    assert_int_equal(strlen(api_text(one, "metadata/creationTimestamp")), strlen("2026-11-29T18:12:59Z"));
    assert_true(json_equal(api_at(list, "items/0"), one));
}

// ---- deleting: each kind, each way of asking
// ---------------------------------------------------------------------------------------------------------
struct subject {
    const char *what;
    enum kind kind;
    const char *name;
    const char *phase; // of its tombstone
    bool is_refused;   // by the policy: it stays, whichever way it is asked for
    bool refuses_orphan;
    bool takes_others; // others change with it: the stage is set anew behind it
};
static const struct subject subjects[] = {
    {"a managed workspace", KIND_WORKSPACE, "free", "trashed", false, false, false},
    {"a managed workspace that is bound", KIND_WORKSPACE, "bound", NULL, true, false, false},
    {"a session", KIND_SESSION, "", NULL, true, false, false},
    {"an exposure", KIND_EXPOSURE, "port", "removed", false, false, false},
    {"an approval rule", KIND_APPROVAL_RULE, "rule", "removed", false, false, false},
    {"a host workspace", KIND_WORKSPACE, "host", "revoked", false, false, true},
    {"an approval", KIND_APPROVAL, "", "revoked", false, true, true},
    {"a sandbox", KIND_SANDBOX, "box", "destroyed", false, true, true},
};
enum target { BY_NAME, BY_UID, BY_SELECTOR };
struct way {
    const char *what;
    enum target target;
    const char *query, *body; // body: one %s for the uid, and one for the version
    enum { ALWAYS, NEVER, UNLESS_ORPHAN } succeeds;
};
static const struct way ways[] = {
    {"by name", BY_NAME, "", "", ALWAYS},
    {"by uid", BY_UID, "", "", ALWAYS},
    {"of a collection", BY_SELECTOR, "", "", ALWAYS},
    {"with its uid and version", BY_NAME, "", "{\"preconditions\": {\"uid\": \"%s\", \"resourceVersion\": \"%s\"}}", ALWAYS},
    {"with another uid", BY_NAME, "", "{\"preconditions\": {\"uid\": \"x_%s\"}}", NEVER},
    {"with another version", BY_NAME, "", "{\"preconditions\": {\"uid\": \"%s\", \"resourceVersion\": \"1%s\"}}", NEVER},
    {"in the background", BY_NAME, "", "{\"propagationPolicy\": \"Background\"}", ALWAYS},
    {"in the foreground", BY_NAME, "?propagationPolicy=Foreground", "", ALWAYS},
    {"leaving orphans", BY_NAME, "", "{\"propagationPolicy\": \"Orphan\"}", UNLESS_ORPHAN},
    {"of a collection, leaving orphans", BY_SELECTOR, "", "{\"propagationPolicy\": \"Orphan\"}", UNLESS_ORPHAN},
    {"as a dry run", BY_NAME, "?dryRun=All", "", NEVER},
    {"as a dry run of a collection", BY_SELECTOR, "", "{\"dryRun\": [\"All\"]}", NEVER},
};

struct stage { // one of everything
    struct api_rig *api;
    char *host;
};

static json_t *first_of(struct api_rig *api, enum kind kind)
{
    CLEANUP_FREE char *path = mem_format(API_KINDS "/%s", kind_info(kind)->plural);
    CLEANUP_JSON json_t *list = GET(path, 200);
    return json_incref(api_at(list, "items/0"));
}

static void set_stage(struct stage *stage)
{
    struct api_rig *api = stage->api;
    stage->host = world_make_repository(api->fixture, "project");
    CLEANUP_FREE char *host = mem_format("{\"metadata\": {\"name\": \"host\"}, \"spec\": {\"mode\": \"clone\", \"path\": \"%s\"}}", stage->host);
    json_decref(POST(WORKSPACES, "{\"metadata\": {\"name\": \"free\"}}", 201));
    json_decref(POST(WORKSPACES, "{\"metadata\": {\"name\": \"bound\"}}", 201));
    json_decref(POST(WORKSPACES, host, 201)); // and its approval
    CLEANUP_FREE char *rule = mem_format("{\"metadata\": {\"name\": \"rule\"}, \"spec\": {\"decision\": \"rejected\", \"paths\": [\"%s/**\"]}}", stage->host);
    json_decref(POST(API_KINDS "/approvalrules", rule, 201));
    world_settle(api->fixture);
    json_decref(POST(API_KINDS "/sandboxes", "{\"metadata\": {\"name\": \"box\"}, \"spec\": {\"workspaceRef\": \"bound\"}}", 201));
    world_settle(api->fixture);
    json_decref(POST(API_KINDS "/exposures", "{\"metadata\": {\"name\": \"port\"}, \"spec\": {\"sandboxRef\": \"box\", \"port\": 80}}", 201));
    world_settle(api->fixture);
}

static json_t *find_subject(const struct stage *stage, const struct subject *subject)
{
    struct api_rig *api = stage->api;
    CLEANUP_FREE char *path = mem_format(API_KINDS "/%s/%s", kind_info(subject->kind)->plural, subject->name);
    json_t *object = *subject->name ? GET(path, 200) : first_of(api, subject->kind);
    assert_true(*api_text(object, "metadata/uid"));
    return object;
}

// One request, whatever it answers.
static int ask_to_delete(const struct stage *stage, const struct subject *subject, const struct way *way, const json_t *object)
{
    const char *uid = api_text(object, "metadata/uid"), *plural = kind_info(subject->kind)->plural;
    CLEANUP_FREE char *selector = mem_format("?fieldSelector=metadata.uid%%3D%s", uid);
    const char *rest = way->target == BY_NAME ? api_text(object, "metadata/name") : way->target == BY_UID ? uid : "";
    CLEANUP_FREE char *path = mem_format(API_KINDS "/%s%s%s%s", plural, *rest ? "/" : "", rest, way->target == BY_SELECTOR ? selector : way->query);
    CLEANUP_FREE char *body = mem_format(way->body, uid, api_text(object, "metadata/resourceVersion"));
    CLEANUP_FREE char *socket = mem_format("%s/" OPERATOR_SOCKET_NAME, stage->api->fixture->config.state_dir);
    CLEANUP_FREE char *text = mem_format("DELETE %s HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %zu\r\n\r\n%s", path, strlen(body), body);
    struct error err = ERROR_INIT;
    struct http_answer answer;
    int fd = socket_connect_path(socket, SOCK_STREAM, SUPPORT_PATIENCE_MS, &err);
    assert_ok(fd);
    http_client_send_text(fd, text);
    http_client_read(fd, &answer, SUPPORT_PATIENCE_MS);
    close(fd);
    int status = answer.status;
    http_answer_clear(&answer);
    return status;
}

static bool must_go(const struct subject *subject, const struct way *way)
{
    return !subject->is_refused && (way->succeeds == ALWAYS || (way->succeeds == UNLESS_ORPHAN && !subject->refuses_orphan));
}

static void check_gone(const struct stage *stage, const struct subject *subject, const json_t *object)
{
    struct api_rig *api = stage->api;
    CLEANUP_FREE char *by_name = mem_format(API_KINDS "/%s/%s", kind_info(subject->kind)->plural, api_text(object, "metadata/name"));
    CLEANUP_FREE char *by_uid = mem_format(API_KINDS "/%s/%s", kind_info(subject->kind)->plural, api_text(object, "metadata/uid"));
    json_decref(GET(by_name, 404));
    CLEANUP_JSON json_t *tombstone = GET(by_uid, 200);
    assert_string_equal(api_text(tombstone, "status/phase"), subject->phase);
    assert_true(*api_text(tombstone, "metadata/deletionTimestamp"));
}

// As it was: nothing about it was written.
static void check_kept(const struct stage *stage, const struct subject *subject, const json_t *object)
{
    struct api_rig *api = stage->api;
    CLEANUP_FREE char *by_uid = mem_format(API_KINDS "/%s/%s", kind_info(subject->kind)->plural, api_text(object, "metadata/uid"));
    CLEANUP_JSON json_t *now = GET(by_uid, 200);
    assert_string_equal(api_text(now, "metadata/resourceVersion"), api_text(object, "metadata/resourceVersion"));
    assert_null(api_at(now, "metadata/deletionTimestamp"));
}

static void check_world(const struct stage *stage, const struct subject *subject, const json_t *object)
{
    struct stat st;
    assert_int_equal(stat(stage->host, &st), 0); // no host file is ever touched
    CLEANUP_FREE char *git = mem_format("%s/.git", stage->host);
    assert_int_equal(stat(git, &st), 0);
    if (strcmp(subject->name, "free") != 0)
        return;
    CLEANUP_FREE char *trash = mem_format("%s/.trash/%s", stage->api->fixture->config.workspace_root, api_text(object, "metadata/uid"));
    bool is_gone = stat(api_text(object, "status/root"), &st) < 0;
    CLEANUP_FREE char *by_uid = mem_format(WORKSPACES "/%s", api_text(object, "metadata/uid"));
    struct api_rig *api = stage->api;
    CLEANUP_JSON json_t *now = GET(by_uid, 200);
    assert_int_equal(is_gone, api_at(now, "metadata/deletionTimestamp") != NULL);
    assert_int_equal(is_gone, stat(trash, &st) == 0);
}

static void delete_one(struct stage *stage, const struct subject *subject, const struct way *way)
{
    CLEANUP_JSON json_t *object = find_subject(stage, subject);
    print_message("%s, %s\n", subject->what, way->what);
    int status = ask_to_delete(stage, subject, way, object);
    world_settle(stage->api->fixture);
    bool is_dry = strstr(way->what, "dry run") != NULL;
    if (must_go(subject, way)) {
        assert_int_equal(status, 200);
        check_gone(stage, subject, object);
    } else {
        assert_int_equal(status == 200, is_dry && !subject->is_refused);
        check_kept(stage, subject, object);
    }
    check_world(stage, subject, object);
}

static void leave_stage(struct stage *stage)
{
    void *rig = stage->api;
    if (rig)
        api_rig_teardown(&rig);
    free(stage->host);
    *stage = (struct stage){0};
}

static void enter_stage(struct stage *stage)
{
    void *rig = NULL;
    if (stage->api)
        return;
    api_rig_setup(&rig);
    stage->api = rig;
    set_stage(stage);
}

// A stage serves until something is missing on it.
static void delete_in_this_way(struct stage *stage, const struct way *way)
{
    bool is_whole = true;
    for (size_t s = 0; s < ARRAY_LEN(subjects); s++) {
        enter_stage(stage);
        delete_one(stage, &subjects[s], way);
        if (!must_go(&subjects[s], way))
            continue;
        is_whole = subjects[s].takes_others;
        if (is_whole)
            leave_stage(stage);
    }
    if (!is_whole)
        leave_stage(stage);
}

static void deleting_means_what_the_policy_says_for_each_kind_in_every_way(void **state)
{
    struct stage stage = {0};
    (void)state;
    for (size_t w = 0; w < ARRAY_LEN(ways); w++)
        delete_in_this_way(&stage, &ways[w]);
    leave_stage(&stage);
}

static void a_clients_finalizer_holds_each_kind_until_it_goes(void **state)
{
    (void)state;
    for (size_t s = 0; s < ARRAY_LEN(subjects); s++) {
        const struct subject *subject = &subjects[s];
        void *rig = NULL;
        if (subject->is_refused)
            continue;
        api_rig_setup(&rig);
        struct api_rig *api = rig;
        struct stage stage = {.api = api};
        set_stage(&stage);
        CLEANUP_JSON json_t *found = find_subject(&stage, subject);
        CLEANUP_FREE char *path = mem_format(API_KINDS "/%s/%s", kind_info(subject->kind)->plural, api_text(found, "metadata/name"));
        print_message("%s\n", subject->what);
        json_decref(MERGE(path, "{\"metadata\": {\"finalizers\": [\"example.com/hold\"]}}", 200));
        assert_int_equal(ask_to_delete(&stage, subject, &ways[BY_NAME], found), 200);
        world_settle(api->fixture);
        CLEANUP_JSON json_t *held = GET(path, 200);
        assert_true(*api_text(held, "metadata/deletionTimestamp"));
        assert_int_equal(json_array_size(api_at(held, "metadata/finalizers")), 1);
        json_decref(MERGE(path, "{\"metadata\": {\"finalizers\": null}}", 200));
        world_settle(api->fixture);
        check_gone(&stage, subject, found);
        check_world(&stage, subject, found);
        free(stage.host);
        api_rig_teardown(&rig);
    }
}

static void an_approval_takes_its_workspace_along_and_a_sandbox_its_exposures(void **state)
{
    struct stage stage = {.api = *state};
    struct api_rig *api = *state;
    set_stage(&stage);
    CLEANUP_FREE char *host = stage.host;
    CLEANUP_JSON json_t *approval = first_of(api, KIND_APPROVAL);
    CLEANUP_FREE char *path = mem_format(API_KINDS "/approvals/%s", api_text(approval, "metadata/name"));
    json_decref(ASK("DELETE", path, NULL, "", 200));
    json_decref(ASK("DELETE", API_KINDS "/sandboxes/box", NULL, "", 200));
    world_settle(api->fixture);
    json_decref(GET(WORKSPACES "/host", 404));
    json_decref(GET(API_KINDS "/exposures/port", 404));
    CLEANUP_JSON json_t *kept = GET(WORKSPACES "/bound", 200);
    assert_string_equal(api_text(kept, "status/phase"), "retained");
    assert_null(api_at(kept, "metadata/deletionTimestamp"));
}

#define API_TEST(name) cmocka_unit_test_setup_teardown(name, api_rig_setup, api_rig_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        API_TEST(a_removed_object_is_read_by_its_whole_uid_only),
        API_TEST(a_tombstone_is_written_by_nobody_and_holds_no_name),
        API_TEST(a_tombstone_that_is_too_old_is_gone),
        API_TEST(first_applies_at_once_make_one_object_that_all_of_them_own),
        API_TEST(owner_references_come_back_as_a_client_gave_them),
        API_TEST(appliers_own_the_owner_references_that_they_name),
        API_TEST(owner_references_are_checked),
        API_TEST(an_owner_that_goes_takes_nothing_along),
        API_TEST(the_namespace_has_an_age),
        cmocka_unit_test(deleting_means_what_the_policy_says_for_each_kind_in_every_way),
        cmocka_unit_test(a_clients_finalizer_holds_each_kind_until_it_goes),
        API_TEST(an_approval_takes_its_workspace_along_and_a_sandbox_its_exposures),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
