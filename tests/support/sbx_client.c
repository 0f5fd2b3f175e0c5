#include "tests/support/sbx_client.h"
#include "controller/base/cleanup.h"
#include "controller/base/fs.h"
#include "controller/base/memory.h"
#include "tests/support/support.h"
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define STANDIN TEST_SOURCE_DIR "/tests/fakes/sbx"
#define SOURCE TEST_SOURCE_DIR "/tests/fakes/sbx_client.c"

static bool is_fresh(const char *program)
{
    struct stat made, source;
    return stat(program, &made) == 0 && stat(SOURCE, &source) == 0 &&
           made.st_mtim.tv_sec > source.st_mtim.tv_sec;
}

static int compile(const char *to)
{
    int status = -1;
    pid_t pid = fork();
    if (pid == 0) {
        execlp("cc", "cc", "-O1", "-static", "-DSBX_STANDIN=\"" STANDIN "\"", "-o", to, SOURCE, (char *)NULL);
        _exit(127);
    }
    return pid > 0 && waitpid(pid, &status, 0) == pid && status == 0 ? 0 : -1;
}

// Other test programs may be at it at the same time: it comes there whole.
static int build(const char *dir, const char *program)
{
    CLEANUP_FREE char *made = mem_format("%s/sbx.%d", dir, (int)getpid());
    if (fs_make_private_dir(dir, NULL, NULL) < 0 || compile(made) < 0 || rename(made, program) < 0) {
        unlink(made);
        return -1;
    }
    return 0;
}

const char *sbx_client_program(void)
{
    static char program[PATH_MAX];
    if (*program)
        return program;
    CLEANUP_FREE char *self = realpath("/proc/self/exe", NULL);
    if (!self)
        fail_msg("cannot resolve /proc/self/exe");
    CLEANUP_FREE char *dir = mem_format("%s/standin", dirname(self));
    snprintf(program, sizeof(program), "%s/sbx", dir);
    if (!is_fresh(program) && build(dir, program) < 0)
        snprintf(program, sizeof(program), "%s", STANDIN);
    return program;
}
