#include "controller/store/sql.h"
#include "controller/base/json.h"
#include "controller/base/memory.h"
#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#define BUSY_TIMEOUT_MS 5000

static enum error_code code_of(struct sql *sql, int code)
{
    static const struct {
        int primary;
        enum error_code code;
    } table[] = {
        {SQLITE_FULL, ERROR_DISK},       {SQLITE_CORRUPT, ERROR_CORRUPT}, {SQLITE_NOTADB, ERROR_CORRUPT},
        {SQLITE_TOOBIG, ERROR_TOO_LARGE}, {SQLITE_BUSY, ERROR_UNAVAILABLE}, {SQLITE_LOCKED, ERROR_UNAVAILABLE},
        {SQLITE_CONSTRAINT, ERROR_CONFLICT}, {SQLITE_MISUSE, ERROR_INTERNAL}, {SQLITE_ERROR, ERROR_INTERNAL},
    };
    if ((code & 0xff) == SQLITE_IOERR && sql->db) {
        int system_error = sqlite3_system_errno(sql->db);
        if (system_error == ENOSPC || system_error == EDQUOT || system_error == EFBIG)
            return ERROR_DISK;
    }
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
        if (table[i].primary == (code & 0xff))
            return table[i].code;
    return ERROR_IO;
}

static const char *hint_of(enum error_code code)
{
    switch (code) {
    case ERROR_DISK:
        return "free space on the file system that holds the state directory";
    case ERROR_CORRUPT:
        return "stop the daemon and put back one of the copies in the state directory's backups folder";
    case ERROR_UNAVAILABLE:
        return "another program holds the database; close it and try again";
    default:
        return NULL;
    }
}

int sql_error(struct sql *sql, int code, struct error *err, const char *what)
{
    if ((code & 0xff) == SQLITE_NOMEM)
        abort(); // as everywhere: out of memory ends the process, the store recovers it
    enum error_code mapped = code_of(sql, code);
    return error_set(err, mapped, hint_of(mapped), "%s: %s", what, sql->db ? sqlite3_errmsg(sql->db) : sqlite3_errstr(code));
}

int sql_exec(struct sql *sql, const char *text, struct error *err)
{
    int code = sqlite3_exec(sql->db, text, NULL, NULL, NULL);
    return code == SQLITE_OK ? 0 : sql_error(sql, code, err, "the database refuses a statement");
}

// json_valid of the CHECK clauses. SQLite's own is not marked as harmless in this version, so that an untrusted
// schema may not call it; this one is.
static void json_valid(sqlite3_context *context, int count, sqlite3_value **values)
{
    (void)count;
    const char *text = (const char *)sqlite3_value_text(values[0]);
    json_t *parsed = NULL;
    if (!text)
        return sqlite3_result_null(context);
    bool is_valid = json_parse(text, (size_t)sqlite3_value_bytes(values[0]), &parsed, NULL) == 0;
    json_decref(parsed);
    sqlite3_result_int(context, is_valid);
}

