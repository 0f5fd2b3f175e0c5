#include "api/tools/list_answer.h"
#include <string.h>

void list_cache_init(struct list_cache *cache)
{
    pthread_mutex_init(&cache->lock, NULL);
}

void list_cache_clear(struct list_cache *cache)
{
    for (size_t i = 0; i < ARRAY_LEN(cache->lists); i++)
        shared_text_unref(cache->lists[i].text);
    pthread_mutex_destroy(&cache->lock);
}

static bool is_same(struct store_version a, struct store_version b)
{
    return a.revision == b.revision && a.activity == b.activity;
}

static struct shared_text *find(struct list_cache *cache, enum kind kind, struct store_version version)
{
    struct cached_list *list = &cache->lists[kind];
    pthread_mutex_lock(&cache->lock);
    struct shared_text *text = list->text && is_same(list->version, version) ? shared_text_ref(list->text) : NULL;
    pthread_mutex_unlock(&cache->lock);
    return text;
}

// version was read before the records were: what is kept under it is at least as new.
static void keep(struct list_cache *cache, enum kind kind, struct store_version version, struct shared_text *text)
{
    struct cached_list *list = &cache->lists[kind];
    pthread_mutex_lock(&cache->lock);
    struct shared_text *old = list->text;
    list->text = shared_text_ref(text);
    list->version = version;
    pthread_mutex_unlock(&cache->lock);
    shared_text_unref(old);
}

static json_t *render_all(struct world *world, const struct record_list *list, json_t *(*render)(struct world *world, const struct record *record))
{
    json_t *items = json_array();
    for (size_t i = 0; i < list->count; i++) {
        json_t *item = render(world, list->items[i]);
        if (item)
            json_array_append_new(items, item);
    }
    return items;
}

void tool_answer_list(struct tool_call *call, enum kind kind, const char *key, json_t *(*render)(struct world *world, const struct record *record))
{
    struct list_cache *cache = &call->gate->lists;
    struct store_version version = store_version(call->world->store);
    struct shared_text *text = find(cache, kind, version);
    struct record_list list = {0};
    if (text) {
        tool_answer_text(call, text);
        return;
    }
    struct error error = ERROR_INIT;
    if (store_list(call->world->store, kind, &list, NULL, &error) < 0) {
        tool_fail(call, &error);
        return;
    }
    CLEANUP_JSON json_t *result = tool_result(json_pack("{s:o}", key, render_all(call->world, &list, render)));
    record_list_free(&list);
    CLEANUP_FREE char *bytes = json_to_text(result);
    text = shared_text_new(bytes, strlen(bytes));
    keep(cache, kind, version, text);
    tool_answer_text(call, text);
}
