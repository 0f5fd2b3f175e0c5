// A tool call's life: admission, check, run, waits, one answer.
#include "api/tools/result.h"
#include "api/tools/tools.h"
#include "controller/metrics.h"
#include "controller/base/memory.h"
#include "controller/log.h"
#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

const char *tool_text(const struct tool_call *call, const char *name)
{
    return json_get_text(call->arguments, name);
}

int64_t tool_int(const struct tool_call *call, const char *name, int64_t fallback)
{
    return json_get_int(call->arguments, name, fallback);
}

// ---- answers ----------------------------------------------------------------------------------------------
static void answer_with(struct tool_call *call, struct tool_result result)
{
    assert(!call->is_answered);
    call->is_answered = true;
    metrics_count(METRIC_MCP_CALLS, call->tool->name, json_get_bool(result.value, "isError", false) ? "failed" : "ok");
    tool_note_in_journal(call, result.value);
    json_decref(call->arguments);
    json_decref(call->unsaved);
    record_free(call->record);
    free(call->error);
    call->arguments = call->unsaved = NULL;
    call->error = NULL;
    call->record = NULL;
    tool_gate_leave(call);
    if (call->is_stepping)
        call->answer = result;
    else
        call->finish(call->arg, result);
}

// True while the call still waits for something; afterwards it is not there any more.
static bool step(struct tool_call *call, void (*fn)(struct tool_call *call))
{
    call->is_stepping = true;
    fn(call);
    call->is_stepping = false;
    if (!call->answer.value && !call->answer.text) {
        if (call->news)
            call->news(call->arg);
        return true;
    }
    call->finish(call->arg, call->answer);
    return false;
}

static json_t *text_content(const char *text)
{
    return json_pack("[{s:s, s:o}]", "type", "text", "text", json_from_text(text));
}

json_t *tool_result(json_t *structured)
{
    CLEANUP_FREE char *text = json_to_pretty_text(structured);
    return json_pack("{s:o, s:o}", "content", text_content(text), "structuredContent", structured);
}

void tool_answer_result(struct tool_call *call, json_t *result)
{
    answer_with(call, (struct tool_result){.value = result});
}

void tool_answer_text(struct tool_call *call, struct shared_text *result)
{
    answer_with(call, (struct tool_result){.text = result});
}

void tool_answer(struct tool_call *call, json_t *structured)
{
    tool_answer_result(call, tool_result(structured));
}

// Faults of the host's side are the operator's to read in the log, not the caller's: their words may name
// paths.
static const struct error *shown_error(const struct error *err, struct error *fallback)
{
    static const enum error_code hidden[] = {ERROR_IO, ERROR_INTERNAL, ERROR_CORRUPT};
    for (size_t i = 0; i < ARRAY_LEN(hidden); i++) {
        if (err->code != hidden[i])
            continue;
        log_error("a tool call failed: %s", err->message);
        error_set(fallback, ERROR_INTERNAL,
                  "try once more; if it stays, tell the operator to look into chat2shell's log",
                  "chat2shell could not do this because of a fault on its side");
        return fallback;
    }
    return err;
}

void tool_fail(struct tool_call *call, const struct error *err)
{
    struct error fallback = ERROR_INIT;
    CLEANUP_FREE char *text = tool_failure_words(call->tool->name, shown_error(err, &fallback));
    tool_answer_result(call, json_pack("{s:o, s:b}", "content", text_content(text), "isError", 1));
}

int tool_fail_set(struct tool_call *call, enum error_code code, const char *hint, const char *format, ...)
{
    struct error error = ERROR_INIT;
    va_list args;
    va_start(args, format);
    CLEANUP_FREE char *message = mem_vformat(format, args);
    va_end(args);
    error_set(&error, code, hint, "%s", message);
    tool_fail(call, &error);
    return -1;
}

// ---- start
// ------------------------------------------------------------------------------------------------------- Our
// own tools hand texts on as C strings. The forwarded ones do not, and a file's content may hold a NUL.
static int check_texts(const struct tool_call *call, struct error *err)
{
    const char *name;
    json_t *value;
    if (call->tool->place == TOOL_FORWARDS)
        return 0;
    json_object_foreach(
        call->arguments, name,
        value) if (json_is_string(value) &&
                   strlen(json_string_value(value)) !=
                       json_string_length(value)) return error_set(err, ERROR_INVALID, "leave that character out",
                                                                   "%s must not hold a NUL character", name);
    return 0;
}

static void end_waits(struct tool_call *call);

// A caller that went away before its call began asked for the work all the same.
void tool_call_run(struct tool_call *call)
{
    if (step(call, call->tool->run) && call->is_cancelled)
        end_waits(call);
}

