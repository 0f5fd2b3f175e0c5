#include "tests/support/support.h"
#include "controller/base/cleanup.h"
#include "controller/base/json.h"
#include "controller/base/memory.h"
#include "controller/record.h"
#include "controller/fields/fields.h"
#include "schemas/kinds/tables.h"
#include <string.h>

static json_t *parse(const char *text)
{
    json_t *value = NULL;
    struct error err = ERROR_INIT;
    assert_ok(json_parse(text, strlen(text), &value, &err));
    return value;
}

static void assert_same(const json_t *got, const json_t *wanted)
{
    CLEANUP_FREE char *a = json_to_text(got);
    CLEANUP_FREE char *b = json_to_text(wanted);
    if (!json_equal(got, wanted))
        fail_msg("got %s, wanted %s", a, b);
}

#define CONDITIONS                                                                                           \
    "\"observedGeneration\":3,\"phase\":\"word\",\"conditions\":[{\"type\":\"Ready\",\"status\":\"True\","   \
    "\"reason\":\"Fine\","                                                                                   \
    "\"message\":\"it is\",\"lastTransitionTime\":\"2026-11-29T18:12:59.001Z\",\"observedGeneration\":3},"   \
    "{\"type\":\"Failed\",\"status\":\"Unknown\",\"reason\":\"Looking\",\"lastTransitionTime\":\"2026-11-"   \
    "29T18:12:59Z\"}],"
// Every field of every kind, set.
static const struct {
    const char *spec, *status;
} full[KIND_COUNT] = {
    [KIND_WORKSPACE] =
        {"{\"mode\":\"direct\",\"path\":\"/home/me/repositories/x\"}",
         "{" CONDITIONS
         "\"root\":\"/"
         "r\",\"device\":5,\"inode\":9223372036854775807,\"retainedUntil\":\"2026-12-29T18:12:59.999Z\","
         "\"boundSandbox\":\"sbx_a\"}"},
    [KIND_APPROVAL] =
        {"{\"path\":\"/home/me/repositories/"
         "x\",\"mode\":\"clone\",\"requester\":\"mcp\",\"decision\":\"approved\","
         "\"shownResourceVersion\":12,\"reason\":\"looks fine\"}",
         "{" CONDITIONS
         "\"device\":5,\"inode\":6,\"workspaceRef\":\"ws_a\",\"decidedAt\":\"2026-11-29T18:12:59Z\","
         "\"decidedBy\":\"operator:uid=0\",\"exposes\":[{\"path\":\".git\",\"what\":\"repository\"}]}"},
    [KIND_SANDBOX] =
        {"{\"workspaceRef\":\"ws-a\",\"driver\":\"bubblewrap\",\"template\":\"host\",\"memory\":\"512Mi\","
         "\"cpus\":\"1.5\","
         "\"session\":\"codexpro\"}",
         "{" CONDITIONS
         "\"driver\":\"bubblewrap\",\"template\":\"host\",\"workspaceUid\":\"ws_a\",\"workspaceRoot\":\"/w\","
         "\"runtimeName\":\"c2s-a-1\",\"attempt\":1,\"isolation\":\"namespace\",\"capabilities\":[{\"name\":"
         "\"docker\","
         "\"available\":false,\"message\":\"no\"},{\"name\":\"sudo\",\"available\":true}],\"limits\":["
         "\"memory\",\"pids\"],"
         "\"lastActivityAt\":\"2026-11-29T18:12:59.5Z\",\"expiresAt\":\"2026-11-30T18:12:59.500Z\","
         "\"startedAt\":\"2026-11-29T18:12:58Z\"}"},
    [KIND_SESSION] = {"{\"sandboxRef\":\"sbx-a\"}",
                      "{" CONDITIONS
                      "\"sandboxUid\":\"sbx_a\",\"serverName\":\"guest\",\"serverVersion\":\"0.1\","
                      "\"lastLines\":[\"a\",\"b\"]}"},
    [KIND_EXPOSURE] = {"{\"sandboxRef\":\"sbx-a\",\"port\":8080}",
                       "{" CONDITIONS
                       "\"sandboxUid\":\"sbx_a\",\"hostPort\":40000,\"hostAddress\":\"0.0.0.0\"}"},
    [KIND_APPROVAL_RULE] = {"{\"decision\":\"approved\",\"paths\":[\"/r/*\",\"/r/**/lib\"],\"modes\":[\"clone\",\"direct\"],"
                            "\"requesters\":[\"mcp:token:*\"],\"expiresAt\":\"2026-12-29T18:12:59Z\",\"maxCount\":5,\"reason\":\"mine\"}",
                            "{" CONDITIONS "\"usedCount\":2,\"lastUsedAt\":\"2026-11-29T18:12:59Z\"}"},
};

