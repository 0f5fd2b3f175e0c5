// SQLite behind a few functions: connections with the store's settings, statements prepared once a connection
// and named in one table (statements.c), errors worded. A `struct sql` is used by one thread at a time.
#pragma once
#include "controller/base/error.h"
#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>

enum sql_statement {
    // reads
    SQL_GET_NAME,
    SQL_GET_UID,
    SQL_LIST,
    SQL_LIST_FOREMOST,
    SQL_LIST_UIDS,
    SQL_COUNT_PHASES,
    SQL_LIST_OF_WORKSPACE,
    SQL_LIST_OF_NO_WORKSPACE,
    SQL_UIDS_WAITING,
    SQL_UIDS_WAITING_FOR,
    SQL_LIST_OF_SANDBOX,
    SQL_LIST_OF_NO_SANDBOX,
    SQL_LIST_OF_PATH,
    SQL_LIST_OF_MODE,
    SQL_LIST_STARTING,
    SQL_COUNT_OF_KIND,
    SQL_COUNT_BORN_SINCE,
    SQL_COUNT_PENDING_APPROVALS,
    SQL_COUNT_APPROVALS_SINCE,
    SQL_REJECTED_APPROVAL_AT,
    SQL_LIST_PREFIX,
    SQL_VERSION_OF,
    SQL_REVISION,
    SQL_FEED_OLDEST,
    SQL_FEED_READ,
    SQL_FEED_TIME_OF,
    SQL_SECRET_GET,
    SQL_EVENTS_ALL,
    SQL_EVENTS_OF,
    SQL_EVENTS_PAGE,
    SQL_EVENTS_PAGE_OF,
    SQL_EVENTS_AFTER,
    SQL_EVENT_BY_ID,
    SQL_EVENT_HORIZON,
    SQL_EVENT_NEWEST,
    SQL_PAGE,
    SQL_PAGE_NAMED,
    SQL_PAGE_AT,
    SQL_PAGE_REST,
    SQL_PAGE_REST_AT,
    SQL_ACTIVITY_ALL,
    SQL_HOLDER_OF_WORKSPACE,
    SQL_PENDING_APPROVAL,
    SQL_EXPOSURE_OF_PORT,
    SQL_IS_LIVE,
    SQL_META_GET,
    SQL_INSTANCE,
    SQL_TOKENS_ALL,
    SQL_TOKENS_COUNT,
    SQL_TOKEN_ID,
    // transactions
    SQL_BEGIN_READ,
    SQL_BEGIN,
    SQL_COMMIT,
    SQL_ROLLBACK,
    SQL_SAVEPOINT,
    SQL_RELEASE,
    SQL_ROLLBACK_TO,
    // writes
    SQL_INSERT,
    SQL_UPDATE,
    SQL_FEED_APPEND,
    SQL_FEED_TRIM,
    SQL_TOMBSTONES_DROP,
    SQL_ACTIVITY_PUT,
    SQL_ACTIVITY_DROP,
    SQL_SECRET_PUT,
    SQL_SECRETS_DROP,
    SQL_EVENT_VERSION,
    SQL_EVENT_COUNT,
    SQL_EVENT_ADD,
    SQL_EVENTS_OVER_OBJECT,
    SQL_EVENTS_OVER_ALL,
    SQL_EVENTS_OVER_AGE,
    SQL_EVENT_END,
    SQL_EVENT_HORIZON_SAME,
    SQL_EVENT_DROP_SAME,
    SQL_EVENT_HORIZON_ENDED,
    SQL_EVENTS_DROP_ENDED,
    SQL_META_PUT,
    SQL_TOKEN_ADD,
    SQL_TOKEN_DROP,
    SQL_TOKEN_USE,
    SQL_COUNT,
};
extern const char *const sql_texts[SQL_COUNT];

struct sql {
    sqlite3 *db;
    sqlite3_stmt *prepared[SQL_COUNT];
};

enum sql_mode {
    SQL_READER, // query only, a small cache
    SQL_WRITER, // WAL, synchronous=FULL, foreign keys; nothing is written before COMMIT (no cache spill)
};
// The file must exist. vfs NULL = SQLite's own.
int sql_open(struct sql *sql, const char *path, enum sql_mode mode, const char *vfs, struct error *err);
void sql_close(struct sql *sql);

// Words SQLite's last failure on this connection: full disk → ERROR_DISK, damaged file → ERROR_CORRUPT, …
int sql_error(struct sql *sql, int code, struct error *err, const char *what);
// Runs text of any number of statements.
int sql_exec(struct sql *sql, const char *text, struct error *err);

// types: one letter an argument, bound in order: 't' const char * (NULL = NULL), 'i' int64_t, 'n' int64_t (0 = NULL).
// Texts must live until sql_done. NULL on failure.
sqlite3_stmt *sql_query(struct sql *sql, enum sql_statement which, struct error *err, const char *types, ...);
// 1: a row is there. 0: no more, -1: failed; both have called sql_done.
int sql_next(struct sql *sql, sqlite3_stmt *stmt, struct error *err);
void sql_done(sqlite3_stmt *stmt); // NULL allowed
static inline void sql_done_cleanup(sqlite3_stmt **at)
{
    sql_done(*at);
}
#define CLEANUP_QUERY __attribute__((cleanup(sql_done_cleanup)))
// Runs to the end; rows are ignored.
int sql_run(struct sql *sql, enum sql_statement which, struct error *err, const char *types, ...);
// The first column of the first row; 0 where there is no row or it is NULL.
int sql_number(struct sql *sql, enum sql_statement which, int64_t *ret, struct error *err, const char *types, ...);
// A column as text, "" for NULL; valid until the next step.
const char *sql_text(sqlite3_stmt *stmt, int column);
const char *sql_text_or_null(sqlite3_stmt *stmt, int column);
