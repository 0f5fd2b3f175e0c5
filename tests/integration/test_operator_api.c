// The operator API over its real Unix socket, in front of a whole control plane with a fault-injecting
// driver.
#include "api/operator/operator.h"
#include "controller/base/buffer.h"
#include "controller/base/json.h"
#include "controller/base/memory.h"
#include "controller/base/socket.h"
#include "tests/support/http_client.h"
#include "tests/support/world_fixture.h"
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#define WAIT_MS SUPPORT_PATIENCE_MS
#define KINDS "/apis/chat2shell.dev/v1"
#define JSON_TYPE "Content-Type: application/json\r\n"
#define MERGE_TYPE "Content-Type: application/merge-patch+json\r\n"
#define APPLY_TYPE "Content-Type: application/apply-patch+yaml\r\n"

struct api {
    struct world_fixture *fixture;
    struct operator_server *server;
};

static int setup(void **state)
{
    struct api *api = mem_alloc(sizeof(*api));
    struct error err = ERROR_INIT;
    api->fixture = world_open();
    assert_ok(operator_server_start(&api->fixture->world, &api->server, &err));
    *state = api;
    return 0;
}

static int teardown(void **state)
{
    struct api *api = *state;
    operator_server_stop(api->server);
    world_close(api->fixture);
    free(api);
    return 0;
}

// ---- a client
// -------------------------------------------------------------------------------------------------------
static int connect_to(const struct api *api)
{
    struct error err = ERROR_INIT;
    CLEANUP_FREE char *path = mem_format("%s/" OPERATOR_SOCKET_NAME, api->fixture->config.state_dir);
    int fd = socket_connect_path(path, SOCK_STREAM, SUPPORT_PATIENCE_MS, &err);
    assert_ok(fd);
    return fd;
}

static int ask(const struct api *api, const char *method, const char *path, const char *headers,
               const char *body)
{
    int fd = connect_to(api);
    CLEANUP_FREE char *text =
        mem_format("%s %s HTTP/1.1\r\nHost: localhost\r\nContent-Length: %zu\r\n%s\r\n%s", method, path,
                   strlen(body), headers, body);
    http_client_send_text(fd, text);
    return fd;
}

// The answer's body; its status in *ret_status. Reconciles run meanwhile, and again behind the answer: a request that came late may
// have given them work.
static json_t *take(const struct api *api, int fd, int *ret_status)
{
    struct http_answer answer;
    world_settle(api->fixture);
    http_client_read(fd, &answer, WAIT_MS);
    close(fd);
    world_settle(api->fixture);
    *ret_status = answer.status;
    json_t *json = http_answer_json(&answer);
    http_answer_clear(&answer);
    return json;
}

static json_t *call(const struct api *api, const char *method, const char *path, const char *headers,
                    const char *body, int expected)
{
    int status;
    json_t *json = take(api, ask(api, method, path, headers, body), &status);
    if (status != expected) {
        CLEANUP_FREE char *text = json ? json_to_pretty_text(json) : mem_strdup("(no JSON)");
        fail_msg("%s %s: expected %d, got %d: %s", method, path, expected, status, text);
    }
    return json;
}

static void check(const struct api *api, const char *method, const char *path, const char *headers,
                  const char *body, int expected)
{
    json_decref(call(api, method, path, headers, body, expected));
}

// Under the field manager that the path states, or "test".
static json_t *apply(const struct api *api, const char *path, const char *body, int expected)
{
    CLEANUP_FREE char *whole = mem_format("%s%s", path, strstr(path, "fieldManager=") ? "" : strchr(path, '?') ? "&fieldManager=test" : "?fieldManager=test");
    return call(api, "PATCH", whole, APPLY_TYPE, body, expected);
}

#define GET(path, expected) call(api, "GET", path, "", "", expected)
#define POST(path, body, expected) call(api, "POST", path, JSON_TYPE, body, expected)
#define PUT(path, body, expected) call(api, "PUT", path, JSON_TYPE, body, expected)
#define MERGE(path, body, expected) call(api, "PATCH", path, MERGE_TYPE, body, expected)
#define APPLY(path, body, expected) apply(api, path, body, expected)
#define DELETE(path, expected) call(api, "DELETE", path, "", "", expected)

static const char *at(const json_t *json, const char *first, const char *second)
{
    const json_t *inner = second ? json_object_get(json, first) : json;
    const char *text = json_get_text(inner, second ? second : first);
    return text ? text : "";
}

static json_t *meta(const json_t *object)
{
    return json_object_get(object, "metadata");
}

static bool has_cause(const json_t *status, const char *field)
{
    size_t i;
    json_t *cause;
    json_array_foreach(json_object_get(json_object_get(status, "details"), "causes"), i,
                       cause) if (strcmp(at(cause, "field", NULL), field) == 0) return true;
    return false;
}

static void assert_status(const json_t *status, const char *reason, const char *words)
{
    assert_string_equal(at(status, "kind", NULL), "Status");
    assert_string_equal(at(status, "reason", NULL), reason);
    if (!strstr(at(status, "message", NULL), words))
        fail_msg("the message \"%s\" does not say \"%s\"", at(status, "message", NULL), words);
}

static bool has_phase(const struct api *api, const char *path, const char *phase)
{
    CLEANUP_JSON json_t *object = GET(path, 200);
    return strcmp(at(object, "status", "phase"), phase) == 0;
}

static void wait_for_phase(const struct api *api, const char *path, const char *phase)
{
    if (!support_await(20, has_phase(api, path, phase)))
        fail_msg("%s did not become %s", path, phase);
}

// A sandbox named dev with its tool server, on a workspace of its own.
static void make_dev(const struct api *api)
{
    json_decref(POST(KINDS "/sandboxes", "{\"metadata\": {\"name\": \"dev\"}}", 201));
    wait_for_phase(api, KINDS "/sandboxes/dev", "running");
}

