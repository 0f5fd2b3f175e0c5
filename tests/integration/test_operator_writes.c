// The writing side of the operator API: applies and who owns what, patches, field validation, names, deletes, dry runs.
#include "tests/support/api_rig.h"
#include "api/operator/json_patch.h"
#include "controller/base/buffer.h"
#include "controller/base/memory.h"
#include <string.h>

#define W "/w1"
#define WORKSPACES API_KINDS "/workspaces"
#define APPLY(path, manager, body, expected) api_call(api, "PATCH", WORKSPACES path "?fieldManager=" manager, API_APPLY, body, expected)
#define MERGE(path, body, expected) api_call(api, "PATCH", WORKSPACES path, API_MERGE, body, expected)
#define JSON_PATCH(path, body, expected) api_call(api, "PATCH", WORKSPACES path, API_JSON_PATCH, body, expected)
#define POST(path, body, expected) api_call(api, "POST", WORKSPACES path, API_JSON, body, expected)
#define PUT(path, body, expected) api_call(api, "PUT", WORKSPACES path, API_JSON, body, expected)
#define GET(path, expected) api_call(api, "GET", WORKSPACES path, NULL, "", expected)
#define DELETE(path, body, expected) api_call(api, "DELETE", WORKSPACES path, *(body) ? API_JSON : NULL, body, expected)

#define LABELS(labels) "{\"metadata\": {\"name\": \"w1\", \"labels\": {" labels "}}}"
#define HEAD "apiVersion: chat2shell.dev/v1\nkind: Workspace\nmetadata:\n  name: w1\n"

static const char *version_of(const json_t *object)
{
    return api_text(object, "metadata/resourceVersion");
}

static void assert_json(const json_t *got, const char *wanted)
{
    CLEANUP_JSON json_t *parsed = NULL;
    assert_int_equal(json_parse(wanted, strlen(wanted), &parsed, NULL), 0);
    CLEANUP_FREE char *text = json_to_text(got ? got : json_null());
    if (!json_equal((json_t *)got, parsed))
        fail_msg("got %s, wanted %s", text, wanted);
}

// ---- server-side apply
// ------------------------------------------------------------------------------------------------------
static void an_apply_of_yaml_makes_an_object_whose_applier_owns_what_it_named(void **state)
{
    struct api_rig *api = *state;
    CLEANUP_JSON json_t *made = APPLY(W, "me", HEAD "  labels: {tier: web, yes: \"no\"}\n", 201);
    assert_json(api_owned(made, "me", "Apply"), "{\"f:metadata\": {\"f:labels\": {\"f:tier\": {}, \"f:yes\": {}}}}");
    assert_int_equal(json_array_size(api_at(made, "metadata/managedFields")), 1);
    assert_string_equal(api_text(made, "spec/mode"), "managed"); // a default is nobody's
    assert_string_equal(api_text(made, "metadata/managedFields/0/fieldsType"), "FieldsV1");
    assert_string_equal(api_text(made, "metadata/managedFields/0/apiVersion"), "chat2shell.dev/v1");
    assert_true(*api_text(made, "metadata/managedFields/0/time"));
}

static void an_apply_needs_a_field_manager_and_force_is_for_applies(void **state)
{
    struct api_rig *api = *state;
    CLEANUP_JSON json_t *none = api_call(api, "PATCH", WORKSPACES W, API_APPLY, LABELS(""), 422);
    api_assert_status(none, "Invalid", "fieldManager: Required value: is required for apply patch");
    assert_true(api_has_cause(none, "fieldManager", "FieldValueRequired"));
    CLEANUP_JSON json_t *made = APPLY(W, "me", LABELS("\"a\": \"1\""), 201);
    CLEANUP_JSON json_t *forced = MERGE(W "?force=true", "{}", 422);
    api_assert_status(forced, "Invalid", "force: Forbidden");
    CLEANUP_FREE char *name = mem_alloc(130);
    memset(name, 'x', 129);
    CLEANUP_FREE char *path = mem_format(WORKSPACES W "?fieldManager=%s", name);
    api_check(api, "PATCH", path, API_APPLY, "{}", 422);
    api_check(api, "PATCH", WORKSPACES W "?fieldManager=a%07b", API_APPLY, "{}", 400);
}

