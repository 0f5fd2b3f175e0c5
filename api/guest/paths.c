// Path arguments: folding, resolving below the root, and the two ways in (for readers and for writers).
#include "api/guest/blocked.h"
#include "api/guest/tool.h"
#include "api/guest/workspace.h"
#include "controller/base/memory.h"
#include <errno.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>

#define MAX_LINKS 40
#define BENEATH (RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS)

// Takes one part off the end; false if there is none.
static bool pop_part(struct buffer *path)
{
    if (!path->len)
        return false;
    char *slash = memrchr(path->data, '/', path->len);
    path->len = slash ? (size_t)(slash - path->data) : 0;
    path->data[path->len] = '\0';
    return true;
}

static int push_part(struct buffer *path, const char *part, size_t len)
{
    if (path->len && buffer_append_char(path, '/') < 0)
        return -1;
    return buffer_append(path, part, len);
}

// Adds the parts of text to path, folding "." and "..". 0, EXDEV (goes above the start) or ENAMETOOLONG.
static int fold_into(struct buffer *path, const char *text)
{
    while (*text) {
        size_t len = strcspn(text, "/");
        if (len == 2 && text[0] == '.' && text[1] == '.') {
            if (!pop_part(path))
                return EXDEV;
        } else if (len && !(len == 1 && text[0] == '.')) {
            if (push_part(path, text, len) < 0)
                return ENAMETOOLONG;
        }
        text += len + (text[len] == '/');
    }
    return 0;
}

// An absolute path folded, without its leading slash ("" is "/"; ".." stays there, as in the kernel).
static int fold_absolute(struct buffer *path, const char *text)
{
    while (*text) {
        size_t len = strcspn(text, "/");
        if (len == 2 && text[0] == '.' && text[1] == '.')
            pop_part(path);
        else if (len && !(len == 1 && text[0] == '.') && push_part(path, text, len) < 0)
            return ENAMETOOLONG;
        text += len + (text[len] == '/');
    }
    return 0;
}

// The rest of a folded absolute path below root, or NULL if it is not below.
static const char *below(const char *folded, const char *root)
{
    root += *root == '/';
    size_t len = strlen(root);
    if (!len)
        return folded;
    if (strncmp(folded, root, len) != 0 || (folded[len] && folded[len] != '/'))
        return NULL;
    return folded + len + (folded[len] == '/');
}

static const char *below_root(const struct workspace *workspace, const char *folded)
{
    const char *rest = below(folded, workspace->root);
    return rest || workspace->given[0] != '/' ? rest : below(folded, workspace->given);
}

static char *relative_path(struct buffer *path)
{
    return path->len ? buffer_take_string(path) : mem_strdup(".");
}

static int fold_from_top(const struct workspace *workspace, const char *given, char **ret)
{
    CLEANUP(buffer_free) struct buffer path = BUFFER_INIT(PATH_MAX);
    CLEANUP(buffer_free) struct buffer rest = BUFFER_INIT(PATH_MAX);
    int result = fold_absolute(&path, given);
    if (result)
        return result;
    const char *inside = below_root(workspace, buffer_text(&path));
    if (!inside)
        return EXDEV;
    buffer_append_text(&rest, inside);
    *ret = relative_path(&rest);
    return 0;
}

static int fold_relative(const char *given, char **ret)
{
    CLEANUP(buffer_free) struct buffer path = BUFFER_INIT(PATH_MAX);
    int result = fold_into(&path, given);
    if (!result)
        *ret = relative_path(&path);
    return result;
}

int workspace_fold(const struct workspace *workspace, const char *given, size_t len, char **ret,
                   struct error *err)
{
    if (strlen(given) != len)
        return guest_tool_fail_type(err, "The argument 'path' must be a string without null bytes");
    CLEANUP_FREE char *home_path = NULL;
    if (given[0] == '~' && (!given[1] || given[1] == '/'))
        given = home_path = mem_format("%s%s", workspace->home, given + 1);
    int result = ENAMETOOLONG;
    if (strlen(given) < PATH_MAX)
        result = given[0] == '/' ? fold_from_top(workspace, given, ret) : fold_relative(given, ret);
    if (result == EXDEV)
        return guest_tool_fail(err, "give a path below the root", "Path escapes workspace root: %s", given);
    return result ? guest_tool_fail_errno(err, result, "open '%.200s'", given) : 0;
}

int workspace_open_real(const struct workspace *workspace, const char *real, int flags)
{
    return fs_openat2(workspace->root_fd, real, flags, 0, BENEATH | RESOLVE_NO_SYMLINKS);
}