// ---- objects
// --------------------------------------------------------------------------------------------------------
static void an_object_is_made_read_listed_and_deleted(void **state)
{
    const struct api *api = *state;
    CLEANUP_JSON json_t *made = POST(
        KINDS "/workspaces",
        "{\"apiVersion\": \"chat2shell.dev/v1\", \"kind\": \"Workspace\", \"metadata\": {\"name\": \"w1\","
        "\"labels\": {\"team\": \"a\"}, \"annotations\": {\"note\": \"hello\"}}}",
        201);
    assert_string_equal(at(made, "metadata", "name"), "w1");
    assert_string_equal(at(made, "spec", "mode"), "managed");
    assert_string_equal(at(meta(made), "annotations", "chat2shell.dev/created-by"), "operator:uid=0");
    assert_string_equal(at(meta(made), "annotations", "note"), "hello");
    assert_int_equal(json_get_int(meta(made), "generation", 0), 1);
    CLEANUP_JSON json_t *read = GET(KINDS "/workspaces/w1", 200);
    assert_string_equal(at(read, "metadata", "uid"), at(made, "metadata", "uid"));
    CLEANUP_FREE char *by_uid = mem_format(KINDS "/workspaces/%.14s", at(made, "metadata", "uid"));
    CLEANUP_JSON json_t *by_prefix = GET(by_uid, 200);
    assert_string_equal(at(by_prefix, "metadata", "name"), "w1");
    CLEANUP_JSON json_t *list = GET(KINDS "/workspaces", 200);
    assert_string_equal(at(list, "kind", NULL), "WorkspaceList");
    assert_int_equal(json_array_size(json_object_get(list, "items")), 1);
    assert_true(atoll(at(list, "metadata", "resourceVersion")) > 0);
    CLEANUP_JSON json_t *gone = DELETE(KINDS "/workspaces/w1", 200);
    assert_true(*at(gone, "metadata", "deletionTimestamp"));
    CLEANUP_JSON json_t *missing = GET(KINDS "/workspaces/w1", 404);
    assert_status(missing, "NotFound", "there is no workspace 'w1'");
}

static void a_name_that_is_taken_is_refused(void **state)
{
    const struct api *api = *state;
    json_decref(POST(KINDS "/workspaces", "{\"metadata\": {\"name\": \"w1\"}}", 201));
    CLEANUP_JSON json_t *status = POST(KINDS "/workspaces", "{\"metadata\": {\"name\": \"w1\"}}", 409);
    assert_status(status, "AlreadyExists", "w1");
}

static void selectors_choose(void **state)
{
    const struct api *api = *state;
    json_decref(
        POST(KINDS "/workspaces", "{\"metadata\": {\"name\": \"w1\", \"labels\": {\"team\": \"a\"}}}", 201));
    json_decref(
        POST(KINDS "/workspaces", "{\"metadata\": {\"name\": \"w2\", \"labels\": {\"team\": \"b\"}}}", 201));
    CLEANUP_JSON json_t *by_label = GET(KINDS "/workspaces?labelSelector=team%3Db", 200);
    assert_int_equal(json_array_size(json_object_get(by_label, "items")), 1);
    assert_string_equal(at(json_array_get(json_object_get(by_label, "items"), 0), "metadata", "name"), "w2");
    CLEANUP_JSON json_t *by_name = GET(KINDS "/workspaces?fieldSelector=metadata.name%3Dw1", 200);
    assert_int_equal(json_array_size(json_object_get(by_name, "items")), 1);
    CLEANUP_JSON json_t *status = GET(KINDS "/workspaces?fieldSelector=spec.colour%3Dred", 400);
    assert_status(status, "BadRequest", "spec.colour");
}

static void a_table_has_the_columns_of_the_field_tables(void **state)
{
    const struct api *api = *state;
    json_decref(POST(KINDS "/workspaces", "{\"metadata\": {\"name\": \"w1\"}}", 201));
    CLEANUP_JSON json_t *table =
        call(api, "GET", KINDS "/workspaces",
             "Accept: application/json;as=Table;v=v1;g=meta.k8s.io,application/json\r\n", "", 200);
    assert_string_equal(at(table, "kind", NULL), "Table");
    json_t *columns = json_object_get(table, "columnDefinitions"),
           *row = json_array_get(json_object_get(table, "rows"), 0);
    assert_string_equal(at(json_array_get(columns, 0), "name", NULL), "Name");
    assert_string_equal(at(json_array_get(columns, 1), "name", NULL), "Status");
    assert_string_equal(at(json_array_get(columns, json_array_size(columns) - 1), "name", NULL), "Age");
    assert_int_equal(json_array_size(json_object_get(row, "cells")), json_array_size(columns));
    assert_string_equal(json_string_value(json_array_get(json_object_get(row, "cells"), 0)), "w1");
    assert_string_equal(at(json_object_get(row, "object"), "kind", NULL), "PartialObjectMetadata");
}

// ---- what bad input gets
// --------------------------------------------------------------------------------------------
static void several_errors_are_all_named_and_nothing_is_stored(void **state)
{
    const struct api *api = *state;
    CLEANUP_JSON json_t *status =
        POST(KINDS "/sandboxes",
             "{\"metadata\": {\"name\": \"Bad_Name\"}, \"spec\": {\"memory\": \"1\", \"session\": \"none\","
             "\"workspaceRef\": \"No_Name\"}}",
             422);
    assert_status(status, "Invalid", "metadata.name");
    assert_true(has_cause(status, "metadata.name") && has_cause(status, "spec.memory") &&
                has_cause(status, "spec.session") && has_cause(status, "spec.workspaceRef"));
    CLEANUP_JSON json_t *list = GET(KINDS "/sandboxes", 200);
    assert_int_equal(json_array_size(json_object_get(list, "items")), 0);
}