static void a_field_that_its_only_applier_leaves_out_goes(void **state)
{
    struct api_rig *api = *state;
    json_decref(APPLY(W, "one", LABELS("\"a\": \"1\", \"b\": \"2\", \"c\": \"3\""), 201));
    json_decref(APPLY(W, "two", LABELS("\"b\": \"2\""), 200)); // shares b
    CLEANUP_JSON json_t *left = APPLY(W, "one", LABELS("\"c\": \"3\""), 200);
    assert_json(api_at(left, "metadata/labels"), "{\"b\": \"2\", \"c\": \"3\"}");
    CLEANUP_JSON json_t *last = APPLY(W, "two", LABELS(""), 200);
    assert_json(api_at(last, "metadata/labels"), "{\"c\": \"3\"}");
    assert_null(api_owned(last, "two", "Apply"));
}

static void an_apply_that_changes_nothing_writes_nothing_and_keeps_its_time(void **state)
{
    struct api_rig *api = *state;
    CLEANUP_JSON json_t *made = APPLY(W, "me", LABELS("\"a\": \"1\""), 201);
    world_settle(api->fixture);
    CLEANUP_JSON json_t *before = GET(W, 200);
    clock_advance(api->fixture->world.clock, 5000);
    CLEANUP_JSON json_t *again = APPLY(W, "me", LABELS("\"a\": \"1\""), 200);
    assert_string_equal(version_of(again), version_of(before));
    assert_true(json_equal(api_at(again, "metadata/managedFields"), api_at(made, "metadata/managedFields")));
    CLEANUP_JSON json_t *forced = APPLY(W, "me&force=true", LABELS("\"a\": \"1\""), 200);
    assert_string_equal(version_of(forced), version_of(before));
}

static void another_managers_value_is_a_conflict_that_names_manager_and_field(void **state)
{
    struct api_rig *api = *state;
    json_decref(APPLY(W, "one", LABELS("\"a\": \"1\", \"b\": \"1\""), 201));
    json_decref(MERGE(W "?fieldManager=ed", "{\"metadata\": {\"annotations\": {\"x.io/n\": \"1\"}}}", 200));
    CLEANUP_JSON json_t *single = APPLY(W, "two", LABELS("\"a\": \"2\", \"b\": \"1\""), 409);
    api_assert_status(single, "Conflict", "Apply failed with 1 conflict: conflict with \"one\": .metadata.labels.a");
    assert_true(api_has_cause(single, ".metadata.labels.a", "FieldManagerConflict"));
    CLEANUP_JSON json_t *several = APPLY(W, "two", "{\"metadata\": {\"labels\": {\"a\": \"2\", \"b\": \"2\"}, \"annotations\": {\"x.io/n\": \"2\"}}}", 409);
    api_assert_status(several, "Conflict", "Apply failed with 3 conflicts: conflicts with \"one\":\n- .metadata.labels.a\n- .metadata.labels.b\nconflicts with \"ed\" using chat2shell.dev/v1 at ");
    assert_int_equal(json_array_size(api_at(several, "details/causes")), 3);
    CLEANUP_JSON json_t *forced = APPLY(W, "two&force=true", LABELS("\"a\": \"2\""), 200);
    assert_json(api_at(forced, "metadata/labels"), "{\"a\": \"2\", \"b\": \"1\"}");
    assert_json(api_owned(forced, "one", "Apply"), "{\"f:metadata\": {\"f:labels\": {\"f:b\": {}}}}");
    assert_json(api_owned(forced, "two", "Apply"), "{\"f:metadata\": {\"f:labels\": {\"f:a\": {}}}}");
}

static void updates_take_what_they_change_and_share_nothing(void **state)
{
    struct api_rig *api = *state;
    json_decref(APPLY(W, "one", LABELS("\"a\": \"1\", \"b\": \"1\""), 201));
    CLEANUP_JSON json_t *merged = MERGE(W "?fieldManager=ed", "{\"metadata\": {\"labels\": {\"a\": \"2\", \"b\": \"1\", \"c\": \"3\"}}}", 200);
    assert_json(api_owned(merged, "one", "Apply"), "{\"f:metadata\": {\"f:labels\": {\"f:b\": {}}}}");
    assert_json(api_owned(merged, "ed", "Update"), "{\"f:metadata\": {\"f:labels\": {\"f:a\": {}, \"f:c\": {}}}}");
    json_decref(APPLY(W, "one", LABELS("\"a\": \"1\""), 409));
    CLEANUP_JSON json_t *dropped = APPLY(W, "one", LABELS(""), 200);
    assert_json(api_at(dropped, "metadata/labels"), "{\"a\": \"2\", \"c\": \"3\"}");
}

