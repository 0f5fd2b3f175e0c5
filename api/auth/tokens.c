#include "api/auth/tokens.h"
#include "api/auth/token.h"
#include "controller/base/memory.h"
#include "controller/log.h"
#include <assert.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct entry {
    struct store_token row;
    unsigned char digest[TOKEN_DIGEST_BYTES];
    unsigned scopes;
    bool is_used; // since its last use was written
};

struct token_set {
    struct store *store;
    struct loop *loop;
    pthread_mutex_t lock; // guards the rest
    struct entry *entries;
    size_t count;
    struct loop_timer *flush; // set while a use is unwritten
    void (*removed)(void *arg, int64_t id);
    void *removed_arg;
};

// ---- entries ----------------------------------------------------------------------------------------------------
static void put_entry(struct token_set *set, const struct store_token *row)
{
    assert(set->count < STORE_TOKENS_MAX); // the store has no more
    set->entries = mem_realloc_array(set->entries, set->count + 1, sizeof(set->entries[0]));
    struct entry *entry = &set->entries[set->count];
    *entry = (struct entry){.row = *row, .scopes = auth_scopes_parse(row->scopes, strlen(row->scopes), NULL)};
    if (token_digest_parse(row->digest, entry->digest) == 0)
        set->count++; // what is damaged fits nobody
}

void token_set_add(struct token_set *set, const struct store_token *row)
{
    pthread_mutex_lock(&set->lock);
    put_entry(set, row);
    pthread_mutex_unlock(&set->lock);
}

void token_set_remove(struct token_set *set, const char *name)
{
    pthread_mutex_lock(&set->lock);
    size_t i = 0;
    while (i < set->count && strcmp(set->entries[i].row.name, name) != 0)
        i++;
    if (i < set->count) {
        int64_t id = set->entries[i].row.id;
        memmove(&set->entries[i], &set->entries[i + 1], (set->count - i - 1) * sizeof(set->entries[0]));
        set->count--;
        if (set->removed)
            set->removed(set->removed_arg, id);
    }
    pthread_mutex_unlock(&set->lock);
}

bool token_set_has(struct token_set *set, int64_t id)
{
    bool has = false;
    pthread_mutex_lock(&set->lock);
    for (size_t i = 0; i < set->count; i++)
        has |= set->entries[i].row.id == id;
    pthread_mutex_unlock(&set->lock);
    return has;
}

void token_set_on_removed(struct token_set *set, void (*fn)(void *arg, int64_t id), void *arg)
{
    pthread_mutex_lock(&set->lock);
    set->removed = fn;
    set->removed_arg = arg;
    pthread_mutex_unlock(&set->lock);
}

size_t token_set_count(struct token_set *set)
{
    pthread_mutex_lock(&set->lock);
    size_t count = set->count;
    pthread_mutex_unlock(&set->lock);
    return count;
}

void token_set_list(struct token_set *set, struct store_token **ret, size_t *ret_count)
{
    pthread_mutex_lock(&set->lock);
    *ret = mem_alloc((set->count + 1) * sizeof(**ret));
    *ret_count = set->count;
    for (size_t i = 0; i < set->count; i++)
        (*ret)[i] = set->entries[i].row;
    pthread_mutex_unlock(&set->lock);
}

// ---- last uses ------------------------------------------------------------------------------------------------
struct uses {
    size_t count;
    struct {
        int64_t id;
        struct wall_time at;
    } items[STORE_TOKENS_MAX];
};

// Holding the lock.
static struct uses *take_uses(struct token_set *set)
{
    struct uses *uses = mem_alloc(sizeof(*uses));
    for (size_t i = 0; i < set->count; i++) {
        struct entry *entry = &set->entries[i];
        if (!entry->is_used)
            continue;
        uses->items[uses->count].id = entry->row.id;
        uses->items[uses->count++].at = entry->row.used_at;
        entry->is_used = false;
    }
    return uses;
}

