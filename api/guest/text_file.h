// Text files of the workspace, read whole and written whole.
#pragma once
#include "api/guest/text.h"
#include "api/guest/workspace.h"
#include "controller/base/json.h"

struct text_file {
    char *text; // decoded: bad bytes are U+FFFD
    size_t len;
    size_t bytes;                  // size on disk
    char sha256[TEXT_SHA256_SIZE]; // of the decoded text
    bool has_bad_bytes;
    struct stat meta;
};

void text_file_free(struct text_file *file);
#define CLEANUP_TEXT_FILE CLEANUP(text_file_free)

// Reads the opened regular file; "File is too large" over max_bytes, "Refusing to read binary file." with a
// NUL in it.
int text_file_read(int fd, const char *path, size_t max_bytes, struct text_file *ret, struct error *err);

// One writer of a file at a time in this process: take it before reading what is to be replaced.
struct text_file_lock {
    void *mutex;
};
struct text_file_lock text_file_lock(const char *real);
void text_file_unlock(struct text_file_lock *lock);
#define CLEANUP_TEXT_FILE_LOCK CLEANUP(text_file_unlock)
// The same for many files at once; no two callers can hold each other up for ever.
struct text_file_locks {
    uint64_t held; // a bit a mutex
};
struct text_file_locks text_file_lock_all(const char *const *reals, size_t count);
void text_file_unlock_all(struct text_file_locks *locks);
#define CLEANUP_TEXT_FILE_LOCKS CLEANUP(text_file_unlock_all)

// The target of a writer, opened for reading and writing if it exists: *ret_fd -1 if it does not.
int text_file_open_target(const struct workspace *workspace, const struct place *place, int *ret_fd,
                          struct error *err);
// In place: inode, mode, owner and links stay. `before` is what was read; a change since is refused.
int text_file_rewrite(int fd, const char *path, const struct text_file *before, const char *text, size_t len,
                      struct error *err);
// A new file: beside it under a dot-name, flushed, then given its name (never over one that came meanwhile).
int text_file_create(const struct workspace *workspace, const struct place *place, bool create_dirs,
                     const char *text, size_t len, struct error *err);
// "File changed since it was read" unless expected (NULL: do not care) is the file's hash, in either case.
int text_file_check_hash(const json_t *args, const struct text_file *file, const char *path,
                         struct error *err);
