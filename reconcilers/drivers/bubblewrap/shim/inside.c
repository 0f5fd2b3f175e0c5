#include "reconcilers/drivers/bubblewrap/shim/inside.h"
#include "reconcilers/drivers/bubblewrap/shim/rules.h"
#include "controller/base/cleanup.h"
#include "controller/base/json.h"
#include "controller/base/socket.h"
#include <errno.h>
#include <linux/close_range.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>

// bubblewrap sets the effective, permitted and inheritable sets and leaves the bounding set alone.
static void bound_capabilities(void)
{
    for (int i = 0; prctl(PR_CAPBSET_READ, i, 0, 0, 0) >= 0; i++)
        if (!(kept_capability_mask() & 1ULL << i))
            prctl(PR_CAPBSET_DROP, i, 0, 0, 0);
    prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
}

static int report(int fd)
{
    CLEANUP_JSON json_t *message = json_pack("{s:[]}", "broken");
    inside_check_rules(json_object_get(message, "broken"));
    CLEANUP_FREE char *text = json_to_text(message);
    return socket_send_fds(fd, text, strlen(text), NULL, 0) < 0 ? -1 : 0;
}

// End-of-file instead of the byte: the shim gave up.
static bool may_go_on(int fd)
{
    char byte;
    return socket_receive_fds(fd, &byte, 1, NULL, NULL) == 1;
}

static _Noreturn void become_command(char **command)
{
    prctl(PR_SET_DUMPABLE, 1);
    execvp(command[0], command);
    static const char words[] = "cannot start the sandbox's command\n";
    if (write(2, words, sizeof(words) - 1) < 0)
        _exit(126);
    _exit(127);
}

static int status_code(int status)
{
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

static int reap_until(pid_t command)
{
    for (;;) {
        int status;
        pid_t pid = wait(&status);
        if (pid == command)
            return status_code(status);
        if (pid < 0 && errno != EINTR)
            return 125;
    }
}

// Its own copies of the streams would hold them open after the command closed them.
static void let_go_of_streams(void)
{
    int null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
    for (int i = 0; i < 3 && null_fd >= 0; i++)
        dup2(null_fd, i);
}

int inside_main(int argc, char **argv)
{
    if (argc < 5)
        return 126;
    // Undumpable: nobody inside may trace the process whose death signal ties the sandbox to the shim.
    prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    close_range(3, ~0U, CLOSE_RANGE_CLOEXEC);
    bound_capabilities();
    int report_fd = (int)strtol(argv[2], NULL, 10);
    if (report(report_fd) < 0 || !may_go_on(report_fd))
        return 126;
    close(report_fd);
    pid_t command = fork();
    if (command == 0)
        become_command(argv + 4);
    if (command < 0)
        return 126;
    let_go_of_streams();
    return reap_until(command);
}
