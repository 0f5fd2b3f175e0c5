// The tools over real sockets and the real store. Requests and lanes are scripted here, so that every moment
// of a sandbox's life can be held still: the reconcilers' part is played by the tests.
#include "api/mcp/mcp.h"
#include "api/tools/schema_check.h"
#include "api/tools/tools.h"
#include "controller/base/memory.h"
#include "controller/embedded.h"
#include "reconcilers/session/journal.h"
#include "tests/support/http_client.h"
#include "tests/support/support.h"
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SOON_MS SUPPORT_PATIENCE_MS
#define ACTOR (&(struct store_actor){.principal = "mcp", .manager = "test"})

static struct {
    char *dir;
    struct clock *clock;
    struct loop *loop;
    struct store *store;
    struct config config;
    struct world world;
    struct journals *journals;
    struct mcp_server *server;
    int port;
    // the script
    enum sandbox_outcome outcome;
    struct error refusal; // of requests and lanes; code 0 = none
    bool holds;           // lane calls are kept until released
    _Atomic int kept_count, cancelled;
    json_t *answer, *sent;
    json_t *unsaved;
} f;

// ---- scripted requests ------------------------------------------------------------------------------------
struct asked {
    sandbox_request_fn sandbox_done;
    record_request_fn record_done;
    void *arg;
    struct record *record;
    char *uid, *path;
    int64_t port;
};

static int make_sandbox(struct store_tx *tx, struct asked *asked, struct error *err)
{
    CLEANUP_RECORD struct record *workspace = record_new(KIND_WORKSPACE);
    workspace->status.workspace.root = mem_strdup("/w/root");
    if (tx_create(tx, ACTOR, workspace, err) < 0)
        return -1;
    asked->record = record_new(KIND_SANDBOX);
    asked->record->spec.sandbox.workspace_ref = mem_strdup(workspace->meta.name);
    asked->record->status.sandbox.workspace_uid = mem_strdup(workspace->meta.uid);
    text_list_add(&asked->record->meta.finalizers, FINALIZER_RUNTIME);
    return tx_create(tx, ACTOR, asked->record, err);
}

static int make_approval(struct store_tx *tx, struct asked *asked, struct error *err)
{
    asked->record = record_new(KIND_APPROVAL);
    asked->record->spec.approval.path = mem_strdup(asked->path);
    asked->record->spec.approval.mode = WORKSPACE_DIRECT;
    asked->record->spec.approval.requester = mem_strdup("mcp");
    asked->record->meta.generation = 1; // the rules have been asked
    record_set_condition(asked->record, "Decided", CONDITION_FALSE, tx_now(tx), "Waiting", "waits");
    return tx_create(tx, ACTOR, asked->record, err);
}

static int run_sandbox_request(struct store_tx *tx, void *arg, struct error *err)
{
    if (f.refusal.code)
        return error_copy(err, &f.refusal);
    return f.outcome == SANDBOX_NEEDS_APPROVAL ? make_approval(tx, arg, err) : make_sandbox(tx, arg, err);
}

static void free_asked(struct asked *asked)
{
    free(asked->uid);
    free(asked->path);
    free(asked);
}

static void sandbox_committed(void *arg, int result, const struct error *err)
{
    struct asked *asked = arg;
    if (result < 0)
        record_free(TAKE_PTR(asked->record));
    asked->sandbox_done(asked->arg, result, f.outcome, asked->record, err);
    free_asked(asked);
}

void request_sandbox(struct world *world, const struct sandbox_request *request, sandbox_request_fn done,
                     void *arg)
{
    struct asked *asked = mem_alloc(sizeof(*asked));
    *asked =
        (struct asked){.sandbox_done = done, .arg = arg, .path = mem_strdup_or_null(request->workspace_path)};
    assert_string_equal(request->principal, "mcp");
    store_submit(world->store, run_sandbox_request, sandbox_committed, asked);
}

static int run_destroy(struct store_tx *tx, void *arg, struct error *err)
{
    struct asked *asked = arg;
    return tx_delete(tx, ACTOR, KIND_SANDBOX, asked->uid, err) < 0
               ? -1
               : tx_get_uid(tx, KIND_SANDBOX, asked->uid, &asked->record, err);
}

static void record_committed(void *arg, int result, const struct error *err)
{
    struct asked *asked = arg;
    asked->record_done(asked->arg, result, asked->record, result == 0 ? json_incref(f.unsaved) : NULL, err);
    free_asked(asked);
}

void request_destroy(struct world *world, const char *principal, const char *uid, record_request_fn done,
                     void *arg)
{
    (void)principal;
    struct asked *asked = mem_alloc(sizeof(*asked));
    *asked = (struct asked){.record_done = done, .arg = arg, .uid = mem_strdup(uid)};
    store_submit(world->store, run_destroy, record_committed, asked);
}

static int run_expose(struct store_tx *tx, void *arg, struct error *err)
{
    struct asked *asked = arg;
    if (f.refusal.code)
        return error_copy(err, &f.refusal);
    struct record *record = record_new(KIND_EXPOSURE);
    record->spec.exposure.sandbox_ref = mem_strdup("sbx");
    record->spec.exposure.port = asked->port;
    record->status.exposure.sandbox_uid = mem_strdup(asked->uid);
    if (tx_create(tx, ACTOR, record, err) < 0) {
        record_free(record);
        return -1;
    }
    asked->record = record;
    return 0;
}

