// chat2shell-shim: one for each namespace sandbox. The first argument picks what it is: the supervisor (`run`), the net
// helper (`net`), the sandbox's first process (`inside`), the remover of an earlier sandbox's files
// (`purge`), what unpacks a template (`unpack`), or the one who finds out what the host can do (`check`).
#include "controller/base/cleanup.h"
#include "controller/base/fs.h"
#include "controller/base/json.h"
#include "reconcilers/drivers/bubblewrap/shim/check.h"
#include "reconcilers/drivers/bubblewrap/shim/inside.h"
#include "reconcilers/drivers/bubblewrap/shim/shim.h"
#include <linux/close_range.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>

static void send_failed(const struct shim *shim, const struct error *err)
{
    shim_send(shim->controller_fd,
              json_pack("{s:s, s:s, s:s, s:s}", "event", "failed", "error", err->message, "hint", err->hint, "code",
                        error_meaning(err->code)->name),
              NULL, 0);
}

// What is left unread on the stderr of the foreground process; its bytes are the sandbox's own.
static json_t *last_words(const struct shim *shim)
{
    char bytes[1024];
    fs_set_nonblocking(shim->stdio[2], true);
    ssize_t n = read(shim->stdio[2], bytes, sizeof(bytes));
    return json_from_bytes(bytes, n > 0 ? (size_t)n : 0);
}

static void send_exited(const struct shim *shim, bool was_out_of_memory)
{
    const char *reason = was_out_of_memory ? "the tool server was killed because the sandbox ran out of memory"
                                           : "the tool server in the sandbox ended";
    shim_send(shim->controller_fd,
              json_pack("{s:s, s:i, s:s, s:o}", "event", "exited", "exit_code", shim->exit_code, "reason", reason, "last_words",
                        last_words(shim)),
              NULL, 0);
}

static void forget(struct shim *shim)
{
    json_decref(shim->broken_rules);
    json_decref(shim->config.root);
}

static int run(void)
{
    close_range(SHIM_FD_CONFIG, ~0U, CLOSE_RANGE_CLOEXEC);
    signal(SIGPIPE, SIG_IGN);
    prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
    struct error err = ERROR_INIT;
    CLEANUP(forget) struct shim shim = {.controller_fd = SHIM_FD_CONTROLLER, .listen_fd = -1, .lock_fd = -1, .bwrap_pidfd = -1,
                        .init_pidfd = -1, .stdio = {-1, -1, -1}, .status_fd = -1, .report_fd = -1, .proxy_fd = -1, .exit_code = -1,
                        .identity = {.userns_fd = -1, .slot_fd = -1}, .net = {.boot_fd = -1, .connector_fd = -1}};
    memset(shim.clients, -1, sizeof(shim.clients));
    if (config_read(SHIM_FD_CONFIG, &shim.config, &err) < 0) {
        send_failed(&shim, &err);
        return 1;
    }
    if (shim_start(&shim, &err) < 0) {
        shim_finish(&shim);
        send_failed(&shim, &err);
        return 1;
    }
    shim_serve(&shim);
    bool was_asked = shim.state == SHIM_ENDING, was_out_of_memory = limits_killed_for_memory(&shim.config);
    shim_finish(&shim);
    send_exited(&shim, was_out_of_memory && !was_asked);
    return 0;
}

// The modes that work on one name in SHIM_FD_DIRECTORY.
static int work_on(int argc, char **argv, int (*work)(const char *name, struct error *err))
{
    struct error err = ERROR_INIT;
    if (argc != 3 || argv[2][0] == '\0' || strchr(argv[2], '/') || strcmp(argv[2], "..") == 0 || strcmp(argv[2], ".") == 0)
        return 2;
    if (work(argv[2], &err) == 0)
        return 0;
    fprintf(stderr, "%s\n", err.message);
    return 1;
}

int main(int argc, char **argv)
{
    const char *mode = argc > 1 ? argv[1] : "";
    if (strcmp(mode, "run") == 0)
        return run();
    if (strcmp(mode, "net") == 0)
        return net_main(argc, argv);
    if (strcmp(mode, "inside") == 0)
        return inside_main(argc, argv);
    if (strcmp(mode, "check") == 0)
        return check_main();
    if (strcmp(mode, "purge") == 0)
        return work_on(argc, argv, shim_purge);
    if (strcmp(mode, "unpack") == 0)
        return work_on(argc, argv, shim_unpack);
    fputs("chat2shell-shim is started by chat2shell; it has no use of its own\n", stderr);
    return 2;
}
