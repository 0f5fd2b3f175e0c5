#include "api/guest/bash_log.h"
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define RESERVED_DESCRIPTORS 128 // of the process, for everything else

void bash_log_init(struct bash_log *log)
{
    *log = (struct bash_log){.memory = BUFFER_INIT(BASH_LOG_MEMORY_BYTES), .fd = -1};
}

void bash_log_free(struct bash_log *log)
{
    buffer_free(&log->memory);
    if (log->fd >= 0)
        close(log->fd);
    log->fd = -1;
}

size_t bash_log_unread(const struct bash_log *log)
{
    return (size_t)(log->end - log->start);
}

static void drop(struct bash_log *log, uint64_t bytes)
{
    log->start += bytes;
    log->dropped_bytes += bytes;
}

// One piece inside the ring; false if the file system refuses.
static bool put(int fd, const char *bytes, size_t len, uint64_t at)
{
    while (len) {
        ssize_t n = pwrite(fd, bytes, len, (off_t)at);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        bytes += n;
        len -= (size_t)n;
        at += (uint64_t)n;
    }
    return true;
}

static void append_to_file(struct bash_log *log, const char *bytes, size_t len)
{
    while (len) {
        uint64_t at = log->end % BASH_LOG_MAX_BYTES;
        size_t piece = len < BASH_LOG_MAX_BYTES - at ? len : (size_t)(BASH_LOG_MAX_BYTES - at);
        size_t over = bash_log_unread(log) + piece;
        if (over > BASH_LOG_MAX_BYTES)
            drop(log, over - BASH_LOG_MAX_BYTES);
        bool is_kept = put(log->fd, bytes, piece, at);
        log->end += piece;
        if (!is_kept) // the disk is full: what is unread now would have a hole, so it all counts as lost
            drop(log, log->end - log->start);
        bytes += piece;
        len -= piece;
    }
}

// The last descriptors are not for output: a guest without any could not even read a file.
static int open_file(void)
{
    int fd = open("/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (fd < 0)
        fd = memfd_create("bash-log", MFD_CLOEXEC);
    if (fd < sysconf(_SC_OPEN_MAX) - RESERVED_DESCRIPTORS)
        return fd;
    close(fd);
    return -1;
}

static bool spill(struct bash_log *log)
{
    log->fd = open_file();
    if (log->fd < 0)
        return false;
    size_t len = log->memory.len;
    log->end = log->start; // positions start over in the file: only differences matter
    append_to_file(log, log->memory.data, len);
    buffer_free(&log->memory);
    return true;
}

void bash_log_append(struct bash_log *log, const char *bytes, size_t len)
{
    if (log->fd < 0 && log->memory.len + len <= BASH_LOG_MEMORY_BYTES) {
        buffer_append(&log->memory, bytes, len);
        log->end += len;
        return;
    }
    if (log->fd >= 0 || spill(log)) {
        append_to_file(log, bytes, len);
        return;
    }
    log->end += len; // no descriptor left: keep what memory has dropped out of the count of unread bytes
    drop(log, log->end - log->start);
    log->memory.len = 0;
}

static size_t peek_file(const struct bash_log *log, char *to, size_t len)
{
    size_t done = 0;
    while (done < len) {
        uint64_t at = (log->start + done) % BASH_LOG_MAX_BYTES;
        size_t piece = len - done < BASH_LOG_MAX_BYTES - at ? len - done : (size_t)(BASH_LOG_MAX_BYTES - at);
        ssize_t n = pread(log->fd, to + done, piece, (off_t)at);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            break;
        done += (size_t)n;
    }
    return done;
}

size_t bash_log_peek(const struct bash_log *log, char *to, size_t len)
{
    size_t unread = bash_log_unread(log);
    if (len > unread)
        len = unread;
    if (log->fd >= 0)
        return peek_file(log, to, len);
    if (len)
        memcpy(to, log->memory.data, len);
    return len;
}

void bash_log_consume(struct bash_log *log, size_t len)
{
    log->start += len;
    if (log->fd < 0)
        buffer_consume(&log->memory, len);
    if (bash_log_unread(log))
        return;
    bash_log_free(log); // read to the end: give memory, descriptor and disk back
}

uint64_t bash_log_take_dropped(struct bash_log *log)
{
    uint64_t dropped = log->dropped_bytes;
    log->dropped_bytes = 0;
    return dropped;
}