void request_expose(struct world *world, const char *principal, const char *uid, int64_t port,
                    record_request_fn done, void *arg)
{
    (void)principal;
    struct asked *asked = mem_alloc(sizeof(*asked));
    *asked = (struct asked){.record_done = done, .arg = arg, .uid = mem_strdup(uid), .port = port};
    store_submit(world->store, run_expose, record_committed, asked);
}

// ---- scripted lanes ---------------------------------------------------------------------------------------
struct lane_call {
    lane_answer_fn done;
    void *arg;
    struct lane_call *next;
};
static struct lane_call *kept; // loop thread

static struct lane_call *answer_lane(lane_answer_fn done, void *arg, json_t *sent)
{
    assert_true(loop_is_current(f.loop));
    json_decref(f.sent);
    f.sent = sent;
    if (f.holds) {
        struct lane_call *call = mem_alloc(sizeof(*call));
        *call = (struct lane_call){.done = done, .arg = arg, .next = kept};
        kept = call;
        f.kept_count++;
        return call;
    }
    done(arg, f.refusal.code ? -1 : 0, f.refusal.code ? NULL : f.answer, f.refusal.code ? &f.refusal : NULL);
    return NULL;
}

static void release_lanes(void *arg)
{
    (void)arg;
    while (kept) {
        struct lane_call *call = kept;
        kept = call->next;
        call->done(call->arg, 0, f.answer, NULL);
        free(call);
        f.kept_count--;
    }
}

bool lane_call_cancel(struct lane_call *call)
{
    for (struct lane_call **at = &kept; *at; at = &(*at)->next) {
        if (*at != call)
            continue;
        *at = call->next;
        free(call);
        f.kept_count--;
        f.cancelled++;
        return true;
    }
    return false;
}

bool lane_call_stop(struct lane_call *call)
{
    return lane_call_cancel(call);
}

void lane_call_look(const struct lane_call *call, struct lane_look *ret)
{
    (void)call;
    *ret = (struct lane_look){.stage = LANE_STAGE_RUNNING};
}

void lane_call_watch(struct lane_call *call, lane_news_fn news)
{
    (void)call;
    (void)news;
}

void lane_call_set_asker(struct lane_call *call, uint64_t asker)
{
    (void)call;
    (void)asker;
}

struct journals *lanes_journals(struct lanes *lanes)
{
    (void)lanes;
    return f.journals;
}

struct lane_call *lane_call_tool(struct lanes *lanes, const char *uid, const char *tool, json_t *arguments,
                                 lane_answer_fn done, void *arg)
{
    (void)lanes;
    return answer_lane(done, arg,
                       json_pack("{s:s, s:s, s:o}", "uid", uid, "tool", tool, "arguments", arguments));
}

struct lane_call *lane_call_waiting_tool(struct lanes *lanes, const char *uid, const char *tool, json_t *arguments, int64_t wait_ms,
                                         lane_answer_fn done, void *arg)
{
    (void)lanes;
    return answer_lane(done, arg,
                       json_pack("{s:s, s:s, s:o, s:I}", "uid", uid, "tool", tool, "arguments", arguments, "wait", (json_int_t)wait_ms));
}

struct lane_call *lane_bash(struct lanes *lanes, const char *uid, const char *command, const char *cwd,
                            int64_t yield_time_ms, int64_t timeout_ms, lane_answer_fn done, void *arg)
{
    (void)lanes;
    return answer_lane(done, arg,
                       json_pack("{s:s, s:s, s:s*, s:I, s:I}", "uid", uid, "command", command, "cwd", cwd,
                                 "yield", (json_int_t)yield_time_ms, "timeout", (json_int_t)timeout_ms));
}

struct lane_call *lane_bash_poll(struct lanes *lanes, const char *uid, const char *session_id,
                                 int64_t yield_time_ms, lane_answer_fn done, void *arg)
{
    (void)lanes;
    return answer_lane(
        done, arg,
        json_pack("{s:s, s:s, s:I}", "uid", uid, "session", session_id, "yield", (json_int_t)yield_time_ms));
}

struct lane_call *lane_bash_stop(struct lanes *lanes, const char *uid, const char *session_id,
                                 lane_answer_fn done, void *arg)
{
    (void)lanes;
    return answer_lane(done, arg, json_pack("{s:s, s:s}", "uid", uid, "session", session_id));
}

// ---- fixture ----------------------------------------------------------------------------------------------
static int set_up(void **state)
{
    (void)state;
    struct error err = ERROR_INIT;
    memset(&f, 0, sizeof(f));
    f.dir = support_make_dir();
    f.clock = clock_new_fake((struct wall_time){1790000000000});
    assert_ok(loop_start(f.clock, &f.loop, &err));
    assert_ok(store_open(
        &(struct store_options){
            .state_dir = f.dir, .clock = f.clock, .disk_floor_bytes = 1, .reserve_bytes = 4096},
        &f.store, &err));
    f.config = (struct config){.host = "127.0.0.1"};
    f.journals = journals_new(f.loop);
    f.world = (struct world){.config = &f.config, .clock = f.clock, .loop = f.loop, .store = f.store};
    assert_ok(mcp_server_start(&f.world, &f.server, &err));
    f.port = mcp_server_port(f.server);
    return 0;
}

