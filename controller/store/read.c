// Reads of any thread: a connection of the pool, one transaction, copies.
#include "controller/store/internal.h"
#include "controller/base/buffer.h"
#include "controller/base/memory.h"
#include <string.h>

#define PREFIX_MIN 8

static int get(struct store *store, enum sql_statement which, enum kind kind, const char *key, struct record **ret, struct error *err)
{
    struct sql *sql = readers_take(&store->readers, err);
    if (!sql)
        return -1;
    int r = rows_get(store, sql, which, kind, key, ret, err);
    readers_release(&store->readers, sql);
    return r;
}

int store_get(struct store *store, enum kind kind, const char *name, struct record **ret, struct error *err)
{
    return get(store, SQL_GET_NAME, kind, name, ret, err);
}

int store_get_uid(struct store *store, enum kind kind, const char *uid, struct record **ret, struct error *err)
{
    return get(store, SQL_GET_UID, kind, uid, ret, err);
}

static int word_ambiguous(const struct record_list *list, const char *text, struct error *err)
{
    CLEANUP(buffer_free) struct buffer names = BUFFER_INIT(512);
    for (size_t i = 0; i < list->count && i < 5; i++)
        buffer_format(&names, "%s%s", i ? ", " : "", list->items[i]->meta.uid);
    return error_set(err, ERROR_INVALID, "give more characters", "'%s' is the beginning of several uids: %s%s", text, buffer_text(&names),
                     list->count > 5 ? ", …" : "");
}

static int list_prefix(struct store *store, enum kind kind, const char *text, struct record_list *ret, struct error *err)
{
    struct sql *sql = readers_take(&store->readers, err);
    if (!sql)
        return -1;
    CLEANUP_FREE char *end = mem_format("%s\x7f", text);
    int r = rows_list(store, sql, sql_query(sql, SQL_LIST_PREFIX, err, "ttt", kind_info(kind)->name, text, end), ret, err);
    readers_release(&store->readers, sql);
    return r;
}

int store_resolve(struct store *store, enum kind kind, const char *text, struct record **ret, struct error *err)
{
    struct error ignored = ERROR_INIT;
    if (store_get(store, kind, text, ret, &ignored) == 0)
        return 0;
    if (ignored.code != ERROR_NOT_FOUND)
        return error_copy(err, &ignored);
    struct record_list list = {0};
    if (strlen(text) >= PREFIX_MIN && list_prefix(store, kind, text, &list, err) < 0)
        return -1;
    int r = 0;
    if (list.count == 0)
        r = error_set(err, ERROR_NOT_FOUND, "give a name, a uid, or at least 8 characters of a uid", "there is no %s '%s'",
                      kind_info(kind)->singular, text);
    else if (list.count > 1 && strcmp(list.items[0]->meta.uid, text) != 0)
        r = word_ambiguous(&list, text, err);
    else
        *ret = TAKE_PTR(list.items[0]);
    record_list_free(&list);
    return r;
}

int feed_newest(struct sql *sql, int64_t *ret, struct error *err)
{
    int64_t newest;
    if (sql_number(sql, SQL_REVISION, &newest, err, "") < 0)
        return -1;
    *ret = newest ? newest : 1; // "0" means "any" to Kubernetes clients
    return 0;
}

int store_list(struct store *store, enum kind kind, struct record_list *ret, int64_t *ret_revision, struct error *err)
{
    struct sql *sql = readers_take(&store->readers, err);
    if (!sql)
        return -1;
    int64_t revision = 0;
    int r = sql_run(sql, SQL_BEGIN_READ, err, "");
    if (r == 0) {
        r = feed_newest(sql, &revision, err);
        if (r == 0)
            r = rows_list(store, sql, sql_query(sql, SQL_LIST, err, "t", kind_info(kind)->name), ret, err);
        sql_run(sql, SQL_COMMIT, NULL, "");
    }
    readers_release(&store->readers, sql);
    if (r == 0 && ret_revision)
        *ret_revision = revision;
    return r;
}

