// Parts of the driver for Docker Sandboxes that its files share. The driver speaks to the `sbx` program only: one short-lived
// client for each call, one client held open for each session. Everything behind `runtimes` belongs to the loop thread, and so
// do all functions below unless they say otherwise; the members before it are fixed once the driver is made.
#pragma once
#include "controller/base/buffer.h"
#include "controller/pool.h"
#include "reconcilers/drivers/driver.h"
#include "reconcilers/drivers/sbx/parse.h"
#include <pthread.h>

#define SBX_MAX_PORTS 64
#define SBX_TEMPLATE_CODEXPRO "chat2shell-codexpro:0.30.0"
#define SBX_TEMPLATE_SHELL "shell" // how status calls Docker's own image
#define SBX_CODEXPRO_PROGRAM "codexpro-mcp-http"
#define SBX_CODEXPRO_PORT 18790 // inside
#define SBX_GUEST_PATH "/usr/local/bin/chat2shell-guest"

enum feature { FEATURE_DENY_NETWORK, FEATURE_PUBLISH, FEATURE_SKILLS, FEATURE_PULL, FEATURE_COUNT };

struct sbx_deadlines { // tests shorten them
    int64_t create_ms;      // of all of a create, its clean-up not included
    int64_t create_call_ms; // of `sbx create`
    int64_t remove_call_ms;
    int64_t call_ms;        // of every other call
    int64_t session_ms;     // until the held process runs inside
    int64_t second_look_ms; // between two looks whether a sandbox is gone
};
extern const struct sbx_deadlines sbx_default_deadlines;

struct runtime;
struct removal;
struct list_batch;
struct list_call;
struct version_waiter;
struct call;
struct sbx {
    struct driver driver; // first
    struct clock *clock;
    struct loop *loop;
    struct spawner *spawner;
    char *program, *program_dir, *instance;
    char **environment;
    struct sbx_deadlines deadlines;
    char *clones_dir; // state_dir/sbx-clones: which host repository a clone sandbox came from; made with the first one
    struct pool *pool;            // starts the clients: the loop must not wait for a process to start
    pthread_mutex_t jobs_lock;    // guards the two below
    struct job *jobs_first, *jobs_last;
    pthread_mutex_t calls_lock;   // guards the next three, and of every call what its struct says
    struct call *calls;           // that are not freed yet
    bool is_closing;              // calls end as cancelled from now on
    bool is_interrupted;          // looks do
    struct runtime *runtimes;     // made by this process and not confirmed gone
    struct removal *removals;
    struct held *helds;           // every held client that is not reaped
    struct list_batch *batches;   // `ls` calls under way, and the one that is to start
    struct list_call *list_calls; // of the driver's list
    struct boot_time last_list;
    struct loop_timer *list_timer;
    struct version version;       // {0}: not known, to be asked
    bool is_refused[FEATURE_COUNT]; // flags that this version turned out not to know
    struct call *version_call;
    struct version_waiter *version_waiters;
};
static inline struct sbx *sbx_of(struct driver *driver)
{
    return (struct sbx *)driver;
}
bool sbx_owns(const struct sbx *sbx, const char *name);

// ---- jobs.c: what the pool's threads do -----------------------------------------------------------------------------
struct job {
    struct job *next;
    void (*run)(struct job *job); // on a thread of the pool
};
void sbx_job_add(struct sbx *sbx, struct job *job); // any thread
bool sbx_job_work(void *sbx);                       // of the pool

// ---- call.c: one run of `sbx WORDS…` --------------------------------------------------------------------------------
struct words {
    char **items; // NULL-terminated
    size_t count;
};
void sbx_words_add(struct words *words, const char *format, ...) __attribute__((format(printf, 2, 3)));
void sbx_words_add_all(struct words *words, const char *const *texts); // NULL-terminated
void sbx_words_free(struct words *words);

