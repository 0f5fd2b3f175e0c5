// The operator's programs in sandboxes: exec, cp and export. A program is known by its execId, whatever connection asks.
// Its bytes come from the sandbox: each answer is read strictly and built anew.
#include "api/operator/exec.h"
#include "api/operator/internal.h"
#include "controller/base/guest_protocol.h"
#include "controller/base/memory.h"
#include "controller/base/random.h"
#include <signal.h>
#include <stdio.h>
#include <string.h>

#define EXECS_MAX 256
#define EXEC_UNREAD_MS (10 * 60 * 1000) // ended when nobody read for so long
#define EXEC_SWEEP_MS 30000
#define EXEC_READ_WAIT_MAX_MS 30000
#define EXEC_GRACE_MS 15000 // for an answer beyond the wait that was asked for
#define EXEC_ID_SIZE 38 // "exec_", 32 hex digits, NUL
#define EXEC_ARGS_MAX 4096

struct exec_entry {
    struct exec_entry *next;
    char id[EXEC_ID_SIZE];
    char *sandbox_uid;
    struct boot_time last_read;
    size_t reads; // under way: it is not unread
};
struct execs {
    struct world *world;
    pthread_mutex_t lock; // guards the rest
    struct exec_entry *first;
    size_t count;
    struct loop_timer *sweep; // loop thread only
    bool is_stopping;         // loop thread only
};

// ---- the table ----------------------------------------------------------------------------------------------------------
static void entry_free(struct exec_entry *entry)
{
    free(entry->sandbox_uid);
    free(entry);
}

static struct exec_entry **find(struct execs *execs, const char *id) // under the lock
{
    struct exec_entry **at = &execs->first;
    while (*at && strcmp((*at)->id, id) != 0)
        at = &(*at)->next;
    return at;
}

static struct exec_entry *take_out(struct execs *execs, struct exec_entry **at)
{
    struct exec_entry *entry = *at;
    *at = entry->next;
    entry->next = NULL;
    execs->count--;
    return entry;
}

// reads: +1 begins one, -1 ends one, 0 looks only. False: there is no such program in that sandbox.
static bool execs_touch(struct execs *execs, const char *id, const char *sandbox_uid, int reads)
{
    pthread_mutex_lock(&execs->lock);
    struct exec_entry *entry = *find(execs, id);
    bool is_there = entry && strcmp(entry->sandbox_uid, sandbox_uid) == 0;
    if (is_there && reads) {
        entry->reads += (size_t)reads;
        entry->last_read = clock_boot(execs->world->clock);
    }
    pthread_mutex_unlock(&execs->lock);
    return is_there;
}

static bool execs_add(struct execs *execs, const char *id, const char *sandbox_uid)
{
    struct exec_entry *entry = mem_alloc(sizeof(*entry));
    snprintf(entry->id, sizeof(entry->id), "%s", id);
    entry->sandbox_uid = mem_strdup(sandbox_uid);
    entry->last_read = clock_boot(execs->world->clock);
    pthread_mutex_lock(&execs->lock);
    bool has_room = execs->count < EXECS_MAX;
    if (has_room) {
        entry->next = execs->first;
        execs->first = entry;
        execs->count++;
    }
    pthread_mutex_unlock(&execs->lock);
    if (!has_room)
        entry_free(entry);
    return has_room;
}

static void execs_remove(struct execs *execs, const char *id)
{
    pthread_mutex_lock(&execs->lock);
    struct exec_entry **at = find(execs, id), *entry = *at ? take_out(execs, at) : NULL;
    pthread_mutex_unlock(&execs->lock);
    if (entry)
        entry_free(entry);
}

// ---- the end of programs that nobody reads ----------------------------------------------------------------------------------
static void ignore_answer(void *arg, int result, json_t *answer, const struct error *err)
{
    (void)arg, (void)result, (void)answer, (void)err; // the sandbox may be gone: then so is the program
}

static void end_entry(struct execs *execs, struct exec_entry *entry)
{
    lane_request(execs->world->lanes, entry->sandbox_uid, "chat2shell/exec_end", json_pack("{s:s}", "exec_id", entry->id), EXEC_GRACE_MS, ignore_answer, NULL);
    entry_free(entry);
}

