// A file or directory of the host as a tar stream for a sandbox. The host side is read through descriptors, entry by entry:
// symbolic links are copied as links and never followed, sockets, pipes and devices are left out, and a tree that changes
// meanwhile gives a stream that is still whole.
#pragma once
#include "cli/copy/tally.h"
#include "cli/copy/tar.h"
#include <stdbool.h>

#define PACK_DEPTH_MAX 256
#define PACK_LINKS_MAX 200000 // files with several names that are remembered; more of them are copied as files of their own

struct pack {
    int dir_fd;       // the directory that holds it
    const char *name; // in there; "." = the directory itself
    const char *as;   // what it is called in the stream; NULL: only what is in the directory is sent, without the directory
    bool follows;     // if `name` is a symbolic link: what it leads to
    struct tally *tally;
};
// Ends the stream with its mark. A file that cannot be read, or that changes while it is read, is a trouble in the tally, with a
// warning; what came before and after it is sent.
int pack_run(const struct pack *pack, struct tar_writer *writer, struct error *err);
