#include "controller/store/tokens.h"
#include "controller/base/memory.h"
#include "controller/store/internal.h"
#include <stdio.h>

static struct store_token read_row(sqlite3_stmt *row)
{
    struct store_token token = {.id = sqlite3_column_int64(row, 0),
                                .created_at = {sqlite3_column_int64(row, 5)},
                                .expires_at = {sqlite3_column_int64(row, 6)},
                                .used_at = {sqlite3_column_int64(row, 7)}};
    snprintf(token.name, sizeof(token.name), "%s", sql_text(row, 1));
    snprintf(token.digest, sizeof(token.digest), "%s", sql_text(row, 2));
    snprintf(token.scopes, sizeof(token.scopes), "%s", sql_text(row, 3));
    snprintf(token.created_by, sizeof(token.created_by), "%s", sql_text(row, 4));
    return token;
}

int store_list_tokens(struct store *store, struct store_token **ret, size_t *ret_count, struct error *err)
{
    struct sql *sql = readers_take(&store->readers, err);
    if (!sql)
        return -1;
    struct store_token *tokens = mem_alloc(STORE_TOKENS_MAX * sizeof(*tokens));
    size_t count = 0;
    sqlite3_stmt *stmt = sql_query(sql, SQL_TOKENS_ALL, err, "i", (int64_t)STORE_TOKENS_MAX);
    int row = stmt ? 1 : -1;
    while (row > 0 && (row = sql_next(sql, stmt, err)) > 0)
        tokens[count++] = read_row(stmt); // the statement is limited
    readers_release(&store->readers, sql);
    if (row < 0)
        return free(tokens), -1;
    *ret = tokens;
    *ret_count = count;
    return 0;
}

int tx_add_token(struct store_tx *tx, struct store_token *token, struct error *err)
{
    int64_t count, same;
    if (sql_number(tx->sql, SQL_TOKENS_COUNT, &count, err, "") < 0 || sql_number(tx->sql, SQL_TOKEN_ID, &same, err, "t", token->name) < 0)
        return -1;
    if (same)
        return error_set(err, ERROR_EXISTS, "choose another name, or revoke that one first: chat2shell token revoke NAME", "there is a token '%s' already",
                         token->name);
    if (count >= STORE_TOKENS_MAX)
        return error_set(err, ERROR_LIMIT, "revoke those that nobody uses: chat2shell token list", "there are %d tokens already, the most at once",
                         STORE_TOKENS_MAX);
    if (sql_run(tx->sql, SQL_TOKEN_ADD, err, "tttitn", token->name, token->digest, token->scopes, tx->now.ms, token->created_by,
                token->expires_at.ms) < 0)
        return -1;
    token->created_at = tx->now;
    return sql_number(tx->sql, SQL_TOKEN_ID, &token->id, err, "t", token->name);
}

int tx_remove_token(struct store_tx *tx, const char *name, struct error *err)
{
    if (sql_run(tx->sql, SQL_TOKEN_DROP, err, "t", name) < 0)
        return -1;
    if (!sqlite3_changes(tx->sql->db))
        return error_set(err, ERROR_NOT_FOUND, "see their names: chat2shell token list", "there is no token '%.100s'", name);
    return 0;
}

int tx_use_token(struct store_tx *tx, int64_t id, struct wall_time at, struct error *err)
{
    return sql_run(tx->sql, SQL_TOKEN_USE, err, "ii", id, at.ms);
}
