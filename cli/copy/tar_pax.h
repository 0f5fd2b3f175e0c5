// What extended headers say about the entry that follows them.
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tar_names {
    char *path, *link; // NULL: the header's own
    bool has_size, has_mtime;
    int64_t size, mtime_s, mtime_ns;
};
void tar_names_clear(struct tar_names *names);
// Both return NULL, or what is wrong with the bytes (a static text).
const char *tar_names_read_pax(struct tar_names *names, const char *bytes, size_t len);
const char *tar_names_read_gnu(struct tar_names *names, bool is_path, const char *bytes, size_t len);
