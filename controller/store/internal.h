// The store's parts as they see each other. Nothing outside controller/store/ (and its tests) includes this.
//
// Locks, leaf first; a thread holding one takes none that stands before it:
//   activity.lock   times of live sandboxes
//   readers.lock    which read connections are free
//   writer.lock     the request queue
//   subscriptions.lock (recursive: held while subscribers run)
// The writer's connection, the feed's next revision and the batch belong to the store thread alone.
#pragma once
#include "controller/base/buffer.h"
#include "controller/base/cleanup.h"
#include "controller/embedded.h"
#include "controller/store/disk.h"
#include "controller/store/sql.h"
#include "controller/store/store.h"
#include <pthread.h>
#include <stdatomic.h>

#define STORE_READERS 4              // read connections at most; opened when needed
#define STORE_QUEUE_MAX 4096         // requests waiting
#define STORE_EVENTS_QUEUED_MAX 512  // of which events
#define STORE_BATCH_MAX 256          // requests a group commit
#define STORE_BATCH_BYTES (4 << 20)  // image bytes after which a group commit takes no more requests
#define ACTIVITY_FLUSH_MS 30000      // activity is written at most this often
#define FEED_KEEP_MS (5LL * 60 * 1000)
#define FEED_KEEP_ROWS 10000LL
#define EVENTS_AN_OBJECT 64LL
#define EVENTS_MAX 10000LL
#define EVENT_KEEP_MS (3600LL * 1000)
#define EVENT_MARKS_MAX 2000LL // of ends, kept for watchers
#define EVENT_ENDS_MAX 256     // in one transaction
#define STORE_BACKUPS_KEPT 3

// ---- the state directory (directory.c) ---------------------------------------------------------------------
// Makes and tightens the directory and what is in it, takes the lock. Descriptors are the caller's.
int store_directory_open(const char *path, int *ret_dir_fd, int *ret_lock_fd, struct error *err);
// Creates the empty database file 0600 if it is absent.
int store_directory_make_database(int dir_fd, struct error *err);

// ---- schema (schema.c, backup.c) -----------------------------------------------------------------------------
#define STORE_APPLICATION_ID 0x63327368 // "c2sh" in the file's header
struct store_migrations {
    const struct embedded_file *files; // "sql/NNNN_….sql" are looked at, in order of number
    size_t count;
};
// Looks without changing a byte: *ret_version is 0 for a new file. ERROR_UNSUPPORTED, ERROR_CORRUPT.
int store_schema_inspect(int dir_fd, const char *path, const struct store_migrations *migrations, int *ret_version, struct error *err);
// Brings an open writer from `version` to the newest in one transaction.
int store_schema_migrate(struct sql *sql, const struct store_migrations *migrations, int version, struct wall_time now, struct error *err);
int store_schema_newest(const struct store_migrations *migrations);
// Copies the database to backups/ through SQLite's backup API and keeps the newest STORE_BACKUPS_KEPT.
int store_backup(struct sql *sql, const char *dir, int version, struct wall_time now, struct error *err);
int store_open_with(const struct store_options *options, const struct store_migrations *migrations, struct store **ret, struct error *err);

// ---- rows (rows.c, image.c, extract.c) ----------------------------------------------------------------------------------
enum record_column { // RECORD_COLUMNS in statements.c
    COLUMN_KIND,
    COLUMN_UID,
    COLUMN_NAME,
    COLUMN_RESOURCE_VERSION,
    COLUMN_GENERATION,
    COLUMN_CREATED_AT,
    COLUMN_CREATED_BY,
    COLUMN_DELETION_AT,
    COLUMN_REMOVED_AT,
    COLUMN_META,
    COLUMN_SPEC,
    COLUMN_STATUS,
    COLUMN_COUNT
};
// The row of a live record as API object, as text.
int image_put(struct store *store, sqlite3_stmt *row, struct buffer *to, struct error *err);
// Finds out from which revision on rows are as this program writes them. At open.
int image_form_open(struct store *store, struct sql *sql, struct error *err);
// Columns of RECORD_COLUMNS; activity of live sandboxes is merged in.
int row_to_record(struct store *store, sqlite3_stmt *row, struct record **ret, struct error *err);
// sql_statement is SQL_INSERT or SQL_UPDATE. A broken invariant is ERROR_EXISTS or ERROR_CONFLICT naming the holder.
int row_write(struct sql *sql, enum sql_statement which, const struct record *record, struct error *err);
struct extracted { // columns taken out of spec and status; texts belong to the record
    const char *workspace_uid, *sandbox_uid, *path, *mode, *decision, *joined_by, *waits_for;
    int64_t port;
};
struct extracted extract_columns(const struct record *record);
// Words the failure of an insert or update that broke an index or a foreign key.
int extract_word_conflict(struct sql *sql, const struct record *record, int extended_code, struct error *err);
// Shared by the readers and the transaction: one query each.
int rows_get(struct store *store, struct sql *sql, enum sql_statement which, enum kind kind, const char *key, struct record **ret,
             struct error *err); // ERROR_NOT_FOUND
// stmt: an SQL_LIST or SQL_LIST_PREFIX query (NULL: err is set already).
int rows_list(struct store *store, struct sql *sql, sqlite3_stmt *stmt, struct record_list *ret, struct error *err);
int rows_list_bound(struct store *store, struct sql *sql, enum kind kind, const char *to_uid, struct record_list *ret, struct error *err);

// ---- readers (readers.c) ------------------------------------------------------------------------------------------
struct reader_pool {
    pthread_mutex_t lock;
    pthread_cond_t freed;
    const char *path; // the store's
    struct {
        struct sql sql;
        bool is_open, is_busy;
    } slots[STORE_READERS];
};
void readers_init(struct reader_pool *pool, const char *path);
void readers_close(struct reader_pool *pool);
// Waits for a free connection. Give it back with readers_release.
struct sql *readers_take(struct reader_pool *pool, struct error *err);
void readers_release(struct reader_pool *pool, struct sql *sql);

