// The only place that starts processes. One spawner thread lives as long as the daemon, because PR_SET_PDEATHSIG
// fires when the *thread* that forked ends. argv arrays, never a shell; every descriptor not named is closed.
#pragma once
#include "controller/base/error.h"
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct spawner;
int spawner_start(struct spawner **ret, struct error *err);
void spawner_stop(struct spawner *spawner);

struct spawn_fd {
    int fd;        // stays the caller's
    int target_fd; // number in the child
};
struct spawn_options {
    const char *path;              // absolute program
    const char *const *argv;       // NULL-terminated
    const char *const *environment; // NULL-terminated; NULL = empty. Secrets go here or through descriptors, never argv
    struct spawn_fd fds[8];         // others: 0,1,2 are /dev/null unless named here
    size_t fd_count;
    bool dies_with_us; // PR_SET_PDEATHSIG SIGKILL
};
// Always in a new session and process group. *ret_pidfd is the caller's. Any thread; waits for the exec result,
// so a missing program is an error here ("cannot start /usr/bin/bwrap: …").
int spawn_process(struct spawner *spawner, const struct spawn_options *options, pid_t *ret_pid, int *ret_pidfd,
                  struct error *err);
