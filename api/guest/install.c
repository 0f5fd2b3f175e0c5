#include "api/guest/install.h"
#include "api/guest/flush.h"
#include "api/guest/tool.h"
#include "controller/base/memory.h"
#include "controller/base/random.h"
#include <errno.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>

#define CHUNK_BYTES 65536
#define BATCH_FILES 64 // open at the same time, and flushed together

enum step_state { STEP_NONE, STEP_STAGED, STEP_DONE };

struct step {
    const struct install_item *item;
    enum step_state state;
    int fd;                    // of temp until it is flushed, or -1
    char temp[40], backup[44]; // beside the target: the new content, and after STEP_DONE the old one
};

struct install {
    const struct workspace *workspace;
    struct step *steps;
    size_t count;
    char **made; // directories, in the order they were made
    size_t made_count;
};

static int open_parent(const struct install *install, const struct step *step, const char **ret_name)
{
    return workspace_open_parent(install->workspace, step->item->real, false, ret_name);
}

// --- staging

static int copy_from(int to, const struct install_item *item)
{
    struct error ignored = ERROR_INIT;
    if (!item->content_path)
        return fs_write_all(to, item->bytes, item->len, &ignored);
    CLEANUP_CLOSE int from = fs_openat2(item->content_dir, item->content_path, O_RDONLY | O_NONBLOCK, 0,
                                        RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS);
    CLEANUP_FREE char *chunk = mem_alloc(CHUNK_BYTES);
    ssize_t n = -1;
    while (from >= 0 && (n = read(from, chunk, CHUNK_BYTES)) > 0)
        if (fs_write_all(to, chunk, (size_t)n, &ignored) < 0)
            return -1;
    return (int)n;
}

// The owner stays where we may keep it; without it the set-id bits would speak for somebody else.
static int keep_attributes(int fd, const struct install_item *item)
{
    struct stat now;
    if (!item->before)
        return 0;
    if (fstat(fd, &now) < 0)
        return -1;
    bool is_owner_same = now.st_uid == item->before->st_uid && now.st_gid == item->before->st_gid;
    if (!is_owner_same)
        is_owner_same = fchown(fd, item->before->st_uid, item->before->st_gid) == 0;
    return fchmod(fd, item->mode & (is_owner_same ? 07777 : 0777));
}

static void close_temp(struct step *step)
{
    if (step->fd >= 0)
        close(step->fd);
    step->fd = -1;
}

