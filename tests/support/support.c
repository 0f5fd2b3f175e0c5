#include "tests/support/support.h"
#include "controller/base/fs.h"
#include "controller/base/memory.h"
#include "controller/base/time.h"
#include <libgen.h>
#include <stdlib.h>
#include <time.h>

char *support_make_dir(void)
{
    const char *base = getenv("TMPDIR");
    char *path = mem_format("%s/chat2shell-test-XXXXXX", base ? base : "/tmp");
    if (!mkdtemp(path))
        fail_msg("cannot make a temporary directory %s", path);
    return path;
}

void support_remove_dir(char *path)
{
    struct error err = ERROR_INIT;
    if (fs_remove_tree(AT_FDCWD, path, &err) < 0)
        print_error("%s: %s\n", path, err.message);
    free(path);
}

int64_t support_now_ms(void)
{
    return boot_time_now().ms;
}

void support_pause(int ms)
{
    nanosleep(&(struct timespec){.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L}, NULL);
}

char *support_program_dir(void)
{
    const char *build = getenv("CHAT2SHELL_BUILD_DIR");
    if (build)
        return mem_strdup(build);
    CLEANUP_FREE char *self = realpath("/proc/self/exe", NULL);
    if (!self)
        fail_msg("cannot resolve /proc/self/exe");
    return mem_strdup(dirname(dirname(self)));
}
