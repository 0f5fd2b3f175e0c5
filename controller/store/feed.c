#include "controller/store/internal.h"
#include "controller/base/cleanup.h"
#include "controller/base/json.h"
#include "controller/base/memory.h"
#include <string.h>

static const char *const type_words[] = {[STORE_ADDED] = "ADDED", [STORE_MODIFIED] = "MODIFIED", [STORE_DELETED] = "DELETED"};

static void push_change(struct change_list *list, enum store_change_type type, const struct record *record)
{
    if (list->count == list->room)
        list->items = mem_realloc_array(list->items, list->room = list->room ? 2 * list->room : 16, sizeof(list->items[0]));
    list->items[list->count++] = (struct store_change){.type = type,
                                                       .kind = record->kind,
                                                       .uid = mem_strdup(record->meta.uid),
                                                       .name = mem_strdup(record->meta.name),
                                                       .revision = record->meta.resource_version};
}

void changes_truncate(struct change_list *changes, size_t count)
{
    while (changes->count > count) {
        struct store_change *change = &changes->items[--changes->count];
        free((char *)change->uid);
        free((char *)change->name);
    }
}

int feed_append(struct store_tx *tx, enum store_change_type type, const struct record *record, const json_t *before, const json_t *after,
                struct error *err)
{
    CLEANUP_FREE char *before_text = before ? json_to_text(before) : NULL;
    CLEANUP_FREE char *after_text = after ? json_to_text(after) : NULL;
    if (sql_run(tx->sql, SQL_FEED_APPEND, err, "iitttttt", record->meta.resource_version, tx->now.ms, type_words[type],
                kind_info(record->kind)->name, record->meta.uid, record->meta.name, before_text, after_text) < 0)
        return -1;
    tx->bytes += (before_text ? strlen(before_text) : 0) + (after_text ? strlen(after_text) : 0);
    push_change(&tx->changes, type, record);
    return 0;
}

static char *copy_image(sqlite3_stmt *row, int column, size_t *ret_len)
{
    const char *text = sql_text_or_null(row, column);
    *ret_len = text ? (size_t)sqlite3_column_bytes(row, column) : 0;
    return text ? mem_strndup(text, *ret_len) : NULL;
}

static int read_row(sqlite3_stmt *row, struct store_feed_row *ret, struct error *err)
{
    const struct kind_info *info = kind_find(sql_text(row, 2));
    const char *type = sql_text(row, 1);
    struct store_feed_row read = {.revision = sqlite3_column_int64(row, 0)};
    for (size_t i = 0; i < ARRAY_LEN(type_words); i++)
        if (strcmp(type_words[i], type) == 0)
            read.type = (enum store_change_type)i;
    if (!info)
        return error_set(err, ERROR_CORRUPT, NULL, "row %lld of the change feed cannot be read", (long long)read.revision);
    read.kind = info->kind;
    read.before = copy_image(row, 3, &read.before_len);
    read.after = copy_image(row, 4, &read.after_len);
    *ret = read;
    return 0;
}

// Revisions are contiguous, so the rows after `after` are all there if the one behind it is.
int feed_check_position(struct sql *sql, int64_t after, struct error *err)
{
    int64_t oldest, newest;
    if (sql_number(sql, SQL_FEED_OLDEST, &oldest, err, "") < 0 || sql_number(sql, SQL_REVISION, &newest, err, "") < 0)
        return -1;
    if (newest == 0) // nothing was ever written
        oldest = 2, newest = 1;
    if (after < oldest - 1)
        return error_set(err, ERROR_EXPIRED, "list again and go on from there",
                         "the change feed begins at revision %lld; %lld is too old", (long long)oldest, (long long)after);
    if (after > newest)
        return error_set(err, ERROR_EXPIRED, "list again and go on from there",
                         "the revision %lld is not one of this store; its newest is %lld", (long long)after, (long long)newest);
    return 0;
}

static int read_rows(struct sql *sql, int64_t after, size_t limit, struct store_feed_row **rows, size_t *count, struct error *err)
{
    if (feed_check_position(sql, after, err) < 0)
        return -1;
    sqlite3_stmt *stmt = sql_query(sql, SQL_FEED_READ, err, "ii", after, (int64_t)limit);
    size_t room = 0;
    int row = stmt ? 1 : -1;
    while (row > 0 && (row = sql_next(sql, stmt, err)) > 0) {
        if (*count == room)
            *rows = mem_realloc_array(*rows, room = room ? 2 * room : 16, sizeof(**rows));
        row = read_row(stmt, &(*rows)[*count], err) < 0 ? -1 : 1;
        *count += row > 0;
    }
    sql_done(stmt);
    return row;
}

int store_read_feed(struct store *store, int64_t after, size_t limit, struct store_feed_row **ret, size_t *ret_count, struct error *err)
{
    struct store_feed_row *rows = NULL;
    size_t count = 0;
    struct sql *sql = readers_take(&store->readers, err);
    if (!sql)
        return -1;
    int r = sql_run(sql, SQL_BEGIN_READ, err, "");
    if (r == 0) {
        r = read_rows(sql, after, limit, &rows, &count, err);
        sql_run(sql, SQL_COMMIT, NULL, "");
    }
    readers_release(&store->readers, sql);
    if (r < 0)
        return store_feed_free(rows, count), -1;
    *ret = rows;
    *ret_count = count;
    return 0;
}

void store_feed_free(struct store_feed_row *rows, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        free(rows[i].before);
        free(rows[i].after);
    }
    free(rows);
}
