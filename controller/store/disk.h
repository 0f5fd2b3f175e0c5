// Room on the disk: a preallocated reserve that is given up when the disk is full, so that what frees space (deletes,
// status) still commits, and the floor below which nothing new is created.
#pragma once
#include "controller/base/error.h"
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct disk {
    int dir_fd; // of the state directory; the store's
    size_t reserve_bytes;
    int64_t floor_bytes;
    atomic_bool has_reserve;
};
void disk_init(struct disk *disk, int dir_fd, size_t reserve_bytes, size_t floor_bytes);
int64_t disk_free_bytes(const struct disk *disk); // INT64_MAX if the system does not say
bool disk_is_low(struct disk *disk);
void disk_make_reserve(struct disk *disk);    // if there is room; nothing otherwise
bool disk_release_reserve(struct disk *disk); // false: it was gone already

// SQLite's file layer with one change: a write that finds the disk full gives up the reserve of the disk that the
// calling thread names, and is tried once more. The name is for sql_open. Registered once a process.
const char *disk_vfs(void);
void disk_vfs_use(struct disk *disk); // this thread's; NULL = none
