// Walks the files of the workspace as a search sees them: sorted, hidden and ignored ones left out, blocked
// ones always.
#pragma once
#include "api/guest/glob.h"
#include "api/guest/workspace.h"
#include <stdatomic.h>

#define WALK_MAX_FILE_BYTES (16 * 1024 * 1024)
#define WALK_MAX_MS 20000

struct walk_counts {
    size_t files, searched, bytes;                              // seen; given to the visitor; their size
    size_t hidden, ignored, blocked, binary, large, unreadable; // left out
};

struct walk_file {
    const char *path; // relative to the root
    const char *text; // valid UTF-8
    size_t len;
};

struct walk_options {
    const struct workspace *workspace;
    const struct glob *glob; // NULL: all
    bool include_hidden;
    const atomic_bool *is_cancelled;
    // 0 to go on, 1 to stop, -1 with err.
    int (*visit)(void *context, const struct walk_file *file, struct error *err);
    // May refuse a file by its path before it is read; NULL: takes all.
    bool (*wants)(void *context, const char *path);
    void *context;
};

struct walk_result {
    struct walk_counts counts;
    bool is_out_of_time;
};

// place is an opened file or directory. An explicitly named file is read whatever its name or ignore rules
// say.
int walk_files(const struct walk_options *options, const struct place *place, struct walk_result *ret,
               struct error *err);
