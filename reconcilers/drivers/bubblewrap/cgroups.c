// Which cgroups this process may make below its own, found by trying: version 1 hierarchies, or version 2 where the
// controllers can be handed down.
#include "controller/base/buffer.h"
#include "controller/base/cleanup.h"
#include "controller/base/fs.h"
#include "controller/base/memory.h"
#include "reconcilers/drivers/bubblewrap/bubblewrap.h"
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define PROC_MAX_BYTES (1024 * 1024)

static const struct controller {
    const char *name, *version1_file, *version2_file;
} controllers[] = {
    {"memory", "memory.limit_in_bytes", "memory.max"},
    {"pids", "pids.max", "pids.max"},
    {"cpu", "cpu.cfs_quota_us", "cpu.max"},
};

void cgroups_free(struct cgroup_list *list)
{
    for (size_t i = 0; i < list->count; i++) {
        free(list->items[i].controller);
        free(list->items[i].path);
    }
    list->count = 0;
}

static bool has_word(const char *list, const char *word, char separator)
{
    size_t len = strlen(word);
    for (const char *at = list; (at = strstr(at, word)) != NULL; at += len)
        if ((at == list || at[-1] == separator) && (at[len] == '\0' || at[len] == separator || at[len] == '\n'))
            return true;
    return false;
}

// This process's path in the hierarchy with the controller; "" names version 2's.
static char *own_path(const char *controller)
{
    CLEANUP(buffer_free) struct buffer text = BUFFER_INIT(PROC_MAX_BYTES);
    if (fs_read_file("/proc/self/cgroup", &text, NULL) < 0)
        return NULL;
    char *rest = NULL;
    for (char *line = strtok_r(text.data, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
        char *names = strchr(line, ':'), *path = names ? strchr(names + 1, ':') : NULL;
        if (path == NULL)
            continue;
        *path++ = '\0';
        names++;
        if (controller[0] ? has_word(names, controller, ',') : names[0] == '\0')
            return mem_strdup(path);
    }
    return NULL;
}

struct mount_line {
    char root[1024], point[1024], type[64], options[1024];
};

static bool parse_mount(const char *line, struct mount_line *ret)
{
    const char *tail = strstr(line, " - ");
    return tail && sscanf(line, "%*d %*d %*s %1023s %1023s", ret->root, ret->point) == 2 &&
           sscanf(tail, " - %63s %*s %1023s", ret->type, ret->options) == 2;
}

// Where the hierarchy is mounted, joined with path.
static char *mounted_path(const char *controller, const char *path)
{
    CLEANUP(buffer_free) struct buffer text = BUFFER_INIT(PROC_MAX_BYTES);
    if (path == NULL || fs_read_file("/proc/self/mountinfo", &text, NULL) < 0)
        return NULL;
    char *rest = NULL;
    for (char *line = strtok_r(text.data, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
        struct mount_line mount;
        if (!parse_mount(line, &mount) || strcmp(mount.type, controller[0] ? "cgroup" : "cgroup2") != 0 ||
            (controller[0] && !has_word(mount.options, controller, ',')))
            continue;
        const char *below = path;
        if (strcmp(mount.root, "/") != 0 && strncmp(path, mount.root, strlen(mount.root)) == 0)
            below = path + strlen(mount.root);
        return mem_format("%s%s", mount.point, strcmp(below, "/") == 0 ? "" : below);
    }
    return NULL;
}

static bool can_limit(const char *parent, const char *file)
{
    CLEANUP_FREE char *dir = mem_format("%s/chat2shell-probe-%d", parent, getpid());
    CLEANUP_FREE char *path = mem_format("%s/%s", dir, file);
    if (mkdir(dir, 0755) < 0)
        return false;
    bool is_there = access(path, W_OK) == 0;
    rmdir(dir);
    return is_there;
}

static void add_parent(struct cgroup_list *list, int version, const char *controller, const char *path)
{
    list->items[list->count++] = (struct cgroup_parent){version, mem_strdup(controller), mem_strdup(path)};
}

static bool write_text(const char *dir, const char *file, const char *text)
{
    CLEANUP_FREE char *path = mem_format("%s/%s", dir, file);
    CLEANUP_CLOSE int fd = open(path, O_WRONLY | O_CLOEXEC);
    return fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);
}

// Version 2 hands controllers down only from a group without processes: the daemon moves into a leaf, if it is alone in
// its group (a service unit with Delegate=yes).
static void hand_down(const char *path)
{
    static const char *const wanted[] = {"+memory", "+pids", "+cpu"};
    CLEANUP_FREE char *procs = mem_format("%s/cgroup.procs", path);
    CLEANUP_FREE char *leaf = mem_format("%s/chat2shell-controller", path);
    CLEANUP(buffer_free) struct buffer text = BUFFER_INIT(4096);
    if (fs_read_file(procs, &text, NULL) == 0 && strtol(buffer_text(&text), NULL, 10) == getpid() &&
        strchr(text.data, '\n') == text.data + text.len - 1 && (mkdir(leaf, 0755) == 0 || errno == EEXIST))
        write_text(leaf, "cgroup.procs", "0");
    for (size_t i = 0; i < ARRAY_LEN(wanted); i++)
        write_text(path, "cgroup.subtree_control", wanted[i]);
}

void cgroups_find(struct cgroup_list *ret)
{
    ret->count = 0;
    CLEANUP_FREE char *own2 = own_path("");
    CLEANUP_FREE char *version2 = mounted_path("", own2);
    if (version2)
        hand_down(version2);
    for (size_t i = 0; i < ARRAY_LEN(controllers); i++) {
        CLEANUP_FREE char *own1 = own_path(controllers[i].name);
        CLEANUP_FREE char *version1 = mounted_path(controllers[i].name, own1);
        if (version1 && can_limit(version1, controllers[i].version1_file))
            add_parent(ret, 1, controllers[i].name, version1);
        else if (version2 && can_limit(version2, controllers[i].version2_file))
            add_parent(ret, 2, controllers[i].name, version2);
    }
}

// A process of a dead sandbox can only be one that broke its tie to the shim; it is still in its group.
static void kill_members(const char *dir)
{
    if (write_text(dir, "cgroup.kill", "1"))
        return;
    CLEANUP_FREE char *procs = mem_format("%s/cgroup.procs", dir);
    CLEANUP(buffer_free) struct buffer text = BUFFER_INIT(PROC_MAX_BYTES);
    if (fs_read_file(procs, &text, NULL) < 0)
        return;
    char *rest = NULL;
    for (char *line = strtok_r((char *)buffer_text(&text), "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
        long pid = strtol(line, NULL, 10);
        if (pid > 1 && pid != getpid())
            kill((pid_t)pid, SIGKILL);
    }
}

void cgroups_kill(const struct cgroup_list *list, const char *name)
{
    for (size_t i = 0; i < list->count; i++) {
        CLEANUP_FREE char *dir = mem_format("%s/chat2shell-%s", list->items[i].path, name);
        kill_members(dir);
    }
}

bool cgroups_are_gone(const struct cgroup_list *list, const char *name)
{
    bool are_gone = true;
    for (size_t i = 0; i < list->count; i++) {
        CLEANUP_FREE char *dir = mem_format("%s/chat2shell-%s", list->items[i].path, name);
        if (rmdir(dir) < 0 && errno != ENOENT)
            are_gone = false;
    }
    return are_gone;
}
