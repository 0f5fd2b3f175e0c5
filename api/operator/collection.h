// One GET of a collection: what it asks for, and its two ways, a list and a watch.
#pragma once
#include "api/operator/internal.h"

enum version_match { MATCH_ANY, MATCH_NOT_OLDER, MATCH_EXACT };
struct collection_query {
    const struct resource *resource;
    struct selector labels, fields;
    struct rendering rendering;
    int64_t revision; // 0 = not stated, or "any"
    enum version_match match;
    bool is_any; // resourceVersion=0 was given
    bool has_match;
    int64_t limit; // 0 = all
    bool is_watch, wants_bookmarks;
    int sends_initial; // -1 = not stated
    int64_t timeout_s; // 0 = ours
};
void collection_query_clear(struct collection_query *query);

// Answers the call with the list or starts the watch. In handlers.
void collection_read(struct call *call, const struct resource *resource);
void collection_get(struct call *call,
                    const struct resource *resource); // one object by name, not of the kinds
void collection_list(struct call *call, const struct collection_query *query);
// query: its selectors are taken.
void watch_start(struct call *call, struct collection_query *query);
// The page request that both begin with: selectors that name one object or one's events cost only that.
struct resource_page_request collection_page(const struct collection_query *query, size_t limit);

// ---- token.c: where a list goes on
#define TOKEN_SIZE 96
struct list_token {
    int64_t revision; // 0 = the newest
    int64_t after;
};
void list_token_write(const struct list_token *token, const char *instance, char text[TOKEN_SIZE]);
// ERROR_INVALID, or ERROR_EXPIRED (with *ret filled for a fresh one) where another store gave it.
int list_token_read(const char *text, const char *instance, struct list_token *ret, struct error *err);