static void free_journals(void *arg)
{
    (void)arg;
    journals_free(f.journals);
}

static int tear_down(void **state)
{
    (void)state;
    mcp_server_stop(f.server);
    store_close(f.store);
    loop_call(f.loop, free_journals, NULL);
    loop_stop(f.loop);
    clock_free(f.clock);
    support_remove_dir(f.dir);
    json_decref(f.answer);
    json_decref(f.sent);
    json_decref(f.unsaved);
    return 0;
}

static char *call_text(const char *tool, const char *arguments)
{
    return mem_format(
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":\"%s\"%s%s}}", tool,
        arguments ? ",\"arguments\":" : "", arguments ? arguments : "");
}

static int start_call(const char *tool, const char *arguments)
{
    char *body = call_text(tool, arguments), *text = http_client_post_text("/mcp", "", body);
    int fd = http_client_connect(f.port);
    http_client_send_text(fd, text);
    free(body);
    free(text);
    return fd;
}

static json_t *end_call(int fd)
{
    struct http_answer answer;
    http_client_read(fd, &answer, SOON_MS);
    assert_int_equal(answer.status, 200);
    json_t *message = http_answer_json(&answer), *result = json_incref(json_object_get(message, "result"));
    if (!result)
        fail_msg("no result: %s", answer.body);
    json_decref(message);
    http_answer_clear(&answer);
    close(fd);
    return result;
}

static json_t *call(const char *tool, const char *arguments)
{
    return end_call(start_call(tool, arguments));
}

// Nothing may be taken out of the daemon's own results, so they are compared with what is left of them.
static void check_output(const char *tool, const json_t *structured)
{
    struct error err = ERROR_INIT;
    char *name = mem_format("tools/%s.json", tool);
    const struct embedded_file *file = embedded_find(name);
    json_t *entry = NULL;
    assert_ok(json_parse(file->data, file->size, &entry, &err));
    json_t *copy = json_deep_copy(structured);
    assert_ok(schema_check(json_object_get(entry, "outputSchema"), copy, SCHEMA_RESULT, &err));
    assert_true(json_equal(copy, structured));
    json_decref(copy);
    json_decref(entry);
    free(name);
}

// The structured content of a success, checked against the catalogue and against its text copy.
static json_t *take_structured(const char *tool, json_t *result)
{
    struct error err = ERROR_INIT;
    const char *text =
        json_string_value(json_object_get(json_array_get(json_object_get(result, "content"), 0), "text"));
    if (json_is_true(json_object_get(result, "isError")))
        fail_msg("%s failed: %s", tool, text);
    json_t *structured = json_incref(json_object_get(result, "structuredContent")), *copy = NULL;
    check_output(tool, structured);
    assert_ok(json_parse(text, strlen(text), &copy, &err));
    assert_true(json_equal(structured, copy));
    json_decref(copy);
    json_decref(result);
    return structured;
}

static void assert_fails(json_t *result, const char *part)
{
    const char *text =
        json_string_value(json_object_get(json_array_get(json_object_get(result, "content"), 0), "text"));
    assert_true(json_is_true(json_object_get(result, "isError")));
    assert_null(json_object_get(result, "structuredContent"));
    if (!text || !strstr(text, part))
        fail_msg("\"%s\" is not in: %s", part, text);
    json_decref(result);
}

static struct record *only_record(enum kind kind)
{
    struct error err = ERROR_INIT;
    for (int i = 0; i < SOON_MS / 5; i++) {
        struct record_list list = {0};
        assert_ok(store_list(f.store, kind, &list, NULL, &err));
        struct record *record = list.count ? record_copy(list.items[list.count - 1]) : NULL;
        record_list_free(&list);
        if (record)
            return record;
        usleep(5000);
    }
    fail_msg("no record appeared");
    return NULL;
}

static void set_condition(enum kind kind, const char *type, enum condition_status status, const char *message)
{
    struct error err = ERROR_INIT;
    CLEANUP_RECORD struct record *record = only_record(kind);
    record_set_condition(record, type, status, clock_wall(f.clock), "Test", "%s", message);
    if (kind == KIND_EXPOSURE)
        record->status.exposure.host_port = 40001;
    assert_ok(store_write_status(f.store, record, &err));
}

static void wait_for_waits(int count)
{
    for (int i = 0; i < SOON_MS / 5; i++) {
        usleep(5000);
        if (f.kept_count == count)
            return;
    }
    fail_msg("the lane holds %d calls, not %d", f.kept_count, count);
}

static char *make_running(void)
{
    int fd = start_call("sandbox_create", NULL);
    set_condition(KIND_SANDBOX, "Ready", CONDITION_TRUE, "ok");
    json_t *structured = take_structured("sandbox_create", end_call(fd));
    char *uid = mem_strdup(json_string_value(json_object_get(json_object_get(structured, "sandbox"), "id")));
    json_decref(structured);
    return uid;
}

static char *with_id(const char *uid, const char *more)
{
    return mem_format("{\"sandbox_id\":\"%s\"%s%s}", uid, *more ? "," : "", more);
}

static json_t *call_in(const char *tool, const char *uid, const char *more)
{
    char *arguments = with_id(uid, more);
    json_t *result = call(tool, arguments);
    free(arguments);
    return result;
}

