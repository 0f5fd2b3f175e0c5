// What session*.c share.
#pragma once
#include "api/guest/bash_log.h"
#include "api/guest/session.h"

#define SESSION_ID_MAX 64
#define SESSION_STOP_GRACE_MS 1500
#define SESSION_TIMEOUT_GRACE_MS 2000

struct session {
    struct guest *guest;
    char id[SESSION_ID_MAX + 1];
    struct child child;
    pid_t group;             // as long as the kill timer runs, also after the leader is gone
    struct loop_source pipe; // stdout and stderr; fd -1 after its end
    struct bash_log log;
    struct loop_timer deadline, kill_timer;
    bool has_exited, is_timed_out;
    int64_t printed_bytes; // since its start
    int exit_code;
    struct session_wait *first_read; // in order of arrival
    struct session_wait *first_stop;
    struct session *next;
};

struct session *session_find(struct guest *guest, const char *id);
// The answer of bash_read: takes at most max_bytes from the log.
json_t *session_take_snapshot(struct session *session, size_t max_bytes);
bool session_has_readable(const struct session *session); // more than a held-back piece of a character
void session_wake_waits(struct session *session);         // answers every wait whose condition holds
// SIGTERM to the group now, SIGKILL to what is left of it after the grace time.
void session_end_group(struct session *session, int64_t grace_ms);
void session_drop(struct session *session); // unlinked by the caller; frees it