enum call_end { CALL_EXITED, CALL_TIMED_OUT, CALL_CANCELLED, CALL_NOT_STARTED };
struct call_result { // valid in the callback only
    enum call_end end;
    int exit_code; // CALL_EXITED
    const char *output, *printed, *errors; // both streams as they came; stdout; stderr. NUL-terminated
    size_t output_len, printed_len, errors_len;
    bool is_cut;
    const char *verb;    // "create"
    const char *subject; // the runtime's name, never shown to anybody; NULL = none
    int64_t deadline_ms;
    const struct error *start_error; // CALL_NOT_STARTED
};
typedef void (*call_done_fn)(void *arg, const struct call_result *result);
struct call_options {
    struct words words;  // taken over
    const char *subject; // a runtime: asserts that it is ours. NULL: a call that changes nothing
    int64_t deadline_ms; // of this one call
    const char *program; // NULL = sbx
    const char *const *environment; // NULL = the driver's
    bool is_last;                   // runs though the driver is closing
    bool is_look;                   // for somebody who waits for findings
};
// Any thread. `done` runs once, on the loop thread. The handle is valid until done returns, and sbx_call_cancel is the loop
// thread's: done still runs, later, with CALL_CANCELLED.
struct call *sbx_call_start(struct sbx *sbx, struct call_options *options, call_done_fn done, void *arg);
void sbx_call_cancel(struct call *call); // NULL allowed
void sbx_call_cancel_all(struct sbx *sbx);   // for ever: those that come later end at once
bool sbx_call_is_any(struct sbx *sbx);       // any thread: is one not freed yet?
bool sbx_call_is_interrupted(struct sbx *sbx);
void sbx_call_interrupt(struct sbx *sbx);    // the looks, now and later; any thread
// Runs `count` calls at once and waits for all; never on the loop thread. results[i] is called on the loop thread.
void sbx_call_wait_all(struct sbx *sbx, struct call_options *options, size_t count, call_done_fn done, void *const *args);
// The program of a name in PATH or an absolute path: owned by the caller, NULL if there is none.
char *sbx_call_find_program(const char *program);
char **sbx_call_environment_new(void); // what sbx may see of ours
void sbx_call_environment_free(char **environment);

// ---- words.c: what a call's end means -------------------------------------------------------------------------------
// 0 if it exited with 0 and whole output; else -1 and a sentence without the runtime's name.
int sbx_call_judge(const struct call_result *result, struct error *err);
// The same, for a call whose failure is known already (exit code 0 with nonsense, say): always -1.
int sbx_call_fail(const struct call_result *result, struct error *err);
bool sbx_call_says_absent(const struct call_result *result);            // no such sandbox, on either stream
bool sbx_call_says_unknown_flag(const struct call_result *result, const char *flag);
bool sbx_call_says_port_taken(const struct call_result *result);
int sbx_call_json(const struct call_result *result, json_t **ret, struct error *err); // judge, then the JSON of stdout

// ---- version.c ------------------------------------------------------------------------------------------------------
typedef void (*version_fn)(void *arg, const struct version *version, const struct error *err); // version NULL: err
void sbx_version_ask(struct sbx *sbx, version_fn done, void *arg); // answers from memory, or asks once for all who wait
void sbx_version_leave(struct sbx *sbx, void *arg);                // done(arg) will not run
void sbx_version_forget(struct sbx *sbx);                          // after an odd failure: it is asked again
bool sbx_version_has(const struct sbx *sbx, enum feature feature);
const char *sbx_version_flag(enum feature feature);                // "--skills"
bool sbx_version_drop_refused(struct sbx *sbx, const struct call_result *result); // a flag was unknown: do without it
int sbx_version_check(const struct version *version, struct error *err);         // new enough?

// ---- listing.c: `ls`, shared by those who wait for one --------------------------------------------------------------
// The list is younger than the question. sandboxes is borrowed for the callback.
typedef void (*list_fn)(void *arg, const struct sandbox_row_list *sandboxes, const struct error *err);
void sbx_list_ask(struct sbx *sbx, list_fn done, void *arg);
void sbx_list_leave(struct sbx *sbx, void *arg); // done(arg) will not run
void sbx_list_stop(struct sbx *sbx);             // nobody waits any more

// ---- denial.c: the addresses that no sandbox may reach --------------------------------------------------------------
struct denial;
extern const char *const sbx_denied_hosts[]; // NULL-terminated
struct denial *sbx_denial_confirm(struct sbx *sbx, const char *name, void (*done)(void *arg, const struct error *err), void *arg);
void sbx_denial_cancel(struct denial *denial); // done will not run

// ---- inside.c: looking around in a new sandbox ----------------------------------------------------------------------
#define INSIDE_MARKER_DIGITS 32
struct inside {
    char *root;
    bool has_codexpro, has_docker, has_git, has_sudo, is_checkout;
};
void sbx_inside_words(struct words *words, const char *name, const char *marker);
int sbx_inside_read(const struct call_result *result, const char *marker, struct inside *ret, struct error *err);
void sbx_inside_free(struct inside *inside);

