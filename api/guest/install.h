// Puts files of the workspace in their places together: all of them, or none. Each new content is first
// written and flushed beside its target under a dot-name; then names are exchanged one by one, and what was
// there before stays under the dot-name until the last exchange worked. A failure in the middle exchanges
// back. Only the end of the process in between can leave a part done, and dot-files with the old contents.
#pragma once
#include "api/guest/workspace.h"

struct install_item {
    const char *path, *real;   // as shown, and where it leads without symlinks; borrowed
    const struct stat *before; // what stands there: anything else is a "changed" error; NULL: nothing may
    bool is_removal;
    mode_t mode;       // less the umask where nothing stood
    const char *bytes; // the content, or
    size_t len;
    int content_dir; // where to read it from: a regular file
    const char *content_path;
};

// Missing parents of new files are made; parents that removals leave empty go. On failure nothing is left.
int install_all(const struct workspace *workspace, const struct install_item *items, size_t count,
                struct error *err);
