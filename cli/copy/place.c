// Names, directories and links. Files in the making are in place_file.c.
#include "cli/copy/place_internal.h"
#include "cli/copy/tar.h"
#include "controller/base/fs.h"
#include "controller/base/memory.h"
#include "controller/base/random.h"
#include "controller/base/utf8.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>

#define RESOLVE_STRICT (RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS)

void place_clear(struct place *place)
{
    free(place->parent_path);
    if (place->parent_fd >= 0)
        close(place->parent_fd);
    *place = (struct place)PLACE_INIT(place->root_fd);
}

int place_fail(struct error *err, int number, const char *path, const char *what)
{
    CLEANUP_FREE char *shown = utf8_to_printable(path, strlen(path), false);
    if (number == ELOOP || number == ENOTDIR || number == EXDEV)
        return error_set(err, ERROR_EXISTS, "move away what is in the way, or copy to another place",
                         "%s '%s': a file or a symbolic link is in the place of a directory", what, shown);
    if (number == EISDIR || number == ENOTEMPTY || number == EEXIST)
        return error_set(err, ERROR_EXISTS, "move away what is in the way, or copy to another place", "%s '%s': a directory is in its place", what, shown);
    return error_errno(err, number, NULL, "%s '%s'", what, shown);
}

// ---- names ------------------------------------------------------------------------------------------------------------
static int refuse_name(const char *path, const char *why, struct error *err)
{
    CLEANUP_FREE char *shown = utf8_to_printable(path, strlen(path), false);
    return error_set(err, ERROR_REFUSED, "do not trust what runs in that sandbox; what was copied before this is whole",
                     "the sandbox's archive holds '%.300s', %s", shown, why);
}

// One component into the clean path.
static int add_component(struct buffer *clean, const char *component, size_t len, const char *path, struct error *err)
{
    if (len == 2 && memcmp(component, "..", 2) == 0)
        return refuse_name(path, "which leads out of the directory", err);
    if (len > NAME_MAX)
        return refuse_name(path, "which has a name that is too long", err);
    if (clean->len)
        buffer_append_char(clean, '/');
    buffer_append(clean, component, len);
    return 0;
}

static const char *next_component(const char *at, size_t *ret_len)
{
    for (;;) {
        at += strspn(at, "/");
        *ret_len = strcspn(at, "/");
        if (*ret_len != 1 || at[0] != '.')
            return at;
        at++;
    }
}

char *place_clean_path(const char *path, const char *expected, const char *as, struct error *err)
{
    CLEANUP(buffer_free) struct buffer clean = BUFFER_INIT(TAR_NAME_MAX_BYTES + NAME_MAX + 1);
    size_t len, count = 0;
    const char *at = next_component(path, &len);
    if (path[0] == '/') {
        refuse_name(path, "which leads out of the directory", err);
        return NULL;
    }
    if (as)
        buffer_append_text(&clean, as);
    if (expected && (strlen(expected) != len || memcmp(expected, at, len) != 0)) {
        refuse_name(path, "which was not asked for", err);
        return NULL;
    }
    for (at = expected ? next_component(at + len, &len) : at; len; at = next_component(at + len, &len)) {
        if (++count > PLACE_DEPTH_MAX) {
            refuse_name(path, "which lies too deep", err);
            return NULL;
        }
        if (add_component(&clean, at, len, path, err) < 0)
            return NULL;
    }
    return buffer_take_string(&clean);
}

static unsigned count_components(const char *path)
{
    unsigned count = *path != '\0';
    for (; *path; path++)
        count += *path == '/';
    return count;
}

bool place_is_link_inside(const char *path, const char *target, unsigned top)
{
    unsigned depth = count_components(path), climbs = 0;
    bool has_descended = false;
    size_t len;
    if (target[0] == '/')
        return false;
    for (const char *at = next_component(target, &len); len; at = next_component(at + len, &len)) {
        bool is_climb = len == 2 && memcmp(at, "..", 2) == 0;
        if (is_climb && has_descended)
            return false;
        climbs += is_climb;
        has_descended = has_descended || !is_climb;
    }
    unsigned room = depth > top ? depth - 1 - top : 0; // directories between the top and the link
    return climbs <= room;
}

// ---- directories --------------------------------------------------------------------------------------------------------
static int open_directory(struct place *place, const char *path)
{
    return fs_openat2(place->root_fd, path[0] ? path : ".", O_RDONLY | O_DIRECTORY, 0, RESOLVE_STRICT);
}