static int write_uses(struct store_tx *tx, void *arg, struct error *err)
{
    const struct uses *uses = arg;
    for (size_t i = 0; i < uses->count; i++)
        if (tx_use_token(tx, uses->items[i].id, uses->items[i].at, err) < 0)
            return -1;
    return 0;
}

static void uses_written(void *arg, int result, const struct error *err)
{
    if (result < 0)
        log_warning("when tokens were last used could not be written: %s", err->message);
    free(arg);
}

static void flush(void *arg) // loop thread
{
    struct token_set *set = arg;
    pthread_mutex_lock(&set->lock);
    set->flush = NULL;
    struct uses *uses = take_uses(set);
    pthread_mutex_unlock(&set->lock);
    store_submit(set->store, write_uses, uses_written, uses);
}

// Holding the lock. A second is precise enough, and a busy token then costs no more than a comparison.
static void book_use(struct token_set *set, struct entry *entry, struct wall_time now)
{
    if (now.ms < entry->row.used_at.ms + 1000)
        return;
    entry->row.used_at = now;
    entry->is_used = true;
    if (!set->flush)
        set->flush = loop_after(set->loop, TOKEN_USE_FLUSH_MS, flush, set);
}

// ---- checking -------------------------------------------------------------------------------------------------
// Every digest is compared, whichever fits: the time tells nothing about them.
static struct entry *find(struct token_set *set, const unsigned char digest[TOKEN_DIGEST_BYTES])
{
    struct entry *found = NULL;
    for (size_t i = 0; i < set->count; i++)
        if (token_digest_is_equal(set->entries[i].digest, digest))
            found = &set->entries[i];
    return found;
}

enum token_verdict token_set_check(struct token_set *set, const char *token, struct wall_time now, struct caller *ret)
{
    unsigned char digest[TOKEN_DIGEST_BYTES];
    if (!token_is_formed(token))
        return TOKEN_UNKNOWN;
    token_digest(token, TOKEN_LEN, digest);
    pthread_mutex_lock(&set->lock);
    struct entry *entry = find(set, digest);
    enum token_verdict verdict = !entry                                                            ? TOKEN_UNKNOWN
                                 : entry->row.expires_at.ms && entry->row.expires_at.ms <= now.ms ? TOKEN_EXPIRED
                                                                                                   : TOKEN_GOOD;
    if (verdict == TOKEN_GOOD) {
        book_use(set, entry, now);
        ret->scopes = entry->scopes;
        ret->token_id = entry->row.id;
        snprintf(ret->principal, sizeof(ret->principal), "mcp:token:%s", entry->row.name);
    }
    pthread_mutex_unlock(&set->lock);
    return verdict;
}

// ---- life -----------------------------------------------------------------------------------------------------
int token_set_load(struct store *store, struct loop *loop, struct token_set **ret, struct error *err)
{
    struct store_token *rows = NULL;
    size_t count;
    if (store_list_tokens(store, &rows, &count, err) < 0)
        return -1;
    struct token_set *set = mem_alloc(sizeof(*set));
    set->store = store;
    set->loop = loop;
    pthread_mutex_init(&set->lock, NULL);
    for (size_t i = 0; i < count; i++)
        put_entry(set, &rows[i]);
    free(rows);
    *ret = set;
    return 0;
}

static void cancel_flush(void *arg) // loop thread
{
    struct token_set *set = arg;
    loop_cancel(set->flush);
    set->flush = NULL;
}

void token_set_free(struct token_set *set)
{
    if (!set)
        return;
    loop_call(set->loop, cancel_flush, set);
    struct uses *uses = take_uses(set);
    struct error err = ERROR_INIT;
    if (uses->count && store_transact(set->store, write_uses, uses, &err) < 0)
        log_warning("when tokens were last used could not be written: %s", err.message);
    free(uses);
    pthread_mutex_destroy(&set->lock);
    free(set->entries);
    free(set);
}