static struct record *full_record(enum kind kind)
{
    struct error err = ERROR_INIT;
    struct record *record = record_new(kind);
    CLEANUP_JSON json_t *spec = parse(full[kind].spec);
    CLEANUP_JSON json_t *status = parse(full[kind].status);
    assert_ok(record_spec_from_json(record, spec, NULL, &err));
    assert_ok(record_status_from_json(record, status, &err));
    CLEANUP_JSON json_t *meta = parse("{\"name\":\"a\",\"uid\":\"sbx_a\",\"resourceVersion\":7,"
                                      "\"generation\":3,\"createdAt\":\"2026-11-29T18:12:59.123Z\","
                                      "\"deletionAt\":\"2026-11-29T18:13:59.001Z\",\"removedAt\":\"2026-11-"
                                      "29T18:14:59Z\",\"createdBy\":\"mcp\","
                                      "\"finalizers\":[\"chat2shell.dev/"
                                      "runtime\"],\"labels\":{\"a\":\"b\"},\"annotations\":{\"x/y\":\"z\"},"
                                      "\"owners\":[{\"apiVersion\":\"chat2shell.dev/v1\",\"kind\":\"Sandbox\",\"name\":\"b\",\"uid\":\"sbx_b\"}],"
                                      "\"managedFields\":[{\"manager\":\"m\"}]}");
    assert_ok(record_meta_from_store_json(record, meta, &err));
    CLEANUP_JSON json_t *again = record_meta_to_json(record);
    assert_same(again, meta);
    return record;
}

static void every_field_of_every_kind_survives_json_struct_json(void **state)
{
    (void)state;
    for (int kind = 0; kind < KIND_COUNT; kind++) {
        CLEANUP_RECORD struct record *record = full_record((enum kind)kind);
        CLEANUP_JSON json_t *spec = record_spec_to_json(record);
        CLEANUP_JSON json_t *status = record_status_to_json(record);
        CLEANUP_JSON json_t *wanted_spec = parse(full[kind].spec);
        CLEANUP_JSON json_t *wanted_status = parse(full[kind].status);
        // the one time that is written shorter above than it is printed
        if (kind == KIND_SANDBOX)
            json_object_set_new(wanted_status, "lastActivityAt", json_string("2026-11-29T18:12:59.500Z"));
        assert_same(spec, wanted_spec);
        assert_same(status, wanted_status);
        assert_int_equal(json_object_size(spec), kind_spec_table((enum kind)kind)->count);
        assert_int_equal(json_object_size(status), kind_status_table((enum kind)kind)->count);
    }
}

static void a_copy_outlives_its_original_and_prints_the_same(void **state)
{
    (void)state;
    for (int kind = 0; kind < KIND_COUNT; kind++) {
        struct record *record = full_record((enum kind)kind);
        CLEANUP_JSON json_t *before = record_to_json(record);
        CLEANUP_RECORD struct record *copy = record_copy(record);
        assert_true(record_spec_equals(record, copy));
        record_free(record);
        CLEANUP_JSON json_t *after = record_to_json(copy);
        assert_same(after, before);
    }
}

