#include "reconcilers/drivers/bubblewrap/shim/stage.h"
#include "controller/base/cleanup.h"
#include "controller/base/fs.h"
#include "controller/base/memory.h"
#include "reconcilers/drivers/bubblewrap/shim/bwrap_args.h"
#include "reconcilers/drivers/bubblewrap/shim/rootfs.h"
#include "reconcilers/drivers/bubblewrap/shim/tree.h"
#include <errno.h>
#include <linux/keyctl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/syscall.h>

// The staging area replaces the root of this process's mount namespace; until then it hangs here. It is a directory
// that every identity may pass, and the host's own content of it is out of sight once the area is mounted.
#define AREA "/tmp"
#define BWRAP_PATH "/usr/bin/bwrap"
#define BOUND (MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV)

static int write_text(const char *path, const char *text)
{
    CLEANUP_CLOSE int fd = open(path, O_WRONLY | O_CLOEXEC);
    return fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text) ? 0 : -1;
}

// Rules that are set before any namespace of bubblewrap exists. The user namespace's own limit is checked by the probe
// inside; a host that forbids writing it still has the filter.
static int set_process_rules(const struct stage *stage, struct error *err)
{
    write_text("/proc/sys/user/max_user_namespaces", "0");
    if (write_text("/proc/self/oom_score_adj", "1000") < 0)
        return error_errno(err, errno, NULL, "cannot set the OOM score");
    if (syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, NULL) < 0 && errno != ENOSYS)
        return error_errno(err, errno, NULL, "cannot make a session keyring");
    struct rlimit processes = {(rlim_t)stage->config->pids, (rlim_t)stage->config->pids};
    if (stage->limits_processes && setrlimit(RLIMIT_NPROC, &processes) < 0)
        return error_errno(err, errno, NULL, "cannot limit the number of processes");
    struct rlimit no_cores = {0, 0};
    setrlimit(RLIMIT_CORE, &no_cores); // a core would be written by the host's core_pattern
    return 0;
}

static int open_trees_inside(struct stage *stage, struct error *err)
{
    const struct shim_config *config = stage->config;
    for (size_t i = 0; i < config->mount_count; i++)
        if ((stage->trees[i] = tree_open_inside(config->mounts[i].fd, err)) < 0)
            return error_context(err, "%s", config->mounts[i].target);
    if ((stage->programs_tree = tree_open_inside(SHIM_FD_PROGRAMS, err)) < 0)
        return -1;
    if (config->template_fd < 0)
        return 0;
    stage->template_tree = tree_open_inside(config->template_fd, err);
    int layers_fd = stage->layers_tree;
    stage->layers_tree = tree_open_inside(layers_fd, err);
    close(layers_fd);
    return stage->template_tree < 0 || stage->layers_tree < 0 ? -1 : 0;
}

static int mount_tmpfs(const char *path, const char *options, struct error *err)
{
    if (mount("tmpfs", path, "tmpfs", MS_NOSUID | MS_NODEV, options) < 0)
        return error_errno(err, errno, NULL, "cannot mount a memory file system in the staging area");
    return 0;
}

// What bubblewrap itself needs to run: its program and libraries, devices to bind, and a whole /proc, without which the
// kernel lets nobody mount another.
static int make_area(struct stage *stage, struct error *err)
{
    static const char *const dirs[] = {"usr", "proc", "dev", "tmp", "w", "m", "p", "t", "l"};
    static const char *const links[] = {"bin", "lib", "lib64", "sbin"};
    if (mount(NULL, "/", NULL, MS_SLAVE | MS_REC | MS_SILENT, NULL) < 0)
        return error_errno(err, errno, NULL, "cannot detach the mount namespace from the host's");
    if (mount_tmpfs(AREA, "mode=0755,size=4m,nr_inodes=1024", err) < 0)
        return -1;
    for (size_t i = 0; i < ARRAY_LEN(dirs); i++) {
        char path[32];
        snprintf(path, sizeof(path), AREA "/%s", dirs[i]);
        if (rootfs_make_dir(path, 0755, err) < 0)
            return -1;
    }
    for (size_t i = 0; i < ARRAY_LEN(links); i++) {
        char path[32], target[32];
        snprintf(path, sizeof(path), AREA "/%s", links[i]);
        snprintf(target, sizeof(target), "usr/%s", links[i]);
        if (symlink(target, path) < 0)
            return error_errno(err, errno, NULL, "cannot make a link in the staging area");
    }
    if (mount("/proc", AREA "/proc", NULL, MS_BIND | MS_REC, NULL) < 0 || mount("/dev", AREA "/dev", NULL, MS_BIND | MS_REC, NULL) < 0)
        return error_errno(err, errno, NULL, "cannot bind /proc and /dev into the staging area");
    if (stage->usr_tree >= 0)
        return tree_attach(stage->usr_tree, AREA "/usr", BOUND | MOUNT_ATTR_RDONLY, err);
    return rootfs_bind("/usr", AREA "/usr", err);
}

static int attach_mounts(struct stage *stage, struct error *err)
{
    for (size_t i = 0; i < stage->config->mount_count; i++) {
        char path[32];
        snprintf(path, sizeof(path), AREA STAGE_MOUNT_FORMAT, i);
        uint64_t attributes = BOUND | (stage->config->mounts[i].is_read_only ? MOUNT_ATTR_RDONLY : 0);
        if (rootfs_make_dir(path, 0755, err) < 0 || tree_attach(stage->trees[i], path, attributes, err) < 0)
            return -1;
    }
    return tree_attach(stage->programs_tree, AREA "/p", BOUND | MOUNT_ATTR_RDONLY, err);
}

