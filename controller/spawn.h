// The only place that starts processes. One spawner thread lives as long as the daemon, because PR_SET_PDEATHSIG
// fires when the *thread* that forked ends. argv arrays, never a shell; every descriptor not named is closed.
//
//     if (spawn_process(spawner, &options, &pid, &pidfd, err) < 0) return -1;
//     loop_watch(loop, pidfd, EPOLLIN, …);              // readable once it has ended
//     if (spawn_reap(pidfd, &exit_code) == 0) { loop_unwatch(…); close(pidfd); }
//
// The caller reaps: a child stays a zombie (its pid is not used again) until spawn_reap or spawn_wait took its status.
#pragma once
#include "controller/base/error.h"
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct spawner; // thread-safe
int spawner_start(struct spawner **ret, struct error *err);
// Ends the thread, and with it every child that dies_with_us. NULL allowed. No spawn_process may be under way.
void spawner_stop(struct spawner *spawner);

#define SPAWN_MAX_FDS 8
struct spawn_fd {
    int fd;        // stays the caller's
    int target_fd; // number in the child; each at most once, below 256. May equal another entry's fd.
};
struct spawn_options {
    const char *path;              // absolute program
    const char *const *argv;       // NULL-terminated
    const char *const *environment; // NULL-terminated; NULL = empty. Secrets go here or through descriptors, never argv
    struct spawn_fd fds[SPAWN_MAX_FDS]; // others: 0,1,2 are /dev/null unless named here
    size_t fd_count;
    const char *directory; // NULL = "/"
    bool dies_with_us; // PR_SET_PDEATHSIG SIGKILL (a set-user-id program drops it at exec)
};
// Always in a new session and process group (both numbered *ret_pid), with every signal at its default and unblocked,
// in the directory that is stated. *ret_pidfd is the caller's. Any thread; waits for the exec result, so a missing program is an
// error here ("cannot start /usr/bin/bwrap: …") and leaves no process.
int spawn_process(struct spawner *spawner, const struct spawn_options *options, pid_t *ret_pid, int *ret_pidfd,
                  struct error *err);

// Takes the status of a child that has ended, without waiting: 0 and *ret_exit_code (128+N for death by signal N), or
// -1 and errno: EAGAIN it still runs, ECHILD it was reaped before. The pidfd stays open.
int spawn_reap(int pidfd, int *ret_exit_code);
// The same, waiting at most timeout_ms (-1: without limit); errno EAGAIN after the timeout. Never on the loop thread.
int spawn_wait(int pidfd, int timeout_ms, int *ret_exit_code);
// Another pidfd of a child, for whoever does not keep one all the time: right as long as nobody reaped it, because its number is
// its own until then. -1 and errno (EMFILE).
int spawn_hold(pid_t pid);
// To the process alone. 0, or -1 and errno (ESRCH once it was reaped).
int spawn_signal(int pidfd, int signal);
// To the child's whole process group, while the child is not reaped: only then the number is certainly still ours.
// 0, or -1 and errno (ESRCH once it was reaped). The caller makes sure that no other thread reaps meanwhile.
int spawn_signal_group(pid_t pid, int pidfd, int signal);
