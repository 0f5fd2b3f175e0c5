#include "cli/child.h"
#include "controller/base/cleanup.h"
#include "controller/base/memory.h"
#include <errno.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

int child_split(const char *line, size_t more, const char ***ret, char **ret_text, struct error *err)
{
    CLEANUP_FREE char *text = mem_strdup(line);
    CLEANUP_FREE const char **words = mem_alloc((CHILD_MAX_WORDS + more + 1) * sizeof(*words));
    size_t count = 0;
    char *state = NULL;
    for (char *word = strtok_r(text, " \t", &state); word; word = strtok_r(NULL, " \t", &state)) {
        if (count == CHILD_MAX_WORDS)
            return error_set(err, ERROR_USAGE, "write a script and name that", "'%.60s…' has more than %d words", line, CHILD_MAX_WORDS);
        words[count++] = word;
    }
    if (!count)
        return error_set(err, ERROR_USAGE, "name a program", "no program is named in '%.60s'", line);
    *ret = TAKE_PTR(words);
    *ret_text = TAKE_PTR(text);
    return 0;
}

static int start(const char *const *argv, const sigset_t *mask, pid_t *ret)
{
    posix_spawnattr_t attributes;
    sigset_t defaults;
    sigemptyset(&defaults);
    sigaddset(&defaults, SIGINT);
    sigaddset(&defaults, SIGQUIT);
    sigaddset(&defaults, SIGPIPE);
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK);
    posix_spawnattr_setsigdefault(&attributes, &defaults);
    posix_spawnattr_setsigmask(&attributes, mask);
    int r = posix_spawnp(ret, argv[0], NULL, &attributes, (char *const *)argv, environ);
    posix_spawnattr_destroy(&attributes);
    return r;
}

int child_run(const char *const *argv, int *ret_exit_code, struct error *err)
{
    struct sigaction ignore = {.sa_handler = SIG_IGN}, old_int, old_quit;
    sigset_t mask;
    pid_t pid;
    int status;
    sigprocmask(SIG_SETMASK, NULL, &mask);
    sigaction(SIGINT, &ignore, &old_int);
    sigaction(SIGQUIT, &ignore, &old_quit);
    int r = start(argv, &mask, &pid);
    while (r == 0 && waitpid(pid, &status, 0) < 0)
        r = errno == EINTR ? 0 : errno;
    sigaction(SIGINT, &old_int, NULL);
    sigaction(SIGQUIT, &old_quit, NULL);
    if (r)
        return error_errno(err, r, "is it installed, and in PATH?", "cannot run %s", argv[0]);
    *ret_exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    return 0;
}
