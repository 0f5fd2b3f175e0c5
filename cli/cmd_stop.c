// stop: asks the daemon to end, and waits until it is gone: its lock is free then.
#include "cli/command.h"
#include "cli/terminal.h"
#include "controller/base/fs.h"
#include "controller/base/memory.h"
#include "controller/base/time.h"
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/pidfd.h>

#define STOP_WAIT_MS 90000 // as long as systemd waits by default
#define STOP_LOOK_MS 20

// Shared, and let go at once: a daemon that starts meanwhile is hindered for no more than that.
static bool is_locked(const char *state_dir)
{
    CLEANUP_FREE char *path = mem_format("%s/lock", state_dir);
    CLEANUP_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    return fd >= 0 && flock(fd, LOCK_SH | LOCK_NB) < 0 && errno == EWOULDBLOCK;
}

static bool is_running(int pidfd)
{
    return pidfd >= 0 && poll(&(struct pollfd){.fd = pidfd, .events = POLLIN}, 1, 0) == 0;
}

static int wait_for_end(const char *state_dir, int pidfd, struct error *err)
{
    int64_t deadline_ms = boot_time_now().ms + STOP_WAIT_MS;
    while (is_locked(state_dir) || is_running(pidfd)) {
        if (boot_time_now().ms >= deadline_ms)
            return error_set(err, ERROR_TIMEOUT, "look at its log; at worst kill it: what it leaves is settled at the next start",
                             "the daemon was asked to stop and still runs after %d s", STOP_WAIT_MS / 1000);
        poll(NULL, 0, STOP_LOOK_MS);
    }
    return 0;
}

static int run(struct invocation *in, struct error *err)
{
    const struct rest *rest = invocation_rest(in, err);
    CLEANUP_JSON json_t *answer = NULL;
    if (!rest || rest_post(rest, REST_OWN "/stop", NULL, &answer, err) < 0)
        return -1;
    CLEANUP_CLOSE int pidfd = pidfd_open((pid_t)json_get_int(answer, "pid", 0), 0); // -1: gone already, or not to be seen from here
    if (wait_for_end(in->config.state_dir, pidfd, err) < 0)
        return -1;
    terminal_note("stopped");
    return 0;
}

const struct command command_stop = {.name = "stop", .synopsis = "", .summary = "Stop the daemon and wait until it is gone", .run = run};
