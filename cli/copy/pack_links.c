#include "cli/copy/pack_links.h"
#include "controller/base/cleanup.h"
#include "controller/base/memory.h"
#include <stdint.h>

void pack_links_clear(struct pack_links *links)
{
    for (size_t i = 0; i < links->room; i++)
        free(links->items[i].path);
    free(links->items);
    *links = (struct pack_links)PACK_LINKS_INIT(links->max);
}

static struct pack_link *find(struct pack_link *items, size_t room, dev_t device, ino_t inode)
{
    size_t at = (size_t)(((uint64_t)inode * UINT64_C(0x9E3779B97F4A7C15)) ^ (uint64_t)device) & (room - 1);
    while (items[at].path && (items[at].device != device || items[at].inode != inode))
        at = (at + 1) & (room - 1);
    return &items[at];
}

static void grow(struct pack_links *links)
{
    size_t room = links->room ? links->room * 2 : 64;
    struct pack_link *items = mem_alloc(room * sizeof(*items));
    for (size_t i = 0; i < links->room; i++)
        if (links->items[i].path)
            *find(items, room, links->items[i].device, links->items[i].inode) = links->items[i];
    free(links->items);
    links->items = items;
    links->room = room;
}

const char *pack_links_meet(struct pack_links *links, const struct stat *info, const char *path)
{
    if (links->count * 2 >= links->room && links->count < links->max)
        grow(links);
    struct pack_link *link = find(links->items, links->room, info->st_dev, info->st_ino);
    if (link->path)
        return link->path;
    if (links->count < links->max) {
        *link = (struct pack_link){info->st_dev, info->st_ino, mem_strdup(path)};
        links->count++;
    }
    return NULL;
}
