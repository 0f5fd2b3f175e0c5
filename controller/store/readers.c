#include "controller/store/internal.h"

void readers_init(struct reader_pool *pool, const char *path)
{
    pthread_mutex_init(&pool->lock, NULL);
    pthread_cond_init(&pool->freed, NULL);
    pool->path = path;
}

void readers_close(struct reader_pool *pool)
{
    for (size_t i = 0; i < STORE_READERS; i++)
        if (pool->slots[i].is_open)
            sql_close(&pool->slots[i].sql);
    pthread_cond_destroy(&pool->freed);
    pthread_mutex_destroy(&pool->lock);
}

// A free one that is open before one that has to be opened; -1 = all are busy. Under the lock.
static int find_free(struct reader_pool *pool)
{
    int found = -1;
    for (int i = 0; i < STORE_READERS; i++)
        if (!pool->slots[i].is_busy && (found < 0 || (pool->slots[i].is_open && !pool->slots[found].is_open)))
            found = i;
    return found;
}

struct sql *readers_take(struct reader_pool *pool, struct error *err)
{
    pthread_mutex_lock(&pool->lock);
    int at;
    while ((at = find_free(pool)) < 0)
        pthread_cond_wait(&pool->freed, &pool->lock);
    pool->slots[at].is_busy = true;
    pthread_mutex_unlock(&pool->lock);
    struct sql *sql = &pool->slots[at].sql;
    if (!pool->slots[at].is_open && sql_open(sql, pool->path, SQL_READER, NULL, err) < 0) {
        readers_release(pool, sql);
        return NULL;
    }
    pool->slots[at].is_open = true;
    return sql;
}

void readers_release(struct reader_pool *pool, struct sql *sql)
{
    pthread_mutex_lock(&pool->lock);
    for (size_t i = 0; i < STORE_READERS; i++)
        if (&pool->slots[i].sql == sql)
            pool->slots[i].is_busy = false;
    pthread_cond_signal(&pool->freed);
    pthread_mutex_unlock(&pool->lock);
}
