// Which host paths may ever reach a sandbox (the product's one local approval boundary).
#include "controller/base/fs.h"
#include "controller/base/memory.h"
#include "controller/base/utf8.h"
#include "reconcilers/reconcilers.h"
#include <errno.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>

#define ALTERNATES_MAX_BYTES (64 * 1024)

static const char *const blocked_components[] = {".aws",  ".azure", ".config",  ".docker", ".gnupg",
                                                 ".kube", ".local", ".secrets", ".ssh"};

void host_path_clear(struct host_path *path)
{
    free(path->resolved);
    *path = (struct host_path){0};
}

static const char *blocked_component(const char *path)
{
    for (size_t i = 0; i < ARRAY_LEN(blocked_components); i++) {
        const char *name = blocked_components[i];
        size_t len = strlen(name);
        for (const char *at = strstr(path, name); at; at = strstr(at + 1, name))
            if (at > path && at[-1] == '/' && (at[len] == '/' || at[len] == '\0'))
                return name;
    }
    return NULL;
}

static bool overlaps(const char *path, const char *dir)
{
    return strcmp(path, dir) == 0 || fs_is_below(path, dir) || fs_is_below(dir, path);
}

static bool overlaps_resolved(const char *path, const char *dir)
{
    CLEANUP_FREE char *resolved = realpath(dir, NULL);
    return overlaps(path, dir) || (resolved && overlaps(path, resolved));
}

static bool is_below_allowed_root(const struct config *config, const char *path)
{
    for (size_t i = 0; i < config->allowed_host_roots.count; i++) {
        CLEANUP_FREE char *root = realpath(config->allowed_host_roots.items[i], NULL);
        if (root && fs_is_below(path, root))
            return true;
    }
    return false;
}

// What a sandbox may have named (below a direct workspace) is shown to the operator, who decides by what is shown.
static int check_spelling(const char *path, struct error *err)
{
    CLEANUP_FREE char *printable = utf8_to_printable(path, strlen(path), false);
    if (utf8_is_valid(path, strlen(path)) && strcmp(printable, path) == 0)
        return 0;
    return error_set(err, ERROR_REFUSED, "rename it", "%s has a name that cannot be shown as it is", printable);
}

static int check_place(const struct config *config, const char *path, struct error *err)
{
    if (check_spelling(path, err) < 0)
        return -1;
    if (!is_below_allowed_root(config, path))
        return error_set(err, ERROR_REFUSED, "move it below one of CHAT2SHELL_ALLOWED_HOST_ROOTS, or add its parent there and restart",
                         "%s is not strictly below an allowed host root", path);
    const char *blocked = blocked_component(path);
    if (blocked)
        return error_set(err, ERROR_REFUSED, "choose a directory that holds no credentials", "%s has the component %s, which is never mounted",
                         path, blocked);
    const char *own[] = {config->data_root, config->state_dir, config->workspace_root};
    for (size_t i = 0; i < ARRAY_LEN(own); i++)
        if (overlaps_resolved(path, own[i]))
            return error_set(err, ERROR_REFUSED, "choose a directory apart from chat2shell's own",
                             "%s contains or lies in chat2shell's own directory %s", path, own[i]);
    return 0;
}

// ---- clone: a repository's top level, complete in itself ----------------------------------------------------
static int check_alternate_line(const char *line, const char *objects, struct error *err)
{
    CLEANUP_FREE char *joined = line[0] == '/' ? mem_strdup(line) : mem_format("%s/%s", objects, line);
    CLEANUP_FREE char *resolved = realpath(joined, NULL);
    if (resolved && (strcmp(resolved, objects) == 0 || fs_is_below(resolved, objects)))
        return 0;
    return error_set(err, ERROR_REFUSED, "run `git repack -a -d` and remove .git/objects/info/alternates",
                     "the repository borrows objects from outside (%s)", line);
}

static int check_alternates(int dir_fd, const char *path, struct error *err)
{
    CLEANUP_CLOSE int fd = fs_openat2(dir_fd, ".git/objects/info/alternates", O_RDONLY | O_NONBLOCK, 0,
                                      RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS);
    if (fd < 0)
        return errno == ENOENT || errno == ENOTDIR ? 0 : error_errno(err, errno, NULL, "cannot read the alternates of %s", path);
    CLEANUP(buffer_free) struct buffer text = BUFFER_INIT(ALTERNATES_MAX_BYTES);
    if (fs_read_all(fd, &text, err) < 0)
        return -1;
    CLEANUP_FREE char *objects = mem_format("%s/.git/objects", path);
    CLEANUP_FREE char *copy = buffer_take_string(&text);
    char *rest = NULL;
    for (char *line = strtok_r(copy, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
        if (line[0] && line[0] != '#' && check_alternate_line(line, objects, err) < 0)
            return -1;
    return 0;
}

static int check_repository(int dir_fd, const char *path, struct error *err)
{
    static const char *const parts[] = {".git", ".git/objects", ".git/refs"};
    for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
        CLEANUP_CLOSE int fd = fs_openat2(dir_fd, parts[i], O_PATH | O_DIRECTORY | O_NOFOLLOW, 0, RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS);
        if (fd < 0)
            return error_set(err, ERROR_REFUSED, "use the top level of a Git repository, or mode direct",
                             "%s is not the top level of a Git repository with a real .git directory", path);
    }
    return check_alternates(dir_fd, path, err);
}

static int check_exactly(const struct config *config, const char *path, enum workspace_mode mode, struct host_path *ret, struct error *err)
{
    if (path[0] != '/' || strlen(path) >= PATH_MAX)
        return error_set(err, ERROR_INVALID, "give an absolute path", "the host path must be absolute and shorter than %d bytes", PATH_MAX);
    CLEANUP_FREE char *resolved = realpath(path, NULL);
    if (!resolved)
        return error_errno(err, errno, "the directory must exist", "cannot resolve %s", path);
    CLEANUP_CLOSE int fd = fs_openat2(AT_FDCWD, resolved, O_RDONLY | O_DIRECTORY | O_NONBLOCK, 0, RESOLVE_NO_SYMLINKS);
    if (fd < 0)
        return error_errno(err, errno, "it has to be a directory that you can read", "cannot open %s", resolved);
    if (check_place(config, resolved, err) < 0)
        return -1;
    struct stat st;
    if (fstat(fd, &st) < 0)
        return error_errno(err, errno, NULL, "cannot look at %s", resolved);
    if (mode == WORKSPACE_CLONE && check_repository(fd, resolved, err) < 0)
        return -1;
    *ret = (struct host_path){TAKE_PTR(resolved), (int64_t)st.st_dev, (int64_t)st.st_ino};
    return 0;
}

int path_policy_check(const struct config *config, const char *path, enum workspace_mode mode, bool is_operator, struct host_path *ret,
                      struct error *err)
{
    int r = check_exactly(config, path, mode, ret, err);
    // One sentence for every refusal, so that an untrusted caller cannot map the host's file system by asking.
    if (r < 0 && !is_operator)
        return error_set(err, ERROR_REFUSED,
                         "ask the owner which paths are allowed, or leave out workspace_path to get a fresh workspace",
                         PATH_REFUSED_MESSAGE);
    return r;
}
