// What requests look for among many records: found by an index, or at least without reading each record.
#include "controller/store/internal.h"
#include "controller/base/memory.h"

static sqlite3_stmt *query_path(struct sql *sql, enum kind kind, enum workspace_mode mode, const char *path, struct error *err)
{
    const char *name = kind_info(kind)->name, *word = workspace_mode_word(mode);
    return path ? sql_query(sql, SQL_LIST_OF_PATH, err, "ttt", name, word, path) : sql_query(sql, SQL_LIST_OF_MODE, err, "tt", name, word);
}

int tx_list_of_path(struct store_tx *tx, enum kind kind, enum workspace_mode mode, const char *path, struct record_list *ret, struct error *err)
{
    return rows_list(tx->store, tx->sql, query_path(tx->sql, kind, mode, path, err), ret, err);
}

int store_list_of_path(struct store *store, enum kind kind, enum workspace_mode mode, const char *path, struct record_list *ret, struct error *err)
{
    struct sql *sql = readers_take(&store->readers, err);
    if (!sql)
        return -1;
    int r = rows_list(store, sql, query_path(sql, kind, mode, path, err), ret, err);
    readers_release(&store->readers, sql);
    return r;
}

int tx_list_starting(struct store_tx *tx, const char *request, struct record_list *ret, struct error *err)
{
    return rows_list(tx->store, tx->sql, sql_query(tx->sql, SQL_LIST_STARTING, err, "t", request), ret, err);
}

int tx_count_live(struct store_tx *tx, enum kind kind, int64_t *ret, struct error *err)
{
    return sql_number(tx->sql, SQL_COUNT_OF_KIND, ret, err, "t", kind_info(kind)->name);
}

int tx_count_born_since(struct store_tx *tx, struct wall_time since, const char *principal, int64_t *ret, struct error *err)
{
    return sql_number(tx->sql, SQL_COUNT_BORN_SINCE, ret, err, "it", since.ms, principal);
}

int tx_count_pending_approvals(struct store_tx *tx, int64_t *ret, struct error *err)
{
    return sql_number(tx->sql, SQL_COUNT_PENDING_APPROVALS, ret, err, "");
}

int tx_count_approvals_since(struct store_tx *tx, struct wall_time since, const char *principal, int64_t *ret, struct error *err)
{
    return sql_number(tx->sql, SQL_COUNT_APPROVALS_SINCE, ret, err, "it", since.ms, principal);
}

int tx_find_old_rejected(struct store_tx *tx, int64_t newer, char **ret, struct error *err)
{
    sqlite3_stmt *stmt = sql_query(tx->sql, SQL_REJECTED_APPROVAL_AT, err, "i", newer);
    if (!stmt)
        return -1;
    int r = sql_next(tx->sql, stmt, err);
    if (r >= 0)
        *ret = r > 0 ? mem_strdup(sql_text(stmt, 0)) : NULL;
    sql_done(stmt);
    return r < 0 ? -1 : 0;
}
