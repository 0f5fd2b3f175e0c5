// Text lists (no duplicates) and text maps (sorted by key), as metadata has them.
#include "controller/record.h"
#include "controller/base/memory.h"
#include <stdlib.h>
#include <string.h>

static size_t list_find(const struct text_list *list, const char *text)
{
    size_t i = 0;
    while (i < list->count && strcmp(list->items[i], text) != 0)
        i++;
    return i;
}

bool text_list_has(const struct text_list *list, const char *text)
{
    return list_find(list, text) < list->count;
}

void text_list_add(struct text_list *list, const char *text)
{
    if (text_list_has(list, text))
        return;
    list->items = mem_realloc_array(list->items, list->count + 1, sizeof(*list->items));
    list->items[list->count++] = mem_strdup(text);
}

void text_list_remove(struct text_list *list, const char *text)
{
    size_t at = list_find(list, text);
    if (at == list->count)
        return;
    free(list->items[at]);
    list->count--;
    memmove(list->items + at, list->items + at + 1, (list->count - at) * sizeof(*list->items));
}

void text_list_clear(struct text_list *list)
{
    for (size_t i = 0; i < list->count; i++)
        free(list->items[i]);
    free(list->items);
    *list = (struct text_list){0};
}

// The first entry that is not before key.
static size_t map_position(const struct text_map *map, const char *key)
{
    size_t low = 0, high = map->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (strcmp(map->items[middle].key, key) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static bool map_is_at(const struct text_map *map, size_t at, const char *key)
{
    return at < map->count && strcmp(map->items[at].key, key) == 0;
}

const char *text_map_get(const struct text_map *map, const char *key)
{
    size_t at = map_position(map, key);
    return map_is_at(map, at, key) ? map->items[at].value : NULL;
}

static void map_insert(struct text_map *map, size_t at, const char *key, const char *value)
{
    struct text_pair pair = {mem_strdup(key), mem_strdup(value)};
    map->items = mem_realloc_array(map->items, map->count + 1, sizeof(*map->items));
    memmove(map->items + at + 1, map->items + at, (map->count - at) * sizeof(*map->items));
    map->items[at] = pair;
    map->count++;
}

static void map_remove(struct text_map *map, size_t at)
{
    free(map->items[at].key);
    free(map->items[at].value);
    map->count--;
    memmove(map->items + at, map->items + at + 1, (map->count - at) * sizeof(*map->items));
}

void text_map_set(struct text_map *map, const char *key, const char *value)
{
    size_t at = map_position(map, key);
    bool is_there = map_is_at(map, at, key);
    if (value && is_there)
        mem_replace(&map->items[at].value, value);
    else if (value)
        map_insert(map, at, key, value);
    else if (is_there)
        map_remove(map, at);
}
