// Files under schemas/ that are built into the binary, sorted by name. Data is NUL-terminated.
#pragma once
#include <stddef.h>

struct embedded_file {
    const char *name; // relative to schemas/: "sql/0001_records.sql"
    const char *data;
    size_t size; // without the NUL
};
extern const struct embedded_file embedded_files[];
extern const size_t embedded_file_count;

const struct embedded_file *embedded_find(const char *name); // NULL if there is none