static void the_api_object_has_kubernetes_metadata(void **state)
{
    (void)state;
    CLEANUP_RECORD struct record *record = full_record(KIND_EXPOSURE);
    CLEANUP_JSON json_t *object = record_to_json(record);
    CLEANUP_JSON json_t *wanted =
        parse("{\"name\":\"a\",\"uid\":\"sbx_a\",\"resourceVersion\":\"7\",\"generation\":3,"
              "\"creationTimestamp\":\"2026-11-29T18:12:59Z\","
              "\"deletionTimestamp\":\"2026-11-29T18:13:59Z\",\"labels\":{\"a\":\"b\"},"
              "\"annotations\":{\"x/y\":\"z\",\"chat2shell.dev/"
              "created-by\":\"mcp\",\"chat2shell.dev/removed-at\":\"2026-11-29T18:14:59Z\"},"
              "\"finalizers\":[\"chat2shell.dev/runtime\"],\"ownerReferences\":[{\"apiVersion\":\"chat2shell.dev/"
              "v1\",\"kind\":\"Sandbox\",\"name\":\"b\",\"uid\":\"sbx_b\"}],"
              "\"managedFields\":[{\"manager\":\"m\"}]}");
    assert_same(json_object_get(object, "metadata"), wanted);
    assert_string_equal(json_get_text(object, "apiVersion"), "chat2shell.dev/v1");
    assert_string_equal(json_get_text(object, "kind"), "Exposure");
}

static void a_new_record_prints_without_what_is_not_set(void **state)
{
    (void)state;
    CLEANUP_RECORD struct record *record = record_new(KIND_SANDBOX);
    CLEANUP_JSON json_t *object = record_to_json(record);
    CLEANUP_JSON json_t *wanted =
        parse("{\"apiVersion\":\"chat2shell.dev/"
              "v1\",\"kind\":\"Sandbox\",\"metadata\":{},\"spec\":{},\"status\":{}}");
    assert_same(object, wanted);
    record_free(NULL);
}