static const char *text_at(const json_t *object, const char *key)
{
    return json_string_value(json_object_get(object, key));
}

// ---- sandbox_create ---------------------------------------------------------------------------------------
static void create_answers_when_the_sandbox_runs(void **state)
{
    (void)state;
    int fd = start_call("sandbox_create", "{}");
    set_condition(KIND_SANDBOX, "RuntimeCreated", CONDITION_TRUE, "half way");
    assert_false(http_client_is_closed(fd, 50));
    set_condition(KIND_SANDBOX, "Ready", CONDITION_TRUE, "ok");
    json_t *structured = take_structured("sandbox_create", end_call(fd));
    assert_string_equal(text_at(structured, "status"), "created");
    assert_string_equal(text_at(json_object_get(structured, "sandbox"), "status"), "running");
    json_decref(structured);
}

static void create_says_creating_after_50_seconds_and_not_before(void **state)
{
    (void)state;
    int fd = start_call("sandbox_create", NULL);
    record_free(only_record(KIND_SANDBOX));
    usleep(50000);
    clock_advance(f.clock, 49000);
    assert_false(http_client_is_closed(fd, 100));
    clock_advance(f.clock, 2000);
    json_t *structured = take_structured("sandbox_create", end_call(fd));
    assert_string_equal(text_at(structured, "status"), "creating");
    assert_true(json_array_size(json_object_get(structured, "notes")) > 0);
    json_decref(structured);
    set_condition(KIND_SANDBOX, "Ready", CONDITION_TRUE, "ok"); // the work goes on
    CLEANUP_RECORD struct record *sandbox = only_record(KIND_SANDBOX);
    json_t *got = take_structured("sandbox_get", call_in("sandbox_get", sandbox->meta.uid, ""));
    assert_string_equal(text_at(got, "status"), "running");
    json_decref(got);
}

static void create_tells_reused_failed_and_refused_apart(void **state)
{
    (void)state;
    f.outcome = SANDBOX_REUSED;
    int fd = start_call("sandbox_create", "{\"workspace_id\":\"ws_x\"}");
    set_condition(KIND_SANDBOX, "Ready", CONDITION_TRUE, "ok");
    json_t *structured = take_structured("sandbox_create", end_call(fd));
    assert_string_equal(text_at(structured, "status"), "reused");
    json_decref(structured);
    error_set(&f.refusal, ERROR_REFUSED, "ask for another", "%s", PATH_REFUSED_MESSAGE);
    assert_fails(call("sandbox_create", "{\"workspace_path\":\"/etc\"}"),
                 PATH_REFUSED_MESSAGE ". Ask for another.");
    assert_fails(call("sandbox_create", "{\"workspace_path\":\"/etc\",\"workspace_id\":\"ws_x\"}"),
                 "exclude each other");
}

static void a_create_that_fails_says_why_and_what_to_do(void **state)
{
    (void)state;
    int fd = start_call("sandbox_create", NULL);
    set_condition(KIND_SANDBOX, "Failed", CONDITION_TRUE, "no user namespaces");
    json_t *result = end_call(fd);
    json_incref(result);
    assert_fails(result, "no user namespaces");
    assert_fails(result, "sandbox_destroy");
}

static void a_host_path_comes_back_as_approval_required(void **state)
{
    (void)state;
    f.outcome = SANDBOX_NEEDS_APPROVAL;
    json_t *structured = take_structured(
        "sandbox_create",
        call("sandbox_create",
             "{\"workspace_path\":\"/home/u/repositories/x\",\"workspace_mode\":\"direct\"}"));
    assert_string_equal(text_at(structured, "status"), "approval_required");
    assert_string_equal(text_at(json_object_get(structured, "approval"), "status"), "pending");
    assert_null(json_object_get(structured, "sandbox"));
    assert_non_null(strstr(json_string_value(json_array_get(json_object_get(structured, "notes"), 0)),
                           "approval approve"));
    json_decref(structured);
}

static void capabilities_that_lack_are_told(void **state)
{
    (void)state;
    struct error err = ERROR_INIT;
    int fd = start_call("sandbox_create", NULL);
    CLEANUP_RECORD struct record *sandbox = only_record(KIND_SANDBOX);
    struct capability_list *list = &sandbox->status.sandbox.capabilities;
    list->items = mem_alloc(sizeof(list->items[0]));
    list->count = 1;
    list->items[0] =
        (struct capability){.name = mem_strdup("packages"),
                            .message = mem_strdup("packages cannot be installed on the host template")};
    record_set_condition(sandbox, "Ready", CONDITION_TRUE, clock_wall(f.clock), "Test", "ok");
    assert_ok(store_write_status(f.store, sandbox, &err));
    json_t *structured = take_structured("sandbox_create", end_call(fd));
    assert_true(json_is_false(json_object_get(json_object_get(structured, "capabilities"), "packages")));
    assert_non_null(strstr(json_string_value(json_array_get(json_object_get(structured, "notes"), 0)),
                           "cannot be installed"));
    json_decref(structured);
}

static void a_caller_that_hangs_up_ends_its_wait_and_not_the_work(void **state)
{
    (void)state;
    close(start_call("sandbox_create", NULL));
    CLEANUP_RECORD struct record *sandbox = only_record(KIND_SANDBOX);
    set_condition(KIND_SANDBOX, "Ready", CONDITION_TRUE, "ok");
    json_t *got = take_structured("sandbox_get", call_in("sandbox_get", sandbox->meta.uid, ""));
    assert_string_equal(text_at(got, "status"), "running");
    json_decref(got);
}

