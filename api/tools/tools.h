// The tools of the MCP interface: one file a tool, one table (table.c), one catalogue
// (schemas/tools/NAME.json, embedded). The untrusted caller's side: a tool validates, writes desired state
// through reconcilers.h, waits and renders; nothing here reaches a driver or an approval's decision.
//
// Threads: tool_call_start may come on any thread. Tools marked TOOL_READS run on it at once and only read
// the store; the others, and every continuation of them, run on the loop thread, so a call needs no lock. A
// call is answered exactly once (tool_answer, tool_answer_result or tool_fail), also when its caller has
// gone.
#pragma once
#include "api/auth/caller.h"
#include "controller/base/json.h"
#include "controller/base/shared_text.h"
#include "controller/ids.h"
#include "controller/queue/fair.h"
#include "reconcilers/reconcilers.h"
#include <pthread.h>
#include <stdatomic.h>

// Admission: calls under way in this process, and of those the ones that wait for a record's status. One asker gets at most
// four fifths (controller/queue/fair.h).
#define TOOL_CALLS_MAX 2560
#define TOOL_WAITS_MAX 160
// Many clients give up after 60 s.
#define TOOL_CREATE_WAIT_MS (50 * 1000)
#define TOOL_RULES_WAIT_MS (5 * 1000) // for the operator's rules to decide about a host path
#define TOOL_DESTROY_WAIT_MS (50 * 1000)
#define TOOL_EXPOSE_WAIT_MS (20 * 1000)

struct tool_call;
enum tool_place {
    TOOL_READS,
    TOOL_WAITS,
    TOOL_FORWARDS
}; // TOOL_FORWARDS waits too; the sandbox's tool server does it
struct tool {
    const char *name;
    enum tool_place place;
    enum auth_scope scope; // of its caller
    void (*run)(struct tool_call *call);
};
extern const struct tool tools[];
extern const size_t tool_count;
const struct tool *tool_find(const char *name); // NULL if unknown

// ---- catalogue --------------------------------------------------------------------------------------------
struct catalogue {
    json_t *entries; // object: name → catalogue entry
    json_t *list;    // {"tools": […]} in the table's order
    char hash[65];   // SHA-256, in hex, of the text of that array as tools/list gives it: it changes with anything that
                     // a client sees of the tools, and with nothing else
};
int catalogue_load(struct catalogue *ret,
                   struct error *err); // ERROR_INTERNAL if an embedded entry is missing or wrong
void catalogue_free(struct catalogue *catalogue);
// Whole arguments against the tool's inputSchema; see schema_check.h for what may be changed in them.
int catalogue_check(const struct catalogue *catalogue, const char *tool, json_t *arguments, struct error *err);
// A structuredContent from an untrusted tool server against the tool's outputSchema: members that it does not name are
// taken out, anything else that does not fit is ERROR_INVALID.
int catalogue_fit_result(const struct catalogue *catalogue, const char *tool, json_t *structured, struct error *err);

// ---- calls ------------------------------------------------------------------------------------------------
struct cached_list {
    struct store_version version;
    struct shared_text *text; // a CallToolResult
};
struct list_cache { // see list_answer.h
    pthread_mutex_t lock;
    struct cached_list lists[KIND_COUNT];
};
void list_cache_init(struct list_cache *cache);
void list_cache_clear(struct list_cache *cache);

struct tool_gate { // shared by all calls of a server
    pthread_mutex_t lock; // guards the next three
    struct fair_line calls, waits; // admission; `calls` is also the line of those that wait for the loop thread
    bool is_looking;               // a look at the line is posted
    struct list_cache lists;
};
void tool_gate_init(struct tool_gate *gate);
void tool_gate_clear(struct tool_gate *gate); // no call is under way
// An MCP CallToolResult: as a value, or ready made as its JSON text. Exactly one is set; the reference is handed over.
struct tool_result {
    json_t *value;
    struct shared_text *text;
};
typedef void (*tool_finish_fn)(void *arg, struct tool_result result);
// What a call that waits is doing, for whoever waits for it.
struct tool_progress {
    int64_t total_ms;  // the longest that it waits; 0: not known
    char message[256]; // a sentence
};
typedef void (*tool_news_fn)(void *arg);
struct tool_call {
    struct world *world;
    const struct catalogue *catalogue;
    const struct tool *tool;
    const char *principal; // "mcp", "mcp:token:NAME", …; the caller's memory
    uint64_t asker;        // whose share of places and turns it takes
    struct fair_item place, wait_place;
    json_t *arguments; // object that fits the schema; owned
    int64_t started_us; // boot time
    struct tool_gate *gate;
    tool_finish_fn finish;
    void *arg;
    // Set before the start by a caller that follows the call, else NULL: runs on the loop thread, with arg, whenever
    // tool_call_describe would say something new.
    tool_news_fn news;

