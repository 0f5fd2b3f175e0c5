#include "controller/store/internal.h"
#include "controller/base/cleanup.h"
#include "controller/base/fs.h"
#include "controller/base/memory.h"
#include "controller/fault.h"
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define BACKUP_DIR "backups"
#define BACKUP_PREFIX "chat2shell-"
#define BACKUP_SUFFIX ".sqlite"

static int copy_pages(struct sql *sql, const char *path, struct error *err)
{
    sqlite3 *to = NULL;
    int code = sqlite3_open_v2(path, &to, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, NULL);
    sqlite3_backup *backup = code == SQLITE_OK ? sqlite3_backup_init(to, "main", sql->db, "main") : NULL;
    if (backup)
        sqlite3_backup_step(backup, -1);
    if (code == SQLITE_OK)
        code = backup ? sqlite3_backup_finish(backup) : sqlite3_errcode(to);
    struct sql target = {.db = to};
    int r = code == SQLITE_OK ? 0 : sql_error(&target, code, err, "cannot copy the database before its migration");
    sqlite3_close_v2(to);
    return r;
}

static int is_backup(const struct dirent *entry)
{
    size_t len = strlen(entry->d_name), suffix = strlen(BACKUP_SUFFIX);
    return strncmp(entry->d_name, BACKUP_PREFIX, strlen(BACKUP_PREFIX)) == 0 && len > suffix &&
           strcmp(entry->d_name + len - suffix, BACKUP_SUFFIX) == 0;
}

// Names carry a time of fixed width, so the alphabet is their age.
static void drop_old(int dir_fd)
{
    struct dirent **entries = NULL;
    int count = scandirat(dir_fd, ".", &entries, is_backup, alphasort);
    for (int i = 0; i < count; i++) {
        if (i < count - STORE_BACKUPS_KEPT)
            unlinkat(dir_fd, entries[i]->d_name, 0);
        free(entries[i]);
    }
    free(entries);
}

static int make_durable(int dir_fd, const char *name, struct error *err)
{
    CLEANUP_CLOSE int fd = openat(dir_fd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0 || fsync(fd) < 0 || fsync(dir_fd) < 0)
        return error_errno(err, errno, NULL, "cannot make the copy of the database durable");
    return 0;
}

int store_backup(struct sql *sql, const char *dir, int version, struct wall_time now, struct error *err)
{
    CLEANUP_FREE char *backups = mem_format("%s/" BACKUP_DIR, dir);
    CLEANUP_CLOSE int backups_fd = -1;
    if (fs_make_private_dir(backups, &backups_fd, err) < 0)
        return -1;
    CLEANUP_FREE char *name = mem_format(BACKUP_PREFIX "%015" PRId64 "-schema%d" BACKUP_SUFFIX, now.ms, version);
    CLEANUP_FREE char *path = mem_format("%s/%s", backups, name);
    unlinkat(backups_fd, name, 0);
    CLEANUP_CLOSE int fd = openat(backups_fd, name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return error_errno(err, errno, NULL, "cannot create %s", path);
    if (FAULT("store.backup.copy"))
        return error_set(err, ERROR_IO, NULL, "fault point");
    if (copy_pages(sql, path, err) < 0 || make_durable(backups_fd, name, err) < 0) {
        unlinkat(backups_fd, name, 0);
        return -1;
    }
    drop_old(backups_fd);
    return 0;
}