// State of a resolution by hand: `real` is done and free of links, `pending` is still to walk.
struct walk {
    const struct workspace *workspace;
    struct buffer real;
    char *pending;
    int links;
};

static int follow_link(struct walk *walk, const char *target, const char *rest)
{
    if (++walk->links > MAX_LINKS)
        return ELOOP;
    if (strlen(target) + strlen(rest) + 1 >= PATH_MAX)
        return ENAMETOOLONG;
    CLEANUP_FREE char *inside = NULL;
    if (target[0] == '/') {
        int result = fold_from_top(walk->workspace, target, &inside);
        if (result)
            return result;
        walk->real.len = 0;
        target = inside;
    }
    char *pending = mem_format("%s/%s", target, rest);
    free(walk->pending);
    walk->pending = pending;
    return 0;
}

static int read_link(const struct walk *walk, const char *path, char target[PATH_MAX], bool *ret_is_link)
{
    CLEANUP_CLOSE int fd = workspace_open_real(walk->workspace, path, O_PATH | O_NOFOLLOW);
    struct stat meta;
    if (fd < 0 || fstat(fd, &meta) < 0)
        return errno;
    *ret_is_link = S_ISLNK(meta.st_mode);
    if (!*ret_is_link)
        return 0;
    ssize_t n = readlinkat(fd, "", target, PATH_MAX - 1);
    if (n < 0)
        return errno;
    target[n] = '\0';
    return 0;
}

// Takes the first part of pending. 0 to go on.
static int step(struct walk *walk)
{
    char target[PATH_MAX];
    bool is_link = false;
    char *part = walk->pending + strspn(walk->pending, "/");
    size_t len = strcspn(part, "/");
    CLEANUP_FREE char *rest = mem_strdup(part + len);
    CLEANUP_FREE char *name = mem_strndup(part, len);
    if (len && strcmp(name, "..") != 0 && strcmp(name, ".") != 0) {
        if (push_part(&walk->real, name, len) < 0)
            return ENAMETOOLONG;
        int result = read_link(walk, buffer_text(&walk->real), target, &is_link);
        if (result)
            return result;
        if (is_link) {
            pop_part(&walk->real);
            return follow_link(walk, target, rest);
        }
    } else if (strcmp(name, "..") == 0 && !pop_part(&walk->real)) {
        return EXDEV;
    }
    char *pending = TAKE_PTR(rest);
    free(walk->pending);
    walk->pending = pending;
    return 0;
}

int workspace_resolve(const struct workspace *workspace, const char *path, char **ret_real)
{
    CLEANUP_CLOSE int fd = workspace_open_real(workspace, path, O_PATH);
    if (fd >= 0) { // the usual case: no link on the way
        *ret_real = mem_strdup(path);
        return 0;
    }
    if (errno != ELOOP)
        return errno;
    struct walk walk = {.workspace = workspace, .real = BUFFER_INIT(PATH_MAX), .pending = mem_strdup(path)};
    int result = 0;
    while (!result && walk.pending[strspn(walk.pending, "/")])
        result = step(&walk);
    if (!result)
        *ret_real = relative_path(&walk.real);
    buffer_free(&walk.real);
    free(walk.pending);
    return result;
}

static int refuse_blocked(const char *shown, const char *path, struct error *err)
{
    if (!blocked_path(path))
        return 0;
    return guest_tool_fail(err, NULL, "Path is blocked by safety rules: %s", shown);
}

static int fail_to_reach(struct error *err, int errno_value, const char *path)
{
    if (errno_value == EXDEV)
        return guest_tool_fail(err, NULL, "Path resolves outside workspace root through a symlink: %s", path);
    if (errno_value == ENXIO || errno_value == ENODEV) // a socket, or a device without a driver
        return guest_tool_fail(err, NULL, "Not a file: %s", path);
    return guest_tool_fail_errno(err, errno_value, "open '%s'", path);
}

int workspace_open_place(const struct workspace *workspace, const char *given, size_t len, int flags,
                         struct place *ret, struct error *err)
{
    CLEANUP_PLACE struct place place = PLACE_INIT;
    if (workspace_fold(workspace, given, len, &place.path, err) < 0 ||
        refuse_blocked(place.path, place.path, err) < 0)
        return -1;
    int result = workspace_resolve(workspace, place.path, &place.real);
    if (result)
        return fail_to_reach(err, result, place.path);
    if (refuse_blocked(place.path, place.real, err) < 0)
        return -1;
    place.fd = workspace_open_real(workspace, place.real, flags | O_NONBLOCK | O_NOCTTY);
    if (place.fd < 0)
        return fail_to_reach(err, errno, place.path);
    *ret = place;
    place = (struct place)PLACE_INIT;
    return 0;
}