int store_list_foremost(struct store *store, enum kind kind, size_t max, struct record_list *ret, size_t *ret_left_out, struct error *err)
{
    const char *name = kind_info(kind)->name;
    struct record_list list = {0};
    int64_t count = 0;
    struct sql *sql = readers_take(&store->readers, err);
    if (!sql)
        return -1;
    int r = sql_run(sql, SQL_BEGIN_READ, err, "");
    if (r == 0) {
        r = sql_number(sql, SQL_COUNT_OF_KIND, &count, err, "t", name);
        if (r == 0)
            r = rows_list(store, sql, sql_query(sql, SQL_LIST_FOREMOST, err, "ti", name, (int64_t)max), &list, err);
        sql_run(sql, SQL_COMMIT, NULL, "");
    }
    readers_release(&store->readers, sql);
    if (r < 0)
        return -1;
    *ret = list;
    *ret_left_out = (size_t)count - list.count;
    return 0;
}

int store_list_bound(struct store *store, enum kind kind, const char *to_uid, struct record_list *ret, struct error *err)
{
    struct sql *sql = readers_take(&store->readers, err);
    if (!sql)
        return -1;
    int r = rows_list_bound(store, sql, kind, to_uid, ret, err);
    readers_release(&store->readers, sql);
    return r;
}

// stmt's rows: a text and a number. NULL: err is set already.
static int each_row(struct sql *sql, sqlite3_stmt *stmt, void (*fn)(void *arg, const char *text, int64_t number), void *arg, struct error *err)
{
    int row = stmt ? 1 : -1;
    while (row > 0 && (row = sql_next(sql, stmt, err)) > 0)
        fn(arg, sql_text(stmt, 0), sqlite3_column_int64(stmt, 1));
    return row;
}

struct uids {
    void (*fn)(void *arg, const char *uid);
    void *arg;
    size_t count;
    int64_t last; // id
};

static void take_uid(void *arg, const char *uid, int64_t id)
{
    struct uids *uids = arg;
    uids->fn(uids->arg, uid);
    uids->count++;
    uids->last = id;
}

int store_each_uid(struct store *store, enum kind kind, size_t max, int64_t *at, void (*fn)(void *arg, const char *uid), void *arg,
                   struct error *err)
{
    struct uids uids = {fn, arg, 0, 0};
    struct sql *sql = readers_take(&store->readers, err);
    if (!sql)
        return -1;
    int r = each_row(sql, sql_query(sql, SQL_LIST_UIDS, err, "tii", kind_info(kind)->name, *at, (int64_t)max), take_uid, &uids, err);
    readers_release(&store->readers, sql);
    if (r == 0)
        *at = uids.count < max ? 0 : uids.last;
    return r;
}

int store_each_waiting(struct store *store, const char *workspace_name, void (*fn)(void *arg, const char *uid), void *arg, struct error *err)
{
    struct uids uids = {fn, arg, 0, 0};
    struct sql *sql = readers_take(&store->readers, err);
    if (!sql)
        return -1;
    sqlite3_stmt *stmt = workspace_name ? sql_query(sql, SQL_UIDS_WAITING_FOR, err, "t", workspace_name)
                                        : sql_query(sql, SQL_UIDS_WAITING, err, "");
    int r = each_row(sql, stmt, take_uid, &uids, err);
    readers_release(&store->readers, sql);
    return r;
}

int store_count_phases(struct store *store, enum kind kind, void (*fn)(void *arg, const char *phase, int64_t count), void *arg,
                       struct error *err)
{
    struct sql *sql = readers_take(&store->readers, err);
    if (!sql)
        return -1;
    int r = each_row(sql, sql_query(sql, SQL_COUNT_PHASES, err, "t", kind_info(kind)->name), fn, arg, err);
    readers_release(&store->readers, sql);
    return r;
}

struct store_version store_version(struct store *store)
{
    return (struct store_version){.revision = atomic_load(&store->revision), .activity = atomic_load(&store->activity.changes)};
}

int64_t store_revision(struct store *store)
{
    return atomic_load(&store->revision);
}

int store_get_secret(struct store *store, const char *uid, const char *name, char **ret, struct error *err)
{
    struct sql *sql = readers_take(&store->readers, err);
    if (!sql)
        return -1;
    sqlite3_stmt *stmt = sql_query(sql, SQL_SECRET_GET, err, "tt", uid, name);
    int row = stmt ? sql_next(sql, stmt, err) : -1;
    if (row == 0)
        error_set(err, ERROR_NOT_FOUND, NULL, "the record %s has no secret '%s'", uid, name);
    if (row > 0)
        *ret = mem_strdup(sql_text(stmt, 0));
    sql_done(stmt);
    readers_release(&store->readers, sql);
    return row > 0 ? 0 : -1;
}
