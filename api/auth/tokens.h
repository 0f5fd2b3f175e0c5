// The static tokens as requests meet them: in memory, with what each may do; the store has what lasts. A revoked token is
// gone from here when its revocation is committed.
//
// Threads: any; one lock inside, held for no longer than looking through a hundred digests.
#pragma once
#include "api/auth/caller.h"
#include "controller/loop.h"
#include "controller/store/tokens.h"

#define TOKEN_USE_FLUSH_MS 60000 // last use is written at most this often, for all tokens together

struct token_set;
int token_set_load(struct store *store, struct loop *loop, struct token_set **ret, struct error *err);
// Writes the last uses and frees it. Not on the loop, store or an HTTP thread. NULL allowed.
void token_set_free(struct token_set *set);
size_t token_set_count(struct token_set *set);

enum token_verdict { TOKEN_GOOD, TOKEN_UNKNOWN, TOKEN_EXPIRED };
// Books the use of a good one. *ret is filled only then.
enum token_verdict token_set_check(struct token_set *set, const char *token, struct wall_time now, struct caller *ret);

// All of them, their last uses as of now; one allocation, the caller's.
void token_set_list(struct token_set *set, struct store_token **ret, size_t *ret_count);
// After the commit of tx_add_token and tx_remove_token.
void token_set_add(struct token_set *set, const struct store_token *token);
void token_set_remove(struct token_set *set, const char *name);
bool token_set_has(struct token_set *set, int64_t id);
// Who wants to know of each removal, on the thread that removes and inside the lock: it must not use the set. NULL: nobody any
// more; fn does not run when this has returned.
void token_set_on_removed(struct token_set *set, void (*fn)(void *arg, int64_t id), void *arg);