static void unknown_fields_are_a_bad_request_that_names_them(void **state)
{
    const struct api *api = *state;
    const char *body =
        "{\"metadata\": {\"name\": \"w1\", \"lables\": {}}, \"spec\": {\"mdoe\": \"managed\"}, \"extra\": 1}";
    CLEANUP_JSON json_t *status = POST(KINDS "/workspaces", body, 400);
    assert_status(status, "BadRequest", "mdoe");
    assert_true(has_cause(status, "metadata.lables") && has_cause(status, "spec.mdoe") &&
                has_cause(status, "extra"));
    CLEANUP_JSON json_t *made = POST(KINDS "/workspaces?fieldValidation=Ignore", body, 201);
    assert_string_equal(at(made, "metadata", "name"), "w1");
}

static void hostile_bodies_are_refused(void **state)
{
    const struct api *api = *state;
    CLEANUP_FREE char *deep = mem_alloc(4001);
    memset(deep, '[', 4000);
    static const char *const bodies[] = {"", "nonsense", "[]", "\"text\""};
    for (size_t i = 0; i < ARRAY_LEN(bodies); i++) {
        CLEANUP_JSON json_t *status = POST(KINDS "/workspaces", bodies[i], 400);
        assert_status(status, "BadRequest", "JSON");
    }
    check(api, "POST", KINDS "/workspaces", JSON_TYPE, deep, 413);
    check(api, "POST", KINDS "/workspaces", "Content-Type: application/yaml\r\n", "a: [", 400);
    check(api, "POST", KINDS "/workspaces", "Content-Type: application/cbor\r\n", "{}", 415);
    check(api, "PATCH", KINDS "/workspaces/w1", "Content-Type: application/strategic-merge-patch+json\r\n", "{}", 415);
    check(api, "PATCH", KINDS "/workspaces/w1", "Content-Type: application/apply-patch+cbor\r\n", "{}", 415);
    check(api, "POST", KINDS "/workspaces?dryRun=Some", JSON_TYPE, "{}", 400);
    check(api, "POST", KINDS "/workspaces", JSON_TYPE, "{\"kind\": \"Sandbox\"}", 400);
    CLEANUP_FREE char *large = mem_alloc(OPERATOR_BODY_MAX_BYTES + 100);
    memset(large, ' ', OPERATOR_BODY_MAX_BYTES + 99);
    check(api, "POST", KINDS "/workspaces", JSON_TYPE, large, 413);
}

static void unknown_paths_and_methods_say_so(void **state)
{
    const struct api *api = *state;
    CLEANUP_JSON json_t *missing = GET("/nowhere", 404);
    assert_status(missing, "NotFound", "/nowhere");
    CLEANUP_JSON json_t *kind = GET(KINDS "/pods", 404);
    assert_status(kind, "NotFound", "pods");
    CLEANUP_JSON json_t *method = POST("/chat2shell/v1/status", "{}", 405);
    assert_status(method, "MethodNotAllowed", "GET");
    CLEANUP_JSON json_t *session = POST(KINDS "/sessions", "{\"spec\": {\"sandboxRef\": \"x\"}}", 403);
    assert_status(session, "Forbidden", "sessions");
}

// ---- changes
// --------------------------------------------------------------------------------------------------------
static void labels_change_and_a_change_that_changes_nothing_is_no_write(void **state)
{
    const struct api *api = *state;
    json_decref(POST(KINDS "/workspaces",
                     "{\"metadata\": {\"name\": \"w1\", \"labels\": {\"a\": \"1\", \"b\": \"2\"}}}", 201));
    CLEANUP_JSON json_t *first =
        MERGE(KINDS "/workspaces/w1", "{\"metadata\": {\"labels\": {\"a\": null, \"c\": \"3\"}}}", 200);
    assert_string_equal(at(meta(first), "labels", "a"), "");
    assert_string_equal(at(meta(first), "labels", "b"), "2");
    assert_string_equal(at(meta(first), "labels", "c"), "3");
    assert_int_equal(json_get_int(meta(first), "generation", 0), 1);
    CLEANUP_JSON json_t *again =
        MERGE(KINDS "/workspaces/w1",
              "{\"metadata\": {\"labels\": {\"c\": \"3\"}}, \"status\": {\"phase\": \"mine\"}}", 200);
    assert_string_equal(at(meta(again), "resourceVersion", NULL), at(meta(first), "resourceVersion", NULL));
    assert_string_not_equal(at(again, "status", "phase"), "mine");
}

static void a_stale_version_is_a_conflict(void **state)
{
    const struct api *api = *state;
    CLEANUP_JSON json_t *made = POST(KINDS "/workspaces", "{\"metadata\": {\"name\": \"w1\"}}", 201);
    CLEANUP_FREE char *old = mem_format(
        "{\"metadata\": {\"name\": \"w1\", \"resourceVersion\": \"%s\", \"labels\": {\"x\": \"y\"}}}",
        at(made, "metadata", "resourceVersion"));
    json_decref(MERGE(KINDS "/workspaces/w1", "{\"metadata\": {\"labels\": {\"a\": \"1\"}}}", 200));
    CLEANUP_JSON json_t *status = PUT(KINDS "/workspaces/w1", old, 409);
    assert_status(status, "Conflict", "resourceVersion");
    CLEANUP_JSON json_t *fresh =
        PUT(KINDS "/workspaces/w1", "{\"metadata\": {\"name\": \"w1\", \"labels\": {\"x\": \"y\"}}}", 200);
    assert_string_equal(at(meta(fresh), "labels", "x"), "y");
    assert_string_equal(at(meta(fresh), "labels", "a"), "");
}