// Resolves the longest existing part of a directory path and puts the missing parts behind it.
static int resolve_parent(const struct workspace *workspace, const char *parent, char **ret_real)
{
    CLEANUP_FREE char *existing = mem_strdup(parent);
    for (;;) {
        CLEANUP_FREE char *real = NULL;
        int result = workspace_resolve(workspace, existing, &real);
        const char *missing = strcmp(existing, ".") == 0 ? parent : parent + strlen(existing);
        missing += *missing == '/';
        if (!result) {
            bool is_top = strcmp(real, ".") == 0;
            *ret_real = !*missing ? mem_strdup(real)
                        : is_top  ? mem_strdup(missing)
                                  : mem_format("%s/%s", real, missing);
            return 0;
        }
        char *slash = strrchr(existing, '/');
        if (result != ENOENT || strcmp(existing, ".") == 0)
            return result;
        if (slash)
            *slash = '\0';
        else
            memcpy(existing, ".", 2); // at least one character and its NUL are there
    }
}

static bool is_symlink(const struct workspace *workspace, const char *real)
{
    CLEANUP_CLOSE int fd = workspace_open_real(workspace, real, O_PATH | O_NOFOLLOW);
    struct stat meta;
    return fd >= 0 && fstat(fd, &meta) == 0 && S_ISLNK(meta.st_mode);
}

static bool is_not_directory(const struct workspace *workspace, const char *real)
{
    CLEANUP_CLOSE int fd = workspace_open_real(workspace, real, O_PATH | O_DIRECTORY);
    return fd < 0 && errno == ENOTDIR;
}

int workspace_find_target(const struct workspace *workspace, const char *given, size_t len, struct place *ret,
                          struct error *err)
{
    CLEANUP_PLACE struct place place = PLACE_INIT;
    if (workspace_fold(workspace, given, len, &place.path, err) < 0 ||
        refuse_blocked(place.path, place.path, err) < 0)
        return -1;
    if (strcmp(place.path, ".") == 0)
        return guest_tool_fail(err, "name a file",
                               "Refusing to write to the workspace root: parent outside the workspace");
    char *slash = strrchr(place.path, '/');
    CLEANUP_FREE char *parent =
        slash ? mem_strndup(place.path, (size_t)(slash - place.path)) : mem_strdup(".");
    CLEANUP_FREE char *real_parent = NULL;
    int result = resolve_parent(workspace, parent, &real_parent);
    if (result == EXDEV)
        return guest_tool_fail(err, NULL, "Refusing to write to %s: parent outside the workspace",
                               place.path);
    if (result == ENOTDIR || (!result && is_not_directory(workspace, real_parent)))
        return guest_tool_fail_errno(err, EEXIST, "mkdir '%s'", parent);
    if (result)
        return guest_tool_fail_errno(err, result, "open '%s'", place.path);
    const char *name = slash ? slash + 1 : place.path;
    place.real = strcmp(real_parent, ".") == 0 ? mem_strdup(name) : mem_format("%s/%s", real_parent, name);
    if (is_symlink(workspace, place.real))
        return guest_tool_fail(err, "write to the file it points to",
                               "Refusing to write through a symlink: %s", place.path);
    if (refuse_blocked(place.path, place.real, err) < 0)
        return -1;
    *ret = place;
    place = (struct place)PLACE_INIT;
    return 0;
}

int workspace_open_parent(const struct workspace *workspace, const char *real, bool create_dirs,
                          const char **ret_name)
{
    CLEANUP_CLOSE int dir = workspace_open_real(workspace, ".", O_RDONLY | O_DIRECTORY);
    const char *part = real;
    for (const char *slash; dir >= 0 && (slash = strchr(part, '/')); part = slash + 1) {
        CLEANUP_FREE char *name = mem_strndup(part, (size_t)(slash - part));
        if (create_dirs && mkdirat(dir, name, 0777) < 0 && errno != EEXIST)
            return -1;
        int next = fs_openat2(dir, name, O_RDONLY | O_DIRECTORY, 0, BENEATH | RESOLVE_NO_SYMLINKS);
        close(dir);
        dir = next;
    }
    if (dir >= 0)
        *ret_name = part;
    return TAKE_FD(dir);
}
