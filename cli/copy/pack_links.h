// Which files with several names were sent already, and as what.
#pragma once
#include <stddef.h>
#include <sys/stat.h>

struct pack_link {
    dev_t device;
    ino_t inode;
    char *path; // NULL: a free place
};
struct pack_links { // an open hash table
    struct pack_link *items;
    size_t count, room, max;
};
#define PACK_LINKS_INIT(most) {.max = (most)}
void pack_links_clear(struct pack_links *links);
// The path of an earlier name of the same file; else NULL, and this one is remembered.
const char *pack_links_meet(struct pack_links *links, const struct stat *info, const char *path);
