#include "controller/base/cleanup.h"
#include "controller/base/fs.h"
#include "controller/base/memory.h"
#include "reconcilers/drivers/bubblewrap/bubblewrap.h"
#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <time.h>

#define FREE_DEADLINE_MS 5000

// ---- list --------------------------------------------------------------------------------------------------------------

struct list_call {
    struct bubblewrap *bw;
    driver_list_fn done;
    void *arg;
};

static void add_name(struct text_list *names, const char *entry)
{
    size_t len = strlen(entry), suffix_len = strlen(BUBBLEWRAP_CLONE_SUFFIX);
    bool is_clone = len > suffix_len && strcmp(entry + len - suffix_len, BUBBLEWRAP_CLONE_SUFFIX) == 0;
    CLEANUP_FREE char *name = mem_strndup(entry, is_clone ? len - suffix_len : len);
    text_list_add(names, name);
}

static void list_on_loop(void *arg)
{
    CLEANUP_FREE struct list_call *call = arg;
    struct text_list names = {0};
    struct error err = ERROR_INIT;
    DIR *dir = opendir(call->bw->runtimes_dir);
    if (dir == NULL) {
        error_errno(&err, errno, NULL, "cannot list the runtimes");
        call->done(call->arg, -1, NULL, &err);
        return;
    }
    for (struct dirent *entry; (entry = readdir(dir)) != NULL;)
        if (entry->d_name[0] != '.')
            add_name(&names, entry->d_name);
    closedir(dir);
    call->done(call->arg, 0, &names, NULL);
    text_list_clear(&names);
}

static void list(struct driver *driver, driver_list_fn done, void *arg)
{
    struct list_call *call = mem_alloc(sizeof(*call));
    *call = (struct list_call){(struct bubblewrap *)driver, done, arg};
    loop_post(call->bw->loop, list_on_loop, call);
}

// ---- life --------------------------------------------------------------------------------------------------------------

static int open_image(const char *program_dir, struct error *err)
{
    CLEANUP_FREE char *path = mem_format("%s/chat2shell-shim", program_dir);
    CLEANUP_CLOSE int from = open(path, O_RDONLY | O_CLOEXEC);
    struct stat info;
    if (from < 0 || fstat(from, &info) < 0)
        return error_errno(err, errno, "build or install chat2shell whole", "cannot open %s", path);
    CLEANUP_CLOSE int fd = memfd_create("chat2shell-shim", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0)
        return error_errno(err, errno, NULL, "cannot make a memory file");
    for (off_t left = info.st_size; left > 0;) {
        ssize_t n = sendfile(fd, from, NULL, (size_t)left);
        if (n <= 0)
            return error_errno(err, n < 0 ? errno : EIO, NULL, "cannot copy %s into memory", path);
        left -= n;
    }
    if (fchmod(fd, 0555) < 0 || fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) < 0)
        return error_errno(err, errno, NULL, "cannot seal the copy of %s", path);
    return TAKE_FD(fd);
}

static void free_parts(struct bubblewrap *bw)
{
    const int fds[] = {bw->image_fd, bw->programs_fd, bw->runtimes_fd};
    for (size_t i = 0; i < ARRAY_LEN(fds); i++)
        if (fds[i] >= 0)
            close(fds[i]);
    cgroups_free(&bw->cgroups);
    free(bw->program_dir);
    free(bw->runtimes_dir);
    free(bw->data_root);
    free(bw);
}

struct launching {
    struct bubblewrap *bw;
    size_t count;
};
static void count_launching(void *arg)
{
    struct launching *launching = arg;
    launching->count = 0;
    for (struct runtime *runtime = launching->bw->runtimes; runtime; runtime = runtime->next)
        launching->count += runtime->is_launching ? 1 : 0;
}

// A thread in create still uses the driver.
static void wait_for_launches(struct bubblewrap *bw)
{
    struct launching launching = {.bw = bw};
    for (int waited_ms = 0; waited_ms < FREE_DEADLINE_MS; waited_ms += 10) {
        loop_call(bw->loop, count_launching, &launching);
        if (launching.count == 0)
            return;
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    }
}

// Killing the shims ends their sandboxes; their directories and cgroups are removed by the next start, as after a crash.
static void end_all(void *arg)
{
    struct bubblewrap *bw = arg;
    struct error err = ERROR_INIT;
    error_set(&err, ERROR_CANCELLED, NULL, "chat2shell is shutting down");
    remove_cancel_all(bw, &err);
    while (bw->runtimes) {
        struct runtime *runtime = bw->runtimes;
        runtime->is_removing = true;
        runtime_fail(runtime, &err);
        channel_free(TAKE_PTR(runtime->shim)); // its end ends the sandbox in order
        if (!child_wait(&runtime->supervisor, FREE_DEADLINE_MS)) {
            child_signal(&runtime->supervisor, SIGKILL);
            child_wait(&runtime->supervisor, FREE_DEADLINE_MS);
        }
        runtime_free(runtime);
    }
}

static void free_driver(struct driver *driver)
{
    struct bubblewrap *bw = (struct bubblewrap *)driver;
    wait_for_launches(bw);
    loop_call(bw->loop, end_all, bw);
    free_parts(bw);
}

static const struct driver_ops ops = {
    .name = "bubblewrap",
    .descriptors = BUBBLEWRAP_DESCRIPTORS,
    .create = create_runtime,
    .start_session = create_session,
    .remove = remove_runtime,
    .publish = ports_publish,
    .unpublish = ports_unpublish,
    .probe_port = ports_probe,
    .dial_port = ports_dial,
    .list = list,
    .probe = findings_probe,
    .usage = usage_read,
    .describe = findings_describe,
    .free = free_driver,
};

int driver_bubblewrap_new(const struct driver_options *options, struct driver **ret, struct error *err)
{
    struct bubblewrap *bw = mem_alloc(sizeof(*bw));
    *bw = (struct bubblewrap){.driver = {.ops = &ops},
                              .clock = options->clock,
                              .loop = options->loop,
                              .spawner = options->spawner,
                              .program_dir = mem_strdup(options->program_dir),
                              .runtimes_dir = mem_format("%s/runtimes", options->state_dir),
                              .data_root = mem_strdup(options->data_root),
                              .programs_fd = -1,
                              .runtimes_fd = -1};
    bw->image_fd = open_image(bw->program_dir, err);
    if (bw->image_fd >= 0)
        bw->programs_fd = open(bw->program_dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (bw->programs_fd < 0 || fs_make_private_dir(bw->runtimes_dir, &bw->runtimes_fd, err) < 0) {
        free_parts(bw);
        return -1;
    }
    cgroups_find(&bw->cgroups);
    *ret = &bw->driver;
    return 0;
}