static void finalizers_are_a_set_owned_item_by_item(void **state)
{
    struct api_rig *api = *state;
    json_decref(APPLY(W, "one", "{\"metadata\": {\"finalizers\": [\"a.io/x\"]}}", 201));
    CLEANUP_JSON json_t *both = APPLY(W, "two", "{\"metadata\": {\"finalizers\": [\"a.io/y\"]}}", 200);
    assert_int_equal(json_array_size(api_at(both, "metadata/finalizers")), 3); // and the server's own
    assert_json(api_owned(both, "two", "Apply"), "{\"f:metadata\": {\"f:finalizers\": {\"v:\\\"a.io/y\\\"\": {}}}}");
    CLEANUP_JSON json_t *left = APPLY(W, "one", "{}", 200);
    assert_int_equal(json_array_size(api_at(left, "metadata/finalizers")), 2);
}

static void the_fields_of_a_client_side_apply_move_to_kubectls_server_side_apply(void **state)
{
    struct api_rig *api = *state;
    const char *created = "{\"metadata\": {\"name\": \"w1\", \"labels\": {\"a\": \"1\"}, \"annotations\": {"
                          "\"kubectl.kubernetes.io/last-applied-configuration\": "
                          "\"{\\\"metadata\\\":{\\\"name\\\":\\\"w1\\\",\\\"labels\\\":{\\\"a\\\":\\\"1\\\"}}}\\n\"}}}";
    json_decref(POST("?fieldManager=kubectl-client-side-apply", created, 201));
    json_decref(APPLY(W, "other", LABELS("\"a\": \"2\""), 409));
    CLEANUP_JSON json_t *moved = APPLY(W, "kubectl", LABELS("\"a\": \"2\""), 200);
    assert_string_equal(api_text(moved, "metadata/labels/a"), "2");
    json_t *annotations = api_at(moved, "metadata/annotations");
    CLEANUP_JSON json_t *notes = NULL;
    const char *text = json_get_text(annotations, "kubectl.kubernetes.io/last-applied-configuration");
    assert_int_equal(json_parse(text, strlen(text), &notes, NULL), 0);
    assert_string_equal(api_text(notes, "metadata/labels/a"), "2");
    CLEANUP_JSON json_t *again = APPLY(W, "kubectl", LABELS("\"a\": \"2\""), 200);
    assert_string_equal(version_of(again), version_of(moved));
}

static void managed_fields_are_reset_by_an_empty_list_and_kept_when_they_make_no_sense(void **state)
{
    struct api_rig *api = *state;
    json_decref(APPLY(W, "one", LABELS("\"a\": \"1\""), 201));
    CLEANUP_JSON json_t *kept = MERGE(W, "{\"metadata\": {\"managedFields\": [{\"manager\": \"x\"}]}}", 200);
    assert_non_null(api_owned(kept, "one", "Apply"));
    CLEANUP_JSON json_t *reset = MERGE(W, "{\"metadata\": {\"managedFields\": [{}]}}", 200);
    assert_null(api_at(reset, "metadata/managedFields"));
    CLEANUP_JSON json_t *conflict = APPLY(W, "two", LABELS("\"a\": \"2\""), 409);
    api_assert_status(conflict, "Conflict", "before-first-apply");
    CLEANUP_JSON json_t *taken = APPLY(W, "two&force=true", LABELS("\"a\": \"2\""), 200);
    assert_non_null(api_owned(taken, "two", "Apply"));
    json_decref(MERGE(W, "{\"metadata\": {\"managedFields\": []}}", 200));
}

static void a_normal_form_is_no_change(void **state)
{
    struct api_rig *api = *state;
    const char *body = "{\"metadata\": {\"name\": \"dev\"}, \"spec\": {\"memory\": \"1024Mi\", \"cpus\": 1.50}}";
    json_decref(api_call(api, "PATCH", API_KINDS "/sandboxes/dev?fieldManager=me", API_APPLY, body, 201));
    CLEANUP_JSON json_t *again = api_call(api, "PATCH", API_KINDS "/sandboxes/dev?fieldManager=you", API_APPLY, body, 200);
    assert_string_equal(api_text(again, "spec/memory"), "1Gi");
    CLEANUP_JSON json_t *changed =
        api_call(api, "PATCH", API_KINDS "/sandboxes/dev?fieldManager=me&force=1", API_APPLY, "{\"spec\": {\"memory\": \"2Gi\"}}", 422);
    api_assert_status(changed, "Invalid", "immutable");
}

