#include "controller/store/internal.h"
#include "controller/base/memory.h"
#include "controller/base/utf8.h"
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define MESSAGE_MAX 1024
#define TRIM_EVERY 64 // additions between looks at the total

struct event {
    struct store *store;
    char *uid, *name, *reason;
    const char *kind, *type;
    char message[MESSAGE_MAX];
};

// ---- ends: each is a change of its own, so that watchers hear of it
struct ends {
    int64_t ids[EVENT_ENDS_MAX];
    size_t count;
};

// stmt NULL: err is set already.
static int read_ids(struct sql *sql, sqlite3_stmt *stmt, struct ends *ret, struct error *err)
{
    int row = stmt ? 1 : -1;
    ret->count = 0;
    while (row > 0 && ret->count < EVENT_ENDS_MAX && (row = sql_next(sql, stmt, err)) > 0)
        ret->ids[ret->count++] = sqlite3_column_int64(stmt, 0);
    sql_done(stmt);
    return row < 0 ? -1 : 0;
}

static int end_events(struct store_tx *tx, const struct ends *ends, struct error *err)
{
    for (size_t i = 0; i < ends->count; i++) {
        int64_t version;
        if (sql_number(tx->sql, SQL_EVENT_VERSION, &version, err, "") < 0 ||
            sql_run(tx->sql, SQL_EVENT_END, err, "ii", ends->ids[i], version) < 0)
            return -1;
    }
    return 0;
}

static int end_over_object(struct store_tx *tx, const char *uid, struct error *err)
{
    struct ends ends;
    if (read_ids(tx->sql, sql_query(tx->sql, SQL_EVENTS_OVER_OBJECT, err, "ti", uid, EVENTS_AN_OBJECT), &ends, err) < 0)
        return -1;
    return end_events(tx, &ends, err);
}

static int end_over_all(struct store_tx *tx, struct error *err)
{
    struct ends ends;
    if (read_ids(tx->sql, sql_query(tx->sql, SQL_EVENTS_OVER_ALL, err, "ii", EVENTS_MAX, (int64_t)EVENT_ENDS_MAX), &ends, err) < 0)
        return -1;
    return end_events(tx, &ends, err);
}

int events_end_old(struct store_tx *tx, size_t *ret_count, struct error *err)
{
    struct ends ends;
    int64_t before = tx->now.ms - EVENT_KEEP_MS;
    if (read_ids(tx->sql, sql_query(tx->sql, SQL_EVENTS_OVER_AGE, err, "ii", before, (int64_t)EVENT_ENDS_MAX), &ends, err) < 0 ||
        end_events(tx, &ends, err) < 0 || sql_run(tx->sql, SQL_EVENT_HORIZON_ENDED, err, "i", EVENT_MARKS_MAX) < 0 ||
        sql_run(tx->sql, SQL_EVENTS_DROP_ENDED, err, "i", EVENT_MARKS_MAX) < 0)
        return -1;
    *ret_count = ends.count;
    return 0;
}

// The same thing that ended before happens again: it is a new event, and the mark of the old one's end makes room.
static int drop_same_end(struct store_tx *tx, const struct event *event, struct error *err)
{
    if (sql_run(tx->sql, SQL_EVENT_HORIZON_SAME, err, "tttt", event->uid, event->type, event->reason, event->message) < 0)
        return -1;
    return sql_run(tx->sql, SQL_EVENT_DROP_SAME, err, "tttt", event->uid, event->type, event->reason, event->message);
}

// ---- adding
static int add_event(struct store_tx *tx, const struct event *event, int64_t version, struct error *err)
{
    if (drop_same_end(tx, event, err) < 0 ||
        sql_run(tx->sql, SQL_EVENT_ADD, err, "ttttiitt", event->uid, event->type, event->reason, event->message, tx->now.ms, version,
                event->name, event->kind) < 0)
        return -1;
    int64_t id = sqlite3_last_insert_rowid(tx->sql->db); // counts additions; versions count more than those
    if (end_over_object(tx, event->uid, err) < 0)
        return -1;
    return id % TRIM_EVERY ? 0 : end_over_all(tx, err);
}

