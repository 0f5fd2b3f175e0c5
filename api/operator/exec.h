// The operator's programs in sandboxes, as this API knows them: exec, cp and export. A program is known by
// its execId, whatever connection asks. What comes back about it is the sandbox's word: each answer is read
// strictly and built anew.
#pragma once
#include "api/operator/internal.h"

#define EXECS_MAX 256
#define EXEC_ID_SIZE 38     // "exec_", 32 hex digits, NUL
#define EXEC_GRACE_MS 15000 // for an answer beyond the wait that was asked for

// ---- execs.c: the table. Any thread unless stated.
// ------------------------------------------------------------------
struct execs *operator_execs_new(struct world *world);
void operator_execs_stop(struct execs *execs); // ends all programs; not on the loop thread
void operator_execs_free(struct execs *execs); // after operator_execs_stop
bool operator_execs_add(struct execs *execs, const char *id,
                        const char *sandbox_uid); // false: EXECS_MAX are there
void operator_execs_remove(struct execs *execs, const char *id);
// reads: +1 begins one, -1 ends one, 0 looks only. False: there is no such program in that sandbox.
bool operator_execs_touch(struct execs *execs, const char *id, const char *sandbox_uid, int reads);

// ---- ask.c: one request of a call to a sandbox's tool server
// ------------------------------------------------------------
struct sandbox_ask {
    struct call *call;
    const char *method;
    json_t *params;
    int64_t deadline_ms;
    char *sandbox_uid;
    char id[EXEC_ID_SIZE]; // "" = about no program
    struct lane_call *lane;
    bool is_read;  // counted in the table
    bool is_start; // the program is forgotten if it fails
    // The answer's body; NULL: what came back is not what it should be.
    json_t *(*answer)(struct sandbox_ask *ask, const json_t *from);
    // What follows on success in place of the answer; ends the call. Strings are borrowed. NULL: the answer.
    void (*then)(struct call *call, const char *sandbox_uid, const char *exec_id);
};
// params: taken. Becomes call->state.
struct sandbox_ask *sandbox_ask_new(struct call *call, const struct record *sandbox, const char *method,
                                    json_t *params, int64_t deadline_ms);
void sandbox_ask_free(struct sandbox_ask *ask);
// Sends it and answers the call. is_kept: it is sent and heard out although the client leaves.
void sandbox_ask_run(struct sandbox_ask *ask, bool is_kept);
// What went wrong with a sandbox, in an operator's words: a lane words it for assistants, the record knows better.
void sandbox_ask_explain(struct world *world, const char *sandbox_uid, const struct error *err, struct error *ret);

// ---- exec_output.c: what a program prints
// --------------------------------------------------------------------------------------
struct exec_output {
    char *bytes[2]; // stdout, stderr
    size_t len[2];
    bool has_exited;
    int exit_code;
};
void exec_output_clear(struct exec_output *output);
// Strict: -1 if it is not what a tool server may answer.
int exec_output_read(const json_t *from, struct exec_output *ret);

// ---- exec_stream.c: the program's streams over the connection that asked for it
// ---------------------------------------------------------
void operator_exec_join(struct call *call, const char *sandbox_uid, const char *exec_id);
