#include "api/guest/patch_scratch.h"
#include "api/guest/directory.h"
#include "api/guest/install.h"
#include "controller/base/memory.h"
#include "controller/base/random.h"
#include <dirent.h>
#include <errno.h>
#include <linux/openat2.h>
#include <string.h>

#define BENEATH (RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS)
#define RULES_NAME ".gitattributes"
#define MAX_RULES_BYTES (1024 * 1024)
#define MAX_DEPTH 1024
#define CHUNK_BYTES 65536

void patch_scratch_free(struct patch_scratch *scratch)
{
    for (size_t i = 0; i < scratch->count; i++)
        place_free(&scratch->files[i].place);
    free(scratch->files);
    if (scratch->fd >= 0)
        close(scratch->fd);
    if (scratch->name)
        fs_remove_tree(scratch->parent_fd, scratch->name, NULL);
    if (scratch->parent_fd >= 0)
        close(scratch->parent_fd);
    free(scratch->name);
    *scratch = (struct patch_scratch)PATCH_SCRATCH_INIT;
}

static struct patch_file *find(const struct patch_scratch *scratch, const char *path)
{
    for (size_t i = 0; i < scratch->count; i++)
        if (strcmp(scratch->files[i].place.path, path) == 0)
            return &scratch->files[i];
    return NULL;
}

static struct patch_file *add_place(struct patch_scratch *scratch, struct place *place) // takes place
{
    scratch->files = mem_realloc_array(scratch->files, scratch->count + 1, sizeof(struct patch_file));
    struct patch_file *file = &scratch->files[scratch->count++];
    *file = (struct patch_file){.place = *place};
    *place = (struct place)PLACE_INIT;
    return file;
}

static int add_name(struct patch_scratch *scratch, const struct workspace *workspace, const char *name,
                    struct error *err)
{
    CLEANUP_PLACE struct place place = PLACE_INIT;
    if (workspace_find_target(workspace, name, strlen(name), &place, err) < 0)
        return -1;
    if (!find(scratch, place.path))
        add_place(scratch, &place);
    return 0;
}

int patch_scratch_add_names(struct patch_scratch *scratch, const struct workspace *workspace,
                            const struct patch_names *names, struct error *err)
{
    for (size_t i = 0; i < names->count; i++)
        if (add_name(scratch, workspace, names->names[i], err) < 0)
            return -1;
    return 0;
}

// --- copies

// Opens the parent of path in the scratch directory and makes what is missing on the way.
static int open_scratch_parent(const struct patch_scratch *scratch, const char *path, const char **ret_name)
{
    CLEANUP_CLOSE int dir = fcntl(scratch->fd, F_DUPFD_CLOEXEC, 3);
    for (const char *slash; dir >= 0 && (slash = strchr(path, '/')); path = slash + 1) {
        CLEANUP_FREE char *name = mem_strndup(path, (size_t)(slash - path));
        if (mkdirat(dir, name, 0700) < 0 && errno != EEXIST)
            return -1;
        int next = fs_openat2(dir, name, O_RDONLY | O_DIRECTORY, 0, BENEATH);
        close(dir);
        dir = next;
    }
    *ret_name = path;
    return TAKE_FD(dir);
}

static int fail_too_large(struct error *err)
{
    return guest_tool_fail(err, "apply it with git apply in bash",
                           "The files that the patch names are too large. Limit: %d bytes together.",
                           PATCH_MAX_COPY_BYTES);
}

static int copy_bytes(struct patch_scratch *scratch, int from, int to, const char *path, struct error *err)
{
    CLEANUP_FREE char *chunk = mem_alloc(CHUNK_BYTES);
    ssize_t n;
    while ((n = read(from, chunk, CHUNK_BYTES)) > 0) {
        scratch->copied_bytes += (size_t)n;
        if (scratch->copied_bytes > PATCH_MAX_COPY_BYTES)
            return fail_too_large(err);
        struct error problem = ERROR_INIT;
        if (fs_write_all(to, chunk, (size_t)n, &problem) < 0)
            return guest_tool_fail(err, "make room in /tmp", "Cannot copy %s to /tmp: %s", path,
                                   problem.message);
    }
    return n < 0 ? guest_tool_fail_errno(err, errno, "read '%s'", path) : 0;
}

static int copy_regular(struct patch_scratch *scratch, struct patch_file *file, int from, struct error *err)
{
    const char *name, *path = file->place.path;
    CLEANUP_CLOSE int dir = open_scratch_parent(scratch, path, &name);
    mode_t mode = file->before.st_mode & 0100 ? 0700 : 0600;
    CLEANUP_CLOSE int to = dir < 0 ? -1 : openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
    if (to < 0)
        return guest_tool_fail_errno(err, errno, "copy '%s' to /tmp", path);
    if (copy_bytes(scratch, from, to, path, err) < 0)
        return -1;
    file->existed = true;
    return fstat(to, &file->copy) < 0 ? guest_tool_fail_errno(err, errno, "stat '%s'", path) : 0;
}