void tool_call_start(struct tool_call *call, struct world *world, const struct catalogue *catalogue,
                     struct tool_gate *gate, const struct tool *tool, const char *principal,
                     uint64_t asker, json_t *arguments, tool_finish_fn finish, void *arg)
{
    *call = (struct tool_call){
        .world = world, .catalogue = catalogue, .tool = tool, .principal = principal, .asker = asker,
        .arguments = arguments, .gate = gate, .finish = finish, .arg = arg, .news = call->news, .started_us = boot_time_us()};
    struct error error = ERROR_INIT;
    if (!tool_gate_enter(call)) {
        tool_fail_set(call, ERROR_LIMIT, "wait until some of them have ended, then try again",
                      "too many tool calls are under way: of %d places one caller may hold four times as many as are left",
                      TOOL_CALLS_MAX);
        return;
    }
    if (catalogue_check(catalogue, tool->name, arguments, &error) < 0 || check_texts(call, &error) < 0) {
        tool_fail(call, &error);
        return;
    }
    if (tool->place == TOOL_READS)
        step(call, tool->run);
    else
        tool_gate_post(call);
}

// ---- steps ------------------------------------------------------------------------------------------------
bool tool_is_over(struct tool_call *call)
{
    if (call->is_answered || !call->is_cancelled)
        return call->is_answered;
    tool_fail_set(call, ERROR_CANCELLED, "ask again", "the caller has gone");
    return true;
}

static void run_next(void *arg)
{
    struct tool_call *call = arg;
    if (!tool_is_over(call))
        step(call, call->next);
}

void tool_sandbox_requested(void *arg, int result, enum sandbox_outcome outcome, struct record *record,
                            const struct error *err)
{
    struct tool_call *call = arg;
    call->outcome = outcome;
    tool_record_requested(call, result, record, NULL, err);
}

void tool_record_requested(void *arg, int result, struct record *record, json_t *unsaved,
                           const struct error *err)
{
    struct tool_call *call = arg;
    call->result = result;
    call->record = record;
    call->unsaved = unsaved;
    if (result < 0)
        error_copy(call->error = mem_alloc(sizeof(*call->error)), err);
    loop_post(call->world->loop, run_next, call);
}

static void read_again(void *arg)
{
    struct tool_call *call = arg;
    call->waiter = NULL;
    if (tool_is_over(call))
        return;
    struct record *record = NULL;
    struct error error = ERROR_INIT;
    if (store_get_uid(call->world->store, call->record->kind, call->record->meta.uid, &record, &error) <
        0) {
        tool_fail(call, &error);
        return;
    }
    record_free(call->record);
    call->record = record;
    step(call, call->next);
}

static void
changed(void *arg,
        bool is_timeout) // store or loop thread; the deadline is looked at again by tool_wait_change
{
    (void)is_timeout;
    struct tool_call *call = arg;
    loop_post(call->world->loop, read_again, call);
}

static bool is_late(const struct tool_call *call)
{
    return clock_boot(loop_clock(call->world->loop)).ms >= call->deadline.ms;
}

bool tool_try_wait_change(struct tool_call *call)
{
    struct world *world = call->world;
    if (is_late(call) || !tool_gate_enter_wait(call))
        return false;
    call->waiter = store_wait(world->store, world->loop, call->record->meta.uid,
                              call->record->meta.resource_version, call->deadline, changed, call);
    return true;
}

bool tool_wait_change(struct tool_call *call)
{
    if (tool_try_wait_change(call))
        return true;
    if (!is_late(call))
        tool_fail_set(call, ERROR_LIMIT,
                      "what was asked for goes on: look with sandbox_get or sandbox_list in a moment",
                      "too many calls are waiting for a sandbox");
    return false;
}

static bool leave_lane(struct tool_call *call)
{
    bool must_stop = call->tool->place == TOOL_FORWARDS;
    return must_stop ? lane_call_stop(call->lane) : lane_call_cancel(call->lane);
}

static void end_waits(struct tool_call *call)
{
    bool is_ended = (call->waiter && store_wait_cancel(call->waiter)) || (call->lane && leave_lane(call));
    if (!is_ended)
        return; // a step's end is on its way and finds is_cancelled
    call->waiter = NULL;
    call->lane = NULL;
    tool_is_over(call);
}

void tool_call_cancel(struct tool_call *call)
{
    if (call->is_answered || call->is_cancelled)
        return;
    call->is_cancelled = true;
    end_waits(call);
}

// ---- looking on -------------------------------------------------------------------------------------------
void tool_call_describe(const struct tool_call *call, int64_t waited_ms, struct tool_progress *ret)
{
    *ret = (struct tool_progress){0};
    snprintf(ret->message, sizeof(ret->message), "%s has been working for %lld s", call->tool->name,
             (long long)waited_ms / 1000);
    if (call->describe && !call->is_answered)
        call->describe(call, waited_ms, ret);
}

static void tell_lane_news(void *arg)
{
    struct tool_call *call = arg;
    if (!call->is_answered)
        call->news(call->arg);
}

void tool_follow_lane(struct tool_call *call)
{
    if (!call->lane)
        return;
    lane_call_set_asker(call->lane, call->asker);
    if (call->news)
        lane_call_watch(call->lane, tell_lane_news);
}