static struct exec_entry *take_unread(struct execs *execs, int64_t before_ms)
{
    struct exec_entry *taken = NULL;
    pthread_mutex_lock(&execs->lock);
    for (struct exec_entry **at = &execs->first; *at;) {
        if ((*at)->reads || (*at)->last_read.ms > before_ms) {
            at = &(*at)->next;
            continue;
        }
        struct exec_entry *entry = take_out(execs, at);
        entry->next = taken;
        taken = entry;
    }
    pthread_mutex_unlock(&execs->lock);
    return taken;
}

static void end_unread(struct execs *execs, int64_t before_ms)
{
    struct exec_entry *taken = take_unread(execs, before_ms);
    while (taken) {
        struct exec_entry *entry = taken;
        taken = entry->next;
        end_entry(execs, entry);
    }
}

static void sweep(void *arg)
{
    struct execs *execs = arg;
    execs->sweep = NULL;
    end_unread(execs, clock_boot(execs->world->clock).ms - EXEC_UNREAD_MS);
    if (!execs->is_stopping)
        execs->sweep = loop_after(execs->world->loop, EXEC_SWEEP_MS, sweep, execs);
}

struct execs *operator_execs_new(struct world *world)
{
    struct execs *execs = mem_alloc(sizeof(*execs));
    execs->world = world;
    pthread_mutex_init(&execs->lock, NULL);
    loop_call(world->loop, sweep, execs);
    return execs;
}

static void stop_sweep(void *arg)
{
    struct execs *execs = arg;
    execs->is_stopping = true;
    loop_cancel(execs->sweep);
    execs->sweep = NULL;
}

void operator_execs_stop(struct execs *execs)
{
    loop_call(execs->world->loop, stop_sweep, execs);
    end_unread(execs, INT64_MAX);
}

void operator_execs_free(struct execs *execs)
{
    while (execs->first)
        entry_free(take_out(execs, &execs->first));
    pthread_mutex_destroy(&execs->lock);
    free(execs);
}

// ---- one request to the tool server -------------------------------------------------------------------------------------------
struct ask {
    struct call *call;
    const char *method;
    json_t *params;
    int64_t deadline_ms;
    char *sandbox_uid;
    char id[EXEC_ID_SIZE];
    struct lane_call *lane;
    bool is_read;
    json_t *(*answer)(struct ask *ask, const json_t *from); // NULL: what came back is not what it should be
};

static void ask_free(struct ask *ask)
{
    if (ask->is_read)
        execs_touch(ask->call->server->execs, ask->id, ask->sandbox_uid, -1);
    json_decref(ask->params);
    free(ask->sandbox_uid);
    free(ask);
}

// What a closed lane says is worded for assistants; the record knows better.
static void explain(const struct ask *ask, const struct error *err, struct error *ret)
{
    CLEANUP_RECORD struct record *sandbox = NULL;
    *ret = *err;
    if (err->code != ERROR_NOT_FOUND && err->code != ERROR_STATE && err->code != ERROR_UNAVAILABLE)
        return;
    if (store_get_uid(ask->call->world->store, KIND_SANDBOX, ask->sandbox_uid, &sandbox, NULL) < 0)
        return;
    const struct condition *failed = record_condition(sandbox, CONDITION_FAILED);
    if (sandbox->meta.removed_at.ms || sandbox->meta.deletion_at.ms)
        error_set(ret, ERROR_STATE, "create another one", "the sandbox '%s' %s destroyed", sandbox->meta.name, sandbox->meta.removed_at.ms ? "was" : "is being");
    else if (failed && failed->status == CONDITION_TRUE)
        error_set(ret, ERROR_STATE, "chat2shell recreate replaces it on the same workspace", "the sandbox '%s' failed: %s", sandbox->meta.name, failed->message);
    else if (!record_is_true(sandbox, CONDITION_READY))
        error_set(ret, ERROR_STATE, "try again when its status is running", "the sandbox '%s' is still being created", sandbox->meta.name);
}

static void on_answer(void *arg, int result, json_t *answer, const struct error *err) // loop thread
{
    struct ask *ask = arg;
    struct error why = ERROR_INIT;
    struct call *call = ask->call;
    json_t *body = result == 0 ? ask->answer(ask, answer) : NULL;
    if (result < 0)
        explain(ask, err, &why);
    else if (!body)
        error_set(&why, ERROR_UNAVAILABLE, "delete the sandbox if it goes on", "the sandbox's tool server gave an answer that makes no sense");
    ask_free(ask);
    if (body)
        operator_answer(call, 200, body);
    else
        operator_fail(call, &why);
}

