// A sandbox's tar stream onto the host. The archive is hostile: whatever it says, nothing is made outside the place, nothing
// that exists is written through a link, no owner, set-id bit, device, pipe or socket comes along, and everything is counted.
#pragma once
#include "cli/copy/tally.h"
#include "cli/copy/tar.h"

#define EXTRACT_ENTRIES_MAX 2000000
#define EXTRACT_DIRECTORIES_MAX 500000
#define EXTRACT_DIRECTORY_BYTES_MAX (64 * 1024 * 1024) // of their paths, which are kept until the end
#define EXTRACT_BYTES_DEFAULT (INT64_C(64) << 30)

struct extract {
    int root_fd;          // the directory below which everything is made
    const char *expected; // the first component that every path must have; NULL: any
    const char *as;       // what it is called here; NULL: its content goes into the root itself
    int64_t max_bytes;    // of all content
    size_t max_directory_bytes; // of the paths of directories; 0: EXTRACT_DIRECTORY_BYTES_MAX
    mode_t umask;
    struct tally *tally;
};
// Directories that were there keep mode and time. On failure what was finished before stays, and no half file does.
int extract_run(const struct extract *extract, struct tar_reader *reader, struct error *err);
