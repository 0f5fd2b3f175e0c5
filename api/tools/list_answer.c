#include "api/tools/list_answer.h"
#include "controller/base/memory.h"
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

// The result is within the tool's schema, which has no place for it; its words and _meta have.
static void tell_left_out(json_t *result, size_t left_out)
{
    CLEANUP_FREE char *text = mem_format("%zu more are left out: told are those in use, then the newest. Who has the id of another can use it all the same.", left_out);
    json_array_append_new(json_object_get(result, "content"), json_pack("{s:s, s:s}", "type", "text", "text", text));
    json_object_set_new(result, "_meta", json_pack("{s:I}", LIST_META_LEFT_OUT, (json_int_t)left_out));
}

static json_t *result_of(struct world *world, const struct record_list *list, size_t left_out, const char *key,
                         json_t *(*render)(struct world *world, const struct record *record))
{
    json_t *result = tool_result(json_pack("{s:o}", key, render_all(world, list, render)));
    if (left_out)
        tell_left_out(result, left_out);
    return result;
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
    size_t left_out;
    if (store_list_foremost(call->world->store, kind, LIST_MAX_RECORDS, &list, &left_out, &error) < 0) {
        tool_fail(call, &error);
        return;
    }
    CLEANUP_JSON json_t *result = result_of(call->world, &list, left_out, key, render);
    record_list_free(&list);
    CLEANUP_FREE char *bytes = json_to_text(result);
    text = shared_text_new(bytes, strlen(bytes));
    keep(cache, kind, version, text);
    tool_answer_text(call, text);
}