static void immutable_fields_are_named(void **state)
{
    const struct api *api = *state;
    json_decref(POST(KINDS "/sandboxes",
                     "{\"metadata\": {\"name\": \"dev\"}, \"spec\": {\"memory\": \"512Mi\"}}", 201));
    CLEANUP_JSON json_t *status =
        MERGE(KINDS "/sandboxes/dev", "{\"spec\": {\"memory\": \"1Gi\", \"cpus\": \"2\"}}", 422);
    assert_status(status, "Invalid", "immutable");
    assert_true(has_cause(status, "spec.memory") && has_cause(status, "spec.cpus"));
    CLEANUP_JSON json_t *renamed = MERGE(KINDS "/sandboxes/dev", "{\"metadata\": {\"name\": \"prod\"}}", 400);
    assert_status(renamed, "BadRequest", "prod");
}

static void apply_creates_then_merges_then_writes_nothing(void **state)
{
    const struct api *api = *state;
    const char *body = "{\"apiVersion\": \"chat2shell.dev/v1\", \"kind\": \"Workspace\", \"metadata\": "
                       "{\"name\": \"w1\", \"labels\": {\"a\": \"1\"}}}";
    CLEANUP_JSON json_t *made = APPLY(KINDS "/workspaces/w1?fieldManager=kubectl", body, 201);
    assert_string_equal(at(json_array_get(json_object_get(meta(made), "managedFields"), 0), "manager", NULL),
                        "kubectl");
    json_decref(MERGE(KINDS "/workspaces/w1", "{\"metadata\": {\"labels\": {\"b\": \"2\"}}}", 200));
    CLEANUP_JSON json_t *applied = APPLY(KINDS "/workspaces/w1", body, 200);
    assert_string_equal(at(meta(applied), "labels", "b"), "2");
    CLEANUP_JSON json_t *again = APPLY(KINDS "/workspaces/w1", body, 200);
    assert_string_equal(at(meta(again), "resourceVersion", NULL), at(meta(applied), "resourceVersion", NULL));
    CLEANUP_JSON json_t *wrong = APPLY(KINDS "/workspaces/other", body, 400);
    assert_status(wrong, "BadRequest", "other");
}

static void what_get_printed_can_be_applied_again(void **state)
{
    const struct api *api = *state;
    json_decref(POST(KINDS "/sandboxes", "{\"metadata\": {\"name\": \"dev\"}}", 201));
    wait_for_phase(api, KINDS "/sandboxes/dev", "running");
    CLEANUP_JSON json_t *read = GET(KINDS "/sandboxes/dev", 200);
    CLEANUP_FREE char *managed = json_to_text(read);
    CLEANUP_JSON json_t *refused = APPLY(KINDS "/sandboxes/dev", managed, 400);
    assert_status(refused, "BadRequest", "metadata.managedFields must be nil");
    json_object_del(json_object_get(read, "metadata"), "managedFields"); // which kubectl leaves out when it prints
    CLEANUP_FREE char *text = json_to_text(read);
    CLEANUP_JSON json_t *applied = APPLY(KINDS "/sandboxes/dev", text, 200);
    assert_string_equal(at(meta(applied), "resourceVersion", NULL), at(meta(read), "resourceVersion", NULL));
}

static void a_dry_run_says_what_would_be_and_stores_nothing(void **state)
{
    const struct api *api = *state;
    json_decref(POST(KINDS "/workspaces", "{\"metadata\": {\"name\": \"w1\"}}", 201));
    world_settle(api->fixture);
    CLEANUP_JSON json_t *before = GET(KINDS "/workspaces/w1", 200);
    CLEANUP_JSON json_t *made =
        POST(KINDS "/sandboxes?dryRun=All",
             "{\"metadata\": {\"name\": \"dev\"}, \"spec\": {\"workspaceRef\": \"w1\"}}", 201);
    assert_string_equal(at(made, "spec", "workspaceRef"), "w1");
    assert_string_equal(at(made, "spec", "session"), ""); // absent: the driver decides
    check(api, "GET", KINDS "/sandboxes/dev", "", "", 404);
    json_decref(POST(KINDS "/sandboxes?dryRun=All", "{\"metadata\": {\"name\": \"dev\"}}", 201));
    CLEANUP_JSON json_t *changed =
        MERGE(KINDS "/workspaces/w1?dryRun=All", "{\"metadata\": {\"labels\": {\"a\": \"1\"}}}", 200);
    assert_string_equal(at(meta(changed), "labels", "a"), "1");
    CLEANUP_JSON json_t *gone = call(api, "DELETE", KINDS "/workspaces/w1?dryRun=All", "", "", 200);
    assert_true(*at(gone, "metadata", "deletionTimestamp"));
    check(api, "POST", KINDS "/workspaces?dryRun=All", JSON_TYPE, "{\"metadata\": {\"name\": \"w1\"}}", 409);
    CLEANUP_JSON json_t *after = GET(KINDS "/workspaces/w1", 200);
    assert_true(json_equal(before, after));
}

