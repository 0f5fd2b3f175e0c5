// The daemon itself: its state in one answer, its version, its health, its end.
#include "api/operator/internal.h"
#include "api/operator/listener.h"
#include "controller/base/memory.h"
#include <signal.h>
#include <string.h>
#include <unistd.h>

#define QUEUES_SHOWN_MAX 16
#define ERRORS_SHOWN_MAX 10
#define EVENTS_READ_MAX 10000
#define STOP_DELAY_MS 50 // so that the answer is on its way before the end begins

// ---- status
// -----------------------------------------------------------------------------------------------------------
static void add_phase(void *arg, const char *phase, int64_t count)
{
    json_object_set_new(arg, phase, json_integer((json_int_t)count));
}

// {phase: count} of all live records of a kind.
static json_t *count_phases(struct store *store, enum kind kind, struct error *err)
{
    CLEANUP_JSON json_t *phases = json_object();
    return store_count_phases(store, kind, add_phase, phases, err) < 0 ? NULL : TAKE_PTR(phases);
}

static json_int_t sum_of(const json_t *counts)
{
    const char *word;
    json_t *count;
    json_int_t sum = 0;
    json_object_foreach((json_t *)counts, word, count) sum += json_integer_value(count);
    return sum;
}

static json_t *store_to_json(struct store *store, struct error *err)
{
    struct store_stats stats;
    if (store_stats(store, &stats, err) < 0)
        return NULL;
    return json_pack("{s:I, s:I, s:I, s:I, s:I, s:b}", "revision", (json_int_t)stats.revision, "feedRows",
                     (json_int_t)stats.feed_rows, "databaseBytes", (json_int_t)stats.database_bytes, "writes",
                     (json_int_t)stats.writes, "freeBytes", (json_int_t)store_free_bytes(store),
                     "isLowOnDisk", store_is_low_on_disk(store));
}

static json_t *queues_to_json(struct manager *manager)
{
    struct manager_stats stats[QUEUES_SHOWN_MAX];
    size_t count = manager_get_stats(manager, stats, QUEUES_SHOWN_MAX);
    json_t *queues = json_array();
    for (size_t i = 0; i < count && i < QUEUES_SHOWN_MAX; i++)
        json_array_append_new(queues, json_pack("{s:s, s:I, s:I, s:I, s:I}", "name", stats[i].name, "depth",
                                                (json_int_t)stats[i].depth, "runs", (json_int_t)stats[i].runs,
                                                "failures", (json_int_t)stats[i].failures, "retries",
                                                (json_int_t)stats[i].retries));
    return queues;
}

// The newest warnings among the events, newest first.
static json_t *last_errors(struct store *store, struct error *err)
{
    struct store_event_row *rows = NULL;
    size_t count = 0;
    if (store_list_events(store, NULL, EVENTS_READ_MAX, &rows, &count, err) < 0)
        return NULL;
    json_t *errors = json_array();
    for (size_t i = count; i > 0 && json_array_size(errors) < ERRORS_SHOWN_MAX; i--) {
        const struct store_event_row *row = &rows[i - 1];
        char at[WALL_TIME_TEXT_SIZE];
        if (strcmp(row->type, "Warning") != 0)
            continue;
        wall_time_format(row->last_at, at);
        json_array_append_new(errors,
                              json_pack("{s:s, s:s, s:s, s:s, s:o, s:I}", "at", at, "kind", row->kind, "name",
                                        row->name, "reason", row->reason, "message",
                                        json_from_text(row->message), "count", (json_int_t)row->count));
    }
    store_events_free(rows, count);
    return errors;
}

static const char *auth_word(unsigned modes)
{
    static const char *const words[] = {[0] = "none", [AUTH_TOKEN] = "token", [AUTH_OAUTH] = "oauth", [AUTH_TOKEN | AUTH_OAUTH] = "token,oauth"};
    return words[modes];
}

static json_t *listener_to_json(const struct call *call)
{
    struct listener_view view;
    listener_look(call->server->listener, &view);
    json_t *json = json_pack("{s:b, s:s, s:i}", "isOn", view.is_on, "host", LISTENER_HOST, "port", view.port);
    if (view.is_on && !view.port)
        json_object_set_new(json, "message", json_from_text(view.trouble.message));
    return json;
}

