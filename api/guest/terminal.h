// Pseudo-terminals for programs of the operator. The program's side is its controlling terminal: the driver gives the sandbox a
// private devpts, so no other sandbox and nothing of the host has it. Loop thread only.
#pragma once
#include "controller/base/error.h"
#include "controller/base/json.h"
#include "api/guest/environment.h"
#include <stdint.h>
#include <sys/types.h>

#define TERMINAL_TERM_MAX 64
#define TERMINAL_DEFAULT_TERM "xterm"

struct terminal_size {
    uint16_t columns, rows; // 0: not known
};
// Reads the object "tty" of exec_start: {columns?, rows?, term?}.
int terminal_read(const json_t *tty, struct terminal_size *ret_size, const char **ret_term, struct error *err);
// Opens the master (close-on-exec, nonblocking) and names the other side, which the caller frees.
int terminal_open(const struct terminal_size *size, int *ret_master, char **ret_slave, struct error *err);
int terminal_resize(int master, const struct terminal_size *size); // -1 and errno; the foreground job gets SIGWINCH
// What a person at a terminal wants that an assistant's command does not.
void terminal_set_environment(struct environment *environment, const char *term);
// Kills every process of the session that `leader` was the first of. Nothing if that number is another process's by now.
void terminal_kill_session(pid_t leader, bool is_reaped);
