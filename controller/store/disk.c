#include "controller/store/disk.h"
#include "controller/base/cleanup.h"
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#define RESERVE_NAME "reserve"

void disk_init(struct disk *disk, int dir_fd, size_t reserve_bytes, size_t floor_bytes)
{
    disk->dir_fd = dir_fd;
    disk->reserve_bytes = reserve_bytes;
    disk->floor_bytes = (int64_t)floor_bytes;
    atomic_init(&disk->has_reserve, false);
    disk_make_reserve(disk);
}

int64_t disk_free_bytes(const struct disk *disk)
{
    struct statvfs room;
    if (fstatvfs(disk->dir_fd, &room) < 0)
        return INT64_MAX;
    return (int64_t)room.f_bavail * (int64_t)room.f_frsize;
}

bool disk_is_low(struct disk *disk)
{
    return !atomic_load(&disk->has_reserve) || disk_free_bytes(disk) < disk->floor_bytes;
}

void disk_make_reserve(struct disk *disk)
{
    if (atomic_load(&disk->has_reserve))
        return;
    CLEANUP_CLOSE int fd = openat(disk->dir_fd, RESERVE_NAME, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
    if (fd < 0)
        return;
    if (posix_fallocate(fd, 0, (off_t)disk->reserve_bytes) != 0 || fchmod(fd, 0600) < 0) {
        unlinkat(disk->dir_fd, RESERVE_NAME, 0);
        return;
    }
    atomic_store(&disk->has_reserve, true);
}

bool disk_release_reserve(struct disk *disk)
{
    if (!atomic_exchange(&disk->has_reserve, false))
        return false;
    return unlinkat(disk->dir_fd, RESERVE_NAME, 0) == 0;
}
