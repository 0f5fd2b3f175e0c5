// The names in one directory, sorted and bounded.
#pragma once
#include "api/guest/workspace.h"

#define DIRECTORY_MAX_NAMES 50000

struct directory_entry {
    char *name;
    unsigned char type; // DT_*; never DT_UNKNOWN
};

struct directory {
    struct directory_entry *entries;
    size_t count;
    bool is_cut; // it has more than DIRECTORY_MAX_NAMES
};

// Reads fd (stays the caller's). Directories first if dirs_first; else all by bytes. -1 and errno.
int directory_read(int fd, bool dirs_first, struct directory *ret);
void directory_free(struct directory *directory);
#define CLEANUP_DIRECTORY CLEANUP(directory_free)
