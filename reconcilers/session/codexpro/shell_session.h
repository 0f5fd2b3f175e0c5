// What shell_bash.c and shell_snapshot.c share: the control plane's side of one Bash session over CodexPro.
#pragma once
#include "reconcilers/session/codexpro/shell_state.h"

#define SESSION_READ_BYTES 60000

struct shell_session {
    TAILQ_ENTRY(shell_session) link;
    struct shell *shell;
    char id[SHELL_ID_MAX + 1];
    struct shell_program program;
    struct shell_request *starting; // NULL once it runs
    uint64_t pos;                   // the first byte that nobody was given
    uint64_t seen;                  // behind the last byte that a look has shown: up to there is a held-back piece
    bool has_exited, has_ended;     // the process; its output too
    bool has_unread;
    int exit_code;
    struct shell_requests waits, stops; // reads that wait, in order of arrival
    struct shell_ask *waiting, *stopping;
    bool waits_for_output; // what `waiting` looks for besides the exit
    struct boot_time waiting_until;
};

// One look: bytes [start, start + len) of the output, which has `size` bytes now.
struct shell_window {
    uint64_t start, size;
    const char *bytes;
    size_t len;
    bool has_disk_failed;
};
int session_note_look(struct shell_session *session, const struct shell_reply *reply, struct shell_window *ret); // -1: garbled
bool session_has_readable(const struct shell_session *session, const struct shell_window *window);
// The answer of bash_read: takes at most max_bytes.
json_t *session_take_snapshot(struct shell_session *session, const struct shell_window *window, size_t max_bytes);