// ---- the writer (writer.c, batch.c) -----------------------------------------------------------------------------------
struct store_request {
    struct store_request *next;
    store_tx_fn fn;
    store_done_fn done;
    void *arg;
    bool is_event;
    int result;
    struct error *failure; // set where result < 0
};
struct request_list {
    struct store_request *first, **last;
    size_t count;
};
struct writer {
    pthread_t thread;
    pthread_mutex_t lock; // guards all below but sql
    pthread_cond_t changed;
    struct request_list queue, rejected; // rejected: only their done is owed
    size_t events_queued;
    bool is_started, is_stopping, is_finished;
    struct sql sql; // store thread only (before it starts: the opener)
};
int writer_start(struct store *store, struct error *err);
void writer_stop(struct store *store); // completes what is queued, joins
void writer_wake(struct store *store); // looks at its timers again
bool writer_is_current(const struct store *store);
// For events: dropped (and freed by done with an error) where too many wait.
void writer_submit_event(struct store *store, store_tx_fn fn, store_done_fn done, void *arg);

struct change_list {
    struct store_change *items; // uid and name owned
    size_t count, room;
};
struct store_tx {
    struct store *store;
    struct sql *sql;
    struct wall_time now;
    int64_t revision; // last one given out
    struct change_list changes;
    size_t bytes;        // of images so far
    bool is_low_on_disk; // creates are refused
    bool is_broken;      // a write failed half done: the request's savepoint must be undone whatever fn says
    struct error broken;
};
// Runs requests taken from the queue in one group commit, completes them, and tells subscribers and waiters.
// is_flush: activity is due, too.
void batch_run(struct store *store, bool is_flush);
bool writer_take(struct store *store, struct store_request **ret); // the next waiting request, for batch_run
void request_complete(struct store_request *request);              // calls done, frees it
void changes_truncate(struct change_list *changes, size_t count);

// ---- feed (feed.c) -----------------------------------------------------------------------------------------------------
// Gives the change its revision (already in record->meta) a feed row and a place in tx->changes. before may be NULL.
int feed_append(struct store_tx *tx, enum store_change_type type, const struct record *record, const json_t *before, const json_t *after,
                struct error *err);

// Whether the feed still has everything after `after`: ERROR_EXPIRED. In a read transaction.
int feed_check_position(struct sql *sql, int64_t after, struct error *err);
int feed_newest(struct sql *sql, int64_t *ret, struct error *err); // 1 where nothing was ever written

// ---- events (events.c) -------------------------------------------------------------------------------------------------
int events_end_old(struct store_tx *tx, size_t *ret_count, struct error *err); // a piece: at most EVENT_ENDS_MAX
void events_tell(struct store *store);                                         // whoever asked with store_on_event

// ---- activity (activity.c) -----------------------------------------------------------------------------------------------
struct activity_entry {
    struct activity_entry *next; // in its bucket
    char uid[48];
    int64_t at_ms;
    bool is_dirty;
};
#define ACTIVITY_BUCKETS 256
struct activity {
    pthread_mutex_t lock;
    struct activity_entry *buckets[ACTIVITY_BUCKETS];
    int64_t dirty_since_ms; // boot time of the first unwritten touch; 0 = none
    _Atomic int64_t changes;
};
void activity_init(struct activity *activity);
void activity_free(struct activity *activity);
int activity_load(struct store *store, struct error *err);
void activity_begin(struct store *store, const char *uid, struct wall_time at); // a sandbox was born
void activity_end(struct store *store, const char *uid);                        // it is a tombstone
#define ACTIVITY_FIRST_FIELD "lastActivityAt" // in a Sandbox's status, beside each other
#define ACTIVITY_LAST_FIELD "expiresAt"
struct record_activity {
    struct wall_time last_at, expires_at;
};
struct record_activity activity_of(struct store *store, const char *uid, struct wall_time created_at); // of a live sandbox
// Fills status.last_activity_at and expires_at of a live sandbox.
void activity_merge(struct store *store, struct record *sandbox);
int64_t activity_due_ms(struct store *store); // boot time of the next flush; INT64_MAX = none
int activity_flush(struct store *store, struct sql *sql, struct error *err); // inside the batch's transaction
void activity_unflush(struct store *store); // its commit failed

// ---- subscribers and waiters ------------------------------------------------------------------------------------------------
struct subscriptions {
    pthread_mutex_t lock;
    struct store_subscription *first;
};
void subscriptions_init(struct subscriptions *subscriptions);
void subscriptions_free(struct subscriptions *subscriptions);
void subscriptions_publish(struct store *store, const struct store_change *changes, size_t count);
void waiters_publish(struct store *store, const struct store_change *changes, size_t count);
void waiters_end(struct store *store); // resumes all that are left, as timed out

struct event_listener {
    pthread_mutex_t lock; // guards both; held while fn runs
    void (*fn)(void *arg);
    void *arg;
};

struct store {
    struct clock *clock;
    char *path; // of the database
    char instance[33];
    struct wall_time created_at;
    int dir_fd, lock_fd;
    int64_t feed_keep_ms, feed_keep_rows;
    int64_t text_form_from; // rows of later revisions have their JSON as this program would write it
    struct disk disk;
    struct reader_pool readers;
    struct writer writer;
    struct activity activity;
    struct subscriptions subscriptions;
    struct event_listener event_listener;
    _Atomic int64_t revision; // of the last commit
    _Atomic int64_t writes;   // commits that changed something
};