static int write_temp(int dir, struct step *step)
{
    mode_t mode = step->item->before ? 0600 : step->item->mode;
    CLEANUP_CLOSE int fd =
        openat(dir, step->temp, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
    if (fd < 0)
        return -1;
    if (copy_from(fd, step->item) < 0 || keep_attributes(fd, step->item) < 0) {
        int number = errno;
        unlinkat(dir, step->temp, 0);
        errno = number;
        return -1;
    }
    step->fd = TAKE_FD(fd);
    return 0;
}

// Makes what is missing on the way to real and remembers it.
static int make_parents(struct install *install, const char *real)
{
    for (const char *slash = real; (slash = strchr(slash, '/')); slash++) {
        CLEANUP_FREE char *dir_path = mem_strndup(real, (size_t)(slash - real));
        const char *name;
        CLEANUP_CLOSE int dir = workspace_open_parent(install->workspace, dir_path, false, &name);
        if (dir < 0)
            return -1;
        if (mkdirat(dir, name, 0777) == 0) {
            install->made = mem_realloc_array(install->made, install->made_count + 1, sizeof(char *));
            install->made[install->made_count++] = TAKE_PTR(dir_path);
        } else if (errno != EEXIST) {
            return -1;
        }
    }
    return 0;
}

static int stage(struct install *install, struct step *step, struct error *err)
{
    const char *name;
    snprintf(step->temp, sizeof(step->temp), ".chat2shell-");
    random_hex(step->temp + strlen(step->temp), 16);
    memcpy(step->backup, step->temp, sizeof(step->temp));
    if (step->item->is_removal)
        return 0;
    if (!step->item->before && make_parents(install, step->item->real) < 0)
        return guest_tool_fail_errno(err, errno, "mkdir for '%s'", step->item->path);
    CLEANUP_CLOSE int dir = open_parent(install, step, &name);
    if (dir < 0 || write_temp(dir, step) < 0)
        return guest_tool_fail_errno(err, errno, "write '%s'", step->item->path);
    step->state = STEP_STAGED;
    return 0;
}

// All of a batch are written before the first is flushed: the file system then commits them together.
static int flush_batch(struct step *steps, size_t count, struct error *err)
{
    int fds[BATCH_FILES];
    for (size_t i = 0; i < count; i++)
        fds[i] = steps[i].fd;
    size_t failed = flush_files(fds, count);
    int number = errno;
    for (size_t i = 0; i < count; i++)
        close_temp(&steps[i]);
    return failed < count ? guest_tool_fail_errno(err, number, "fsync '%s'", steps[failed].item->path) : 0;
}

static int stage_all(struct install *install, struct error *err)
{
    for (size_t first = 0; first < install->count; first += BATCH_FILES) {
        size_t count = install->count - first < BATCH_FILES ? install->count - first : BATCH_FILES;
        for (size_t i = first; i < first + count; i++)
            if (stage(install, &install->steps[i], err) < 0)
                return -1;
        if (flush_batch(&install->steps[first], count, err) < 0)
            return -1;
    }
    return 0;
}

// --- the exchange of names

static bool is_as_before(int dir, const char *name, const struct stat *before)
{
    struct stat now;
    return fstatat(dir, name, &now, AT_SYMLINK_NOFOLLOW) == 0 && now.st_dev == before->st_dev &&
           now.st_ino == before->st_ino && now.st_size == before->st_size &&
           now.st_mtim.tv_sec == before->st_mtim.tv_sec && now.st_mtim.tv_nsec == before->st_mtim.tv_nsec;
}

static bool lacks_flag(int number) // the file system does not know the flag of renameat2
{
    return number == EINVAL || number == ENOSYS || number == EOPNOTSUPP;
}

static int move_new(int dir, const char *from, const char *to)
{
    if (renameat2(dir, from, dir, to, RENAME_NOREPLACE) == 0)
        return 0;
    if (!lacks_flag(errno) || linkat(dir, from, dir, to, 0) < 0)
        return -1;
    unlinkat(dir, from, 0);
    return 0;
}

static int put_new(int dir, const char *name, struct step *step)
{
    if (move_new(dir, step->temp, name) < 0)
        return -1;
    step->state = STEP_DONE;
    return 0;
}

// What stood there comes to lie under the backup name.
static int put_over(int dir, const char *name, struct step *step)
{
    if (renameat2(dir, step->temp, dir, name, RENAME_EXCHANGE) < 0) {
        if (!lacks_flag(errno))
            return -1;
        snprintf(step->backup, sizeof(step->backup), "%s~", step->temp);
        if (renameat(dir, name, dir, step->backup) < 0)
            return -1;
        step->state = STEP_DONE;
        if (renameat(dir, step->temp, dir, name) < 0)
            return -1;
    }
    step->state = STEP_DONE;
    return 0;
}

static int take_away(int dir, const char *name, struct step *step)
{
    if (renameat(dir, name, dir, step->backup) < 0)
        return -1;
    step->state = STEP_DONE;
    return 0;
}

static int fail_changed(const struct step *step, struct error *err)
{
    return guest_tool_fail(err, "look at it again", "File changed during write: %s", step->item->path);
}

static int commit(struct install *install, struct step *step, struct error *err)
{
    const char *name;
    const struct install_item *item = step->item;
    CLEANUP_CLOSE int dir = open_parent(install, step, &name);
    if (dir < 0)
        return guest_tool_fail_errno(err, errno, "open '%s'", item->path);
    if (item->before && !is_as_before(dir, name, item->before))
        return fail_changed(step, err);
    int result = item->is_removal ? take_away(dir, name, step)
                 : item->before   ? put_over(dir, name, step)
                                  : put_new(dir, name, step);
    if (result < 0)
        return errno == EEXIST || errno == ENOENT
                   ? fail_changed(step, err)
                   : guest_tool_fail_errno(err, errno, "write '%s'", item->path);
    // Only what was looked at may have been replaced: a change in the last instant is under the backup name.
    if (item->before && !is_as_before(dir, step->backup, item->before))
        return fail_changed(step, err);
    return 0;
}

// --- the ends

static int undo(struct install *install, const struct step *step)
{
    const char *name;
    CLEANUP_CLOSE int dir = open_parent(install, step, &name);
    if (dir < 0)
        return -1;
    if (step->state == STEP_STAGED ||
        (step->state == STEP_DONE && step->item->before && strcmp(step->temp, step->backup) != 0))
        unlinkat(dir, step->temp, 0);
    if (step->state != STEP_DONE)
        return 0;
    return step->item->before ? renameat(dir, step->backup, dir, name) : unlinkat(dir, name, 0);
}

static void roll_back(struct install *install, struct error *err)
{
    for (size_t i = install->count; i-- > 0;) {
        const struct step *step = &install->steps[i];
        if (step->state != STEP_NONE && undo(install, step) < 0 && step->item->before)
            error_hint(err, "%s could not be put back: its old content is beside it in %s", step->item->path,
                       step->backup);
    }
    for (size_t i = install->made_count; i-- > 0;) {
        const char *name;
        CLEANUP_CLOSE int dir = workspace_open_parent(install->workspace, install->made[i], false, &name);
        if (dir >= 0)
            unlinkat(dir, name, AT_REMOVEDIR);
    }
}

static void remove_empty_parents(const struct install *install, const char *real)
{
    CLEANUP_FREE char *path = mem_strdup(real);
    for (char *slash; (slash = strrchr(path, '/'));) {
        *slash = '\0';
        const char *name;
        CLEANUP_CLOSE int dir = workspace_open_parent(install->workspace, path, false, &name);
        if (dir < 0 || unlinkat(dir, name, AT_REMOVEDIR) < 0)
            return;
    }
}

static bool is_same_parent(const char *real, const char *other)
{
    const char *a = strrchr(real, '/'), *b = strrchr(other, '/');
    size_t a_len = a ? (size_t)(a - real) : 0, b_len = b ? (size_t)(b - other) : 0;
    return a_len == b_len && memcmp(real, other, a_len) == 0;
}

static void finish(struct install *install)
{
    for (size_t i = 0; i < install->count; i++) {
        const char *name;
        const struct step *step = &install->steps[i];
        bool is_last_there =
            i + 1 == install->count || !is_same_parent(step->item->real, install->steps[i + 1].item->real);
        CLEANUP_CLOSE int dir = open_parent(install, step, &name);
        if (dir < 0)
            continue;
        if (step->item->before)
            unlinkat(dir, step->backup, 0);
        if (is_last_there)
            fsync(dir); // all is in place; a file system that cannot do this is no reason to say otherwise
    }
    for (size_t i = 0; i < install->count; i++)
        if (install->steps[i].item->is_removal)
            remove_empty_parents(install, install->steps[i].item->real);
}

static void free_install(struct install *install)
{
    for (size_t i = 0; i < install->count; i++)
        close_temp(&install->steps[i]);
    for (size_t i = 0; i < install->made_count; i++)
        free(install->made[i]);
    free(install->made);
    free(install->steps);
}

int install_all(const struct workspace *workspace, const struct install_item *items, size_t count,
                struct error *err)
{
    CLEANUP(free_install)
    struct install install = {
        .workspace = workspace, .steps = mem_alloc((count + 1) * sizeof(struct step)), .count = count};
    for (size_t i = 0; i < count; i++)
        install.steps[i] = (struct step){.item = &items[i], .fd = -1};
    int result = stage_all(&install, err);
    for (size_t i = 0; !result && i < count; i++)
        result = commit(&install, &install.steps[i], err);
    if (result < 0) {
        roll_back(&install, err);
        return -1;
    }
    finish(&install);
    return 0;
}