static int put_event(struct store_tx *tx, void *arg, struct error *err)
{
    const struct event *event = arg;
    int64_t version, counted;
    if (sql_number(tx->sql, SQL_EVENT_VERSION, &version, err, "") < 0 ||
        sql_number(tx->sql, SQL_EVENT_COUNT, &counted, err, "ttttiit", event->uid, event->type, event->reason, event->message, tx->now.ms,
                   version, event->name) < 0)
        return -1;
    return counted ? 0 : add_event(tx, event, version, err);
}

void events_tell(struct store *store)
{
    struct event_listener *listener = &store->event_listener;
    pthread_mutex_lock(&listener->lock);
    if (listener->fn)
        listener->fn(listener->arg);
    pthread_mutex_unlock(&listener->lock);
}

void store_on_event(struct store *store, void (*fn)(void *arg), void *arg)
{
    struct event_listener *listener = &store->event_listener;
    pthread_mutex_lock(&listener->lock);
    listener->fn = fn;
    listener->arg = arg;
    pthread_mutex_unlock(&listener->lock);
}

static void free_event(void *arg, int result, const struct error *err)
{
    (void)err; // an event is a remark: losing one under pressure loses nothing that is decided on
    struct event *event = arg;
    if (result >= 0)
        events_tell(event->store);
    free(event->uid);
    free(event->name);
    free(event->reason);
    free(event);
}

void store_event(struct store *store, const struct record *about, bool is_warning, const char *reason, const char *format, ...)
{
    struct event *event = mem_alloc(sizeof(*event));
    event->store = store;
    event->uid = mem_strdup(about->meta.uid);
    event->name = mem_strdup(about->meta.name);
    event->reason = mem_strdup(reason);
    event->kind = kind_info(about->kind)->name;
    event->type = is_warning ? "Warning" : "Normal";
    va_list args;
    va_start(args, format);
    vsnprintf(event->message, sizeof(event->message), format, args);
    va_end(args);
    event->message[utf8_cut(event->message, strlen(event->message))] = '\0';
    writer_submit_event(store, put_event, free_event, event);
}

static struct store_event_row read_row(sqlite3_stmt *row)
{
    int64_t count = sqlite3_column_int64(row, 9);
    return (struct store_event_row){.id = sqlite3_column_int64(row, 0),
                                    .uid = mem_strdup(sql_text(row, 1)),
                                    .kind = mem_strdup(sql_text(row, 2)),
                                    .name = mem_strdup(sql_text(row, 3)),
                                    .type = mem_strdup(sql_text(row, 4)),
                                    .reason = mem_strdup(sql_text(row, 5)),
                                    .message = mem_strdup(sql_text(row, 6)),
                                    .first_at = {sqlite3_column_int64(row, 7)},
                                    .last_at = {sqlite3_column_int64(row, 8)},
                                    .count = count < 0 ? -count : count,
                                    .has_ended = count < 0,
                                    .version = sqlite3_column_int64(row, 10)};
}

// stmt NULL: err is set already.
static int read_rows(struct sql *sql, sqlite3_stmt *stmt, struct store_event_row **ret, size_t *ret_count, struct error *err)
{
    struct store_event_row *rows = NULL;
    size_t count = 0, room = 0;
    int row = stmt ? 1 : -1;
    while (row > 0 && (row = sql_next(sql, stmt, err)) > 0) {
        if (count == room)
            rows = mem_realloc_array(rows, room = room ? 2 * room : 16, sizeof(*rows));
        rows[count++] = read_row(stmt);
    }
    if (row < 0)
        return store_events_free(rows, count), -1;
    *ret = rows;
    *ret_count = count;
    return 0;
}