// ---- kinds with admission
// -------------------------------------------------------------------------------------------
static void a_sandbox_gets_its_whole_spec_labels_and_a_managed_workspace(void **state)
{
    const struct api *api = *state;
    CLEANUP_JSON json_t *made = POST(KINDS "/sandboxes",
                                     "{\"metadata\": {\"name\": \"dev\", \"labels\": {\"team\": \"a\"}, "
                                     "\"annotations\": {\"why\": \"test\","
                                     "\"chat2shell.dev/request\": \"forged\"}}, \"spec\": {\"memory\": "
                                     "\"512Mi\", \"cpus\": \"1.5\", \"template\": \"host\"}}",
                                     201);
    assert_string_equal(at(made, "spec", "memory"), "512Mi");
    assert_string_equal(at(made, "spec", "cpus"), "1.5");
    assert_string_equal(at(made, "spec", "template"), "host");
    assert_string_equal(at(meta(made), "labels", "team"), "a");
    assert_string_equal(at(meta(made), "annotations", "why"), "test");
    assert_string_not_equal(at(meta(made), "annotations", "chat2shell.dev/request"), "forged");
    CLEANUP_FREE char *workspace = mem_format(KINDS "/workspaces/%s", at(made, "spec", "workspaceRef"));
    CLEANUP_JSON json_t *bound = GET(workspace, 200);
    assert_string_equal(at(bound, "metadata", "uid"), at(made, "status", "workspaceUid"));
    CLEANUP_JSON json_t *again = POST(KINDS "/sandboxes", "{\"metadata\": {\"name\": \"dev\"}}", 409);
    assert_status(again, "AlreadyExists", "dev");
    CLEANUP_FREE char *held =
        mem_format("{\"metadata\": {\"name\": \"two\"}, \"spec\": {\"workspaceRef\": \"%s\"}}",
                   at(bound, "metadata", "uid"));
    CLEANUP_JSON json_t *status = POST(KINDS "/sandboxes", held, 409);
    assert_status(status, "Conflict", "dev");
    CLEANUP_JSON json_t *driver = POST(KINDS "/sandboxes", "{\"spec\": {\"driver\": \"sbx\"}}", 422);
    assert_status(driver, "Invalid", "driver");
    CLEANUP_JSON json_t *refused = DELETE(workspace, 409);
    assert_status(refused, "Conflict", "bound");
}

static void an_exposure_has_its_name_and_is_made_once(void **state)
{
    const struct api *api = *state;
    make_dev(api);
    CLEANUP_JSON json_t *made = APPLY(
        KINDS "/exposures/web",
        "{\"metadata\": {\"labels\": {\"a\": \"1\"}}, \"spec\": {\"sandboxRef\": \"dev\", \"port\": 8080}}",
        201);
    assert_string_equal(at(meta(made), "labels", "a"), "1");
    CLEANUP_JSON json_t *twice =
        POST(KINDS "/exposures", "{\"spec\": {\"sandboxRef\": \"dev\", \"port\": 8080}}", 409);
    assert_status(twice, "AlreadyExists", "web");
    CLEANUP_JSON json_t *dry =
        POST(KINDS "/exposures?dryRun=All", "{\"spec\": {\"sandboxRef\": \"dev\", \"port\": 8080}}", 409);
    assert_status(dry, "AlreadyExists", "web");
    CLEANUP_JSON json_t *wrong =
        POST(KINDS "/exposures", "{\"spec\": {\"sandboxRef\": \"dev\", \"port\": 70000}}", 422);
    assert_true(has_cause(wrong, "spec.port"));
    wait_for_phase(api, KINDS "/exposures/web", "published");
    json_decref(DELETE(KINDS "/exposures/web", 200));
    check(api, "GET", KINDS "/exposures/web", "", "", 404);
}

static void deleting_asks_for_its_preconditions(void **state)
{
    const struct api *api = *state;
    CLEANUP_JSON json_t *made = POST(KINDS "/workspaces", "{\"metadata\": {\"name\": \"w1\"}}", 201);
    CLEANUP_JSON json_t *other = call(api, "DELETE", KINDS "/workspaces/w1", JSON_TYPE,
                                      "{\"preconditions\": {\"uid\": \"ws_other\"}}", 409);
    assert_status(other, "Conflict", "UID");
    CLEANUP_JSON json_t *stale = call(api, "DELETE", KINDS "/workspaces/w1", JSON_TYPE,
                                      "{\"preconditions\": {\"resourceVersion\": \"1\"}}", 409);
    assert_status(stale, "Conflict", "changed");
    CLEANUP_FREE char *body =
        mem_format("{\"propagationPolicy\": \"Background\", \"preconditions\": {\"uid\": \"%s\"}}",
                   at(made, "metadata", "uid"));
    check(api, "DELETE", KINDS "/workspaces/w1", JSON_TYPE, body, 200);
}

static char *ask_approval(const struct api *api)
{
    CLEANUP_FREE char *path = world_make_repository(api->fixture, "project");
    CLEANUP_RECORD struct record *approval = NULL;
    struct error err = ERROR_INIT;
    enum sandbox_outcome outcome;
    assert_ok(world_create(api->fixture, REQUEST_MCP(.workspace_path = path), &outcome, &approval, &err));
    assert_int_equal(outcome, SANDBOX_NEEDS_APPROVAL);
    return mem_format(KINDS "/approvals/%s", approval->meta.name);
}

static void approving_is_answered_with_the_workspace(void **state)
{
    const struct api *api = *state;
    CLEANUP_FREE char *approval = ask_approval(api);
    CLEANUP_JSON json_t *decided = MERGE(approval,
                                         "{\"metadata\": {\"labels\": {\"a\": \"1\"}}, \"spec\": "
                                         "{\"decision\": \"approved\", \"reason\": \"mine\"}}",
                                         200);
    assert_string_equal(at(decided, "spec", "decision"), "approved");
    assert_string_equal(at(decided, "spec", "reason"), "mine");
    assert_string_equal(at(meta(decided), "labels", "a"), "1");
    CLEANUP_FREE char *workspace = mem_format(KINDS "/workspaces/%s", at(decided, "status", "workspaceRef"));
    CLEANUP_JSON json_t *made = GET(workspace, 200);
    assert_string_equal(at(made, "spec", "mode"), "clone");
    CLEANUP_JSON json_t *undo = MERGE(approval, "{\"spec\": {\"decision\": \"rejected\"}}", 409);
    assert_status(undo, "Conflict", "decided already");
    CLEANUP_JSON json_t *clear = MERGE(approval, "{\"spec\": {\"decision\": null}}", 409);
    assert_status(clear, "Conflict", "undone");
    CLEANUP_JSON json_t *again = MERGE(approval, "{\"spec\": {\"decision\": \"approved\"}}", 200);
    assert_string_equal(at(again, "status", "decidedBy"), "operator:uid=0");
}

