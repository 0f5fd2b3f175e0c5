#include "controller/base/cleanup.h"
#include "controller/base/fs.h"
#include "controller/base/guest_protocol.h"
#include "controller/base/json.h"
#include "controller/base/memory.h"
#include "controller/spawn.h"
#include "reconcilers/drivers/bubblewrap/bubblewrap.h"
#include <errno.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>

// Programs that do not honour these reach nothing: there is no other way out.
static const char *const environment[] = {
    "HOME=/root",
    "USER=root",
    "LOGNAME=root",
    "SHELL=/bin/bash",
    "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    "LANG=C.UTF-8",
    "TERM=dumb",
    "http_proxy=http://127.0.0.1:3128",
    "https_proxy=http://127.0.0.1:3128",
    "HTTP_PROXY=http://127.0.0.1:3128",
    "HTTPS_PROXY=http://127.0.0.1:3128",
    "no_proxy=localhost,127.0.0.1,::1",
    "NO_PROXY=localhost,127.0.0.1,::1",
};
_Static_assert(GUEST_PROXY_PORT == 3128, "the proxy's address in the environment");

static json_t *mounts_json(const struct launch *launch)
{
    json_t *mounts = json_array();
    for (size_t i = 0; i < launch->mount_count; i++) {
        const struct launch_mount *mount = &launch->mounts[i];
        json_array_append_new(mounts, json_pack("{s:i, s:s, s:b, s:I, s:I}", "fd", SHIM_FD_FIRST_MOUNT + (int)i, "target",
                                                mount->target, "read_only", mount->is_read_only, "device",
                                                (json_int_t)mount->device, "inode", (json_int_t)mount->inode));
    }
    return mounts;
}

static json_t *limits_json(const struct bubblewrap *bw, const struct launch *launch)
{
    int64_t memory_bytes = launch->memory_bytes > 0 ? launch->memory_bytes : BUBBLEWRAP_MEMORY_BYTES;
    json_t *groups = json_array();
    for (size_t i = 0; i < bw->cgroups.count; i++)
        json_array_append_new(groups, json_pack("{s:i, s:s, s:s}", "version", bw->cgroups.items[i].version, "controller",
                                                bw->cgroups.items[i].controller, "path", bw->cgroups.items[i].path));
    return json_pack("{s:I, s:i, s:I, s:I, s:o}", "memory_bytes", (json_int_t)memory_bytes, "pids", BUBBLEWRAP_PIDS, "cpus_milli",
                     (json_int_t)(launch->cpus_milli > 0 ? launch->cpus_milli : BUBBLEWRAP_CPUS_MILLI), "root_bytes",
                     (json_int_t)(memory_bytes / 2), "cgroups", groups);
}

static json_t *texts_json(const char *const *texts, size_t count)
{
    json_t *array = json_array();
    for (size_t i = 0; i < count; i++)
        json_array_append_new(array, json_from_text(texts[i]));
    return array;
}

static json_t *config_json(const struct bubblewrap *bw, const struct launch *launch)
{
    size_t count = 0;
    while (launch->command[count])
        count++;
    bool is_host = strcmp(launch->template_name, TEMPLATE_HOST) == 0;
    json_t *template = is_host ? json_pack("{s:s}", "kind", "host")
                               : json_pack("{s:s, s:i}", "kind", "tree", "fd", SHIM_FD_FIRST_MOUNT + (int)launch->mount_count);
    return json_pack("{s:i, s:s, s:[s], s:s, s:o, s:o, s:o, s:o, s:s, s:b, s:o}", "version", SHIM_PROTOCOL_VERSION, "name",
                     launch->name, "flags", "ends-with-controller", "identity", "auto", "template", template, "mounts",
                     mounts_json(launch), "command", texts_json(launch->command, count), "environment",
                     texts_json(environment, ARRAY_LEN(environment)), "cwd", launch->cwd, "network", launch->has_network, "limits",
                     limits_json(bw, launch));
}

static int sealed_config(const struct bubblewrap *bw, const struct launch *launch, struct error *err)
{
    CLEANUP_JSON json_t *config = config_json(bw, launch);
    if (config == NULL)
        return error_set(err, ERROR_INVALID, "use names in UTF-8", "a path of the sandbox is not UTF-8");
    CLEANUP_FREE char *text = json_to_text(config);
    CLEANUP_CLOSE int fd = memfd_create("chat2shell-config", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0)
        return error_errno(err, errno, NULL, "cannot make a memory file");
    if (fs_write_all(fd, text, strlen(text), err) < 0)
        return -1;
    fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
    return TAKE_FD(fd);
}