int store_list_events(struct store *store, const char *uid, size_t limit, struct store_event_row **ret, size_t *ret_count, struct error *err)
{
    struct sql *sql = readers_take(&store->readers, err);
    if (!sql)
        return -1;
    int r = read_rows(sql, sql_query(sql, uid ? SQL_EVENTS_OF : SQL_EVENTS_ALL, err, "ti", uid, (int64_t)limit), ret, ret_count, err);
    readers_release(&store->readers, sql);
    return r;
}

static int page_events(struct sql *sql, const char *uid, int64_t after_id, size_t limit, struct store_event_row **ret, size_t *ret_count,
                       int64_t *ret_version, struct error *err)
{
    int64_t version;
    if (sql_number(sql, SQL_EVENT_NEWEST, &version, err, "") < 0)
        return -1;
    sqlite3_stmt *stmt = uid ? sql_query(sql, SQL_EVENTS_PAGE_OF, err, "iit", after_id, (int64_t)limit, uid)
                             : sql_query(sql, SQL_EVENTS_PAGE, err, "ii", after_id, (int64_t)limit);
    if (read_rows(sql, stmt, ret, ret_count, err) < 0)
        return -1;
    *ret_version = version;
    return 0;
}

int store_page_events(struct store *store, const char *uid, int64_t after_id, size_t limit, struct store_event_row **ret, size_t *ret_count,
                      int64_t *ret_version, struct error *err)
{
    struct sql *sql = readers_take(&store->readers, err);
    if (!sql)
        return -1;
    int r = sql_run(sql, SQL_BEGIN_READ, err, "");
    if (r == 0) {
        r = page_events(sql, uid, after_id, limit, ret, ret_count, ret_version, err);
        sql_run(sql, SQL_COMMIT, NULL, "");
    }
    readers_release(&store->readers, sql);
    return r;
}

static int read_after(struct sql *sql, int64_t after_version, size_t limit, struct store_event_row **ret, size_t *ret_count, struct error *err)
{
    int64_t horizon;
    if (sql_number(sql, SQL_EVENT_HORIZON, &horizon, err, "") < 0)
        return -1;
    if (after_version < horizon)
        return error_set(err, ERROR_EXPIRED, "list again and go on from there", "which events ended since version %lld is not all known any more",
                         (long long)after_version + 1);
    return read_rows(sql, sql_query(sql, SQL_EVENTS_AFTER, err, "ii", after_version, (int64_t)limit), ret, ret_count, err);
}

int store_read_events(struct store *store, int64_t after_version, size_t limit, struct store_event_row **ret, size_t *ret_count,
                      struct error *err)
{
    struct sql *sql = readers_take(&store->readers, err);
    if (!sql)
        return -1;
    int r = sql_run(sql, SQL_BEGIN_READ, err, "");
    if (r == 0) {
        r = read_after(sql, after_version, limit, ret, ret_count, err);
        sql_run(sql, SQL_COMMIT, NULL, "");
    }
    readers_release(&store->readers, sql);
    return r;
}

int store_get_event(struct store *store, int64_t id, struct store_event_row **ret, struct error *err)
{
    struct store_event_row *rows = NULL;
    size_t count = 0;
    struct sql *sql = readers_take(&store->readers, err);
    if (!sql)
        return -1;
    int r = read_rows(sql, sql_query(sql, SQL_EVENT_BY_ID, err, "i", id), &rows, &count, err);
    readers_release(&store->readers, sql);
    if (r == 0 && !count)
        r = error_set(err, ERROR_NOT_FOUND, "events are kept for an hour after they last happened", "there is no such event");
    if (r == 0)
        *ret = rows;
    return r;
}

void store_events_free(struct store_event_row *rows, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        char *texts[] = {rows[i].uid, rows[i].kind, rows[i].name, rows[i].type, rows[i].reason, rows[i].message};
        for (size_t j = 0; j < sizeof(texts) / sizeof(texts[0]); j++)
            free(texts[j]);
    }
    free(rows);
}