    // Loop thread (or the starting one before it is posted):
    bool is_answered, is_cancelled;
    bool is_repeated; // sandbox_create: the request was made once more, after its approval
    bool is_stepping; // inside run or next: `finish` waits until it returned, so that it may look at the call
                      // to its end
    struct tool_result answer; // meanwhile
    void (*next)(struct tool_call *call); // what the current step leads to
    void (*describe)(const struct tool_call *call, int64_t waited_ms, struct tool_progress *ret); // NULL: nothing to say
    struct boot_time deadline;
    struct store_waiter *waiter;
    struct lane_call *lane;
    enum kind kind; // of `record`
    // What a step brought, filled by whatever thread ended it before it posts `next`:
    int result;
    enum sandbox_outcome outcome;
    struct record *record;
    json_t *unsaved;
    struct error *error; // owned; NULL unless result is a failure
};
// arguments: reference taken. A failed check or a full house answers at once. call is memory of the caller's
// that lives until finish returned, as principal does.
void tool_call_start(struct tool_call *call, struct world *world, const struct catalogue *catalogue,
                     struct tool_gate *gate, const struct tool *tool, const char *principal,
                     uint64_t asker, json_t *arguments, tool_finish_fn finish, void *arg);
// Loop thread: the caller has gone, or does not want it any more. Ends the waits. The work goes on where it was asked for
// as a state or as a command of a Bash session; a tool that the sandbox's tool server does is told to stop. The call still
// finishes, maybe later.
void tool_call_cancel(struct tool_call *call);
// Loop thread, while the call is not answered: what it is doing since waited_ms.
void tool_call_describe(const struct tool_call *call, int64_t waited_ms, struct tool_progress *ret);

// ---- journal.c, for call.c --------------------------------------------------------------------------------
void tool_note_in_journal(const struct tool_call *call, const json_t *result); // before its arguments go

// ---- gate.c, for call.c -----------------------------------------------------------------------------------
bool tool_gate_enter(struct tool_call *call);      // false: a full house
void tool_gate_leave(struct tool_call *call);      // all that it holds
bool tool_gate_enter_wait(struct tool_call *call); // again: nothing
// Runs the call on the loop thread when it is its asker's turn.
void tool_gate_post(struct tool_call *call);
void tool_call_run(struct tool_call *call); // what the gate then calls; loop thread

// ---- for the tools' own files -----------------------------------------------------------------------------
const char *tool_text(const struct tool_call *call, const char *name); // NULL if absent
int64_t tool_int(const struct tool_call *call, const char *name, int64_t fallback);
json_t *tool_result(json_t *structured);                         // a CallToolResult with it, also as text; reference taken
void tool_answer(struct tool_call *call, json_t *structured);    // with tool_result of it
void tool_answer_text(struct tool_call *call, struct shared_text *result); // a whole CallToolResult's JSON text; reference taken
void tool_answer_result(struct tool_call *call, json_t *result); // a whole CallToolResult; reference taken
void tool_fail(struct tool_call *call, const struct error *err); // isError, a sentence with what to do next
int tool_fail_set(struct tool_call *call, enum error_code code, const char *hint, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
// Requests: give these as `done` with the call as arg; `next` runs on the loop thread with call->result,
// record, ….
void tool_sandbox_requested(void *arg, int result, enum sandbox_outcome outcome, struct record *record,
                            const struct error *err);
void tool_record_requested(void *arg, int result, struct record *record, json_t *unsaved,
                           const struct error *err);
// Waits for a change of call->record, reads it again and runs `next`. False: the deadline has passed, or the
// call cannot wait (answered then: test call->is_answered).
bool tool_wait_change(struct tool_call *call);
bool tool_try_wait_change(struct tool_call *call); // the same, but a call that cannot wait is not answered
// Says in the lane whose call call->lane is, and passes its news on; call it right after the lane's call was made.
void tool_follow_lane(struct tool_call *call);
// True if `next` must do nothing because the caller has gone: the call is answered.
bool tool_is_over(struct tool_call *call);
// The sandbox of the arguments, live or tombstone; NULL and answered if there is none.
struct record *tool_read_sandbox(struct tool_call *call);
// A lane's failure in words about the sandbox's state.
void tool_fail_lane(struct tool_call *call, const struct error *err);
// Adds a sentence to result.notes.
void tool_note(json_t *result, const char *format, ...) __attribute__((format(printf, 2, 3)));
void tool_note_sandbox(json_t *result, const struct record *sandbox,
                       const json_t *rendered); // capabilities and their notes
// What a failed sandbox says about itself; never NULL.
const char *tool_failure_of(const struct record *sandbox);