static void send_ask(struct call *call)
{
    struct ask *ask = call->state;
    ask->lane = lane_request(call->world->lanes, ask->sandbox_uid, ask->method, TAKE_PTR(ask->params), ask->deadline_ms, on_answer, ask);
}

static void cancel_ask(struct call *call)
{
    struct ask *ask = call->state;
    if (!ask->lane || !lane_call_cancel(ask->lane))
        return; // its answer is on its way, or run_start finds that the client has gone
    struct error err = ERROR_INIT;
    error_set(&err, ERROR_CANCELLED, NULL, "the client has gone");
    ask_free(ask);
    operator_fail(call, &err);
}

static json_t *answer_nothing(struct ask *ask, const json_t *from)
{
    (void)ask, (void)from;
    return json_object();
}

static struct ask *ask_new(struct call *call, const struct record *sandbox, const char *method, json_t *params, int64_t deadline_ms)
{
    struct ask *ask = mem_alloc(sizeof(*ask));
    *ask = (struct ask){.call = call, .method = method, .params = params, .deadline_ms = deadline_ms, .sandbox_uid = mem_strdup(sandbox->meta.uid),
                        .answer = answer_nothing};
    call->state = ask;
    return ask;
}

// A request about a program that was started before. On failure the call is answered, params is dropped, and NULL returned.
static struct ask *ask_about(struct call *call, const char *method, json_t *params, int64_t deadline_ms)
{
    CLEANUP_RECORD struct record *sandbox = operator_resolve(call, KIND_SANDBOX);
    CLEANUP_JSON json_t *owned = params;
    if (!sandbox)
        return NULL;
    if (!execs_touch(call->server->execs, call->match.id, sandbox->meta.uid, 0)) {
        operator_fail_as(call, 0, ERROR_NOT_FOUND, "start it anew: a program is ended when nobody reads from it for 10 minutes", "there is no exec %.64s in '%s'",
                     call->match.id, sandbox->meta.name);
        return NULL;
    }
    json_set_text(params, "exec_id", call->match.id);
    struct ask *ask = ask_new(call, sandbox, method, TAKE_PTR(owned), deadline_ms);
    snprintf(ask->id, sizeof(ask->id), "%s", call->match.id);
    return ask;
}

// ---- start --------------------------------------------------------------------------------------------------------------------
static int check_argv(const json_t *argv, struct error *err)
{
    size_t i, count = json_array_size(argv);
    json_t *word;
    if (count < 1 || count > EXEC_ARGS_MAX)
        return error_set(err, ERROR_INVALID, "give the program and its arguments", "argv: must be an array of 1 to %d strings", EXEC_ARGS_MAX);
    json_array_foreach((json_t *)argv, i, word) if (!json_is_string(word)) return error_set(err, ERROR_INVALID, NULL, "argv[%zu]: must be a string", i);
    if (!json_string_length(json_array_get(argv, 0)))
        return error_set(err, ERROR_INVALID, "give the program first", "argv[0]: must not be empty");
    return 0;
}

static int check_start(const json_t *body, struct error *err)
{
    const json_t *cwd = json_object_get(body, "cwd"), *env = json_object_get(body, "env");
    const char *name;
    json_t *value;
    if (check_argv(json_object_get(body, "argv"), err) < 0)
        return -1;
    if (cwd && !json_is_null(cwd) && !json_is_string(cwd))
        return error_set(err, ERROR_INVALID, NULL, "cwd: must be a string");
    if (env && !json_is_null(env) && !json_is_object(env))
        return error_set(err, ERROR_INVALID, NULL, "env: must be an object of strings");
    json_object_foreach((json_t *)env, name, value) if (!json_is_string(value)) return error_set(err, ERROR_INVALID, NULL, "env.%.64s: must be a string", name);
    return 0;
}

static void make_id(char id[EXEC_ID_SIZE])
{
    memcpy(id, "exec_", 5);
    random_hex(id + 5, EXEC_ID_SIZE - 6);
}

static json_t *answer_start(struct ask *ask, const json_t *from)
{
    (void)from;
    return json_pack("{s:s}", "execId", ask->id);
}

