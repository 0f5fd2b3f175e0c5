// What shell*.c share. The two halves: asks (one call of the script schemas/shell/run.bash in the sandbox, retried until its
// answer came through whole) and requests (one extension method, answered once, which makes one or more asks).
#pragma once
#include "controller/base/guest_protocol.h"
#include "reconcilers/session/codexpro/shell.h"
#include <sys/queue.h>

#define SHELL_ID_MAX 64
#define SHELL_PIECE_BYTES 48000     // of what travels into the sandbox in one call: 64,000 letters of base64
#define SHELL_COMMAND_MAX_BYTES 131071 // the longest argument of a program on Linux
#define SHELL_NONCE_SIZE 17
#define SHELL_PAUSE_MS 50 // a server that answers waits at once must not make us spin
#define SHELL_WORDS_MAX 16
#define SHELL_BLOCKS_MAX 2

// ---- asks ----------------------------------------------------------------------------------------------------------

struct shell_reply { // what came back, checked by length and CRC
    const char *words[SHELL_WORDS_MAX];
    size_t word_count;
    struct {
        char *bytes;
        size_t len;
    } blocks[SHELL_BLOCKS_MAX];
    size_t block_count;
    char *text; // the words point into it
};
void shell_reply_free(struct shell_reply *reply);
bool shell_reply_is(const struct shell_reply *reply, const char *word); // its first word
int64_t shell_reply_number(const struct shell_reply *reply, size_t word); // -1 if it is none

enum shell_frame_state { FRAME_GOOD, FRAME_DAMAGED, FRAME_ABSENT, FRAME_GONE /* the directory in the sandbox was removed */ };
enum shell_frame_state shell_frame_read(const char *bytes, size_t len, const char *nonce, bool is_hex, struct shell_reply *ret);
char *shell_quote(const char *text); // as one word for bash

struct shell_ask;
// reply: borrowed; NULL with err. Never called from inside shell_ask.
typedef void (*shell_reply_fn)(void *arg, const struct shell_reply *reply, const struct error *err);
struct shell_order {
    const char *operation, *arguments; // copied; words without anything that bash would see
    const char *cwd;                   // NULL: the workspace
    int64_t wait_ms;                   // what the operation itself may take
    int64_t pause_ms;                  // before it is asked: SHELL_PAUSE_MS where an answer without news makes it come again
    bool makes_directory;              // the directory may be made anew if it was removed
};
struct shell_ask *shell_ask(struct shell *shell, const struct shell_order *order, shell_reply_fn fn, void *arg);
void shell_ask_drop(struct shell_ask *ask); // fn will not be called; NULL allowed
void shell_asks_free(struct shell *shell);

// ---- requests ------------------------------------------------------------------------------------------------------

struct shell_request {
    TAILQ_ENTRY(shell_request) link; // of the shell
    TAILQ_ENTRY(shell_request) wait; // of a session's or an exec's list
    struct shell *shell;
    int64_t id;
    json_t *params;
    rpc_answer_fn fn;
    void *arg;
    void (*cancel)(struct shell_request *request); // only for waits: forgets them, then the request is answered
    void *context;
    struct shell_ask *ask; // its own, if any
    struct loop_timer *timer;
    struct boot_time until; // of a wait
    json_t *result;
    struct error error;
    bool has_ended; // the timer tells
};
TAILQ_HEAD(shell_requests, shell_request);
void shell_answer(struct shell_request *request, json_t *result); // takes result
void shell_fail(struct shell_request *request, const struct error *err);
void shell_fail_garbled(struct shell_request *request);

struct shell_session;
struct shell_exec;
struct shell {
    struct shell_host host;
    char *dir;            // in the sandbox; NULL: not made yet
    int64_t prepare_call; // > 0 while it is being made
    char prepare_nonce[SHELL_NONCE_SIZE];
    struct loop_timer *prepare_failed;
    struct error prepare_error;
    LIST_HEAD(, shell_ask) asks;
    struct shell_requests requests;
    TAILQ_HEAD(, shell_session) sessions; // oldest first
    TAILQ_HEAD(, shell_exec) execs;
    size_t session_count, exec_count;
    int64_t last_id;
};
// Makes the directory in the sandbox, if that is not under way; then shell_prepared.
void shell_prepare(struct shell *shell);
void shell_prepare_free(struct shell *shell);
void shell_prepared(struct shell *shell, const struct error *err); // err NULL: the asks that wait for it go on
// The stdout of a call of the tool `bash`, or NULL with err.
const char *shell_stdout(const json_t *result, bool has_cwd, size_t *ret_len, struct error *err);
// What to say if stdout holds no answer.
int shell_blame(const json_t *result, struct error *err);

// A program with a supervisor in the sandbox: what it is to run travels first, in pieces if need be.
struct shell_program {
    struct shell *shell;
    const char *kind; // "bash", "exec"
    char id[24], *cwd, *spec;
    size_t spec_len, sent;
    int64_t timeout_ms;
    struct shell_ask *ask;
    shell_reply_fn started; // reply: borrowed; its first word says how it went
    void *arg;
};
void shell_program_start(struct shell_program *program);
void shell_program_clear(struct shell_program *program);
// Tells the sandbox to forget it; nobody waits for that.
void shell_forget(struct shell *shell, const char *operation, const char *id);

// ---- parameters, as api/guest has them ---------------------------------------------------------------------------------

int shell_get_text(const json_t *params, const char *name, bool is_required, const char **ret, struct error *err);
int shell_get_int(const json_t *params, const char *name, int64_t min, int64_t max, int64_t *ret, struct error *err);
bool shell_is_exit_code(int64_t code);

// ---- methods -----------------------------------------------------------------------------------------------------------

void shell_bash_start(struct shell_request *request);
void shell_bash_read(struct shell_request *request);
void shell_bash_stop(struct shell_request *request);
void shell_sessions_free(struct shell *shell);
void shell_exec_start(struct shell_request *request);
void shell_exec_write(struct shell_request *request);
void shell_exec_read(struct shell_request *request);
void shell_exec_signal(struct shell_request *request);
void shell_exec_end(struct shell_request *request);
void shell_execs_free(struct shell *shell);
void shell_git_unsaved(struct shell_request *request);