// The path was resolved when it was approved: a symbolic link in it now means that somebody changed it.
static int open_mount(const char *path, struct error *err)
{
    int fd = fs_openat2(AT_FDCWD, path, O_PATH | O_DIRECTORY, 0, RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS);
    if (fd < 0 && (errno == ELOOP || errno == ENOTDIR))
        return error_set(err, ERROR_REFUSED, "ask for approval again", "%s is not the directory that was approved: it was replaced", path);
    return fd < 0 ? error_errno(err, errno, NULL, "cannot open %s", path) : fd;
}

static int make_runtime_dir(const struct bubblewrap *bw, const char *name, struct error *err)
{
    if (mkdirat(bw->runtimes_fd, name, 0700) < 0)
        return error_errno(err, errno, errno == EEXIST ? "remove it first" : NULL, "cannot make the sandbox's runtime directory");
    int fd = openat(bw->runtimes_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    return fd < 0 ? error_errno(err, errno, NULL, "cannot open the sandbox's runtime directory") : fd;
}

struct open_fds {
    int fds[SPAWN_MAX_FDS];
    size_t count;
};
static void open_fds_close(struct open_fds *opened)
{
    while (opened->count)
        close(opened->fds[--opened->count]);
}

static int open_mounts(const struct bubblewrap *bw, const struct launch *launch, struct open_fds *opened, struct error *err)
{
    CLEANUP_FREE char *tree = NULL;
    for (size_t i = 0; i < launch->mount_count; i++) {
        int fd = open_mount(launch->mounts[i].path, err);
        if (fd < 0)
            return -1;
        opened->fds[opened->count++] = fd;
    }
    if (strcmp(launch->template_name, TEMPLATE_HOST) == 0)
        return 0;
    tree = template_path(bw->data_root, launch->template_name);
    int fd = open(tree, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return error_errno(err, errno, "run: chat2shell setup", "cannot open the template %s", launch->template_name);
    opened->fds[opened->count++] = fd;
    return 0;
}

static int spawn_shim(struct bubblewrap *bw, const int *fixed, const struct open_fds *mounts, pid_t *ret_pid, struct error *err)
{
    CLEANUP_FREE char *path = mem_format("%s/chat2shell-shim", bw->program_dir);
    static const char *const argv[] = {"chat2shell-shim", "run", NULL};
    struct spawn_options options = {.path = path, .argv = argv};
    for (int i = SHIM_FD_CONFIG; i < SHIM_FD_FIRST_MOUNT; i++)
        options.fds[options.fd_count++] = (struct spawn_fd){fixed[i - SHIM_FD_CONFIG], i};
    for (size_t i = 0; i < mounts->count; i++)
        options.fds[options.fd_count++] = (struct spawn_fd){mounts->fds[i], SHIM_FD_FIRST_MOUNT + (int)i};
    CLEANUP_CLOSE int pidfd = -1; // its socket tells its end
    return spawn_process(bw->spawner, &options, ret_pid, &pidfd, err);
}

int launch_shim(struct bubblewrap *bw, const struct launch *launch, struct launched *ret, struct error *err)
{
    CLEANUP(open_fds_close) struct open_fds mounts = {.count = 0};
    if (open_mounts(bw, launch, &mounts, err) < 0)
        return -1;
    CLEANUP_CLOSE int config_fd = sealed_config(bw, launch, err);
    CLEANUP_CLOSE int dir_fd = config_fd < 0 ? -1 : make_runtime_dir(bw, launch->name, err);
    if (dir_fd < 0)
        return -1;
    int ends[2];
    pid_t pid;
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
        return error_errno(err, errno, NULL, "cannot make a socket");
    CLEANUP_CLOSE int control_fd = ends[0];
    CLEANUP_CLOSE int other_fd = ends[1];
    const int fixed[] = {config_fd, other_fd, dir_fd, bw->image_fd, bw->programs_fd};
    if (spawn_shim(bw, fixed, &mounts, &pid, err) < 0)
        return -1;
    *ret = (struct launched){.control_fd = TAKE_FD(control_fd), .pid = pid};
    return 0;
}