static void on_started(void *arg, int result, json_t *answer, const struct error *err)
{
    struct ask *ask = arg;
    if (result < 0)
        execs_remove(ask->call->server->execs, ask->id);
    on_answer(arg, result, answer, err);
}

static void send_start(struct call *call)
{
    struct ask *ask = call->state;
    lane_request(call->world->lanes, ask->sandbox_uid, ask->method, TAKE_PTR(ask->params), ask->deadline_ms, on_started, ask);
}

static json_t *start_params(const json_t *body, const char *id)
{
    json_t *params = json_pack("{s:s, s:O}", "exec_id", id, "argv", json_object_get(body, "argv"));
    if (json_is_string(json_object_get(body, "cwd")))
        json_object_set(params, "cwd", json_object_get(body, "cwd"));
    if (json_is_object(json_object_get(body, "env")))
        json_object_set(params, "env", json_object_get(body, "env"));
    return params;
}

void operator_exec_start(struct call *call)
{
    struct error err = ERROR_INIT;
    char id[EXEC_ID_SIZE];
    CLEANUP_RECORD struct record *sandbox = operator_resolve(call, KIND_SANDBOX);
    if (!sandbox)
        return;
    if (check_start(call->body, &err) < 0) {
        operator_fail(call, &err);
        return;
    }
    make_id(id);
    if (!execs_add(call->server->execs, id, sandbox->meta.uid)) {
        operator_fail_as(call, 0, ERROR_LIMIT, "end some first", "%d programs run in sandboxes by exec, the most at once", EXECS_MAX);
        return;
    }
    struct ask *ask = ask_new(call, sandbox, "chat2shell/exec_start", start_params(call->body, id), EXEC_GRACE_MS);
    snprintf(ask->id, sizeof(ask->id), "%s", id);
    ask->answer = answer_start;
    operator_wait_on_loop(call, send_start, NULL); // not to be given up half way: the caller has no id to end it by
}

// ---- write, read, signal, end -----------------------------------------------------------------------------------------------------
void operator_exec_write(struct call *call)
{
    const json_t *data = json_object_get(call->body, "data"), *eof = json_object_get(call->body, "eof");
    CLEANUP_FREE char *bytes = NULL;
    size_t len;
    struct error err = ERROR_INIT;
    if ((data && !json_is_string(data)) || (eof && !json_is_boolean(eof))) {
        operator_fail_as(call, 0, ERROR_INVALID, NULL, "data must be a base64 string, and eof a boolean");
        return;
    }
    if (json_decode_base64(json_string_value(data), &bytes, &len, &err) < 0) {
        error_context(&err, "data");
        operator_fail(call, &err);
        return;
    }
    json_t *params = json_pack("{s:s, s:b}", "data", data ? json_string_value(data) : "", "eof", json_is_true(eof));
    if (ask_about(call, "chat2shell/exec_write", params, LANE_CALL_DEADLINE_MS))
        operator_wait_on_loop(call, send_ask, cancel_ask);
}

static json_t *take_stream(const json_t *from, const char *name)
{
    const char *text = json_get_text(from, name);
    CLEANUP_FREE char *bytes = NULL;
    size_t len;
    if (!text || json_decode_base64(text, &bytes, &len, NULL) < 0 || len > GUEST_EXEC_CHUNK_BYTES)
        return NULL;
    return json_string(text);
}

static json_t *answer_read(struct ask *ask, const json_t *from)
{
    (void)ask;
    const json_t *exited = json_object_get(from, "exited"), *code = json_object_get(from, "exit_code");
    CLEANUP_JSON json_t *out = take_stream(from, "stdout");
    CLEANUP_JSON json_t *err = take_stream(from, "stderr");
    bool is_code = json_is_integer(code) && json_integer_value(code) >= 0 && json_integer_value(code) <= 255;
    if (!out || !err || !json_is_boolean(exited) || (json_is_true(exited) && !is_code))
        return NULL;
    return json_pack("{s:O, s:O, s:b, s:o}", "stdout", out, "stderr", err, "exited", json_is_true(exited), "exitCode",
                     json_is_true(exited) ? json_integer(json_integer_value(code)) : json_null());
}