static void a_decision_about_a_version_that_was_not_shown_is_refused(void **state)
{
    const struct api *api = *state;
    CLEANUP_FREE char *approval = ask_approval(api);
    CLEANUP_JSON json_t *status =
        MERGE(approval, "{\"spec\": {\"decision\": \"approved\", \"shownResourceVersion\": 1}}", 409);
    assert_status(status, "Conflict", "changed since");
    CLEANUP_JSON json_t *read = GET(approval, 200);
    assert_string_equal(at(read, "status", "phase"), "pending");
    CLEANUP_FREE char *body =
        mem_format("{\"metadata\": {\"resourceVersion\": \"%s\"}, \"spec\": {\"decision\": \"rejected\"}}",
                   at(read, "metadata", "resourceVersion"));
    CLEANUP_JSON json_t *rejected = MERGE(approval, body, 200);
    assert_string_equal(at(rejected, "spec", "decision"), "rejected");
}

static void a_dry_run_of_a_decision_checks_it_and_decides_nothing(void **state)
{
    const struct api *api = *state;
    CLEANUP_FREE char *approval = ask_approval(api);
    CLEANUP_FREE char *dry = mem_format("%s?dryRun=All", approval);
    CLEANUP_JSON json_t *stale = MERGE(dry, "{\"spec\": {\"decision\": \"approved\", \"shownResourceVersion\": 1}}", 409);
    assert_status(stale, "Conflict", "changed since");
    CLEANUP_JSON json_t *would_be =
        MERGE(dry, "{\"metadata\": {\"labels\": {\"a\": \"1\"}}, \"spec\": {\"decision\": \"approved\", \"reason\": \"mine\"}}", 200);
    assert_string_equal(at(would_be, "spec", "decision"), "approved");
    assert_string_equal(at(would_be, "spec", "reason"), "mine");
    assert_string_equal(at(meta(would_be), "labels", "a"), "1");
    CLEANUP_JSON json_t *read = GET(approval, 200);
    assert_string_equal(at(read, "status", "phase"), "pending");
    assert_string_equal(at(would_be, "metadata", "resourceVersion"), at(read, "metadata", "resourceVersion"));
    json_decref(MERGE(approval, "{\"spec\": {\"decision\": \"rejected\"}}", 200));
    CLEANUP_JSON json_t *other = MERGE(dry, "{\"spec\": {\"decision\": \"approved\"}}", 409);
    assert_status(other, "Conflict", "decided already");
    CLEANUP_JSON json_t *clear = MERGE(dry, "{\"spec\": {\"decision\": null}}", 409);
    assert_status(clear, "Conflict", "undone");
}

static void a_client_that_leaves_while_its_decision_settles_leaves_nothing_behind(void **state)
{
    const struct api *api = *state;
    CLEANUP_FREE char *approval = ask_approval(api);
    // One that leaves before it was heard has decided nothing: then the next one does.
    for (int i = 0; i < SUPPORT_PATIENCE_MS / 150 && !has_phase(api, approval, "approved"); i++) {
        int fd = ask(api, "PATCH", approval, MERGE_TYPE, "{\"spec\": {\"decision\": \"approved\"}}");
        support_pause(100);
        close(fd);
        support_pause(50);
    }
    wait_for_phase(api, approval, "approved");
}

static void a_host_workspace_is_approved_by_its_operator(void **state)
{
    const struct api *api = *state;
    CLEANUP_FREE char *path = world_make_repository(api->fixture, "project");
    CLEANUP_FREE char *body = mem_format(
        "{\"metadata\": {\"labels\": {\"a\": \"1\"}}, \"spec\": {\"mode\": \"clone\", \"path\": \"%s\"}}",
        path);
    CLEANUP_JSON json_t *made = APPLY(KINDS "/workspaces/project", body, 201);
    assert_string_equal(at(made, "spec", "path"), path);
    assert_string_equal(at(meta(made), "labels", "a"), "1");
    CLEANUP_JSON json_t *same = APPLY(KINDS "/workspaces/project", body, 200);
    assert_string_equal(at(same, "metadata", "uid"), at(made, "metadata", "uid"));
    CLEANUP_JSON json_t *other = APPLY(KINDS "/workspaces/second", body, 409);
    assert_status(other, "AlreadyExists", "project");
    CLEANUP_FREE char *plain = mem_format("{\"path\": \"%s\"}", path);
    CLEANUP_JSON json_t *found = POST("/chat2shell/v1/workspaces", plain, 200);
    assert_string_equal(at(found, "metadata", "uid"), at(made, "metadata", "uid"));
    CLEANUP_JSON json_t *outside =
        POST("/chat2shell/v1/workspaces", "{\"path\": \"/etc\", \"mode\": \"direct\"}", 403);
    assert_status(outside, "Forbidden", "/etc");
}

// ---- the daemon
// -----------------------------------------------------------------------------------------------------
static void status_counts_what_is_there(void **state)
{
    const struct api *api = *state;
    operator_server_set_mcp_port(api->server, 4711);
    make_dev(api);
    CLEANUP_FREE char *approval = ask_approval(api);
    CLEANUP_JSON json_t *status = GET("/chat2shell/v1/status", 200);
    assert_int_equal(json_get_int(json_object_get(status, "sandboxes"), "running", 0), 1);
    assert_int_equal(json_get_int(status, "approvalsPending", 0), 1);
    assert_int_equal(json_get_int(status, "pid", 0), getpid());
    assert_int_equal(json_get_int(json_object_get(status, "mcp"), "port", 0), 4711);
    assert_string_equal(json_get_text(json_object_get(status, "mcp"), "auth"), "none");
    assert_true(json_array_size(json_object_get(status, "queues")) >= 5);
    assert_true(json_is_array(json_object_get(status, "lastErrors")));
    CLEANUP_JSON json_t *version = GET("/version", 200);
    assert_string_equal(at(version, "major", NULL), "1");
}

