#include "reconcilers/drivers/bubblewrap/shim/check.h"
#include "controller/base/cleanup.h"
#include "controller/base/fs.h"
#include "controller/base/json.h"
#include "reconcilers/drivers/bubblewrap/shim/identity.h"
#include "reconcilers/drivers/bubblewrap/shim/tree.h"
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>

static bool try_overlay(void)
{
    static const char *const dirs[] = {"/tmp/l", "/tmp/u", "/tmp/w", "/tmp/m"};
    if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_SLAVE | MS_REC, NULL) < 0 ||
        mount("tmpfs", "/tmp", "tmpfs", MS_NOSUID | MS_NODEV, "mode=0755,size=1m") < 0)
        return false;
    for (size_t i = 0; i < ARRAY_LEN(dirs); i++)
        if (mkdir(dirs[i], 0755) < 0)
            return false;
    return mount("overlay", "/tmp/m", "overlay", MS_NOSUID | MS_NODEV, "lowerdir=/tmp/l,upperdir=/tmp/u,workdir=/tmp/w,userxattr") == 0;
}

static bool has_overlay(const struct identity *identity)
{
    pid_t pid = fork();
    if (pid == 0)
        _exit(identity_enter(identity, NULL) < 0 || !try_overlay());
    int status = 1;
    while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    return pid > 0 && status == 0;
}

static bool has_idmapped(const struct identity *identity)
{
    CLEANUP_CLOSE int fd = open("/usr", O_PATH | O_DIRECTORY | O_CLOEXEC);
    CLEANUP_CLOSE int tree_fd = fd < 0 ? -1 : tree_open_as_root(fd, TREE_MAP_SYSTEM, identity, NULL);
    return tree_fd >= 0;
}

int check_main(void)
{
    struct error err = ERROR_INIT;
    struct identity identity;
    CLEANUP_JSON json_t *answer = NULL;
    if (identity_make(false, &identity, &err) < 0) {
        answer = json_pack("{s:s, s:s}", "error", err.message, "hint", err.hint);
    } else {
        answer = json_pack("{s:s, s:b, s:b}", "identity", identity_name(identity.kind), "overlay", has_overlay(&identity),
                           "keeps_groups", identity.keeps_groups);
        if (identity.kind == IDENTITY_RANGE)
            json_object_set_new(answer, "idmapped", json_boolean(has_idmapped(&identity)));
    }
    CLEANUP_FREE char *text = json_to_text(answer);
    puts(text);
    return fflush(stdout) == 0 ? 0 : 1;
}
