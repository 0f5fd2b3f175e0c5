// Files through descriptors. Paths that anybody else may influence are opened with openat2 below a
// directory descriptor, so that no symlink and no race leaves it. Every descriptor is close-on-exec.
#pragma once
#include "controller/base/buffer.h"
#include "controller/base/cleanup.h"
#include "controller/base/error.h"
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

// openat2(dir, path, flags|O_CLOEXEC, mode, resolve); resolve is RESOLVE_* of <linux/openat2.h>. -1 and errno.
int fs_openat2(int dir_fd, const char *path, int flags, mode_t mode, uint64_t resolve);
// Below dir_fd only, no magic links; symlinks inside are followed if they stay below. -1 and errno.
int fs_open_beneath(int dir_fd, const char *path, int flags, mode_t mode);
// Reads all of fd into buf (its max bounds it: ERROR_TOO_LARGE).
int fs_read_all(int fd, struct buffer *buf, struct error *err);
int fs_read_file(const char *path, struct buffer *buf, struct error *err);
int fs_write_all(int fd, const void *bytes, size_t len, struct error *err); // EINTR and short writes handled
// New content under dir_fd/name, atomically and durably (temp file, fsync, rename, fsync of the directory).
int fs_replace_file(int dir_fd, const char *name, const void *bytes, size_t len, mode_t mode, struct error *err);
// Makes path and its parents; the last part gets mode 0700 and is tightened if it was there with more.
// Fails if it belongs to another uid or is a symlink. *ret_fd (NULL allowed) is the caller's.
int fs_make_private_dir(const char *path, int *ret_fd, struct error *err);
// Removes dir_fd/name and all below it without leaving its mount or following a link. Absent is success.
// Directories that are not ours to enter are made enterable first. Any depth: what lies deep is moved up within the tree.
int fs_remove_tree(int dir_fd, const char *name, struct error *err);
bool fs_is_below(const char *path, const char *dir); // both absolute and clean; strictly below
int fs_set_nonblocking(int fd, bool is_nonblocking);