static const char *finding_level(const json_t *doctor, const char *check)
{
    size_t i;
    json_t *finding;
    json_array_foreach(json_object_get(doctor, "findings"), i,
                       finding) if (strcmp(at(finding, "check", NULL), check) == 0) return at(finding,
                                                                                              "level", NULL);
    return "absent";
}

static void doctor_finds_modes_that_others_can_use(void **state)
{
    const struct api *api = *state;
    CLEANUP_JSON json_t *well = GET("/chat2shell/v1/doctor", 200);
    static const char *const checks[] = {"fake driver", "store", "modes", "lock", "orphans"};
    for (size_t i = 0; i < ARRAY_LEN(checks); i++)
        assert_string_equal(finding_level(well, checks[i]), "pass");
    assert_int_equal(chmod(api->fixture->config.state_dir, 0755), 0);
    CLEANUP_JSON json_t *wide = GET("/chat2shell/v1/doctor", 200);
    assert_string_equal(finding_level(wide, "modes"), "fail");
}

static void events_are_found_by_their_object(void **state)
{
    const struct api *api = *state;
    CLEANUP_JSON json_t *made = POST(KINDS "/workspaces", "{\"metadata\": {\"name\": \"w1\"}}", 201);
    CLEANUP_RECORD struct record *record =
        world_get_record(api->fixture, KIND_WORKSPACE, at(made, "metadata", "uid"));
    store_event(api->fixture->world.store, record, true, "Tested", "it happened");
    world_settle(api->fixture);
    CLEANUP_FREE char *path = mem_format(
        "/api/v1/namespaces/default/events?fieldSelector=involvedObject.uid%%3D%s", record->meta.uid);
    CLEANUP_JSON json_t *list = GET(path, 200);
    json_t *event = json_array_get(json_object_get(list, "items"), 0);
    assert_string_equal(at(event, "reason", NULL), "Tested");
    assert_string_equal(at(event, "involvedObject", "name"), "w1");
    CLEANUP_JSON json_t *none = GET("/api/v1/events?fieldSelector=involvedObject.name%3Dw2", 200);
    assert_int_equal(json_array_size(json_object_get(none, "items")), 0);
}

static void stop_answers_then_raises_sigterm(void **state)
{
    const struct api *api = *state;
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGTERM);
    CLEANUP_JSON json_t *answer = POST("/chat2shell/v1/stop", "", 202);
    assert_string_equal(at(answer, "status", NULL), "stopping");
    clock_advance(api->fixture->world.clock, 1000);
    assert_int_equal(sigtimedwait(&signals, NULL, &(struct timespec){10, 0}), SIGTERM);
}

// ---- exec
// -------------------------------------------------------------------------------------------------------------
static char *start_exec(const struct api *api, const char *body)
{
    CLEANUP_JSON json_t *started = POST("/chat2shell/v1/sandboxes/dev/exec", body, 200);
    return mem_format("/chat2shell/v1/sandboxes/dev/exec/%s", at(started, "execId", NULL));
}

static json_t *exec_call(const struct api *api, const char *exec, const char *verb, const char *body,
                         int expected)
{
    CLEANUP_FREE char *path = mem_format("%s/%s", exec, verb);
    return POST(path, body, expected);
}

static void a_program_gets_its_input_and_its_streams_and_status_come_back(void **state)
{
    const struct api *api = *state;
    make_dev(api);
    CLEANUP_FREE char *exec = start_exec(
        api, "{\"argv\": [\"/bin/sh\", \"-c\", \"cat; echo $X >&2; exit 7\"], \"env\": {\"X\": \"err\"}}");
    json_decref(exec_call(api, exec, "write", "{\"data\": \"aGVsbG8=\", \"eof\": true}", 200));
    CLEANUP(buffer_free) struct buffer out = BUFFER_INIT(4096), errors = BUFFER_INIT(4096);
    for (int i = 0; i < 50; i++) {
        CLEANUP_JSON json_t *read = exec_call(api, exec, "read", "{\"waitMs\": 1000}", 200);
        CLEANUP_FREE char *one = NULL, *two = NULL;
        size_t one_len, two_len;
        assert_int_equal(json_decode_base64(at(read, "stdout", NULL), &one, &one_len, NULL), 0);
        assert_int_equal(json_decode_base64(at(read, "stderr", NULL), &two, &two_len, NULL), 0);
        buffer_append(&out, one, one_len);
        buffer_append(&errors, two, two_len);
        if (!json_get_bool(read, "exited", false))
            continue;
        assert_int_equal(json_get_int(read, "exitCode", -1), 7);
        assert_string_equal(buffer_text(&out), "hello");
        assert_string_equal(buffer_text(&errors), "err\n");
        json_decref(exec_call(api, exec, "end", "", 200));
        json_decref(exec_call(api, exec, "read", "{}", 404));
        return;
    }
    fail_msg("the program did not end");
}

static void a_signal_ends_a_program(void **state)
{
    const struct api *api = *state;
    make_dev(api);
    CLEANUP_FREE char *exec = start_exec(api, "{\"argv\": [\"sleep\", \"1000\"]}");
    json_decref(exec_call(api, exec, "signal", "{\"signal\": \"NOPE\"}", 422));
    json_decref(exec_call(api, exec, "signal", "{\"signal\": \"SIGTERM\"}", 200));
    CLEANUP_JSON json_t *read = exec_call(api, exec, "read", "{\"waitMs\": 10000}", 200);
    assert_int_equal(json_get_int(read, "exitCode", -1), 143);
}