static void stop_answers_callers_that_wait_for_a_sandbox(void **state)
{
    (void)state;
    int fd = start_call("sandbox_create", NULL);
    record_free(only_record(KIND_SANDBOX));
    mcp_server_stop(f.server);
    f.server = NULL;
    struct http_answer answer;
    http_client_read(fd, &answer, SOON_MS);
    assert_int_equal(answer.status, 503);
    http_answer_clear(&answer);
    close(fd);
}

// ---- the others -------------------------------------------------------------------------------------------
static void lists_conform_and_skip_what_is_destroyed(void **state)
{
    (void)state;
    struct error err = ERROR_INIT;
    char *uid = make_running();
    json_t *list = take_structured("sandbox_list", call("sandbox_list", NULL));
    assert_int_equal(json_array_size(json_object_get(list, "sandboxes")), 1);
    json_decref(list);
    list = take_structured("workspace_list", call("workspace_list", "{}"));
    assert_int_equal(json_array_size(json_object_get(list, "workspaces")), 1);
    json_decref(list);
    int fd = start_call("sandbox_destroy", NULL);
    assert_fails(end_call(fd), "sandbox_id is required");
    char *arguments = with_id(uid, "");
    f.unsaved = json_pack("{s:b, s:i, s:i}", "is_repository", 1, "changed_files", 2, "unexported_commits", 1);
    fd = start_call("sandbox_destroy", arguments);
    for (;;) { // the reconciler's part: the runtime is gone once deletion was asked for
        CLEANUP_RECORD struct record *sandbox = only_record(KIND_SANDBOX);
        if (!sandbox->meta.deletion_at.ms) {
            usleep(5000);
            continue;
        }
        text_list_clear(&sandbox->meta.finalizers);
        assert_ok(store_write_meta(f.store, ACTOR, sandbox, &err));
        break;
    }
    json_t *destroyed = take_structured("sandbox_destroy", end_call(fd));
    assert_string_equal(text_at(destroyed, "status"), "destroyed");
    assert_non_null(strstr(json_string_value(json_array_get(json_object_get(destroyed, "notes"), 0)),
                           "2 changed files, 1 commits"));
    json_decref(destroyed);
    list = take_structured("sandbox_list", call("sandbox_list", NULL));
    assert_int_equal(json_array_size(json_object_get(list, "sandboxes")), 0);
    json_decref(list);
    json_t *got = take_structured("sandbox_get", call("sandbox_get", arguments)); // its tombstone
    assert_string_equal(text_at(got, "status"), "destroyed");
    json_decref(got);
    json_decref(take_structured("sandbox_destroy", call("sandbox_destroy", arguments))); // again the same
    free(arguments);
    free(uid);
}

static int make_many_in_tx(struct store_tx *tx, void *arg, struct error *err)
{
    for (size_t i = 0; i < *(const size_t *)arg; i++) {
        CLEANUP_RECORD struct record *workspace = record_new(KIND_WORKSPACE);
        record_set_condition(workspace, CONDITION_RETAINED, CONDITION_TRUE, tx_now(tx), "NoSandbox", "kept");
        if (tx_create(tx, ACTOR, workspace, err) < 0)
            return -1;
    }
    return 0;
}

static void a_list_of_very_many_tells_of_those_in_use_and_how_many_are_left_out(void **state)
{
    (void)state;
    struct error err = ERROR_INIT;
    free(make_running()); // its workspace is the oldest
    CLEANUP_RECORD struct record *in_use = only_record(KIND_WORKSPACE);
    size_t more = 1007;
    assert_ok(store_transact(f.store, make_many_in_tx, &more, &err));
    json_t *result = call("workspace_list", NULL);
    const json_t *texts = json_object_get(result, "content");
    assert_int_equal(json_integer_value(json_object_get(json_object_get(result, "_meta"), "dev.chat2shell/leftOut")), 8);
    assert_int_equal(json_array_size(texts), 2);
    assert_non_null(strstr(text_at(json_array_get(texts, 1), "text"), "8 more are left out"));
    json_t *list = take_structured("workspace_list", result);
    const json_t *workspaces = json_object_get(list, "workspaces");
    assert_int_equal(json_array_size(workspaces), 1000);
    assert_string_equal(text_at(json_array_get(workspaces, 0), "id"), in_use->meta.uid);
    json_decref(list);
}

static void expose_waits_for_the_mapping(void **state)
{
    (void)state;
    char *uid = make_running(), *arguments = with_id(uid, "\"port\":8080");
    int fd = start_call("sandbox_expose", arguments);
    set_condition(KIND_EXPOSURE, "Published", CONDITION_TRUE, "ok");
    json_t *structured = take_structured("sandbox_expose", end_call(fd));
    assert_int_equal(json_integer_value(json_object_get(structured, "hostPort")), 40001);
    assert_int_equal(json_integer_value(json_object_get(structured, "sandboxPort")), 8080);
    assert_string_equal(text_at(structured, "sandboxId"), uid);
    json_decref(structured);
    static const char *const bad[] = {"\"port\":0",    "\"port\":65536",      "\"port\":\"80\"",
                                      "\"port\":80.5", "\"port\":80,\"x\":1", "\"port\":null"};
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        assert_fails(call_in("sandbox_expose", uid, bad[i]), i == 4 ? "unknown argument x" : "port must be");
    free(arguments);
    free(uid);
}