static int make_host_root(struct stage *stage, struct error *err)
{
    char options[64];
    snprintf(options, sizeof(options), "mode=0755,size=%lld", (long long)stage->config->root_bytes);
    if (mount_tmpfs(AREA "/w", options, err) < 0 || rootfs_make_dir(AREA STAGE_ROOT, 0755, err) < 0 ||
        rootfs_make_dir(AREA STAGE_LOCAL, 0755, err) < 0)
        return -1;
    return rootfs_fill_host(AREA STAGE_ROOT, AREA STAGE_LOCAL, err);
}

static int make_overlay_root(struct stage *stage, struct error *err)
{
    if (tree_attach(stage->template_tree, AREA "/t", BOUND | MOUNT_ATTR_RDONLY, err) < 0 ||
        tree_attach(stage->layers_tree, AREA "/l", BOUND, err) < 0 || rootfs_make_dir(AREA STAGE_ROOT, 0755, err) < 0)
        return -1;
    if (mount("overlay", AREA STAGE_ROOT, "overlay", MS_NOSUID | MS_NODEV,
              "lowerdir=" AREA "/t,upperdir=" AREA "/l/upper,workdir=" AREA "/l/work,userxattr") < 0)
        return error_errno(err, errno, "use the host template, or a newer kernel (5.19 as root, 5.11 as an ordinary user)",
                           "cannot mount the template as an overlay");
    return 0;
}

static int make_root(struct stage *stage, struct error *err)
{
    bool is_host = stage->config->template_fd < 0;
    if ((is_host ? make_host_root(stage, err) : make_overlay_root(stage, err)) < 0)
        return -1;
    char link[64];
    snprintf(link, sizeof(link), AREA "%s", is_host ? STAGE_LOCAL "/bin/sudo" : STAGE_ROOT "/usr/local/bin/sudo");
    if (symlink("/run/chat2shell/chat2shell-guest", link) < 0 && errno != EEXIST)
        return error_errno(err, errno, NULL, "cannot link sudo");
    return rootfs_fill_common(AREA STAGE_ROOT, AREA "/p/chat2shell-guest", err);
}

static int leave_host_tree(struct error *err)
{
    if (chdir(AREA) < 0 || syscall(SYS_pivot_root, ".", ".") < 0 || umount2(".", MNT_DETACH) < 0 || chdir("/") < 0)
        return error_errno(err, errno, NULL, "cannot leave the host's directory tree");
    return 0;
}

// Everything else closes at exec. lock_fd reaches the sandbox's first process, which holds it to its end.
static void keep_for_bwrap(const struct stage *stage)
{
    const int kept[] = {SHIM_FD_IMAGE, stage->status_fd, stage->report_fd, stage->lock_fd};
    for (size_t i = 0; i < ARRAY_LEN(kept); i++)
        fcntl(kept[i], F_SETFD, 0);
}

// The first program inside is this one, from its sealed memory file: it checks the rules, reports, and starts the command.
static char **make_argv(const struct stage *stage, int args_fd)
{
    size_t count = json_array_size(stage->config->command), len = 0;
    char **argv = mem_alloc((count + 9) * sizeof(*argv));
    argv[len++] = mem_strdup("bwrap");
    argv[len++] = mem_strdup("--args");
    argv[len++] = mem_format("%d", args_fd);
    argv[len++] = mem_strdup("--");
    argv[len++] = mem_format("/proc/self/fd/%d", SHIM_FD_IMAGE);
    argv[len++] = mem_strdup("inside");
    argv[len++] = mem_format("%d", stage->report_fd);
    argv[len++] = mem_strdup(identity_name(stage->identity->kind));
    for (size_t i = 0; i < count; i++)
        argv[len++] = mem_strdup(json_string_value(json_array_get(stage->config->command, i)));
    return argv; // for exec, or for the moment until this process ends
}

static int become_bwrap(struct stage *stage, struct error *err)
{
    int args_fd = bwrap_args_make(stage, err);
    if (args_fd < 0)
        return -1;
    for (int i = 0; i < 3; i++)
        if (dup2(stage->stdio[i], i) < 0)
            return error_errno(err, errno, NULL, "cannot set the standard streams");
    keep_for_bwrap(stage);
    char *const environment[] = {NULL};
    execve(BWRAP_PATH, make_argv(stage, args_fd), environment);
    return error_errno(err, errno, "apt install bubblewrap", "cannot start " BWRAP_PATH);
}

int stage_run(struct stage *stage, struct error *err)
{
    if (identity_enter(stage->identity, err) < 0)
        return -1;
    if (stage->identity->kind != IDENTITY_RANGE && open_trees_inside(stage, err) < 0)
        return -1;
    umask(0022);
    if (unshare(CLONE_NEWNS) < 0)
        return error_errno(err, errno, NULL, "cannot make a mount namespace");
    if (set_process_rules(stage, err) < 0 || make_area(stage, err) < 0 || attach_mounts(stage, err) < 0 ||
        make_root(stage, err) < 0 || leave_host_tree(err) < 0)
        return -1;
    return become_bwrap(stage, err);
}