// ---- specs
// ----------------------------------------------------------------------------------------------------------
static void wrong_specs_are_refused_with_path_and_reason(void **state)
{
    (void)state;
    static const struct {
        enum kind kind;
        const char *spec, *message;
    } rows[] = {
        {KIND_WORKSPACE, "{\"path\":\"/x\"}", "spec.path: may not be specified when `mode` is 'managed'"},
        {KIND_WORKSPACE, "{\"mode\":\"clone\"}", "spec.path: must be specified when `mode` is 'clone'"},
        {KIND_WORKSPACE, "{\"mode\":\"direct\",\"path\":\"x/y\"}", "spec.path: must be an absolute path"},
        {KIND_WORKSPACE, "{\"mode\":\"direct\",\"path\":\"/x/../y\"}",
         "spec.path: must not contain '.' or '..' components"},
        {KIND_WORKSPACE, "{\"mode\":\"direct\",\"path\":\"/x/..\"}",
         "spec.path: must not contain '.' or '..' components"},
        {KIND_WORKSPACE, "{\"mode\":\"direct\",\"path\":\"/x/./y\"}",
         "spec.path: must not contain '.' or '..' components"},
        {KIND_WORKSPACE, "{\"mode\":\"direct\",\"path\":\"/x\\ny\"}",
         "spec.path: must not contain control characters"},
        {KIND_WORKSPACE, "{\"mode\":\"copy\"}",
         "spec.mode: must be one of 'managed', 'clone', 'direct', not 'copy'"},
        {KIND_APPROVAL, "{\"path\":\"/x\",\"mode\":\"managed\"}",
         "spec.mode: must be 'clone' or 'direct': a managed workspace needs no approval"},
        {KIND_APPROVAL, "{\"path\":\"/x\"}", "spec.mode: must be specified"},
        {KIND_APPROVAL, "{\"path\":\"/x\",\"mode\":\"clone\",\"decision\":\"maybe\"}",
         "spec.decision: must be one of 'approved', 'rejected', not 'maybe'"},
        {KIND_APPROVAL, "{\"path\":\"/x\",\"mode\":\"clone\",\"shownResourceVersion\":-1}",
         "spec.shownResourceVersion: must be at least 0, not -1"},
        {KIND_SANDBOX, "{}", "spec.workspaceRef: must be specified"},
        {KIND_SANDBOX, "{\"workspaceRef\":\"a\",\"memory\":\"1Mi\"}",
         "spec.memory: must be between 16Mi and 1Ti, inclusive, not 1Mi"},
        {KIND_SANDBOX, "{\"workspaceRef\":\"a\",\"cpus\":0}",
         "spec.cpus: must be between 0.05 and 256, inclusive, not 0"},
        {KIND_SANDBOX, "{\"workspaceref\":\"a\"}",
         "spec.workspaceref: unknown field 'workspaceref'; did you mean `workspaceRef`?; "
         "spec.workspaceRef: must be specified"},
        {KIND_EXPOSURE, "{\"sandboxRef\":\"a\",\"port\":0}",
         "spec.port: must be between 1 and 65535, inclusive, not 0"},
        {KIND_EXPOSURE, "{\"sandboxRef\":\"a\",\"port\":\"80\"}",
         "spec.port: must be an integer, not a string"},
        {KIND_EXPOSURE, "7", "spec: must be an object, not an integer"},
        {KIND_APPROVAL_RULE, "{\"decision\":\"approved\"}", "spec.paths: must be specified"},
        {KIND_APPROVAL_RULE, "{\"decision\":\"approved\",\"paths\":[]}", "spec.paths: must not be empty"},
        {KIND_APPROVAL_RULE, "{\"decision\":\"approved\",\"paths\":[\"/a\",\"b\"]}", "spec.paths[1]: must be an absolute path"},
        {KIND_APPROVAL_RULE, "{\"decision\":\"approved\",\"paths\":[\"/a\",\"/a\"]}", "spec.paths[1]: must not be there twice"},
        {KIND_APPROVAL_RULE, "{\"paths\":[\"/a\"]}", "spec.decision: must be specified"},
        {KIND_APPROVAL_RULE, "{\"decision\":\"approved\",\"paths\":[\"/a\"],\"modes\":[\"managed\"]}",
         "spec.modes[0]: must be one of 'clone', 'direct', not 'managed'"},
        {KIND_APPROVAL_RULE, "{\"decision\":\"approved\",\"paths\":[\"/a\"],\"modes\":[\"clone\",\"direct\",\"clone\"]}",
         "spec.modes: must have no more than 2 items"},
        {KIND_APPROVAL_RULE, "{\"decision\":\"approved\",\"paths\":[\"/a\"],\"requesters\":[\"*x\"]}", 
         "spec.requesters[0]: may have a '*' at its end only, for everybody whose name begins so"},
        {KIND_APPROVAL_RULE, "{\"decision\":\"approved\",\"paths\":[\"/a\"],\"maxCount\":0}", 
         "spec.maxCount: must be between 1 and 1000000, inclusive, not 0"},
        {KIND_APPROVAL_RULE, "{\"decision\":\"approved\",\"paths\":[\"/a\"],\"expiresAt\":\"soon\"}", 
         "spec.expiresAt: must be a time like '2026-11-29T18:12:59Z' (RFC 3339, UTC), not 'soon'"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct error err = ERROR_INIT;
        CLEANUP_RECORD struct record *record = record_new(rows[i].kind);
        CLEANUP_JSON json_t *spec = parse(rows[i].spec);
        CLEANUP_JSON json_t *causes = NULL;
        assert_error(record_spec_from_json(record, spec, &causes, &err), ERROR_INVALID);
        assert_string_equal(err.message, rows[i].message);
        assert_true(json_array_size(causes) >= 1);
    }
}

static void defaults_make_an_empty_workspace_managed(void **state)
{
    (void)state;
    struct error err = ERROR_INIT;
    CLEANUP_RECORD struct record *record = record_new(KIND_WORKSPACE);
    assert_ok(record_spec_from_json(record, NULL, NULL, &err));
    assert_int_equal(record->spec.workspace.mode, WORKSPACE_MANAGED);
}

static void an_update_may_change_a_decision_but_no_immutable_field(void **state)
{
    (void)state;
    struct error err = ERROR_INIT;
    CLEANUP_RECORD struct record *before = full_record(KIND_APPROVAL);
    CLEANUP_RECORD struct record *after = record_copy(before);
    after->spec.approval.decision = APPROVAL_REJECTED;
    assert_ok(record_check_update(before, after, &err));
    assert_false(record_spec_equals(before, after));
    after->spec.approval.mode = WORKSPACE_DIRECT;
    mem_replace(&after->spec.approval.path, "/other");
    assert_error(record_check_update(before, after, &err), ERROR_INVALID);
    assert_non_null(strstr(err.message, "spec.path: may not be changed"));
    assert_non_null(strstr(err.message, "spec.mode: may not be changed"));
}

static void stored_bytes_of_a_newer_version_are_read_and_wrong_ones_are_corrupt(void **state)
{
    (void)state;
    struct error err = ERROR_INIT;
    CLEANUP_RECORD struct record *record = record_new(KIND_EXPOSURE);
    CLEANUP_JSON json_t *newer = parse("{\"sandboxRef\":\"a\",\"port\":80,\"protocol\":\"udp\"}");
    assert_ok(record_spec_from_store_json(record, newer, &err));
    assert_int_equal(record->spec.exposure.port, 80);
    CLEANUP_JSON json_t *wrong = parse("{\"hostPort\":\"x\"}");
    assert_error(record_status_from_json(record, wrong, &err), ERROR_CORRUPT);
}

// ---- metadata
// ---------------------------------------------------------------------------------------------------------
static void metadata_that_the_server_printed_comes_back_unchanged(void **state)
{
    (void)state;
    struct error err = ERROR_INIT;
    CLEANUP_RECORD struct record *record = full_record(KIND_SANDBOX);
    CLEANUP_JSON json_t *object = record_to_json(record);
    CLEANUP_JSON json_t *meta = record_meta_to_json(record);
    assert_ok(record_meta_from_json(record, json_object_get(object, "metadata"), NULL, &err));
    CLEANUP_JSON json_t *again = record_meta_to_json(record);
    assert_same(again, meta);
}

static void metadata_replaces_labels_and_annotations_and_keeps_the_rest(void **state)
{
    (void)state;
    struct error err = ERROR_INIT;
    CLEANUP_RECORD struct record *record = full_record(KIND_SANDBOX);
    CLEANUP_JSON json_t *metadata =
        parse("{\"labels\":{\"tier\":\"web\",\"example.com/x\":\"\"},\"uid\":\"other\",\"finalizers\":[\"a.b/c\"],\"namespace\":\"x\"}");
    assert_ok(record_meta_from_json(record, metadata, NULL, &err));
    assert_string_equal(record->meta.name, "a");
    assert_string_equal(record->meta.uid, "sbx_a");
    assert_int_equal(record->meta.resource_version, 0);
    assert_int_equal(record->meta.labels.count, 2);
    assert_int_equal(record->meta.annotations.count, 0);
    assert_int_equal(record->meta.finalizers.count, 2); // the server's own stays
    assert_true(text_list_has(&record->meta.finalizers, "a.b/c"));
}

static void wrong_metadata_is_refused_and_changes_nothing(void **state)
{
    (void)state;
    static const struct {
        const char *metadata, *message;
    } rows[] = {
        {"{\"name\":\"Not_A_Name\"}", "metadata.name: must be a lower-case DNS label"},
        {"{\"name\":\"\"}", "metadata.name: must be a lower-case DNS label"},
        {"{\"name\":7}", "metadata.name: must be a string"},
        {"{\"lables\":{}}", "metadata.lables: unknown field 'lables'; did you mean `labels`?"},
        {"{\"finalizers\":\"a/b\"}", "metadata.finalizers: must be a list of strings"},
        {"{\"finalizers\":[7]}", "metadata.finalizers[0]: must be a string"},
        {"{\"finalizers\":[\"a/b\",\"orphan\"]}", "metadata.finalizers[1]: must be a name with a DNS prefix"},
        {"{\"resourceVersion\":\"-1\"}", "metadata.resourceVersion: must be a version that the server gave"},
        {"{\"resourceVersion\":7}", "metadata.resourceVersion: must be a string"},
        {"{\"labels\":[]}", "metadata.labels: must be an object of strings"},
        {"{\"labels\":{\"a b\":\"x\"}}", "metadata.labels.a b: key must be a name"},
        {"{\"labels\":{\"-a\":\"x\"}}", "metadata.labels.-a: key must be a name"},
        {"{\"labels\":{\"UPPER.com/a\":\"x\"}}", "key must be a name"},
        {"{\"labels\":{\"/a\":\"x\"}}", "key must be a name"},
        {"{\"labels\":{\"x.com/\":\"x\"}}", "key must be a name"},
        {"{\"labels\":{\"x..com/a\":\"x\"}}", "key must be a name"},
        {"{\"labels\":{\"a\":\"x y\"}}", "metadata.labels.a: must be empty or at most 63"},
        {"{\"labels\":{\"a\":1}}", "metadata.labels.a: must be a string"},
        {"{\"annotations\":{\"chat2shell.dev/created-by\":\"me\"}}",
         "metadata.annotations.chat2shell.dev/created-by: may not be changed"},
        {"[]", "metadata: must be an object"},
    };
    CLEANUP_RECORD struct record *record = full_record(KIND_SANDBOX);
    CLEANUP_JSON json_t *before = record_meta_to_json(record);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct error err = ERROR_INIT;
        CLEANUP_JSON json_t *metadata = parse(rows[i].metadata);
        CLEANUP_JSON json_t *causes = json_array();
        assert_error(record_meta_from_json(record, metadata, causes, &err), ERROR_INVALID);
        if (!strstr(err.message, rows[i].message))
            fail_msg("got '%s', wanted '%s'", err.message, rows[i].message);
        assert_int_equal(json_array_size(causes), 1);
        CLEANUP_JSON json_t *after = record_meta_to_json(record);
        assert_same(after, before);
    }
}