// ---- patches
// ----------------------------------------------------------------------------------------------------------------
static void json_patches_do_all_operations_or_none(void **state)
{
    struct api_rig *api = *state;
    json_decref(POST("", LABELS("\"a\": \"1\", \"b\": \"2\""), 201));
    CLEANUP_JSON json_t *done = JSON_PATCH(W,
                                           "[{\"op\": \"test\", \"path\": \"/metadata/labels/a\", \"value\": \"1\"},"
                                           "{\"op\": \"replace\", \"path\": \"/metadata/labels/a\", \"value\": \"9\"},"
                                           "{\"op\": \"copy\", \"from\": \"/metadata/labels/a\", \"path\": \"/metadata/labels/c\"},"
                                           "{\"op\": \"move\", \"from\": \"/metadata/labels/b\", \"path\": \"/metadata/labels/x.io~1b\"},"
                                           "{\"op\": \"add\", \"path\": \"/metadata/annotations/n\", \"value\": \"v\"},"
                                           "{\"op\": \"remove\", \"path\": \"/metadata/labels/c\"}]",
                                           200);
    assert_json(api_at(done, "metadata/labels"), "{\"a\": \"9\", \"x.io/b\": \"2\"}");
    CLEANUP_JSON json_t *failed = JSON_PATCH(
        W, "[{\"op\": \"remove\", \"path\": \"/metadata/labels/a\"}, {\"op\": \"test\", \"path\": \"/spec/mode\", \"value\": \"x\"}]", 422);
    api_assert_status(failed, "Invalid", "testing path \"/spec/mode\" failed");
    CLEANUP_JSON json_t *now = GET(W, 200);
    assert_string_equal(api_text(now, "metadata/labels/a"), "9");
    CLEANUP_JSON json_t *same = JSON_PATCH(W, "[]", 200);
    assert_string_equal(version_of(same), version_of(now));
    json_decref(JSON_PATCH(W, "[{\"op\": \"replace\", \"path\": \"/spec/mode\", \"value\": \"direct\"}]", 422));
    json_decref(JSON_PATCH(W, "[{\"op\": \"replace\", \"path\": \"/metadata/resourceVersion\", \"value\": \"1\"}]", 409));
}

