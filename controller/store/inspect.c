// Looking at a database before it is opened for writing, so that a newer or damaged one stays exactly as it is.
#include "controller/store/internal.h"
#include "controller/base/buffer.h"
#include "controller/base/cleanup.h"
#include "controller/base/memory.h"
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define CHECK_MS 2000      // of a huge database not all is checked: reading checks each page anyway
#define CHECK_STEPS 100000 // virtual machine steps between looks at the clock
#define MAGIC "SQLite format 3"

static int word_damage(const char *path, const char *what, struct error *err)
{
    error_set(err, ERROR_CORRUPT, NULL, "the database %s is damaged: %s", path, what);
    CLEANUP_FREE char *dir = mem_strdup(path);
    dir[strlen(dir) - strlen(STORE_DATABASE_NAME)] = '\0';
    return error_hint(err, "nothing was changed; move %s* away and put back the newest copy of %sbackups/, or start without one",
                      STORE_DATABASE_NAME, dir);
}

static int word_newer(const char *path, int version, int newest, struct error *err)
{
    return error_set(err, ERROR_UNSUPPORTED, "nothing was changed; run the newer chat2shell again",
                     "the database %s has schema %d, written by a newer chat2shell; this one knows schema %d", path, version, newest);
}

// 0 for a file that is absent.
static int64_t size_of(int dir_fd, const char *name)
{
    struct stat st;
    return fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0 ? 0 : (int64_t)st.st_size;
}

static int check_magic(int dir_fd, const char *path, struct error *err)
{
    CLEANUP_CLOSE int fd = openat(dir_fd, STORE_DATABASE_NAME, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0)
        return error_errno(err, errno, NULL, "cannot open %s", path);
    char head[100];
    if (pread(fd, head, sizeof(head), 0) != (ssize_t)sizeof(head) || memcmp(head, MAGIC, sizeof(MAGIC)) != 0)
        return word_damage(path, "it is not an SQLite database", err);
    return 0;
}

// "file:" address with what would end the path escaped.
static char *make_uri(const char *path, const char *options)
{
    struct buffer uri = BUFFER_INIT(3 * 4096 + 256);
    buffer_append_text(&uri, "file:");
    for (const char *at = path; *at; at++)
        if (strchr("%?#", *at))
            buffer_format(&uri, "%%%02X", (unsigned)*at);
        else
            buffer_append_char(&uri, *at);
    buffer_format(&uri, "?%s", options);
    return buffer_take_string(&uri);
}

static bool read_number(struct sql *sql, const char *text, int *ret)
{
    sqlite3_stmt *stmt = NULL;
    bool is_read = sqlite3_prepare_v2(sql->db, text, -1, &stmt, NULL) == SQLITE_OK && sqlite3_step(stmt) == SQLITE_ROW;
    if (is_read)
        *ret = sqlite3_column_int(stmt, 0);
    sqlite3_finalize(stmt);
    return is_read;
}

static int is_over(void *arg)
{
    return boot_time_now().ms >= ((const struct boot_time *)arg)->ms;
}

static int quick_check(struct sql *sql, const char *path, struct error *err)
{
    struct boot_time deadline = {boot_time_now().ms + CHECK_MS};
    sqlite3_progress_handler(sql->db, CHECK_STEPS, is_over, &deadline);
    sqlite3_stmt *stmt = NULL;
    int code = sqlite3_prepare_v2(sql->db, "PRAGMA quick_check(1)", -1, &stmt, NULL);
    int r = 0;
    if (code == SQLITE_OK && (code = sqlite3_step(stmt)) == SQLITE_ROW && strcmp(sql_text(stmt, 0), "ok") != 0)
        r = word_damage(path, sql_text(stmt, 0), err);
    else if (code != SQLITE_ROW && (code & 0xff) != SQLITE_INTERRUPT)
        r = word_damage(path, sqlite3_errmsg(sql->db), err);
    sqlite3_finalize(stmt);
    sqlite3_progress_handler(sql->db, 0, NULL, NULL);
    return r;
}

int store_check(struct store *store, struct error *err)
{
    struct sql *sql = readers_take(&store->readers, err);
    if (!sql)
        return -1;
    int r = quick_check(sql, store->path, err);
    readers_release(&store->readers, sql);
    return r;
}

static int judge(struct sql *sql, const char *path, int newest, int *ret_version, struct error *err)
{
    int version = 0, application = 0, tables = 0;
    if (!read_number(sql, "PRAGMA user_version", &version) || !read_number(sql, "PRAGMA application_id", &application) ||
        !read_number(sql, "SELECT count(*) FROM sqlite_schema", &tables))
        return word_damage(path, sqlite3_errmsg(sql->db), err);
    bool is_empty = version == 0 && application == 0 && tables == 0; // ended before its first migration
    if (!is_empty && application != STORE_APPLICATION_ID)
        return error_set(err, ERROR_CORRUPT, "nothing was changed; move the file away or choose another state directory",
                         "%s is a database of another program", path);
    if (version > newest)
        return word_newer(path, version, newest, err);
    if (quick_check(sql, path, err) < 0)
        return -1;
    *ret_version = version;
    return 0;
}

int store_schema_inspect(int dir_fd, const char *path, const struct store_migrations *migrations, int *ret_version, struct error *err)
{
    if (size_of(dir_fd, STORE_DATABASE_NAME) == 0)
        return *ret_version = 0, 0;
    if (check_magic(dir_fd, path, err) < 0)
        return -1;
    // Without a write-ahead log nothing but the file is read. With one SQLite rebuilds the log's index, which holds
    // nothing of its own (readonly_shm would spare that, but cannot read what some killed writers left).
    bool has_wal = size_of(dir_fd, STORE_DATABASE_NAME "-wal") > 0, has_index = size_of(dir_fd, STORE_DATABASE_NAME "-shm") > 0;
    CLEANUP_FREE char *uri = make_uri(path, has_wal ? "mode=ro" : "immutable=1");
    struct sql sql;
    struct error why = ERROR_INIT;
    if (sql_open(&sql, uri, SQL_READER, NULL, &why) < 0)
        return word_damage(path, why.message, err);
    int r = judge(&sql, path, store_schema_newest(migrations), ret_version, err);
    sql_close(&sql);
    if (has_wal && !has_index && r < 0)
        unlinkat(dir_fd, STORE_DATABASE_NAME "-shm", 0);
    return r;
}