static void an_exposure_that_takes_too_long_says_to_repeat(void **state)
{
    (void)state;
    char *uid = make_running(), *arguments = with_id(uid, "\"port\":8080");
    int fd = start_call("sandbox_expose", arguments);
    set_condition(KIND_EXPOSURE, "Published", CONDITION_FALSE, "no port is free");
    usleep(50000);
    clock_advance(f.clock, 21000);
    assert_fails(end_call(fd), "no port is free");
    free(arguments);
    free(uid);
}

static void forwarded_calls_pass_their_arguments_and_results(void **state)
{
    (void)state;
    char *uid = make_running();
    f.answer = json_pack(
        "{s:[{s:s, s:s}], s:{s:s, s:s, s:s, s:s, s:s, s:s, s:i, s:i, s:i, s:i, s:s, s:b}, s:{}, s:s}",
        "content", "type", "text", "text", "Read \xE2\x80\xA8 it", "structuredContent", "codexpro_tool",
        "read", "codexpro_title", "Read", "workspace_id", "ws_1", "root", "/w", "path", "a", "text",
        "1 | \xE2\x80\xA8", "startLine", 1, "endLine", 1, "totalLines", 1, "bytes", 3, "sha256",
        "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef", "truncated", 0, "_meta", "evil", "x");
    json_t *result = call_in("read", uid, "\"path\":\"a\",\"start_line\":1");
    check_output("read", json_object_get(result, "structuredContent"));
    assert_null(json_object_get(result, "evil"));
    json_decref(result);
    json_t *expected = json_pack("{s:s, s:s, s:{s:s, s:i}}", "uid", uid, "tool", "read", "arguments", "path",
                                 "a", "start_line", 1);
    assert_true(json_equal(f.sent, expected));
    json_decref(expected);
    assert_fails(call_in("read", uid, "\"path\":\"a\",\"workspace_id\":\"ws_1\""),
                 "workspace_id is internal");
    assert_fails(call_in("read", uid, "\"path\":5"), "path must be a string");
    assert_fails(call_in("read", uid, "\"path\":\"\""), "path must not be empty");
    assert_fails(call_in("read", uid, ""), "path is required");
    assert_fails(call("read", "{\"path\":\"a\"}"), "sandbox_id is required");
    assert_fails(call("read", "{\"path\":\"a\",\"sandbox_id\":\"\"}"), "sandbox_id must not be empty");
    assert_fails(call("read", "{\"path\":\"a\",\"sandbox_id\":\"sbx_nope\"}"), "Unknown sandbox: sbx_nope");
    assert_fails(call("read", "null"), "is required");
    free(uid);
}

static void line_separators_leave_as_escapes(void **state)
{
    (void)state;
    char *uid = make_running(), *arguments = with_id(uid, "");
    f.answer = json_pack("{s:[{s:s, s:s}], s:b}", "content", "type", "text", "text", "\xE2\x80\xA8\xE2\x80\xA9",
                         "isError", 1);
    struct http_answer answer;
    char *body = call_text("tree", arguments);
    http_client_post(f.port, "/mcp", "", body, &answer);
    assert_non_null(strcasestr(answer.body, "\\u2028\\u2029"));
    http_answer_clear(&answer);
    free(body);
    free(arguments);
    free(uid);
}

static void senseless_answers_of_the_tool_server_do_not_pass(void **state)
{
    (void)state;
    char *uid = make_running();
    static const char *const bad[] = {"{}",
                                      "[]",
                                      "5",
                                      "{\"content\":5,\"structuredContent\":{}}",
                                      "{\"content\":[5],\"structuredContent\":{}}",
                                      "{\"content\":[],\"structuredContent\":{\"text\":5}}",
                                      "{\"content\":[],\"structuredContent\":[]}",
                                      "{\"content\":[]}"};
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        f.answer = json_loads(bad[i], JSON_DECODE_ANY, NULL);
        assert_fails(call_in("tree", uid, ""), "with something that is no result of it");
        json_decref(f.answer);
    }
    f.answer = json_loads("{\"content\":[{\"type\":\"text\",\"text\":\"Error: ENOENT\"}],\"isError\":true}",
                          0, NULL);
    assert_fails(call_in("tree", uid, ""), "ENOENT");
    free(uid);
}

static void a_lane_that_refuses_is_worded_by_the_sandboxs_state(void **state)
{
    (void)state;
    int fd = start_call("sandbox_create", NULL);
    CLEANUP_RECORD struct record *sandbox = only_record(KIND_SANDBOX);
    const char *uid = sandbox->meta.uid;
    error_set(&f.refusal, ERROR_NOT_FOUND, NULL, "no lane");
    assert_fails(call_in("tree", uid, ""), "still being created");
    set_condition(KIND_SANDBOX, "Ready", CONDITION_TRUE, "ok");
    json_decref(end_call(fd));
    assert_fails(call_in("tree", uid, ""), "no lane");
    set_condition(KIND_SANDBOX, "Failed", CONDITION_TRUE, "its tool server ended");
    assert_fails(call_in("tree", uid, ""), "its tool server ended");
    error_set(&f.refusal, ERROR_LIMIT, "wait", "64 calls wait already");
    assert_fails(call_in("bash", uid, "\"command\":\"x\""), "64 calls wait already. Wait.");
    error_set(&f.refusal, ERROR_IO, NULL, "/secret/path/on/the/host: Input/output error");
    json_t *result = json_incref(call_in("tree", uid, ""));
    char *shown = json_dumps(result, 0);
    assert_null(strstr(shown, "secret"));
    free(shown);
    json_decref(result);
    json_decref(result);
    f.refusal = (struct error)ERROR_INIT;
}

