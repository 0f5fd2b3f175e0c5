// Bearer tokens of the MCP endpoint, in tables of their own: name, digest, scopes, expiry. They are no records: they have no
// revision, are in no feed, and nothing that serializes records can reach them. The token itself is never here.
#pragma once
#include "controller/store/store.h"

#define STORE_TOKENS_MAX 100
#define STORE_TOKEN_NAME_MAX 63
#define STORE_TOKEN_DIGEST_SIZE 65 // 64 lower-case hex digits and a NUL

struct store_token {
    int64_t id; // never given twice
    char name[STORE_TOKEN_NAME_MAX + 1];
    char digest[STORE_TOKEN_DIGEST_SIZE];
    char scopes[64]; // words separated by blanks
    char created_by[64];
    struct wall_time created_at, expires_at, used_at; // expires_at, used_at: 0 = never
};
// Oldest first. *ret is one allocation, the caller's.
int store_list_tokens(struct store *store, struct store_token **ret, size_t *ret_count, struct error *err);
// in: name, digest, scopes, created_by, expires_at. out: id, created_at. ERROR_EXISTS: the name is taken. ERROR_LIMIT.
int tx_add_token(struct store_tx *tx, struct store_token *token, struct error *err);
// ERROR_NOT_FOUND.
int tx_remove_token(struct store_tx *tx, const char *name, struct error *err);
// Books a use; of a token that is gone: nothing.
int tx_use_token(struct store_tx *tx, int64_t id, struct wall_time at, struct error *err);
