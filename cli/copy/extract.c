#include "cli/copy/extract.h"
#include "cli/copy/place.h"
#include "controller/base/fs.h"
#include "controller/base/memory.h"
#include <errno.h>
#include <string.h>

#define HOLE_BYTES 4096 // zeros at a multiple of it and as long become a hole

struct made_directory { // its mode and time come last: what is made in it would change them
    char *path;
    mode_t mode;
    struct timespec mtime;
};
struct run {
    const struct extract *how;
    struct tar_reader *reader;
    struct place place;
    struct made_directory *directories;
    size_t directory_count, directory_room, directory_bytes;
    int64_t entries;
};

static void run_clear(struct run *run)
{
    for (size_t i = 0; i < run->directory_count; i++)
        free(run->directories[i].path);
    free(run->directories);
    place_clear(&run->place);
}

static mode_t mode_of(const struct run *run, const struct tar_entry *entry)
{
    return entry->mode & 0777 & ~run->how->umask;
}

static struct timespec time_of(const struct tar_entry *entry)
{
    return (struct timespec){.tv_sec = entry->mtime_s, .tv_nsec = entry->mtime_ns};
}

// ---- files --------------------------------------------------------------------------------------------------------------
static bool is_zero(const char *bytes, size_t len)
{
    return !bytes[0] && memcmp(bytes, bytes + 1, len - 1) == 0;
}

// Blocks of zeros are left out: the file has holes there.
static int write_sparse(int fd, const char *bytes, size_t len, int64_t *at, struct error *err)
{
    while (len) {
        size_t room = HOLE_BYTES - (size_t)(*at % HOLE_BYTES), part = room < len ? room : len;
        bool is_hole = part == HOLE_BYTES && is_zero(bytes, part);
        while (!is_hole && part < len && len - part >= HOLE_BYTES && !is_zero(bytes + part, HOLE_BYTES))
            part += HOLE_BYTES;
        if (!is_hole && lseek(fd, *at, SEEK_SET) < 0)
            return error_errno(err, errno, NULL, "cannot write");
        if (!is_hole && fs_write_all(fd, bytes, part, err) < 0)
            return -1;
        bytes += part;
        len -= part;
        *at += (int64_t)part;
    }
    return 0;
}

static int fill(struct run *run, const struct tar_entry *entry, int fd, struct error *err)
{
    struct tally *tally = run->how->tally;
    int64_t at = 0;
    const char *bytes;
    size_t len;
    int r;
    while ((r = tar_reader_data(run->reader, &bytes, &len, err)) > 0) {
        if (write_sparse(fd, bytes, len, &at, err) < 0)
            return -1;
        tally_add_bytes(tally, (int64_t)len);
    }
    if (r == 0 && ftruncate(fd, entry->size) < 0) // it may end in a hole
        return error_errno(err, errno, NULL, "cannot write");
    return r;
}

static int make_file(struct run *run, const struct tar_entry *entry, const char *path, struct error *err)
{
    CLEANUP(place_file_drop) struct place_file file = PLACE_FILE_INIT;
    const struct timespec mtime = time_of(entry);
    if (entry->size > run->how->max_bytes - run->how->tally->bytes)
        return error_set(err, ERROR_TOO_LARGE, "copy parts of it, or allow more with --max-bytes", "more than %lld bytes would be copied",
                         (long long)run->how->max_bytes);
    if (place_file_open(&run->place, path, &file, err) < 0 || fill(run, entry, file.fd, err) < 0 ||
        place_file_commit(&file, mode_of(run, entry), &mtime, err) < 0)
        return -1;
    run->how->tally->files++;
    return 0;
}

// ---- directories --------------------------------------------------------------------------------------------------------
static int remember_directory(struct run *run, const struct tar_entry *entry, const char *path, struct error *err)
{
    if (run->directory_count >= EXTRACT_DIRECTORIES_MAX)
        return error_set(err, ERROR_LIMIT, "copy parts of it", "there are more than %d directories", EXTRACT_DIRECTORIES_MAX);
    size_t most = run->how->max_directory_bytes ? run->how->max_directory_bytes : EXTRACT_DIRECTORY_BYTES_MAX;
    run->directory_bytes += strlen(path);
    if (run->directory_bytes > most)
        return error_set(err, ERROR_LIMIT, "copy parts of it", "the paths of its directories have more than %zu MiB together", most / 1024 / 1024);
    if (run->directory_count == run->directory_room) {
        run->directory_room = run->directory_room ? run->directory_room * 2 : 64;
        run->directories = mem_realloc_array(run->directories, run->directory_room, sizeof(*run->directories));
    }
    run->directories[run->directory_count++] = (struct made_directory){mem_strdup(path), mode_of(run, entry), time_of(entry)};
    return 0;
}

