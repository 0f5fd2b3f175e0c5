// What has been happening in a sandbox: its journal (reconcilers/session/journal.h), read from a position on; who follows it waits
// here until there is more.
#include "api/operator/internal.h"
#include "controller/base/memory.h"
#include "schemas/kinds/conditions.h"
#include <string.h>

#define LOGS_WAIT_MAX_MS 30000
#define LOGS_ANSWER_BYTES (1024 * 1024)

struct logs {
    struct call *call;
    char *uid;
    struct journal_query query;
    int64_t wait_ms;
    struct journal_wait *wait; // loop thread
    struct loop_timer *timer;
};

static struct journals *journals_of(const struct logs *logs)
{
    return lanes_journals(logs->call->world->lanes);
}

static void answer(struct logs *logs)
{
    struct journal_view view = {.lines = NULL, .position = logs->query.after, .is_over = true};
    journals_read(journals_of(logs), logs->uid, &logs->query, &view);
    json_t *body = json_pack("{s:s, s:o, s:I, s:b, s:b, s:b}", "uid", logs->uid, "lines", view.lines ? view.lines : json_array(), "position",
                             (json_int_t)view.position, "hasGap", view.has_gap, "hasMore", view.has_more, "isOver", view.is_over && !view.has_more);
    struct call *call = logs->call;
    free(logs->uid);
    free(logs);
    operator_answer(call, 200, body);
}

// ---- waiting, on the loop thread ------------------------------------------------------------------------------------------
static void on_lines(void *arg)
{
    struct logs *logs = arg;
    logs->wait = NULL;
    loop_cancel(TAKE_PTR(logs->timer));
    answer(logs);
}

static void end_wait(struct logs *logs)
{
    journals_wait_cancel(journals_of(logs), TAKE_PTR(logs->wait));
    answer(logs);
}

static void on_time(void *arg)
{
    struct logs *logs = arg;
    logs->timer = NULL;
    end_wait(logs);
}

static void start(struct call *call)
{
    struct logs *logs = call->state;
    logs->wait = call->is_gone ? NULL : journals_wait(journals_of(logs), logs->uid, logs->query.after, logs->query.sources, on_lines, logs);
    if (logs->wait)
        logs->timer = loop_after(call->world->loop, logs->wait_ms, on_time, logs);
    else
        answer(logs);
}

static void cancel(struct call *call)
{
    struct logs *logs = call->state;
    if (!logs->wait)
        return; // not begun: start sees that nobody is there
    loop_cancel(TAKE_PTR(logs->timer));
    end_wait(logs);
}

// ---- the question -----------------------------------------------------------------------------------------------------------
static int read_number(const json_t *body, const char *name, int64_t least, int64_t most, int64_t fallback, int64_t *ret, struct error *err)
{
    const json_t *value = json_object_get(body, name);
    if (value && (!json_is_integer(value) || json_integer_value(value) < least || json_integer_value(value) > most))
        return error_set(err, ERROR_INVALID, NULL, "%s: must be an integer from %lld to %lld", name, (long long)least, (long long)most);
    *ret = value ? json_integer_value(value) : fallback;
    return 0;
}

static int read_sources(const json_t *body, unsigned *ret, struct error *err)
{
    const char *text = json_get_text(body, "source");
    if (json_object_get(body, "source") && !text)
        return error_set(err, ERROR_INVALID, NULL, "source: must be calls, server or all");
    *ret = !text || strcmp(text, "all") == 0      ? JOURNAL_ALL
           : strcmp(text, "calls") == 0           ? 1u << JOURNAL_CALL
           : strcmp(text, "server") == 0          ? 1u << JOURNAL_SERVER
                                                  : 0;
    return *ret ? 0 : error_set(err, ERROR_INVALID, NULL, "source: must be calls, server or all");
}

static int read_query(const json_t *body, struct logs *ret, struct error *err)
{
    struct journal_query *query = &ret->query;
    query->max_bytes = LOGS_ANSWER_BYTES;
    if (read_number(body, "after", 0, INT64_MAX, 0, &query->after, err) < 0 || read_number(body, "sinceMs", 0, INT64_MAX, 0, &query->since_ms, err) < 0 ||
        read_number(body, "tail", -1, INT64_MAX, -1, &query->tail, err) < 0 || read_number(body, "waitMs", 0, LOGS_WAIT_MAX_MS, 0, &ret->wait_ms, err) < 0)
        return -1;
    return read_sources(body, &query->sources, err);
}

// The sandbox that is there, or one whose journal is still kept. Of one that is only coming into being there will be one.
static char *find_uid(struct call *call, struct error *err)
{
    CLEANUP_RECORD struct record *sandbox = NULL;
    struct journals *journals = lanes_journals(call->world->lanes);
    char *uid = NULL;
    if (store_resolve(call->world->store, KIND_SANDBOX, call->match.name, &sandbox, err) < 0)
        return err->code == ERROR_NOT_FOUND && journals_find(journals, call->match.name, &uid) ? uid : NULL;
    if (!record_is_true(sandbox, CONDITION_FAILED))
        journals_begin(journals, sandbox->meta.uid, sandbox->meta.name);
    return mem_strdup(sandbox->meta.uid);
}

void logs_show(struct call *call)
{
    struct error err = ERROR_INIT;
    struct logs asked = {.call = call};
    if (read_query(call->body, &asked, &err) < 0 || !(asked.uid = find_uid(call, &err))) {
        operator_fail(call, &err);
        return;
    }
    struct logs *logs = mem_alloc(sizeof(*logs));
    *logs = asked;
    call->state = logs;
    if (logs->wait_ms)
        operator_wait_on_loop(call, start, cancel);
    else
        answer(logs);
}
