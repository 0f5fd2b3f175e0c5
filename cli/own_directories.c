#include "cli/own_directories.h"
#include "controller/base/cleanup.h"
#include "controller/base/fs.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

// Names that chat2shell makes in one of its directories; "ws_" stands for every workspace.
static const char *const own_names[] = {"state", "workspaces", "templates", "clones", "bundles", "chat2shell.sqlite", "lock", "runtimes",
                                        "tunnel", "sbx-clones", ".trash", "ws_"};

static bool is_own_name(const char *name)
{
    for (size_t i = 0; i < ARRAY_LEN(own_names); i++)
        if (strcmp(name, own_names[i]) == 0 || (strcmp(own_names[i], "ws_") == 0 && strncmp(name, "ws_", 3) == 0))
            return true;
    return false;
}

// Whether it holds something, and nothing that chat2shell makes.
static bool is_foreign(int fd)
{
    int list_fd = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *list = list_fd >= 0 ? fdopendir(list_fd) : NULL;
    if (!list) {
        if (list_fd >= 0)
            close(list_fd);
        return false;
    }
    bool is_empty = true, has_own = false;
    for (struct dirent *entry; !has_own && (entry = readdir(list));)
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0) {
            is_empty = false;
            has_own = is_own_name(entry->d_name);
        }
    closedir(list);
    return !is_empty && !has_own;
}

static int check(const char *variable, const char *path, struct error *err)
{
    CLEANUP_CLOSE int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    struct stat st;
    if (fd < 0 || fstat(fd, &st) < 0 || (st.st_mode & 07777) == 0700)
        return 0; // not there, or private already; what is wrong otherwise is said when it is made
    if ((st.st_mode & S_ISVTX) || is_foreign(fd))
        return error_set(err, ERROR_REFUSED, "give a directory of its own: it is made private (mode 0700), which would lock the others out",
                         "%s: %s is in use by something else", variable, path);
    return 0;
}

int own_directories_make(const struct config *config, struct error *err)
{
    const struct {
        const char *variable, *path;
    } all[] = {{"CHAT2SHELL_DATA_ROOT", config->data_root}, {"CHAT2SHELL_STATE_DIR", config->state_dir}, {"CHAT2SHELL_WORKSPACE_ROOT", config->workspace_root}};
    for (size_t i = 0; i < ARRAY_LEN(all); i++)
        if (check(all[i].variable, all[i].path, err) < 0)
            return -1;
    for (size_t i = 0; i < ARRAY_LEN(all); i++)
        if (fs_make_private_dir(all[i].path, NULL, err) < 0) {
            if (err && !err->hint[0])
                error_hint(err, "CHAT2SHELL_DATA_ROOT must be a directory of this user on a writable file system with room");
            return error_context(err, "cannot prepare the data root");
        }
    return 0;
}