// Nothing in the file may run code of its own, whoever wrote it; readers cannot write; caches stay small.
static int configure(struct sql *sql, enum sql_mode mode, struct error *err)
{
    sqlite3_extended_result_codes(sql->db, 1);
    sqlite3_busy_timeout(sql->db, BUSY_TIMEOUT_MS);
    sqlite3_db_config(sql->db, SQLITE_DBCONFIG_LOOKASIDE, NULL, 256, 128);
    sqlite3_db_config(sql->db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
    sqlite3_db_config(sql->db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
    sqlite3_db_config(sql->db, SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION, 0, NULL);
    sqlite3_db_config(sql->db, SQLITE_DBCONFIG_DQS_DDL, 0, NULL);
    sqlite3_db_config(sql->db, SQLITE_DBCONFIG_DQS_DML, 0, NULL);
    // One plan for all values: else each statement that names a kind by a parameter is prepared anew whenever it is bound, because the
    // partial indexes are of single kinds.
    sqlite3_db_config(sql->db, SQLITE_DBCONFIG_ENABLE_QPSG, 1, NULL);
    sqlite3_limit(sql->db, SQLITE_LIMIT_ATTACHED, 0);
    int code = sqlite3_create_function(sql->db, "json_valid", 1, SQLITE_UTF8 | SQLITE_DETERMINISTIC | SQLITE_INNOCUOUS, NULL,
                                       json_valid, NULL, NULL);
    if (code != SQLITE_OK)
        return sql_error(sql, code, err, "cannot configure the database");
    if (mode == SQL_READER) // it leaves the write-ahead log as it is, whoever is last
        sqlite3_db_config(sql->db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
    if (mode == SQL_READER)
        return sql_exec(sql, "PRAGMA query_only=ON; PRAGMA cache_size=-256; PRAGMA temp_store=MEMORY;", err);
    // The log is copied back each 4,000 pages (16 MiB): whoever writes then waits for that, and with 1,000 it was one in a hundred.
    return sql_exec(sql,
                    "PRAGMA auto_vacuum=INCREMENTAL; PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; PRAGMA foreign_keys=ON;"
                    "PRAGMA cache_size=-1024; PRAGMA cache_spill=OFF; PRAGMA temp_store=MEMORY; PRAGMA secure_delete=FAST;"
                    "PRAGMA journal_size_limit=16777216; PRAGMA wal_autocheckpoint=4000;",
                    err);
}

int sql_open(struct sql *sql, const char *path, enum sql_mode mode, const char *vfs, struct error *err)
{
    struct sql opened = {0};
    int flags = SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE | SQLITE_OPEN_URI |
                (mode == SQL_READER ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE);
    int code = sqlite3_open_v2(path, &opened.db, flags, vfs);
    if (code != SQLITE_OK || configure(&opened, mode, err) < 0) {
        if (code != SQLITE_OK)
            sql_error(&opened, code, err, "cannot open the database");
        sqlite3_close_v2(opened.db);
        return -1;
    }
    *sql = opened;
    return 0;
}

void sql_close(struct sql *sql)
{
    for (size_t i = 0; i < SQL_COUNT; i++)
        sqlite3_finalize(sql->prepared[i]);
    sqlite3_close_v2(sql->db);
    memset(sql, 0, sizeof(*sql));
}

static sqlite3_stmt *prepare(struct sql *sql, enum sql_statement which, struct error *err)
{
    if (sql->prepared[which])
        return sql->prepared[which];
    int code = sqlite3_prepare_v3(sql->db, sql_texts[which], -1, SQLITE_PREPARE_PERSISTENT, &sql->prepared[which], NULL);
    if (code != SQLITE_OK)
        sql_error(sql, code, err, "cannot prepare a statement of the store");
    return sql->prepared[which];
}

static int bind_one(sqlite3_stmt *stmt, int at, char type, va_list *args)
{
    if (type == 't') {
        const char *text = va_arg(*args, const char *);
        return text ? sqlite3_bind_text(stmt, at, text, -1, SQLITE_STATIC) : sqlite3_bind_null(stmt, at);
    }
    assert(type == 'i' || type == 'n');
    int64_t number = va_arg(*args, int64_t);
    return type == 'n' && !number ? sqlite3_bind_null(stmt, at) : sqlite3_bind_int64(stmt, at, number);
}

static sqlite3_stmt *query(struct sql *sql, enum sql_statement which, struct error *err, const char *types, va_list *args)
{
    sqlite3_stmt *stmt = prepare(sql, which, err);
    if (!stmt)
        return NULL;
    for (int i = 0; types[i]; i++) {
        int code = bind_one(stmt, i + 1, types[i], args);
        if (code != SQLITE_OK) {
            sql_error(sql, code, err, "cannot bind a value");
            return sql_done(stmt), NULL;
        }
    }
    return stmt;
}

sqlite3_stmt *sql_query(struct sql *sql, enum sql_statement which, struct error *err, const char *types, ...)
{
    va_list args;
    va_start(args, types);
    sqlite3_stmt *stmt = query(sql, which, err, types, &args);
    va_end(args);
    return stmt;
}

int sql_next(struct sql *sql, sqlite3_stmt *stmt, struct error *err)
{
    int code = sqlite3_step(stmt);
    if (code == SQLITE_ROW)
        return 1;
    if (code != SQLITE_DONE)
        sql_error(sql, code, err, "the database failed");
    sql_done(stmt);
    return code == SQLITE_DONE ? 0 : -1;
}

void sql_done(sqlite3_stmt *stmt)
{
    sqlite3_reset(stmt);
    if (stmt)
        sqlite3_clear_bindings(stmt);
}

static int run(struct sql *sql, sqlite3_stmt *stmt, struct error *err)
{
    int more = stmt ? 1 : -1;
    while (more > 0)
        more = sql_next(sql, stmt, err);
    return more;
}

int sql_run(struct sql *sql, enum sql_statement which, struct error *err, const char *types, ...)
{
    va_list args;
    va_start(args, types);
    sqlite3_stmt *stmt = query(sql, which, err, types, &args);
    va_end(args);
    return run(sql, stmt, err);
}

int sql_number(struct sql *sql, enum sql_statement which, int64_t *ret, struct error *err, const char *types, ...)
{
    va_list args;
    va_start(args, types);
    sqlite3_stmt *stmt = query(sql, which, err, types, &args);
    va_end(args);
    if (!stmt)
        return -1;
    int row = sql_next(sql, stmt, err);
    if (row < 0)
        return -1;
    int64_t number = row ? sqlite3_column_int64(stmt, 0) : 0;
    if (row && run(sql, stmt, err) < 0)
        return -1;
    *ret = number;
    return 0;
}

const char *sql_text(sqlite3_stmt *stmt, int column)
{
    const char *text = (const char *)sqlite3_column_text(stmt, column);
    return text ? text : "";
}

const char *sql_text_or_null(sqlite3_stmt *stmt, int column)
{
    return (const char *)sqlite3_column_text(stmt, column);
}
