// A shell over CodexPro's bash tool (tests/support/raw_bash.h) on a scratch workspace, on real time. Every wait fails the
// running test after a minute.
#pragma once
#include "tests/support/raw_bash.h"

struct shell_rig {
    struct clock *clock;
    struct loop *loop;
    char *workspace, *home;
    struct raw_bash *raw;
    struct shell *shell;
};
int shell_rig_setup(void **state);
int shell_rig_teardown(void **state);
void shell_rig_put(const char *dir, const char *name, const char *text); // a file

struct shell_heard { // what one request was answered with
    int count;
    json_t *result;
    struct error error;
};
int64_t shell_rig_send(struct shell_rig *rig, const char *method, json_t *params, struct shell_heard *heard); // "bash_start"; takes params
void shell_rig_cancel(struct shell_rig *rig, int64_t id);
void shell_rig_wait(struct shell_heard *heard);
bool shell_rig_heard(struct shell_heard *heard);
json_t *shell_rig_call(struct shell_rig *rig, const char *method, json_t *params); // its result; fails on an error
struct error shell_rig_fail(struct shell_rig *rig, const char *method, json_t *params, enum error_code code); // fails on a result

void shell_rig_start(struct shell_rig *rig, const char *id, const char *command); // bash_start
json_t *shell_rig_read(struct shell_rig *rig, const char *id, const char *wait, int wait_ms);
// Reads until it has exited and nothing is left. Returns all output; the caller's.
char *shell_rig_drain(struct shell_rig *rig, const char *id, size_t *ret_len, int *ret_code);