static void the_creator_annotation_is_never_stored(void **state)
{
    (void)state;
    struct error err = ERROR_INIT;
    CLEANUP_RECORD struct record *record = record_new(KIND_SANDBOX);
    CLEANUP_JSON json_t *metadata =
        parse("{\"annotations\":{\"chat2shell.dev/created-by\":\"me\",\"a\":\"b\"}}");
    assert_ok(record_meta_from_json(record, metadata, NULL, &err));
    assert_int_equal(record->meta.annotations.count, 1);
    assert_null(record->meta.created_by);
}

static void problems_of_metadata_and_spec_are_worded_together(void **state)
{
    (void)state;
    struct error err = ERROR_INIT;
    CLEANUP_RECORD struct record *record = record_new(KIND_EXPOSURE);
    CLEANUP_JSON json_t *metadata = parse("{\"name\":\"A\"}");
    CLEANUP_JSON json_t *spec = parse("{\"port\":0}");
    CLEANUP_JSON json_t *causes = json_array();
    CLEANUP_JSON json_t *more = NULL;
    record_meta_from_json(record, metadata, causes, NULL);
    record_spec_from_json(record, spec, &more, NULL);
    json_array_extend(causes, more);
    assert_error(fields_causes_to_error(causes, &err), ERROR_INVALID);
    assert_non_null(strstr(err.message, "metadata.name: "));
    assert_non_null(strstr(err.message, "; spec.sandboxRef: must be specified; spec.port: "));
    assert_int_equal(fields_causes_to_error(NULL, &err), 0);
}

