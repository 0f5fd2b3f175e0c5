// Runs the real chat2shell-guest on a scratch workspace and talks to it. Every call fails the running test
// when it does not come to its end within a minute.
#pragma once
#include "controller/base/json.h"
#include "tests/support/support.h"
#include <stdint.h>
#include <sys/types.h>

struct guest_rig {
    pid_t pid;
    int in, out;       // its stdin and stdout
    char *top;         // what is removed at the end: the workspace, or the repository that it is in
    char *dir;         // the workspace; HOME too, so that no profile of the machine's user runs
    json_t *unclaimed; // answers that came while another was awaited
    char *input;
    size_t input_len;
    int64_t last_id;
};

char *guest_rig_program(void); // path of the built binary; the caller owns it
void guest_rig_start(struct guest_rig *rig);
void guest_rig_start_in_repository(struct guest_rig *rig); // the workspace is the directory "sub" of one
// cmocka's fixtures: *state is a rig.
int guest_rig_setup(void **state);
int guest_rig_setup_in_repository(void **state);
int guest_rig_teardown(void **state);
int guest_rig_stop(struct guest_rig *rig); // end of input; returns the exit status and removes the workspace

void guest_rig_send_text(struct guest_rig *rig, const char *text, size_t len);
json_t *guest_rig_receive(struct guest_rig *rig); // the next answer, whichever
int64_t guest_rig_send(struct guest_rig *rig, const char *method, json_t *params); // takes params
json_t *guest_rig_wait(struct guest_rig *rig, int64_t id);                         // the whole answer
json_t *guest_rig_call(struct guest_rig *rig, const char *method,
                       json_t *params); // its result; fails on an error
int guest_rig_call_code(struct guest_rig *rig, const char *method,
                        json_t *params); // its error's code; fails on a result
json_t *guest_rig_tool(struct guest_rig *rig, const char *name,
                       json_t *args); // structuredContent; fails on isError
char *guest_rig_tool_error(struct guest_rig *rig, const char *name, json_t *args); // text of the failed call
void guest_rig_put(struct guest_rig *rig, const char *path, const char *text,
                   size_t len); // a file in the workspace
void guest_rig_put_text(struct guest_rig *rig, const char *path, const char *text);