static int make_directory(struct run *run, const struct tar_entry *entry, const char *path, struct error *err)
{
    bool is_new;
    if (place_make_directory(&run->place, path, &is_new, err) < 0)
        return -1;
    run->how->tally->directories++;
    return is_new ? remember_directory(run, entry, path, err) : 0;
}

static int finish_directories(struct run *run, struct error *err)
{
    for (size_t i = run->directory_count; i-- > 0;) {
        const struct made_directory *made = &run->directories[i];
        if (place_set_directory(&run->place, made->path, made->mode, &made->mtime, err) < 0)
            return -1;
    }
    return 0;
}

// ---- links and the rest -------------------------------------------------------------------------------------------------
static int skip(struct run *run, const char *path, const char *why)
{
    tally_warn(run->how->tally, path, "skipped: %s", why);
    run->how->tally->skipped++;
    return 0;
}

static bool is_inside(const struct run *run, const char *path, const char *target)
{
    return place_is_link_inside(path, target, run->how->as && strchr(path, '/') ? 1 : 0);
}

static int make_symlink(struct run *run, const struct tar_entry *entry, const char *path, struct error *err)
{
    const struct timespec mtime = time_of(entry);
    if (!is_inside(run, path, entry->link))
        return skip(run, path, "a symbolic link that leads out of what is copied");
    if (place_make_symlink(&run->place, path, entry->link, &mtime, err) < 0)
        return -1;
    run->how->tally->links++;
    return 0;
}

// A second name of a symbolic link lies elsewhere, so its target leads elsewhere: it is judged, and made, anew.
static int make_link_like(struct run *run, const struct tar_entry *entry, const char *path, const char *from, struct error *err)
{
    char target[TAR_NAME_MAX_BYTES + 1];
    struct stat info;
    int parent_fd;
    const char *name;
    if (place_open_parent(&run->place, from, &parent_fd, &name, err) < 0)
        return -1;
    if (fstatat(parent_fd, name, &info, AT_SYMLINK_NOFOLLOW) < 0 || (!S_ISREG(info.st_mode) && !S_ISLNK(info.st_mode)))
        return skip(run, path, "a hard link to something that was not copied");
    if (S_ISREG(info.st_mode)) {
        if (place_make_hard_link(&run->place, path, from, err) < 0)
            return -1;
        run->how->tally->links++;
        return 0;
    }
    ssize_t len = readlinkat(parent_fd, name, target, sizeof(target) - 1);
    if (len <= 0)
        return skip(run, path, "a hard link to something that was not copied");
    target[len] = '\0';
    struct tar_entry like = *entry;
    like.link = target;
    return make_symlink(run, &like, path, err);
}

static int make_hard_link(struct run *run, const struct tar_entry *entry, const char *path, struct error *err)
{
    CLEANUP_FREE char *from = place_clean_path(entry->link, run->how->expected, run->how->as, err);
    if (!from)
        return -1;
    return from[0] ? make_link_like(run, entry, path, from, err) : skip(run, path, "a hard link to a directory");
}

// ---- entries --------------------------------------------------------------------------------------------------------------
static int make_special(struct run *run, const struct tar_entry *entry, const char *path, struct error *err)
{
    (void)err;
    CLEANUP_FREE char *why = mem_format("it is %s", entry->kind);
    return skip(run, path, why);
}

static int take(struct run *run, const struct tar_entry *entry, struct error *err)
{
    static int (*const makers[])(struct run *run, const struct tar_entry *entry, const char *path, struct error *err) = {
        [TAR_FILE] = make_file,           [TAR_DIRECTORY] = make_directory, [TAR_SYMLINK] = make_symlink,
        [TAR_HARD_LINK] = make_hard_link, [TAR_SPECIAL] = make_special,
    };
    if (++run->entries > EXTRACT_ENTRIES_MAX)
        return error_set(err, ERROR_LIMIT, "copy parts of it", "there are more than %d files", EXTRACT_ENTRIES_MAX);
    CLEANUP_FREE char *path = place_clean_path(entry->path, run->how->expected, run->how->as, err);
    if (!path)
        return -1;
    if (!path[0] && entry->type != TAR_DIRECTORY)
        return error_set(err, ERROR_REFUSED, "do not trust what runs in that sandbox", "the sandbox's archive holds a file in the place of the directory itself");
    if (makers[entry->type](run, entry, path, err) < 0)
        return -1;
    tally_add_bytes(run->how->tally, 0);
    return 0;
}

int extract_run(const struct extract *extract, struct tar_reader *reader, struct error *err)
{
    CLEANUP(run_clear) struct run run = {.how = extract, .reader = reader, .place = PLACE_INIT(extract->root_fd)};
    struct tar_entry entry;
    int r;
    while ((r = tar_reader_next(reader, &entry, err)) > 0)
        if ((r = take(&run, &entry, err)) < 0)
            break;
    if (r < 0) { // those that were made are usable
        finish_directories(&run, NULL);
        return -1;
    }
    return finish_directories(&run, err);
}