// ---- managedFields
// -----------------------------------------------------------------------------------------------------
static json_t *fields_of(const struct record *record, const char *manager)
{
    for (size_t i = 0; i < json_array_size(record->meta.managed_fields); i++) {
        json_t *entry = json_array_get(record->meta.managed_fields, i);
        if (strcmp(json_get_text(entry, "manager"), manager) == 0)
            return json_object_get(entry, "fieldsV1");
    }
    return NULL;
}

static void a_create_owns_every_set_leaf(void **state)
{
    (void)state;
    CLEANUP_RECORD struct record *record = record_new(KIND_EXPOSURE);
    record->spec.exposure.port = 80;
    record->spec.exposure.sandbox_ref = mem_strdup("a");
    text_map_set(&record->meta.labels, "tier", "web");
    record_touch_managed(record, NULL, "kubectl", (struct wall_time){1000000000000});
    CLEANUP_JSON json_t *wanted =
        parse("[{\"manager\":\"kubectl\",\"operation\":\"Update\",\"apiVersion\":\"chat2shell.dev/"
              "v1\",\"time\":\"2001-09-09T01:46:40Z\","
              "\"fieldsType\":\"FieldsV1\",\"fieldsV1\":{\"f:metadata\":{\"f:labels\":{\"f:tier\":{}}},\"f:"
              "spec\":{\"f:port\":{},\"f:sandboxRef\":{}}}}]");
    assert_same(record->meta.managed_fields, wanted);
}

