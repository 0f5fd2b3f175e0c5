#include "controller/store/internal.h"
#include "controller/base/cleanup.h"
#include "controller/base/json.h"
#include "controller/base/memory.h"
#include "schemas/kinds/tables.h"
#include <assert.h>
#include <string.h>

static json_t *column_json(sqlite3_stmt *row, enum record_column column, struct error *err)
{
    const char *text = sql_text(row, column);
    json_t *value = NULL;
    if (json_parse(text, (size_t)sqlite3_column_bytes(row, column), &value, err) < 0)
        return NULL;
    return value;
}

static int read_parts(sqlite3_stmt *row, struct record *record, struct error *err)
{
    CLEANUP_JSON json_t *meta = column_json(row, COLUMN_META, err);
    CLEANUP_JSON json_t *spec = meta ? column_json(row, COLUMN_SPEC, err) : NULL;
    CLEANUP_JSON json_t *status = spec ? column_json(row, COLUMN_STATUS, err) : NULL;
    if (!status)
        return -1;
    if (record_meta_from_store_json(record, meta, err) < 0 || record_spec_from_store_json(record, spec, err) < 0)
        return -1;
    return record_status_from_json(record, status, err);
}

// The columns are the truth for what both they and the JSON hold.
static void read_identity(sqlite3_stmt *row, struct record_meta *meta)
{
    mem_replace(&meta->uid, sql_text(row, COLUMN_UID));
    mem_replace(&meta->name, sql_text(row, COLUMN_NAME));
    mem_replace(&meta->created_by, sql_text(row, COLUMN_CREATED_BY));
    meta->resource_version = sqlite3_column_int64(row, COLUMN_RESOURCE_VERSION);
    meta->generation = sqlite3_column_int64(row, COLUMN_GENERATION);
    meta->created_at.ms = sqlite3_column_int64(row, COLUMN_CREATED_AT);
    meta->deletion_at.ms = sqlite3_column_int64(row, COLUMN_DELETION_AT);
    meta->removed_at.ms = sqlite3_column_int64(row, COLUMN_REMOVED_AT);
}

static int word_unreadable(sqlite3_stmt *row, struct error *err)
{
    if (err)
        err->code = ERROR_CORRUPT;
    error_hint(err, "put back a copy from the state directory's backups folder, or report this");
    return error_context(err, "the stored record %s cannot be read", sql_text(row, COLUMN_UID));
}

int row_to_record(struct store *store, sqlite3_stmt *row, struct record **ret, struct error *err)
{
    const struct kind_info *info = kind_find(sql_text(row, COLUMN_KIND));
    if (!info)
        return error_set(err, ERROR_CORRUPT, NULL, "the stored record %s has the unknown kind '%s'", sql_text(row, COLUMN_UID),
                         sql_text(row, COLUMN_KIND));
    CLEANUP_RECORD struct record *record = record_new(info->kind);
    if (read_parts(row, record, err) < 0)
        return word_unreadable(row, err);
    read_identity(row, &record->meta);
    if (record->kind == KIND_SANDBOX && !record->meta.removed_at.ms)
        activity_merge(store, record);
    *ret = TAKE_PTR(record);
    return 0;
}

// A live sandbox's activity has a table of its own; in the status it would be a write a call.
static json_t *stored_status(const struct record *record)
{
    json_t *status = record_status_to_json(record);
    if (record->kind == KIND_SANDBOX && !record->meta.removed_at.ms) {
        json_object_del(status, ACTIVITY_FIRST_FIELD);
        json_object_del(status, ACTIVITY_LAST_FIELD);
    }
    return status;
}

static char *take_text(json_t *value)
{
    char *text = json_to_text(value);
    json_decref(value);
    return text;
}

int row_write(struct sql *sql, enum sql_statement which, const struct record *record, struct error *err)
{
    const struct record_meta *at = &record->meta;
    CLEANUP_FREE char *meta = take_text(record_meta_to_json(record));
    CLEANUP_FREE char *spec = take_text(record_spec_to_json(record));
    CLEANUP_FREE char *status = take_text(stored_status(record));
    struct extracted columns = extract_columns(record);
    sqlite3_stmt *stmt = sql_query(sql, which, err, "tttiiitnnttt" "ttnttttt", kind_info(record->kind)->name, at->uid, at->name,
                                   at->resource_version, at->generation, at->created_at.ms, at->created_by, at->deletion_at.ms,
                                   at->removed_at.ms, meta, spec, status, columns.workspace_uid, columns.sandbox_uid, columns.port,
                                   columns.path, columns.mode, columns.decision, columns.joined_by, columns.waits_for);
    if (!stmt)
        return -1;
    int code = sqlite3_step(stmt), changed = sqlite3_changes(sql->db);
    int r = 0;
    if ((code & 0xff) == SQLITE_CONSTRAINT)
        r = extract_word_conflict(sql, record, code, err);
    else if (code != SQLITE_DONE)
        r = sql_error(sql, code, err, "cannot write the record");
    else if (changed != 1)
        r = error_set(err, ERROR_INTERNAL, NULL, "the record %s was not the one that was read", at->uid);
    sql_done(stmt);
    return r;
}

int rows_get(struct store *store, struct sql *sql, enum sql_statement which, enum kind kind, const char *key, struct record **ret,
             struct error *err)
{
    const struct kind_info *info = kind_info(kind);
    sqlite3_stmt *stmt = sql_query(sql, which, err, "tt", info->name, key);
    int row = stmt ? sql_next(sql, stmt, err) : -1;
    if (row < 0)
        return -1;
    if (!row)
        return error_set(err, ERROR_NOT_FOUND, NULL, "there is no %s '%s'", info->singular, key);
    int r = row_to_record(store, stmt, ret, err);
    sql_done(stmt);
    return r;
}

static void list_add(struct record_list *list, size_t *room, struct record *record)
{
    if (list->count == *room)
        list->items = mem_realloc_array(list->items, *room = *room ? 2 * *room : 16, sizeof(list->items[0]));
    list->items[list->count++] = record;
}

int rows_list(struct store *store, struct sql *sql, sqlite3_stmt *stmt, struct record_list *ret, struct error *err)
{
    struct record_list list = {0};
    size_t room = 0;
    int row = stmt ? 1 : -1;
    while (row > 0 && (row = sql_next(sql, stmt, err)) > 0) {
        struct record *record = NULL;
        if (row_to_record(store, stmt, &record, err) < 0)
            row = -1;
        else
            list_add(&list, &room, record);
    }
    sql_done(stmt);
    if (row < 0)
        return record_list_free(&list), -1;
    *ret = list;
    return 0;
}

int rows_list_bound(struct store *store, struct sql *sql, enum kind kind, const char *to_uid, struct record_list *ret, struct error *err)
{
    assert(kind == KIND_SANDBOX || kind == KIND_SESSION || kind == KIND_EXPOSURE);
    bool is_sandbox = kind == KIND_SANDBOX;
    const char *name = kind_info(kind)->name;
    if (!to_uid)
        return rows_list(store, sql, sql_query(sql, is_sandbox ? SQL_LIST_OF_NO_WORKSPACE : SQL_LIST_OF_NO_SANDBOX, err, "t", name), ret, err);
    return rows_list(store, sql, sql_query(sql, is_sandbox ? SQL_LIST_OF_WORKSPACE : SQL_LIST_OF_SANDBOX, err, "tt", name, to_uid), ret, err);
}
