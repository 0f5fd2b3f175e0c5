#include "cli/copy/pack.h"
#include "cli/copy/pack_links.h"
#include "controller/base/fs.h"
#include "controller/base/memory.h"
#include <dirent.h>
#include <errno.h>
#include <string.h>

#define CHUNK_BYTES (128 * 1024)

struct run {
    const struct pack *how;
    struct tar_writer *writer;
    struct pack_links links;
    char *chunk;
};

static void run_clear(struct run *run)
{
    pack_links_clear(&run->links);
    free(run->chunk);
}

// As it is called in the sandbox.
static const char *shown(const char *path)
{
    return strncmp(path, "./", 2) == 0 ? path + 2 : path;
}

// Not the end of the copy: the rest goes on.
static int trouble(struct run *run, const char *path, const char *what)
{
    run->how->tally->troubles++;
    tally_warn(run->how->tally, shown(path), "%s", what);
    return 0;
}

static int trouble_errno(struct run *run, const char *path, int number)
{
    CLEANUP_FREE char *what = mem_format("cannot be read: %s", strerrordesc_np(number));
    return trouble(run, path, what);
}

static struct tar_entry entry_of(const struct stat *info, enum tar_type type, const char *path)
{
    return (struct tar_entry){.type = type, .path = path, .mode = info->st_mode & 0777, .mtime_s = info->st_mtim.tv_sec};
}

// ---- files --------------------------------------------------------------------------------------------------------------
static int send_zeros(struct run *run, int64_t len, struct error *err)
{
    memset(run->chunk, 0, CHUNK_BYTES);
    for (int64_t part; len > 0; len -= part) {
        part = len < CHUNK_BYTES ? len : CHUNK_BYTES;
        if (tar_writer_data(run->writer, run->chunk, (size_t)part, err) < 0)
            return -1;
    }
    return 0;
}

// Exactly size bytes, as the header has announced: what a file grew by is left out, what it lost is filled up.
static int send_content(struct run *run, int fd, int64_t size, const char *path, struct error *err)
{
    int64_t left = size;
    while (left > 0) {
        ssize_t n = read(fd, run->chunk, left < CHUNK_BYTES ? (size_t)left : CHUNK_BYTES);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0) {
            trouble(run, path, n < 0 ? "could not be read to its end: the rest of it is filled with zeros"
                                     : "became shorter while it was read: it is filled up with zeros");
            return send_zeros(run, left, err);
        }
        if (tar_writer_data(run->writer, run->chunk, (size_t)n, err) < 0)
            return -1;
        left -= n;
        tally_add_bytes(run->how->tally, n);
    }
    if (size > 0 && read(fd, run->chunk, 1) > 0)
        trouble(run, path, "became longer while it was read: what was added is missing");
    return 0;
}

static int send_opened(struct run *run, int fd, const struct stat *info, const char *path, struct error *err)
{
    struct tar_entry entry = entry_of(info, TAR_FILE, path);
    entry.size = info->st_size;
    if (tar_writer_begin(run->writer, &entry, err) < 0 || send_content(run, fd, info->st_size, path, err) < 0)
        return -1;
    run->how->tally->files++;
    return tar_writer_end_entry(run->writer, info->st_size, err);
}

static int send_hard_link(struct run *run, const struct stat *info, const char *path, const char *earlier, struct error *err)
{
    struct tar_entry entry = entry_of(info, TAR_HARD_LINK, path);
    entry.link = earlier;
    run->how->tally->links++;
    return tar_writer_begin(run->writer, &entry, err);
}

static int send_file(struct run *run, int dir_fd, const char *name, const struct stat *seen, const char *path, struct error *err)
{
    struct stat info;
    CLEANUP_CLOSE int fd = openat(dir_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &info) < 0)
        return trouble_errno(run, path, errno);
    if (!S_ISREG(info.st_mode) || info.st_dev != seen->st_dev || info.st_ino != seen->st_ino)
        return trouble(run, path, "became something else while it was read: left out");
    const char *earlier = info.st_nlink > 1 ? pack_links_meet(&run->links, &info, path) : NULL;
    return earlier ? send_hard_link(run, &info, path, earlier, err) : send_opened(run, fd, &info, path, err);
}