// git must meet what is there: a file, a directory in its way, or nothing.
static int copy_file(struct patch_scratch *scratch, const struct workspace *workspace,
                     struct patch_file *file, struct error *err)
{
    const char *name, *path = file->place.path;
    CLEANUP_CLOSE int from =
        workspace_open_real(workspace, file->place.real, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
    if (from < 0 && (errno == ENXIO || errno == ENODEV))
        return guest_tool_fail(err, NULL, "Not a file: %s", path);
    if (from < 0)
        return errno == ENOENT ? 0 : guest_tool_fail_errno(err, errno, "open '%s'", path);
    if (fstat(from, &file->before) < 0)
        return guest_tool_fail_errno(err, errno, "stat '%s'", path);
    if (S_ISREG(file->before.st_mode))
        return copy_regular(scratch, file, from, err);
    if (!S_ISDIR(file->before.st_mode))
        return guest_tool_fail(err, NULL, "Not a file: %s", path);
    CLEANUP_CLOSE int dir = open_scratch_parent(scratch, path, &name);
    if (dir < 0 || (mkdirat(dir, name, 0700) < 0 && errno != EEXIST))
        return guest_tool_fail_errno(err, errno, "copy '%s' to /tmp", path);
    return 0;
}

static void copy_rules(struct patch_scratch *scratch, const struct workspace *workspace, const char *dir,
                       size_t dir_len)
{
    CLEANUP_PLACE struct place place = PLACE_INIT;
    place.path = mem_format("%.*s%s" RULES_NAME, (int)dir_len, dir, dir_len ? "/" : "");
    if (find(scratch, place.path) || workspace_resolve(workspace, place.path, &place.real) != 0)
        return;
    CLEANUP_CLOSE int from = workspace_open_real(workspace, place.real, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
    struct patch_file file = {.place = place, .is_rules = true};
    if (from < 0 || fstat(from, &file.before) < 0 || !S_ISREG(file.before.st_mode) ||
        file.before.st_size > MAX_RULES_BYTES || copy_regular(scratch, &file, from, NULL) < 0)
        return;
    *add_place(scratch, &place) = file;
}

// git obeys the .gitattributes (line ends, encodings) of every directory on the way to a file.
static void copy_all_rules(struct patch_scratch *scratch, const struct workspace *workspace)
{
    size_t count = scratch->count;
    copy_rules(scratch, workspace, "", 0);
    for (size_t i = 0; i < count; i++) {
        CLEANUP_FREE char *path = mem_strdup(scratch->files[i].place.path); // files moves while it grows
        for (const char *slash = path; (slash = strchr(slash, '/')); slash++)
            copy_rules(scratch, workspace, path, (size_t)(slash - path));
    }
}

// An empty repository made by hand beside the copies: git reads .gitattributes only where there is one.
static int make_repository(int dir)
{
    struct error ignored = ERROR_INIT;
    static const char head[] = "ref: refs/heads/main\n";
    if (mkdirat(dir, PATCH_WORK_DIR, 0700) < 0 || mkdirat(dir, PATCH_GIT_DIR, 0700) < 0 ||
        mkdirat(dir, PATCH_GIT_DIR "/objects", 0700) < 0 || mkdirat(dir, PATCH_GIT_DIR "/refs", 0700) < 0)
        return -1;
    CLEANUP_CLOSE int fd = openat(dir, PATCH_GIT_DIR "/HEAD", O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    return fd < 0 ? -1 : fs_write_all(fd, head, strlen(head), &ignored);
}

static int fail_to_make(struct error *err, const char *tmp)
{
    return guest_tool_fail(err, "make TMPDIR (or /tmp) a directory that can be written and has room",
                           "Cannot make a directory in %s to try the patch: %s", tmp, strerrordesc_np(errno));
}

static int make_directory(struct patch_scratch *scratch, const char *tmp, struct error *err)
{
    char name[40] = "chat2shell-patch-";
    random_hex(name + strlen(name), 16);
    scratch->parent_fd = open(tmp, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (scratch->parent_fd < 0 || mkdirat(scratch->parent_fd, name, 0700) < 0)
        return fail_to_make(err, tmp);
    scratch->name = mem_strdup(name);
    CLEANUP_CLOSE int dir = fs_openat2(scratch->parent_fd, name, O_RDONLY | O_DIRECTORY, 0, BENEATH);
    if (dir < 0 || make_repository(dir) < 0)
        return fail_to_make(err, tmp);
    scratch->fd = fs_openat2(dir, PATCH_WORK_DIR, O_RDONLY | O_DIRECTORY, 0, BENEATH);
    return scratch->fd < 0 ? fail_to_make(err, tmp) : 0;
}

int patch_scratch_fill(struct patch_scratch *scratch, const struct workspace *workspace, const char *tmp,
                       struct error *err)
{
    if (make_directory(scratch, tmp, err) < 0)
        return -1;
    for (size_t i = 0; i < scratch->count; i++)
        if (copy_file(scratch, workspace, &scratch->files[i], err) < 0)
            return -1;
    copy_all_rules(scratch, workspace);
    return 0;
}

// --- what came out

// Files that git made though no header named them as we read it: they pass the same checks as the others.
static int find_others(struct patch_scratch *scratch, const struct workspace *workspace, int dir,
                       const char *prefix, int depth, struct error *err)
{
    CLEANUP_DIRECTORY struct directory directory = {0};
    if (depth > MAX_DEPTH || directory_read(dir, false, &directory) < 0 || directory.is_cut)
        return guest_tool_fail(err, "apply it in parts", "Cannot see all that the patch made in %s/", prefix);
    for (size_t i = 0; i < directory.count; i++) {
        const struct directory_entry *entry = &directory.entries[i];
        CLEANUP_FREE char *path = mem_format("%s%s%s", prefix, *prefix ? "/" : "", entry->name);
        if (entry->type == DT_DIR) {
            CLEANUP_CLOSE int child = fs_openat2(dir, entry->name, O_RDONLY | O_DIRECTORY, 0, BENEATH);
            if (child < 0)
                return guest_tool_fail_errno(err, errno, "open '%s'", path);
            if (find_others(scratch, workspace, child, path, depth + 1, err) < 0)
                return -1;
        } else if (!find(scratch, path) && add_name(scratch, workspace, path, err) < 0) {
            return -1;
        }
    }
    return 0;
}

static bool is_untouched(const struct patch_file *file, const struct stat *now)
{
    return file->existed && now->st_ino == file->copy.st_ino && now->st_size == file->copy.st_size &&
           now->st_mtim.tv_sec == file->copy.st_mtim.tv_sec &&
           now->st_mtim.tv_nsec == file->copy.st_mtim.tv_nsec;
}

// An existing file keeps its mode, but for the executable bits if the patch turned them.
static mode_t mode_for(const struct patch_file *file, const struct stat *now)
{
    bool is_program = now->st_mode & 0100;
    if (!file->existed)
        return is_program ? 0777 : 0666;
    mode_t mode = file->before.st_mode & 07777;
    if (is_program == !!(mode & 0100))
        return mode;
    return is_program ? mode | (mode & 0444) >> 2 : mode & ~(mode_t)0111;
}

// 1: an item to install, 0: nothing changed.
static int make_item(const struct patch_scratch *scratch, const struct patch_file *file,
                     struct install_item *item, struct error *err)
{
    struct stat now;
    const char *path = file->place.path;
    *item = (struct install_item){.path = path,
                                  .real = file->place.real,
                                  .before = file->existed ? &file->before : NULL,
                                  .content_dir = scratch->fd,
                                  .content_path = path};
    int fd = fs_openat2(scratch->fd, path, O_PATH | O_NOFOLLOW, 0, RESOLVE_BENEATH);
    bool is_there = fd >= 0 && fstat(fd, &now) == 0;
    if (fd >= 0)
        close(fd);
    item->is_removal = file->existed && !is_there;
    if (!is_there || (file->existed && is_untouched(file, &now)) || (!file->existed && S_ISDIR(now.st_mode)))
        return item->is_removal;
    if (S_ISLNK(now.st_mode))
        return guest_tool_fail(err, NULL, "Symlink patches are blocked: %s", path);
    if (!S_ISREG(now.st_mode))
        return guest_tool_fail(err, NULL, "The patch makes %s something that is no file", path);
    item->mode = mode_for(file, &now);
    return 1;
}

int patch_scratch_install(struct patch_scratch *scratch, const struct workspace *workspace,
                          size_t *ret_changed, struct error *err)
{
    if (find_others(scratch, workspace, scratch->fd, "", 0, err) < 0)
        return -1;
    CLEANUP_FREE struct install_item *items = mem_alloc((scratch->count + 1) * sizeof(struct install_item));
    size_t count = 0;
    for (size_t i = 0; i < scratch->count; i++) {
        int result = make_item(scratch, &scratch->files[i], &items[count], err);
        if (result < 0)
            return -1;
        count += (size_t)result;
    }
    if (install_all(workspace, items, count, err) < 0)
        return -1;
    *ret_changed = count;
    return 0;
}