void operator_exec_read(struct call *call)
{
    const json_t *wait = json_object_get(call->body, "waitMs");
    json_int_t wait_ms = json_integer_value(wait);
    if ((wait && !json_is_integer(wait)) || wait_ms < 0 || wait_ms > EXEC_READ_WAIT_MAX_MS) {
        operator_fail_as(call, 0, ERROR_INVALID, NULL, "waitMs: must be an integer from 0 to %d", EXEC_READ_WAIT_MAX_MS);
        return;
    }
    struct ask *ask = ask_about(call, "chat2shell/exec_read", json_pack("{s:I}", "wait_ms", wait_ms), wait_ms + EXEC_GRACE_MS);
    if (!ask)
        return;
    ask->answer = answer_read;
    ask->is_read = execs_touch(call->server->execs, ask->id, ask->sandbox_uid, 1);
    operator_wait_on_loop(call, send_ask, cancel_ask);
}

// A number, or a name with or without SIG.
static int parse_signal(const json_t *value, struct error *err)
{
    const char *name = json_string_value(value);
    if (json_is_integer(value) && json_integer_value(value) >= 1 && json_integer_value(value) <= 64)
        return (int)json_integer_value(value);
    for (int number = 1; name && number < 32; number++) {
        const char *known = sigabbrev_np(number);
        if (known && strcmp(known, strncmp(name, "SIG", 3) == 0 ? name + 3 : name) == 0)
            return number;
    }
    return error_set(err, ERROR_INVALID, "give a number from 1 to 64, or a name like TERM", "signal: this is not a signal");
}

void operator_exec_signal(struct call *call)
{
    struct error err = ERROR_INIT;
    int number = parse_signal(json_object_get(call->body, "signal"), &err);
    if (number < 0)
        operator_fail(call, &err);
    else if (ask_about(call, "chat2shell/exec_signal", json_pack("{s:i}", "signal", number), EXEC_GRACE_MS))
        operator_wait_on_loop(call, send_ask, cancel_ask);
}

void operator_exec_end(struct call *call)
{
    struct ask *ask = ask_about(call, "chat2shell/exec_end", json_object(), EXEC_GRACE_MS);
    if (!ask)
        return;
    execs_remove(call->server->execs, ask->id);
    operator_wait_on_loop(call, send_ask, NULL); // it is forgotten here, so it must end there
}

// ---- what a private clone holds that is nowhere else ---------------------------------------------------------------------------------
static json_t *pick(const json_t *from, const char *name, bool is_kind)
{
    json_t *value = json_object_get(from, name);
    return is_kind ? json_incref(value) : json_null();
}

static json_t *word_unsaved(bool is_clone, const json_t *from)
{
    const json_t *changed = json_object_get(from, "changed_files"), *commits = json_object_get(from, "unexported_commits");
    return json_pack("{s:b, s:o, s:o, s:o}", "isClone", is_clone, "isRepository", pick(from, "is_repository", json_is_boolean(json_object_get(from, "is_repository"))),
                     "changedFiles", pick(from, "changed_files", json_is_integer(changed)), "unexportedCommits",
                     pick(from, "unexported_commits", json_is_integer(commits)));
}

static bool is_clone(struct world *world, const char *workspace_uid)
{
    CLEANUP_RECORD struct record *workspace = NULL;
    return workspace_uid && store_get_uid(world->store, KIND_WORKSPACE, workspace_uid, &workspace, NULL) == 0 &&
           workspace->spec.workspace.mode == WORKSPACE_CLONE;
}

static void on_unsaved(void *arg, int result, json_t *answer, const struct error *err)
{
    (void)err; // a sandbox that does not answer has nothing to tell: nulls
    struct ask *ask = arg;
    struct call *call = ask->call;
    json_t *body = word_unsaved(ask->is_read, result == 0 ? answer : NULL);
    ask->is_read = false;
    ask_free(ask);
    operator_answer(call, 200, body);
}

static void send_unsaved(struct call *call)
{
    struct ask *ask = call->state;
    lane_request_closed(call->world->lanes, ask->sandbox_uid, ask->method, TAKE_PTR(ask->params), ask->deadline_ms, on_unsaved, ask);
}

void unsaved_show(struct call *call)
{
    CLEANUP_RECORD struct record *sandbox = operator_resolve(call, KIND_SANDBOX);
    if (!sandbox)
        return;
    struct ask *ask = ask_new(call, sandbox, "chat2shell/git_unsaved", json_object(), 5000);
    ask->is_read = is_clone(call->world, sandbox->status.sandbox.workspace_uid);
    operator_wait_on_loop(call, send_unsaved, NULL);
}