// ---- runtime.c ------------------------------------------------------------------------------------------------------
struct creation;
struct held;
struct sbx_session_start;
struct runtime_port {
    int port, host_port;
    bool is_pending; // being published
};
struct runtime {
    struct runtime *next;
    struct sbx *sbx;
    char *name;
    char *root;                // inside
    enum session_kind session; // never SESSION_DEFAULT
    struct creation *creation; // NULL once it ended
    bool is_made;              // its create ended well
    bool is_untouched;         // sbx never heard of it
    bool is_unsettled;         // a create of it was cut short: sbx may still be making it
    bool is_removing;
    struct sbx_session_start *starting;
    struct held *held;        // the foreground process of its session
    struct call *ending_call; // that ends the process inside whose client was killed
    struct runtime_port ports[SBX_MAX_PORTS];
    size_t port_count;
};
struct runtime *sbx_runtime_find(struct sbx *sbx, const char *name);
struct runtime *sbx_runtime_add(struct sbx *sbx, const char *name);
void sbx_runtime_free(struct runtime *runtime); // nothing of it may be under way
bool sbx_runtime_runs(const struct runtime *runtime); // made, not being removed, its session's process alive

// ---- create.c -------------------------------------------------------------------------------------------------------
void sbx_create(struct driver *driver, const struct driver_spec *spec, driver_created_fn done, driver_died_fn died, void *arg);
void sbx_create_cancel(struct creation *creation); // it ends soon, and then calls sbx_remove_creation_ended
int sbx_place_check_path(const char *path, struct error *err);                                   // can sbx be told this path?
int sbx_place_check(const char *path, int64_t device, int64_t inode, bool is_after, struct error *err); // is it what was approved?
int sbx_place_check_checkout(const char *path, struct error *err);                               // can --clone be used on it?
void sbx_facts_describe(struct driver *driver, const char *template_name, struct capability_list *ret);
void sbx_facts_fill(const struct inside *inside, const char *template_name, struct driver_facts *ret); // borrows both
void sbx_facts_free(struct driver_facts *facts);

// ---- clone_remote.c: what Docker Sandboxes leaves in the host repository of a clone ---------------------------------
int sbx_clone_note(struct sbx *sbx, const char *name, const char *source, struct error *err); // before the create
// Removes the remote sandbox-NAME where the note says, and the note. done may run before the return.
void sbx_clone_forget(struct sbx *sbx, const char *name, void (*done)(void *arg, const struct error *err), void *arg);

// ---- session.c, held.c ----------------------------------------------------------------------------------------------
void sbx_session_start(struct driver *driver, const char *name, driver_session_fn done, void *arg);
void sbx_session_cancel(struct sbx_session_start *start, const struct error *err); // answers and frees
struct held_streams {
    int input_fd, output_fd, error_fd;
};
// Starts `sbx WORDS…` and holds it, with pipes as its streams. started comes once, later, with the streams (handed over) or an
// error that ends it; then ended, once. After sbx_held_free neither comes.
struct held_events {
    void (*started)(void *arg, const struct held_streams *streams, const struct error *err);
    void (*ended)(void *arg, int exit_code);
    void *arg;
};
// Takes over words and environment (NULL: the driver's own).
struct held *sbx_held_start(struct sbx *sbx, struct words *words, char **environment, const struct held_events *events);
void sbx_held_free(struct held *held);                             // kills the client if it still runs; NULL allowed
void sbx_held_wait_all(struct sbx *sbx);                           // at the driver's end, off the loop: until all are reaped

// ---- ports.c --------------------------------------------------------------------------------------------------------
void sbx_ports_publish(struct driver *driver, const char *name, int port, driver_port_fn done, void *arg);
void sbx_ports_unpublish(struct driver *driver, const char *name, int port, driver_done_fn done, void *arg);
void sbx_ports_probe(struct driver *driver, const char *name, int port, driver_done_fn done, void *arg);
void sbx_ports_dial(struct driver *driver, const char *name, int port, driver_dial_fn done, void *arg); // dial.c
void sbx_ports_ask(struct sbx *sbx, const char *name, call_done_fn done, void *arg, struct call **ret); // `ports NAME --json`

// ---- remove.c -------------------------------------------------------------------------------------------------------
void sbx_remove(struct driver *driver, const char *name, driver_done_fn done, void *arg);
// was_there: sbx had such a sandbox, and removed it.
typedef void (*removed_fn)(void *arg, bool was_there, const struct error *err);
void sbx_remove_on_loop(struct sbx *sbx, const char *name, removed_fn done, void *arg);
void sbx_remove_creation_ended(struct sbx *sbx, const char *name); // the removal that waits for it goes on
void sbx_remove_stop(struct sbx *sbx, const struct error *err);    // at the driver's end: all are answered

// ---- probe.c --------------------------------------------------------------------------------------------------------
void sbx_findings_probe(struct driver *driver, struct finding_list *ret);