static void a_change_moves_its_fields_and_a_removal_leaves_them_to_nobody(void **state)
{
    (void)state;
    CLEANUP_RECORD struct record *first = full_record(KIND_APPROVAL);
    json_array_clear(first->meta.managed_fields);
    record_touch_managed(first, NULL, "a", (struct wall_time){1000000000000});
    CLEANUP_RECORD struct record *second = record_copy(first);
    second->spec.approval.decision = APPROVAL_REJECTED;
    mem_replace(&second->spec.approval.reason, NULL);
    text_map_set(&second->meta.annotations, "n", "v");
    record_touch_managed(second, first, "b", (struct wall_time){1000000001000});
    CLEANUP_JSON json_t *of_a =
        parse("{\"f:metadata\":{\"f:annotations\":{\"f:x/y\":{}},\"f:labels\":{\"f:a\":{}},\"f:ownerReferences\":{"
              "\"k:{\\\"uid\\\":\\\"sbx_b\\\"}\":{\".\":{},\"f:apiVersion\":{},\"f:kind\":{},\"f:name\":{},\"f:uid\":{}}}},"
              "\"f:spec\":{\"f:mode\":{},\"f:path\":{},\"f:requester\":{},\"f:shownResourceVersion\":{}}}");
    CLEANUP_JSON json_t *of_b =
        parse("{\"f:metadata\":{\"f:annotations\":{\"f:n\":{}}},\"f:spec\":{\"f:decision\":{}}}");
    assert_same(fields_of(second, "a"), of_a);
    assert_same(fields_of(second, "b"), of_b);
}

static void a_write_that_changes_nothing_leaves_managed_fields_alone(void **state)
{
    (void)state;
    CLEANUP_RECORD struct record *first = full_record(KIND_SANDBOX);
    record_touch_managed(first, NULL, "a", (struct wall_time){1000000000000});
    CLEANUP_RECORD struct record *second = record_copy(first);
    record_touch_managed(second, first, "b", (struct wall_time){1000000009000});
    assert_same(second->meta.managed_fields, first->meta.managed_fields);
}

static void managers_beyond_32_are_merged_oldest_first(void **state)
{
    (void)state;
    CLEANUP_RECORD struct record *record = record_new(KIND_WORKSPACE);
    for (int i = 0; i < 100; i++) {
        CLEANUP_RECORD struct record *before = record_copy(record);
        CLEANUP_FREE char *name = mem_format("m%d", i);
        text_map_set(&record->meta.labels, name, "x");
        record_touch_managed(record, before, name, (struct wall_time){1000000000000 + i * 1000});
    }
    assert_int_equal(json_array_size(record->meta.managed_fields), 32);
    assert_non_null(fields_of(record, "m99"));
    assert_non_null(fields_of(record, "m69"));
    assert_null(fields_of(record, "m68"));
    json_t *labels =
        json_object_get(json_object_get(fields_of(record, "ancient-changes"), "f:metadata"), "f:labels");
    assert_int_equal(json_object_size(labels), 69);
}

// ---- names, words, text
// ---------------------------------------------------------------------------------------------
static void names_are_dns_labels(void **state)
{
    (void)state;
    struct error err = ERROR_INIT;
    static const char *const right[] = {"a", "0", "a-b", "sbx-abc",
                                        "a23456789012345678901234567890123456789012345678901234567890123"};
    static const char *const wrong[] = {
        "",    "-a",  "a-",  "A", "a.b",
        "a_b", "a b", "a/b", "ä", "a234567890123456789012345678901234567890123456789012345678901234"};
    for (size_t i = 0; i < ARRAY_LEN(right); i++)
        assert_ok(record_check_name(right[i], &err));
    for (size_t i = 0; i < ARRAY_LEN(wrong); i++)
        assert_error(record_check_name(wrong[i], &err), ERROR_INVALID);
}

