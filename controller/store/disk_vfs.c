// The file object stays SQLite's own unix file; only the entry for writing in its method table is replaced.
#include "controller/store/disk.h"
#include <errno.h>
#include <pthread.h>
#include <sqlite3.h>

static sqlite3_vfs *base;
static sqlite3_vfs hooked;
static sqlite3_io_methods hooked_methods;
static const sqlite3_io_methods *base_methods;
static pthread_mutex_t methods_lock = PTHREAD_MUTEX_INITIALIZER; // guards base_methods and hooked_methods until set
static _Thread_local struct disk *current;

static bool is_full(int code, int errno_value)
{
    return code == SQLITE_FULL || (code == SQLITE_IOERR_WRITE && (errno_value == EDQUOT || errno_value == EFBIG));
}

static int write_or_give_up_reserve(sqlite3_file *file, const void *bytes, int count, sqlite3_int64 offset)
{
    for (;;) {
        errno = 0;
        int code = base_methods->xWrite(file, bytes, count, offset);
        if (!is_full(code, errno))
            return code;
        if (!current || !disk_release_reserve(current))
            return SQLITE_FULL;
    }
}

// Databases, journals and WAL files all have the one method table of POSIX locking; any other keeps its own.
static void hook_methods(sqlite3_file *file)
{
    if (!file->pMethods)
        return;
    pthread_mutex_lock(&methods_lock);
    if (!base_methods) {
        hooked_methods = *file->pMethods;
        hooked_methods.xWrite = write_or_give_up_reserve;
        base_methods = file->pMethods;
    }
    if (file->pMethods == base_methods)
        file->pMethods = &hooked_methods;
    pthread_mutex_unlock(&methods_lock);
}

static int open_hooked(sqlite3_vfs *vfs, const char *name, sqlite3_file *file, int flags, int *ret_flags)
{
    (void)vfs;
    int code = base->xOpen(base, name, file, flags, ret_flags);
    if (code == SQLITE_OK && (flags & (SQLITE_OPEN_MAIN_DB | SQLITE_OPEN_WAL)))
        hook_methods(file);
    return code;
}

static void register_vfs(void)
{
    base = sqlite3_vfs_find(NULL);
    hooked = *base;
    hooked.pNext = NULL;
    hooked.zName = "chat2shell";
    hooked.xOpen = open_hooked;
    sqlite3_vfs_register(&hooked, 0);
}

const char *disk_vfs(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, register_vfs);
    return hooked.zName;
}

void disk_vfs_use(struct disk *disk)
{
    current = disk;
}