static int send_symlink(struct run *run, int dir_fd, const char *name, const struct stat *info, const char *path, struct error *err)
{
    char target[TAR_NAME_MAX_BYTES + 1];
    struct tar_entry entry = entry_of(info, TAR_SYMLINK, path);
    ssize_t len = readlinkat(dir_fd, name, target, sizeof(target));
    if (len <= 0 || (size_t)len >= sizeof(target))
        return trouble_errno(run, path, len < 0 ? errno : ENAMETOOLONG);
    target[len] = '\0';
    entry.link = target;
    entry.mode = 0777;
    run->how->tally->links++;
    return tar_writer_begin(run->writer, &entry, err);
}

// ---- the tree -----------------------------------------------------------------------------------------------------------
static int send_entry(struct run *run, int dir_fd, const char *name, const char *path, unsigned depth, struct error *err);

static int send_children(struct run *run, int fd, const char *path, unsigned depth, struct error *err)
{
    CLEANUP_CLOSE int own = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    DIR *dir = own < 0 ? NULL : fdopendir(own);
    if (!dir)
        return trouble_errno(run, path, errno);
    TAKE_FD(own);
    int r = 0;
    for (struct dirent *item; r == 0 && (item = readdir(dir));) {
        if (strcmp(item->d_name, ".") == 0 || strcmp(item->d_name, "..") == 0)
            continue;
        CLEANUP_FREE char *below = mem_format("%s/%s", path, item->d_name);
        r = send_entry(run, fd, item->d_name, below, depth + 1, err);
    }
    closedir(dir);
    return r;
}

static int send_directory(struct run *run, int dir_fd, const char *name, const char *path, unsigned depth, struct error *err)
{
    struct stat info;
    if (depth > PACK_DEPTH_MAX)
        return trouble(run, path, "lies too deep: left out");
    CLEANUP_CLOSE int fd = openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &info) < 0)
        return trouble_errno(run, path, errno);
    struct tar_entry entry = entry_of(&info, TAR_DIRECTORY, path);
    bool is_sent = depth || run->how->as; // else it is there already, in the sandbox
    if (is_sent && tar_writer_begin(run->writer, &entry, err) < 0)
        return -1;
    run->how->tally->directories += is_sent;
    return send_children(run, fd, path, depth, err);
}

static int skip(struct run *run, const char *path, const char *why)
{
    tally_warn(run->how->tally, shown(path), "skipped: %s", why);
    run->how->tally->skipped++;
    return 0;
}

static int send_entry(struct run *run, int dir_fd, const char *name, const char *path, unsigned depth, struct error *err)
{
    struct stat info;
    tally_add_bytes(run->how->tally, 0);
    if (strlen(path) > TAR_NAME_MAX_BYTES)
        return trouble(run, path, "has too long a path: left out");
    if (fstatat(dir_fd, name, &info, AT_SYMLINK_NOFOLLOW) < 0)
        return trouble_errno(run, path, errno);
    switch (info.st_mode & S_IFMT) {
    case S_IFREG:
        return send_file(run, dir_fd, name, &info, path, err);
    case S_IFDIR:
        return send_directory(run, dir_fd, name, path, depth, err);
    case S_IFLNK:
        return send_symlink(run, dir_fd, name, &info, path, err);
    case S_IFSOCK:
        return skip(run, path, "it is a socket");
    case S_IFIFO:
        return skip(run, path, "it is a named pipe");
    default:
        return skip(run, path, "it is a device");
    }
}

// What the operator named may be a link: opened once, then everything below it by descriptor.
static int send_followed(struct run *run, const char *path, struct error *err)
{
    const struct pack *how = run->how;
    struct stat info;
    CLEANUP_CLOSE int fd = openat(how->dir_fd, how->name, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &info) < 0)
        return error_errno(err, errno, NULL, "cannot read %s", how->name);
    if (S_ISDIR(info.st_mode))
        return send_directory(run, fd, ".", path, 0, err);
    if (!S_ISREG(info.st_mode))
        return error_set(err, ERROR_INVALID, "name a file or a directory", "%s leads to something that is neither file nor directory", how->name);
    return send_opened(run, fd, &info, path, err);
}

int pack_run(const struct pack *pack, struct tar_writer *writer, struct error *err)
{
    CLEANUP(run_clear) struct run run = {.how = pack, .writer = writer, .links = PACK_LINKS_INIT(PACK_LINKS_MAX), .chunk = mem_alloc(CHUNK_BYTES)};
    CLEANUP_FREE char *path = pack->as ? mem_format("./%s", pack->as) : mem_strdup(".");
    int r = pack->follows ? send_followed(&run, path, err) : send_entry(&run, pack->dir_fd, pack->name, path, 0, err);
    return r < 0 ? -1 : tar_writer_end(writer, err);
}