// Opens a directory, making it and those above it where they are missing.
static int open_made(struct place *place, const char *path)
{
    int fd = open_directory(place, path);
    if (fd >= 0 || errno != ENOENT || !path[0])
        return fd;
    const char *slash = strrchr(path, '/');
    CLEANUP_FREE char *above = slash ? mem_strndup(path, (size_t)(slash - path)) : mem_strdup("");
    CLEANUP_CLOSE int above_fd = open_made(place, above);
    if (above_fd < 0 || (mkdirat(above_fd, slash ? slash + 1 : path, 0777) < 0 && errno != EEXIST))
        return -1;
    return open_directory(place, path);
}

int place_open_parent(struct place *place, const char *path, int *ret_fd, const char **ret_name, struct error *err)
{
    const char *slash = strrchr(path, '/');
    size_t len = slash ? (size_t)(slash - path) : 0;
    *ret_name = slash ? slash + 1 : path;
    if (place->parent_fd < 0 || strlen(place->parent_path) != len || memcmp(place->parent_path, path, len) != 0) {
        place_clear(place);
        place->parent_path = mem_strndup(path, len);
        place->parent_fd = open_made(place, place->parent_path);
        if (place->parent_fd < 0)
            return place_fail(err, errno, place->parent_path, "cannot go into");
    }
    *ret_fd = place->parent_fd;
    return 0;
}

int place_make_directory(struct place *place, const char *path, bool *ret_is_new, struct error *err)
{
    int parent_fd;
    const char *name;
    struct stat info;
    if (!path[0]) {
        *ret_is_new = false;
        return 0;
    }
    if (place_open_parent(place, path, &parent_fd, &name, err) < 0)
        return -1;
    if (mkdirat(parent_fd, name, 0700) == 0) {
        *ret_is_new = true;
        return 0;
    }
    if (errno != EEXIST)
        return place_fail(err, errno, path, "cannot make");
    if (fstatat(parent_fd, name, &info, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISDIR(info.st_mode))
        return place_fail(err, ENOTDIR, path, "cannot make");
    *ret_is_new = false;
    return 0;
}

int place_set_directory(struct place *place, const char *path, mode_t mode, const struct timespec *mtime, struct error *err)
{
    const struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, *mtime};
    CLEANUP_CLOSE int fd = open_directory(place, path);
    if (fd < 0 || futimens(fd, times) < 0 || fchmod(fd, mode) < 0)
        return place_fail(err, errno, path, "cannot finish");
    return 0;
}

// ---- links --------------------------------------------------------------------------------------------------------------
char *place_temp_name(void)
{
    char digits[17];
    random_hex(digits, sizeof(digits) - 1);
    return mem_format(".chat2shell-cp-%s", digits);
}

int place_rename(int dir_fd, const char *temp_name, const char *name, const char *path, struct error *err)
{
    int number = renameat(dir_fd, temp_name, dir_fd, name) < 0 ? errno : 0;
    unlinkat(dir_fd, temp_name, 0); // there still if it failed, or if both were the same file
    return number ? place_fail(err, number, path, "cannot write") : 0;
}

int place_make_symlink(struct place *place, const char *path, const char *target, const struct timespec *mtime, struct error *err)
{
    const struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, *mtime};
    CLEANUP_FREE char *temp_name = place_temp_name();
    int parent_fd;
    const char *name;
    if (place_open_parent(place, path, &parent_fd, &name, err) < 0)
        return -1;
    if (symlinkat(target, parent_fd, temp_name) < 0)
        return place_fail(err, errno, path, "cannot make");
    utimensat(parent_fd, temp_name, times, AT_SYMLINK_NOFOLLOW); // not every file system can
    return place_rename(parent_fd, temp_name, name, path, err);
}

int place_make_hard_link(struct place *place, const char *path, const char *from, struct error *err)
{
    CLEANUP(place_clear) struct place other = PLACE_INIT(place->root_fd);
    CLEANUP_FREE char *temp_name = place_temp_name();
    int from_fd, to_fd;
    const char *from_name, *name;
    if (place_open_parent(&other, from, &from_fd, &from_name, err) < 0 || place_open_parent(place, path, &to_fd, &name, err) < 0)
        return -1;
    if (linkat(from_fd, from_name, to_fd, temp_name, 0) < 0)
        return place_fail(err, errno, path, "cannot link");
    return place_rename(to_fd, temp_name, name, path, err);
}