static void exec_refuses_what_makes_no_sense(void **state)
{
    const struct api *api = *state;
    check(api, "POST", "/chat2shell/v1/sandboxes/dev/exec", JSON_TYPE, "{\"argv\": [\"true\"]}", 404);
    make_dev(api);
    static const char *const bodies[] = {"{}",
                                         "{\"argv\": []}",
                                         "{\"argv\": [\"\"]}",
                                         "{\"argv\": [1]}",
                                         "{\"argv\": [\"a\"], \"env\": []}",
                                         "{\"argv\": [\"a\"], \"cwd\": 1}"};
    for (size_t i = 0; i < ARRAY_LEN(bodies); i++)
        check(api, "POST", "/chat2shell/v1/sandboxes/dev/exec", JSON_TYPE, bodies[i], 422);
    check(api, "POST", "/chat2shell/v1/sandboxes/dev/exec/exec_none/read", JSON_TYPE, "{}", 404);
    CLEANUP_FREE char *exec = start_exec(api, "{\"argv\": [\"cat\"]}");
    json_decref(exec_call(api, exec, "read", "{\"waitMs\": 60000}", 422));
    json_decref(exec_call(api, exec, "write", "{\"data\": \"*\"}", 422));
}

static void a_program_that_nobody_reads_is_ended(void **state)
{
    const struct api *api = *state;
    make_dev(api);
    CLEANUP_FREE char *exec = start_exec(api, "{\"argv\": [\"sleep\", \"1000\"]}");
    for (int i = 0; i < 22; i++)
        clock_advance(api->fixture->world.clock, 30000);
    world_settle(api->fixture);
    json_decref(exec_call(api, exec, "read", "{}", 404));
}

static void a_read_whose_client_left_and_a_stop_under_way_end_cleanly(void **state)
{
    struct api *api = *state;
    struct error err = ERROR_INIT;
    make_dev(api);
    CLEANUP_FREE char *exec = start_exec(api, "{\"argv\": [\"sleep\", \"1000\"]}");
    CLEANUP_FREE char *path = mem_format("%s/read", exec);
    int left = ask(api, "POST", path, JSON_TYPE, "{\"waitMs\": 30000}");
    nanosleep(&(struct timespec){0, 100000000}, NULL);
    close(left);
    int waiting = ask(api, "POST", path, JSON_TYPE, "{\"waitMs\": 30000}");
    support_pause(1000); // it is held by then, however slow the machine is
    operator_server_stop(api->server);
    api->server = NULL;
    struct http_answer answer;
    http_client_read(waiting, &answer, WAIT_MS);
    assert_int_equal(answer.status, 503);
    http_answer_clear(&answer);
    close(waiting);
    assert_ok(operator_server_start(&api->fixture->world, &api->server, &err));
}

static void a_sandbox_whose_workspace_stays_is_not_asked_for_unsaved_work(void **state)
{
    const struct api *api = *state;
    json_decref(POST(KINDS "/sandboxes", "{\"metadata\": {\"name\": \"dev\"}}", 201));
    wait_for_phase(api, KINDS "/sandboxes/dev", "running");
    CLEANUP_JSON json_t *unsaved = GET("/chat2shell/v1/sandboxes/dev/unsaved", 200);
    assert_false(json_get_bool(unsaved, "isClone", true));
    assert_true(json_is_null(json_object_get(unsaved, "isRepository")));
}

#define API_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &signals, NULL);
    const struct CMUnitTest tests[] = {
        API_TEST(an_object_is_made_read_listed_and_deleted),
        API_TEST(a_name_that_is_taken_is_refused),
        API_TEST(selectors_choose),
        API_TEST(a_table_has_the_columns_of_the_field_tables),
        API_TEST(several_errors_are_all_named_and_nothing_is_stored),
        API_TEST(unknown_fields_are_a_bad_request_that_names_them),
        API_TEST(hostile_bodies_are_refused),
        API_TEST(unknown_paths_and_methods_say_so),
        API_TEST(labels_change_and_a_change_that_changes_nothing_is_no_write),
        API_TEST(a_stale_version_is_a_conflict),
        API_TEST(immutable_fields_are_named),
        API_TEST(apply_creates_then_merges_then_writes_nothing),
        API_TEST(what_get_printed_can_be_applied_again),
        API_TEST(a_dry_run_says_what_would_be_and_stores_nothing),
        API_TEST(a_sandbox_gets_its_whole_spec_labels_and_a_managed_workspace),
        API_TEST(an_exposure_has_its_name_and_is_made_once),
        API_TEST(deleting_asks_for_its_preconditions),
        API_TEST(approving_is_answered_with_the_workspace),
        API_TEST(a_decision_about_a_version_that_was_not_shown_is_refused),
        API_TEST(a_dry_run_of_a_decision_checks_it_and_decides_nothing),
        API_TEST(a_client_that_leaves_while_its_decision_settles_leaves_nothing_behind),
        API_TEST(a_host_workspace_is_approved_by_its_operator),
        API_TEST(status_counts_what_is_there),
        API_TEST(doctor_finds_modes_that_others_can_use),
        API_TEST(events_are_found_by_their_object),
        API_TEST(stop_answers_then_raises_sigterm),
        API_TEST(a_program_gets_its_input_and_its_streams_and_status_come_back),
        API_TEST(a_signal_ends_a_program),
        API_TEST(exec_refuses_what_makes_no_sense),
        API_TEST(a_program_that_nobody_reads_is_ended),
        API_TEST(a_read_whose_client_left_and_a_stop_under_way_end_cleanly),
        API_TEST(a_sandbox_whose_workspace_stays_is_not_asked_for_unsaved_work),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