static json_t *base_status(const struct call *call)
{
    char started[WALL_TIME_TEXT_SIZE];
    wall_time_format(call->server->started_at, started);
    const struct config *config = call->world->config;
    int port = atomic_load(&call->server->mcp_port);
    return json_pack("{s:s, s:i, s:s, s:s, s:{s:o, s:i, s:s}, s:o, s:o}", "version", CHAT2SHELL_VERSION, "pid",
                     (int)getpid(), "startedAt", started, "driver", request_driver_name(call->world), "mcp",
                     "host", json_from_text(config->host), "port", port ? port : config->port, "auth", auth_word(config->auth_modes), "kubernetes",
                     listener_to_json(call), "queues", queues_to_json(call->world->manager));
}

static json_t *take_integer(json_t *phases, const char *word)
{
    return json_integer(json_get_int(phases, word, 0));
}

static int add_counts(struct store *store, json_t *status, struct error *err)
{
    json_t *sandboxes = count_phases(store, KIND_SANDBOX, err);
    CLEANUP_JSON json_t *approvals = sandboxes ? count_phases(store, KIND_APPROVAL, err) : NULL;
    CLEANUP_JSON json_t *exposures = approvals ? count_phases(store, KIND_EXPOSURE, err) : NULL;
    json_t *workspaces = exposures ? count_phases(store, KIND_WORKSPACE, err) : NULL;
    if (!workspaces) {
        json_decref(sandboxes);
        return -1;
    }
    json_object_set_new(status, "sandboxes", sandboxes);
    json_object_set_new(status, "approvalsPending", take_integer(approvals, "pending"));
    json_object_set_new(status, "exposures", json_integer(sum_of(exposures)));
    json_object_set_new(status, "workspaces", workspaces);
    return 0;
}

static void answer_status(struct call *call, json_t *tunnel)
{
    json_t *status = call->state;
    json_object_set(status, "tunnel", tunnel);
    operator_answer(call, 200, status);
}

void status_show(struct call *call)
{
    struct store *store = call->world->store;
    struct error err = ERROR_INIT;
    CLEANUP_JSON json_t *status = base_status(call);
    json_t *of_store = store_to_json(store, &err);
    json_t *errors = of_store ? last_errors(store, &err) : NULL;
    if (of_store)
        json_object_set_new(status, "store", of_store);
    if (errors)
        json_object_set_new(status, "lastErrors", errors);
    if (!errors || add_counts(store, status, &err) < 0) {
        operator_fail(call, &err);
        return;
    }
    call->state = json_deep_copy(status); // goes to another thread
    operator_ask_tunnel(call, answer_status);
}

// ---- the rest
// -----------------------------------------------------------------------------------------------------------
static void stop_now(void *arg)
{
    (void)arg;
    kill(getpid(), SIGTERM);
}

static void stop_soon(void *arg)
{
    loop_after(arg, STOP_DELAY_MS, stop_now, NULL);
}

void stop_daemon(struct call *call)
{
    struct loop *loop = call->world->loop;
    operator_answer(call, 202, json_pack("{s:s, s:i}", "status", "stopping", "pid", (int)getpid()));
    loop_post(loop, stop_soon, loop);
}

void version_show(struct call *call)
{
    operator_answer(call, 200,
                    json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:s}", "major", "1", "minor", "32",
                              "gitVersion", "v1.32.0+chat2shell-" CHAT2SHELL_VERSION, "gitTreeState", "clean",
                              "compiler", "gcc", "platform", "linux", "chat2shellVersion",
                              CHAT2SHELL_VERSION));
}

static void on_workspace(void *arg, int result, struct record *record, json_t *unsaved,
                         const struct error *err)
{
    struct call *call = arg;
    json_decref(unsaved);
    if (result < 0)
        operator_fail(call, err);
    else
        operator_answer_record(call, 200, record);
    record_free(record);
}

void workspaces_add(struct call *call)
{
    const char *path = json_get_text(call->body, "path"), *mode = json_get_text(call->body, "mode");
    const json_t *given = json_object_get(call->body, "mode");
    if (!path || (given && !json_is_null(given) && !mode))
        operator_fail_as(call, 0, ERROR_INVALID, "send {\"path\": \"/absolute/path\", \"mode\": \"clone\"}",
                         "path must be a string, and mode too if it is given");
    else
        request_host_workspace(call->world, call->principal, call->manager, path, mode, NULL, false, on_workspace,
                               call);
}