static void bash_has_its_defaults_and_checks(void **state)
{
    (void)state;
    char *uid = make_running();
    f.answer = json_pack("{s:s, s:s, s:n, s:s, s:b}", "session_id", "bash_1", "status", "running",
                         "exit_code", "output", "x", "has_more_output", 0);
    json_decref(take_structured("bash", call_in("bash", uid, "\"command\":\"sleep 1\"")));
    assert_int_equal(json_integer_value(json_object_get(f.sent, "yield")), 10000);
    assert_int_equal(json_integer_value(json_object_get(f.sent, "timeout")), 0);
    json_decref(take_structured("bash_poll",
                                call_in("bash_poll", uid, "\"session_id\":\"bash_1\",\"yield_time_ms\":0")));
    assert_int_equal(json_integer_value(json_object_get(f.sent, "yield")), 0);
    json_decref(take_structured("bash_stop", call_in("bash_stop", uid, "\"session_id\":\"bash_1\"")));
    assert_fails(call_in("bash", uid, "\"command\":\" \\t\\n\""), "command is required");
    assert_fails(call_in("bash", uid, "\"command\":\"a\\u0000b\""), "NUL");
    assert_fails(call_in("bash", uid, "\"command\":\"a\",\"timeout_ms\":999"),
                 "timeout_ms must be an integer of at least 1000, not 999");
    assert_fails(call_in("bash", uid, "\"command\":\"a\",\"yield_time_ms\":60001"),
                 "yield_time_ms must be an integer from 0 to 60000, not 60001");
    assert_fails(call_in("bash", uid, "\"command\":\"a\",\"session_id\":\"x\""),
                 "unknown argument session_id");
    error_set(&f.refusal, ERROR_NOT_FOUND, NULL, "Unknown Bash session: bash_9");
    assert_fails(call_in("bash_poll", uid, "\"session_id\":\"bash_9\""), "Unknown Bash session: bash_9");
    f.refusal = (struct error)ERROR_INIT;
    free(uid);
}

static void two_calls_with_one_id_get_their_own_answers_and_others_are_served_meanwhile(void **state)
{
    (void)state;
    char *uid = make_running(), *arguments = with_id(uid, "");
    f.answer = json_pack("{s:[], s:{}}", "content", "structuredContent");
    f.holds = true;
    int first = start_call("tree", arguments), second = start_call("tree", arguments);
    wait_for_waits(2);
    json_decref(take_structured("sandbox_list", call("sandbox_list", NULL)));
    loop_call(f.loop, release_lanes, NULL);
    json_decref(end_call(first));
    json_decref(end_call(second));
    free(arguments);
    free(uid);
}

static void a_hang_up_cancels_the_lanes_wait(void **state)
{
    (void)state;
    char *uid = make_running(), *arguments = with_id(uid, "");
    f.holds = true;
    close(start_call("tree", arguments));
    for (int i = 0; i < SOON_MS / 5 && !f.cancelled; i++)
        usleep(5000);
    assert_int_equal(f.cancelled, 1);
    free(arguments);
    free(uid);
}

static void a_batch_of_calls_is_answered_when_the_last_is(void **state)
{
    (void)state;
    char *uid = make_running(), *arguments = with_id(uid, "");
    f.answer = json_pack("{s:[], s:{}}", "content", "structuredContent");
    f.holds = true;
    char *one = call_text("tree", arguments),
         *body = mem_format("[%s,{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"ping\"},%s]", one, one);
    char *text = http_client_post_text("/mcp", "", body);
    int fd = http_client_connect(f.port);
    http_client_send_text(fd, text);
    wait_for_waits(2);
    loop_call(f.loop, release_lanes, NULL);
    struct http_answer answer;
    http_client_read(fd, &answer, SOON_MS);
    json_t *answers = http_answer_json(&answer);
    assert_int_equal(json_array_size(answers), 3);
    json_decref(answers);
    http_answer_clear(&answer);
    close(fd);
    free(text);
    free(body);
    free(one);
    free(arguments);
    free(uid);
}

#define A_BATCH 32

static int start_batch_of_calls(const char *tool, const char *arguments)
{
    CLEANUP_FREE char *one = call_text(tool, arguments);
    char *body = mem_strdup("[");
    for (int i = 0; i < A_BATCH; i++) {
        char *longer = mem_format("%s%s%s", body, one, i < A_BATCH - 1 ? "," : "]");
        free(body);
        body = longer;
    }
    CLEANUP_FREE char *text = http_client_post_text("/mcp", "", body);
    free(body);
    int fd = http_client_connect(f.port);
    http_client_send_text(fd, text);
    return fd;
}

