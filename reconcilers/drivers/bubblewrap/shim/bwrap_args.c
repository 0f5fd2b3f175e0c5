#include "reconcilers/drivers/bubblewrap/shim/bwrap_args.h"
#include "controller/base/buffer.h"
#include "controller/base/cleanup.h"
#include "controller/base/fs.h"
#include "reconcilers/drivers/bubblewrap/shim/rules.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#define ARGS_MAX_BYTES (512 * 1024)

// Each namespace, mount and restriction here is set by bubblewrap alone (ownership.md).
static const char *const fixed_args[] = {
    "--die-with-parent", "--new-session", "--unshare-pid", "--unshare-net", "--unshare-ipc", "--unshare-uts",
    "--unshare-cgroup-try", "--hostname", "sandbox", "--clearenv", "--cap-drop", "ALL", "--as-pid-1",
};
static const char *const device_args[] = {
    "--proc", "/proc", "--dev", "/dev", "--perms", "1777", "--size", "67108864", "--tmpfs", "/dev/shm", "--remount-ro", "/dev",
};
// Parts of /proc that everybody may read and that describe the machine rather than the sandbox. What only root of the host
// may read or write (kcore, kmsg, timer_list, slabinfo, sysrq-trigger, irq, …) is out of reach for ids that are not it; each
// mount here costs every sandbox's start.
static const char *const masked_files[] = {"/proc/keys", "/proc/key-users", "/proc/sched_debug", "/proc/latency_stats", "/proc/config.gz"};
static const char *const frozen_dirs[] = {"/proc/sys"};
static const char *const masked_dirs[] = {"/proc/acpi", "/proc/scsi", "/proc/asound", "/proc/driver", "/proc/dynamic_debug"};

static void put(struct buffer *args, const char *text)
{
    buffer_append(args, text, strlen(text) + 1);
}

static void put_all(struct buffer *args, const char *const *texts, size_t count)
{
    for (size_t i = 0; i < count; i++)
        put(args, texts[i]);
}

static void put_option(struct buffer *args, const char *option, const char *first, const char *second)
{
    put(args, option);
    put(args, first);
    if (second)
        put(args, second);
}

static void put_fd(struct buffer *args, const char *option, int fd)
{
    char number[16];
    snprintf(number, sizeof(number), "%d", fd);
    put_option(args, option, number, NULL);
}

static void put_masks(struct buffer *args)
{
    for (size_t i = 0; i < ARRAY_LEN(masked_files); i++)
        if (access(masked_files[i], F_OK) == 0)
            put_option(args, "--ro-bind", "/dev/null", masked_files[i]);
    for (size_t i = 0; i < ARRAY_LEN(frozen_dirs); i++)
        if (access(frozen_dirs[i], F_OK) == 0)
            put_option(args, "--ro-bind", frozen_dirs[i], frozen_dirs[i]);
    for (size_t i = 0; i < ARRAY_LEN(masked_dirs); i++)
        if (access(masked_dirs[i], F_OK) == 0) {
            put_option(args, "--tmpfs", masked_dirs[i], NULL);
            put_option(args, "--remount-ro", masked_dirs[i], NULL);
        }
}

static void put_mounts(struct buffer *args, const struct shim_config *config)
{
    for (size_t i = 0; i < config->mount_count; i++) {
        char path[32];
        snprintf(path, sizeof(path), STAGE_MOUNT_FORMAT, i);
        put_option(args, config->mounts[i].is_read_only ? "--ro-bind" : "--bind", path, config->mounts[i].target);
    }
    put_option(args, "--chdir", config->cwd, NULL);
}

static void put_environment(struct buffer *args, const json_t *environment)
{
    size_t i;
    const json_t *item;
    json_array_foreach ((json_t *)environment, i, item) {
        const char *text = json_string_value(item), *equals = strchr(text, '=');
        if (equals == NULL)
            continue;
        put(args, "--setenv");
        buffer_append(args, text, (size_t)(equals - text));
        buffer_append_char(args, '\0');
        put(args, equals + 1);
    }
}

static int make_memfd(const char *name, const void *bytes, size_t len, struct error *err)
{
    CLEANUP_CLOSE int fd = memfd_create(name, 0); // inherited on purpose
    if (fd < 0)
        return error_errno(err, errno, NULL, "cannot make a memory file");
    if (fs_write_all(fd, bytes, len, err) < 0)
        return -1;
    lseek(fd, 0, SEEK_SET);
    return TAKE_FD(fd);
}

int bwrap_args_make(const struct stage *stage, struct error *err)
{
    struct filter_program filter;
    filter_build(stage->identity->kind == IDENTITY_SINGLE, &filter);
    CLEANUP_CLOSE int filter_fd = make_memfd("filter", filter.code, filter.len * sizeof(filter.code[0]), err);
    if (filter_fd < 0)
        return -1;
    CLEANUP(buffer_free) struct buffer args = BUFFER_INIT(ARGS_MAX_BYTES);
    put_all(&args, fixed_args, ARRAY_LEN(fixed_args));
    for (size_t i = 0; i < kept_capability_count; i++)
        put_option(&args, "--cap-add", kept_capabilities[i].name, NULL);
    put_option(&args, "--bind", STAGE_ROOT, "/");
    if (stage->config->template_fd < 0) {
        put_option(&args, "--ro-bind", "/usr", "/usr");
        put_option(&args, "--bind", STAGE_LOCAL, "/usr/local");
    }
    put_all(&args, device_args, ARRAY_LEN(device_args));
    put_masks(&args);
    put_mounts(&args, stage->config);
    put_environment(&args, stage->config->environment);
    put_fd(&args, "--seccomp", filter_fd);
    put_fd(&args, "--json-status-fd", stage->status_fd);
    if (args.is_over)
        return error_set(err, ERROR_TOO_LARGE, NULL, "the sandbox's command line is too long");
    int fd = make_memfd("arguments", args.data, args.len, err);
    if (fd >= 0)
        TAKE_FD(filter_fd);
    return fd;
}