static void malformed_json_patches_are_bad_requests(void **state)
{
    struct api_rig *api = *state;
    json_decref(POST("", LABELS(""), 201));
    static const struct {
        const char *patch;
        int status;
    } rows[] = {
        {"{}", 400},
        {"[7]", 400},
        {"[{\"op\": \"jump\", \"path\": \"/a\"}]", 400},
        {"[{\"op\": \"add\", \"path\": \"/metadata/labels\"}]", 400},
        {"[{\"op\": \"copy\", \"path\": \"/a\"}]", 400},
        {"[{\"op\": \"remove\", \"path\": \"a\"}]", 400},
        {"[{\"op\": \"remove\", \"path\": \"/~2\"}]", 400},
        {"[{\"op\": \"remove\", \"path\": \"/nothing\"}]", 422},
        {"[{\"op\": \"add\", \"path\": \"/nothing/here\", \"value\": 1}]", 422},
        {"[{\"op\": \"add\", \"path\": \"/metadata/finalizers/7\", \"value\": \"a/b\"}]", 422},
        {"[{\"op\": \"add\", \"path\": \"/metadata/finalizers/01\", \"value\": \"a/b\"}]", 422},
        {"[{\"op\": \"move\", \"from\": \"/metadata\", \"path\": \"/metadata/labels\"}]", 422},
        {"[{\"op\": \"remove\", \"path\": \"\"}]", 422},
        {"[{\"op\": \"add\", \"path\": \"/extra\", \"value\": 1}]", 400},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        json_decref(JSON_PATCH(W, rows[i].patch, rows[i].status));
    CLEANUP(buffer_free) struct buffer many = BUFFER_INIT(1 << 20);
    for (int i = 0; i <= JSON_PATCH_MAX_OPERATIONS; i++)
        buffer_format(&many, "%s{\"op\": \"test\", \"path\": \"/kind\", \"value\": 1}", i ? "," : "[");
    buffer_append_text(&many, "]");
    CLEANUP_JSON json_t *large = JSON_PATCH(W, buffer_text(&many), 413);
    api_assert_status(large, "RequestEntityTooLarge", "The allowed maximum operations in a JSON patch is 10000, got 10001");
}

static void a_patch_of_an_unknown_form_is_told_which_are_known(void **state)
{
    struct api_rig *api = *state;
    json_decref(POST("", LABELS(""), 201));
    CLEANUP_JSON json_t *status = api_call(api, "PATCH", WORKSPACES W, "application/strategic-merge-patch+json", "{}", 415);
    api_assert_status(status, "UnsupportedMediaType",
                      "the body of the request was in an unknown format - accepted media types include: application/json-patch+json, "
                      "application/merge-patch+json, application/apply-patch+yaml");
    api_check(api, "PUT", WORKSPACES W "/status", API_JSON, "{}", 405);
    api_check(api, "PATCH", WORKSPACES W "/status", API_MERGE, "{}", 405);
    CLEANUP_JSON json_t *status_part = GET(W "/status", 200);
    assert_string_equal(api_text(status_part, "metadata/name"), "w1");
}

static void a_replacement_that_does_not_name_its_object_changes_nothing(void **state)
{
    struct api_rig *api = *state;
    json_decref(POST("", LABELS("\"a\": \"1\""), 201));
    static const char *const bodies[] = {"{}", "{\"metadata\": {}}", "{\"metadata\": {\"name\": null}}", "{\"spec\": {\"mode\": \"managed\"}}"};
    for (size_t i = 0; i < ARRAY_LEN(bodies); i++) {
        CLEANUP_JSON json_t *status = PUT(W, bodies[i], 400);
        api_assert_status(status, "BadRequest", "metadata.name must be in the body of a PUT");
    }
    CLEANUP_JSON json_t *now = GET(W, 200);
    assert_json(api_at(now, "metadata/labels"), "{\"a\": \"1\"}");
}

static void a_yaml_body_that_is_taken_for_json_is_told_why(void **state)
{
    struct api_rig *api = *state;
    CLEANUP_JSON json_t *status = APPLY(W, "me", "{apiVersion: chat2shell.dev/v1, kind: Workspace}", 400);
    assert_non_null(strstr(api_text(status, "details/hint"), "is read as JSON; write YAML in lines"));
}

// ---- field validation
// -------------------------------------------------------------------------------------------------------
static void strict_reading_names_every_unknown_and_repeated_field(void **state)
{
    struct api_rig *api = *state;
    const char *body = "{\"metadata\": {\"name\": \"w1\", \"lables\": {}, \"name\": \"w2\"}, \"spec\": {\"mdoe\": 1}, \"extra\": 1}";
    CLEANUP_JSON json_t *status = POST("?fieldValidation=Strict", body, 400);
    api_assert_status(status, "BadRequest", "Workspace in version \"v1\" cannot be handled as a Workspace: strict decoding error: ");
    static const char *const words[] = {"unknown field \"metadata.lables\"", "unknown field \"spec.mdoe\"", "unknown field \"extra\"",
                                        "duplicate field \"metadata.name\""};
    for (size_t i = 0; i < ARRAY_LEN(words); i++)
        api_assert_status(status, "BadRequest", words[i]);
    CLEANUP_JSON json_t *warned = POST("?fieldValidation=Warn", body, 201);
    assert_string_equal(api_text(warned, "metadata/name"), "w2");
    for (size_t i = 0; i < ARRAY_LEN(words); i++) {
        CLEANUP_FREE char *kind = mem_strndup(words[i], strcspn(words[i], "\""));
        CLEANUP_FREE char *quoted = mem_format("299 - \"%s\\\"", kind);
        assert_non_null(strstr(api->warning, quoted));
    }
    json_decref(MERGE("/w2?fieldValidation=Ignore", "{\"spec\": {\"mdoe\": 1}}", 200));
    assert_string_equal(api->warning, "");
    json_decref(MERGE("/w2", "{\"spec\": {\"mdoe\": 1}}", 400));
    json_decref(APPLY("/w2", "me", "{\"metadata\": {\"labels\": {\"a\": \"1\", \"a\": \"2\"}}}", 400));
    json_decref(APPLY("/w2", "me", "metadata:\n  labels:\n    a: x\n    a: y\n", 400));
}

static void many_unknown_fields_can_be_ignored(void **state)
{
    struct api_rig *api = *state;
    CLEANUP(buffer_free) struct buffer body = BUFFER_INIT(1 << 20);
    for (int i = 0; i < 300; i++)
        buffer_format(&body, "%s\"f%d\": 1", i ? ", " : "{\"spec\": {", i);
    buffer_append_text(&body, "}}");
    json_decref(POST("?fieldValidation=Warn", buffer_text(&body), 201));
    assert_non_null(strstr(api->warning, "unknown field"));
    json_decref(POST("?fieldValidation=Strict", buffer_text(&body), 400));
}

// ---- names and metadata
// ---------------------------------------------------------------------------------------------------
static void a_name_is_generated_from_its_beginning(void **state)
{
    struct api_rig *api = *state;
    CLEANUP_JSON json_t *one = POST("", "{\"metadata\": {\"generateName\": \"job-\", \"namespace\": \"default\"}}", 201);
    assert_int_equal(strncmp(api_text(one, "metadata/name"), "job-", 4), 0);
    assert_int_equal(strlen(api_text(one, "metadata/name")), 9);
    assert_non_null(strstr(api->warning, "metadata.namespace"));
    CLEANUP_JSON json_t *bad = POST("", "{\"metadata\": {\"generateName\": \"Job_\"}}", 422);
    assert_true(api_has_cause(bad, "metadata.generateName", "FieldValueInvalid"));
    CLEANUP_JSON json_t *named = POST("", "{\"metadata\": {\"generateName\": \"job-\", \"name\": \"mine\"}}", 201);
    assert_string_equal(api_text(named, "metadata/name"), "mine");
}

static void a_uid_or_version_of_another_object_is_a_conflict(void **state)
{
    struct api_rig *api = *state;
    CLEANUP_JSON json_t *made = POST("", LABELS(""), 201);
    CLEANUP_JSON json_t *other = PUT(W, "{\"metadata\": {\"name\": \"w1\", \"uid\": \"ws_other\"}}", 409);
    api_assert_status(other, "Conflict", "Precondition failed: UID in precondition: ws_other, UID in object meta: ws_");
    json_decref(MERGE(W, "{\"metadata\": {\"labels\": {\"a\": \"1\"}}}", 200));
    CLEANUP_FREE char *stale = mem_format("{\"metadata\": {\"name\": \"w1\", \"resourceVersion\": \"%s\"}}", version_of(made));
    CLEANUP_JSON json_t *status = PUT(W, stale, 409);
    api_assert_status(status, "Conflict",
                      "Operation cannot be fulfilled on workspaces.chat2shell.dev \"w1\": the object has been modified; please apply your "
                      "changes to the latest version and try again");
    json_decref(PUT(W, "{\"metadata\": {\"name\": \"w1\", \"creationTimestamp\": null, \"deletionTimestamp\": \"2020-01-01T00:00:00Z\"}}", 200));
    CLEANUP_JSON json_t *now = GET(W, 200);
    assert_string_equal(api_text(now, "metadata/deletionTimestamp"), "");
}

static void a_clients_finalizer_holds_the_object_and_the_servers_own_cannot_be_taken(void **state)
{
    struct api_rig *api = *state;
    json_decref(POST("", "{\"metadata\": {\"name\": \"w1\", \"finalizers\": [\"a.io/hold\"]}}", 201));
    CLEANUP_JSON json_t *kept = MERGE(W, "{\"metadata\": {\"finalizers\": [\"a.io/hold\", \"a.io/hold\"]}}", 200);
    assert_non_null(strstr(api->warning, "chat2shell.dev/trash stays"));
    assert_int_equal(json_array_size(api_at(kept, "metadata/finalizers")), 2);
    json_decref(DELETE(W, "", 200));
    world_settle(api->fixture);
    CLEANUP_JSON json_t *held = GET(W, 200);
    assert_true(*api_text(held, "metadata/deletionTimestamp"));
    CLEANUP_JSON json_t *late = MERGE(W, "{\"metadata\": {\"finalizers\": [\"a.io/hold\", \"a.io/late\"]}}", 422);
    api_assert_status(late, "Invalid", "may not be added");
    json_decref(MERGE(W, "{\"metadata\": {\"finalizers\": null}}", 200));
    world_settle(api->fixture);
    json_decref(GET(W, 404));
}

// ---- deletes
// ---------------------------------------------------------------------------------------------------------------
static void delete_options_are_checked(void **state)
{
    struct api_rig *api = *state;
    json_decref(POST("", LABELS(""), 201));
    json_decref(DELETE(W, "{\"propagationPolicy\": \"Sideways\"}", 422));
    json_decref(DELETE(W, "{\"propagationPolicy\": \"Background\", \"orphanDependents\": true}", 422));
    json_decref(DELETE(W, "{\"dryRun\": [\"Some\"]}", 422));
    json_decref(DELETE(W, "{\"preconditions\": {\"uid\": \"ws_other\"}}", 409));
    CLEANUP_JSON json_t *dry = DELETE(W, "{\"kind\": \"DeleteOptions\", \"apiVersion\": \"v1\", \"dryRun\": [\"All\"]}", 200);
    assert_true(*api_text(dry, "metadata/deletionTimestamp"));
    CLEANUP_JSON json_t *still = GET(W, 200);
    assert_string_equal(api_text(still, "metadata/deletionTimestamp"), "");
    json_decref(api_call(api, "DELETE", WORKSPACES W, "application/yaml", "propagationPolicy: Foreground\ngracePeriodSeconds: 0\n", 200));
    json_decref(api_call(api, "POST", API_KINDS "/sandboxes", API_JSON, "{\"metadata\": {\"name\": \"dev\"}}", 201));
    CLEANUP_JSON json_t *orphan = api_call(api, "DELETE", API_KINDS "/sandboxes/dev?propagationPolicy=Orphan", NULL, "", 422);
    api_assert_status(orphan, "Invalid", "takes its exposures");
    assert_true(api_has_cause(orphan, "propagationPolicy", "FieldValueNotSupported"));
}

static void a_collection_is_deleted_by_selector_and_what_the_policy_refuses_is_named(void **state)
{
    struct api_rig *api = *state;
    for (int i = 0; i < 4; i++) {
        CLEANUP_FREE char *body = mem_format("{\"metadata\": {\"name\": \"w%d\", \"labels\": {\"half\": \"%d\"}}}", i, i % 2);
        json_decref(POST("", body, 201));
    }
    CLEANUP_JSON json_t *dry = DELETE("?labelSelector=half%3D1&dryRun=All", "", 200);
    assert_int_equal(json_array_size(api_at(dry, "items")), 2);
    CLEANUP_JSON json_t *gone = DELETE("?labelSelector=half%3D1", "", 200);
    assert_string_equal(api_text(gone, "kind"), "WorkspaceList");
    assert_int_equal(json_array_size(api_at(gone, "items")), 2);
    world_settle(api->fixture);
    json_decref(GET("/w1", 404));
    json_decref(api_call(api, "POST", API_KINDS "/sandboxes", API_JSON, "{\"metadata\": {\"name\": \"dev\"}, \"spec\": {\"workspaceRef\": \"w0\"}}", 201));
    CLEANUP_JSON json_t *refused = DELETE("", "{}", 409);
    api_assert_status(refused, "Conflict", "1 of 2 workspaces could not be deleted: the workspace w0 is bound to the sandbox dev");
    assert_true(api_has_cause(refused, "w0", "Conflict"));
    world_settle(api->fixture);
    json_decref(GET("/w2", 404));
    json_decref(GET("/w0", 200));
    json_decref(DELETE("", "{\"preconditions\": {\"uid\": \"x\"}}", 400));
}

static void an_object_that_is_gone_at_once_is_answered_with_success(void **state)
{
    struct api_rig *api = *state;
    CLEANUP_FREE char *path = world_make_repository(api->fixture, "project");
    CLEANUP_FREE char *body = mem_format("{\"metadata\": {\"name\": \"host\"}, \"spec\": {\"mode\": \"clone\", \"path\": \"%s\"}}", path);
    json_decref(POST("?dryRun=All", body, 201));
    json_decref(GET("/host", 404));
    CLEANUP_JSON json_t *outside = POST("?dryRun=All", "{\"spec\": {\"mode\": \"direct\", \"path\": \"/etc\"}}", 403);
    api_assert_status(outside, "Forbidden", "/etc");
    json_decref(POST("", body, 201));
    CLEANUP_JSON json_t *gone = DELETE("/host", "", 200);
    assert_string_equal(api_text(gone, "kind"), "Status");
    assert_string_equal(api_text(gone, "status"), "Success");
    assert_string_equal(api_text(gone, "details/name"), "host");
    json_decref(GET("/host", 404));
}

// ---- dry runs
// --------------------------------------------------------------------------------------------------------------
static void a_dry_run_takes_references_that_are_made_later_and_says_so(void **state)
{
    struct api_rig *api = *state;
    CLEANUP_JSON json_t *sandbox = api_call(api, "PATCH", API_KINDS "/sandboxes/dev?fieldManager=me&dryRun=All", API_APPLY,
                                            "{\"spec\": {\"workspaceRef\": \"soon\"}}", 201);
    assert_string_equal(api_text(sandbox, "spec/workspaceRef"), "soon");
    assert_non_null(strstr(api->warning, "there is no workspace named soon yet; the sandbox waits for it"));
    CLEANUP_JSON json_t *exposure =
        api_call(api, "POST", API_KINDS "/exposures?dryRun=All", API_JSON, "{\"spec\": {\"sandboxRef\": \"dev\", \"port\": 80}}", 201);
    assert_string_equal(api_text(exposure, "spec/sandboxRef"), "dev");
    assert_non_null(strstr(api->warning, "there is no sandbox named dev yet; the exposure waits for it"));
    CLEANUP_JSON json_t *driver = api_call(api, "POST", API_KINDS "/sandboxes?dryRun=All", API_JSON, "{\"spec\": {\"driver\": \"sbx\"}}", 422);
    api_assert_status(driver, "Invalid", "driver");
    CLEANUP_JSON json_t *list = api_call(api, "GET", API_KINDS "/workspaces", NULL, "", 200);
    assert_int_equal(json_array_size(api_at(list, "items")), 0);
}

static void dry_runs_of_changes_store_nothing(void **state)
{
    struct api_rig *api = *state;
    json_decref(APPLY(W, "me", LABELS("\"a\": \"1\""), 201));
    world_settle(api->fixture);
    CLEANUP_JSON json_t *before = GET(W, 200);
    CLEANUP_JSON json_t *applied = APPLY(W, "me&dryRun=All", LABELS("\"b\": \"1\""), 200);
    assert_json(api_at(applied, "metadata/labels"), "{\"b\": \"1\"}");
    json_decref(JSON_PATCH(W "?dryRun=All", "[{\"op\": \"remove\", \"path\": \"/metadata/labels\"}]", 200));
    json_decref(PUT(W "?dryRun=All", "{\"metadata\": {\"name\": \"w1\"}}", 200));
    CLEANUP_JSON json_t *after = GET(W, 200);
    assert_true(json_equal(before, after));
}

#define API_TEST(name) cmocka_unit_test_setup_teardown(name, api_rig_setup, api_rig_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        API_TEST(an_apply_of_yaml_makes_an_object_whose_applier_owns_what_it_named),
        API_TEST(an_apply_needs_a_field_manager_and_force_is_for_applies),
        API_TEST(a_field_that_its_only_applier_leaves_out_goes),
        API_TEST(an_apply_that_changes_nothing_writes_nothing_and_keeps_its_time),
        API_TEST(another_managers_value_is_a_conflict_that_names_manager_and_field),
        API_TEST(updates_take_what_they_change_and_share_nothing),
        API_TEST(finalizers_are_a_set_owned_item_by_item),
        API_TEST(the_fields_of_a_client_side_apply_move_to_kubectls_server_side_apply),
        API_TEST(managed_fields_are_reset_by_an_empty_list_and_kept_when_they_make_no_sense),
        API_TEST(a_normal_form_is_no_change),
        API_TEST(json_patches_do_all_operations_or_none),
        API_TEST(malformed_json_patches_are_bad_requests),
        API_TEST(a_patch_of_an_unknown_form_is_told_which_are_known),
        API_TEST(a_replacement_that_does_not_name_its_object_changes_nothing),
        API_TEST(a_yaml_body_that_is_taken_for_json_is_told_why),
        API_TEST(strict_reading_names_every_unknown_and_repeated_field),
        API_TEST(many_unknown_fields_can_be_ignored),
        API_TEST(a_name_is_generated_from_its_beginning),
        API_TEST(a_uid_or_version_of_another_object_is_a_conflict),
        API_TEST(a_clients_finalizer_holds_the_object_and_the_servers_own_cannot_be_taken),
        API_TEST(delete_options_are_checked),
        API_TEST(a_collection_is_deleted_by_selector_and_what_the_policy_refuses_is_named),
        API_TEST(an_object_that_is_gone_at_once_is_answered_with_success),
        API_TEST(a_dry_run_takes_references_that_are_made_later_and_says_so),
        API_TEST(dry_runs_of_changes_store_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