static void a_kind_is_found_by_any_of_its_words(void **state)
{
    (void)state;
    static const char *const words[] = {"Sandbox", "sandbox", "SANDBOXES", "sbx"};
    for (size_t i = 0; i < ARRAY_LEN(words); i++)
        assert_int_equal(kind_find(words[i])->kind, KIND_SANDBOX);
    assert_null(kind_find("pods"));
    assert_null(kind_find(""));
    for (int kind = 0; kind < KIND_COUNT; kind++) {
        assert_int_equal(kind_info((enum kind)kind)->kind, kind);
        assert_ptr_equal(kind_find(kind_info((enum kind)kind)->short_name), kind_info((enum kind)kind));
    }
    assert_false(kind_info(KIND_SESSION)->is_user_creatable);
}

static void text_lists_hold_each_text_once(void **state)
{
    (void)state;
    struct text_list list = {0};
    text_list_add(&list, "a");
    text_list_add(&list, "b");
    text_list_add(&list, "a");
    assert_int_equal(list.count, 2);
    text_list_remove(&list, "a");
    text_list_remove(&list, "zz");
    assert_false(text_list_has(&list, "a"));
    assert_true(text_list_has(&list, "b"));
    text_list_clear(&list);
    assert_int_equal(list.count, 0);
}

static void text_maps_stay_sorted_and_replace_values(void **state)
{
    (void)state;
    CLEANUP_RECORD struct record *record = record_new(KIND_WORKSPACE);
    struct text_map *map = &record->meta.labels;
    static const char *const keys[] = {"m", "a", "z", "b", "a"};
    for (size_t i = 0; i < ARRAY_LEN(keys); i++)
        text_map_set(map, keys[i], i == 4 ? "again" : "x");
    assert_int_equal(map->count, 4);
    for (size_t i = 1; i < map->count; i++)
        assert_true(strcmp(map->items[i - 1].key, map->items[i].key) < 0);
    assert_string_equal(text_map_get(map, "a"), "again");
    assert_null(text_map_get(map, "c"));
    text_map_set(map, "a", NULL);
    text_map_set(map, "c", NULL);
    assert_int_equal(map->count, 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_field_of_every_kind_survives_json_struct_json),
        cmocka_unit_test(a_copy_outlives_its_original_and_prints_the_same),
        cmocka_unit_test(the_api_object_has_kubernetes_metadata),
        cmocka_unit_test(a_new_record_prints_without_what_is_not_set),
        cmocka_unit_test(wrong_specs_are_refused_with_path_and_reason),
        cmocka_unit_test(defaults_make_an_empty_workspace_managed),
        cmocka_unit_test(an_update_may_change_a_decision_but_no_immutable_field),
        cmocka_unit_test(stored_bytes_of_a_newer_version_are_read_and_wrong_ones_are_corrupt),
        cmocka_unit_test(metadata_that_the_server_printed_comes_back_unchanged),
        cmocka_unit_test(metadata_replaces_labels_and_annotations_and_keeps_the_rest),
        cmocka_unit_test(wrong_metadata_is_refused_and_changes_nothing),
        cmocka_unit_test(the_creator_annotation_is_never_stored),
        cmocka_unit_test(problems_of_metadata_and_spec_are_worded_together),
        cmocka_unit_test(a_create_owns_every_set_leaf),
        cmocka_unit_test(a_change_moves_its_fields_and_a_removal_leaves_them_to_nobody),
        cmocka_unit_test(a_write_that_changes_nothing_leaves_managed_fields_alone),
        cmocka_unit_test(managers_beyond_32_are_merged_oldest_first),
        cmocka_unit_test(names_are_dns_labels),
        cmocka_unit_test(a_kind_is_found_by_any_of_its_words),
        cmocka_unit_test(text_lists_hold_each_text_once),
        cmocka_unit_test(text_maps_stay_sorted_and_replace_values),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