static void end_batch_of_calls(int fd)
{
    struct http_answer answer;
    http_client_read(fd, &answer, SOON_MS);
    json_t *answers = http_answer_json(&answer);
    assert_int_equal(json_array_size(answers), A_BATCH);
    json_decref(answers);
    http_answer_clear(&answer);
    close(fd);
}

static void more_calls_than_the_most_are_refused_with_what_to_do(void **state)
{
    (void)state;
    char *uid = make_running(), *arguments = with_id(uid, "");
    f.answer = json_pack("{s:[], s:{}}", "content", "structuredContent");
    f.holds = true;
    enum { SINGLE = 160 }; // a batch's caller may not hold more than four times what is left
    int fds[(TOOL_CALLS_MAX - SINGLE) / A_BATCH], single[SINGLE];
    for (size_t i = 0; i < ARRAY_LEN(fds); i++)
        fds[i] = start_batch_of_calls("tree", arguments);
    for (size_t i = 0; i < SINGLE; i++)
        single[i] = start_call("tree", arguments);
    wait_for_waits(TOOL_CALLS_MAX);
    assert_fails(call("sandbox_list", NULL), "too many tool calls");
    loop_call(f.loop, release_lanes, NULL);
    for (size_t i = 0; i < ARRAY_LEN(fds); i++)
        end_batch_of_calls(fds[i]);
    for (size_t i = 0; i < SINGLE; i++)
        json_decref(end_call(single[i]));
    json_decref(take_structured("sandbox_list", call("sandbox_list", NULL)));
    free(arguments);
    free(uid);
}

static void modern_calls_carry_their_result_type(void **state)
{
    (void)state;
    const char *body =
        "{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"tools/"
        "call\",\"params\":{\"name\":\"sandbox_list\",\"_meta\":{\"io.modelcontextprotocol/"
        "protocolVersion\":\"2026-07-28\",\"io.modelcontextprotocol/clientCapabilities\":{}}}}";
    struct http_answer answer;
    http_client_post(
        f.port, "/mcp",
        "MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\nMcp-Name: sandbox_list\r\n", body,
        &answer);
    json_t *message = http_answer_json(&answer), *result = json_object_get(message, "result");
    assert_string_equal(text_at(result, "resultType"), "complete");
    assert_null(json_object_get(result, "ttlMs"));
    assert_non_null(json_object_get(json_object_get(result, "_meta"), "io.modelcontextprotocol/serverInfo"));
    json_decref(message);
    http_answer_clear(&answer);
}

// Lists are kept ready: whatever changes what a list says must be in the next one.
static void a_list_never_tells_what_was_before(void **state)
{
    (void)state;
    char *uid = make_running();
    json_t *before = take_structured("sandbox_list", call("sandbox_list", NULL));
    const json_t *sandbox = json_array_get(json_object_get(before, "sandboxes"), 0);
    json_int_t activity = json_integer_value(json_object_get(sandbox, "lastActivityAt"));
    store_touch_activity(f.store, uid, (struct wall_time){activity + 5000});
    json_t *after = take_structured("sandbox_list", call("sandbox_list", NULL));
    sandbox = json_array_get(json_object_get(after, "sandboxes"), 0);
    assert_int_equal(json_integer_value(json_object_get(sandbox, "lastActivityAt")), activity + 5000);
    json_decref(before);
    json_decref(after);
    set_condition(KIND_SANDBOX, "Failed", CONDITION_TRUE, "ToolServerDied");
    after = take_structured("sandbox_list", call("sandbox_list", NULL));
    sandbox = json_array_get(json_object_get(after, "sandboxes"), 0);
    assert_string_equal(text_at(sandbox, "status"), "failed");
    json_t *same = take_structured("sandbox_list", call("sandbox_list", NULL));
    assert_true(json_equal(after, same));
    json_decref(after);
    json_decref(same);
    free(uid);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(create_answers_when_the_sandbox_runs),
        TEST(create_says_creating_after_50_seconds_and_not_before),
        TEST(create_tells_reused_failed_and_refused_apart),
        TEST(a_create_that_fails_says_why_and_what_to_do),
        TEST(a_host_path_comes_back_as_approval_required),
        TEST(capabilities_that_lack_are_told),
        TEST(a_caller_that_hangs_up_ends_its_wait_and_not_the_work),
        TEST(stop_answers_callers_that_wait_for_a_sandbox),
        TEST(lists_conform_and_skip_what_is_destroyed),
        TEST(a_list_of_very_many_tells_of_those_in_use_and_how_many_are_left_out),
        TEST(expose_waits_for_the_mapping),
        TEST(an_exposure_that_takes_too_long_says_to_repeat),
        TEST(forwarded_calls_pass_their_arguments_and_results),
        TEST(line_separators_leave_as_escapes),
        TEST(senseless_answers_of_the_tool_server_do_not_pass),
        TEST(a_lane_that_refuses_is_worded_by_the_sandboxs_state),
        TEST(bash_has_its_defaults_and_checks),
        TEST(two_calls_with_one_id_get_their_own_answers_and_others_are_served_meanwhile),
        TEST(a_hang_up_cancels_the_lanes_wait),
        TEST(a_batch_of_calls_is_answered_when_the_last_is),
        TEST(more_calls_than_the_most_are_refused_with_what_to_do),
        TEST(a_list_never_tells_what_was_before),
        TEST(modern_calls_carry_their_result_type),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
