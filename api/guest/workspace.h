// The workspace root and the one way to reach files in it. Every path argument is folded lexically, then
// resolved by the kernel below the root descriptor, so neither a symlink nor a race leads outside.
// Nothing here changes after workspace_open: any thread may call.
#pragma once
#include "controller/base/error.h"
#include "controller/base/fs.h"
#include <stddef.h>

#define WORKSPACE_ID_SIZE 28 // "ws_" and 24 hex digits

struct workspace {
    int root_fd;
    char *given; // as on the command line, without trailing slashes
    char *root;  // real path
    char *home;
    char id[WORKSPACE_ID_SIZE];
};

// A path argument on its way to a file. `path` is relative to the root ("." is the root itself) and is what
// answers show; `real` is where it leads without symlinks.
struct place {
    char *path, *real;
    int fd; // opened with the asked flags, or -1
};
#define PLACE_INIT                                                                                           \
    {                                                                                                        \
        .fd = -1                                                                                             \
    }
#define CLEANUP_PLACE CLEANUP(place_free)
void place_free(struct place *place);

int workspace_open(struct workspace *workspace, const char *root, const char *home, struct error *err);
void workspace_close(struct workspace *workspace);

// Folds a path argument: relative to the root, absolute inside it, or ~. *ret is the caller's.
int workspace_fold(const struct workspace *workspace, const char *given, size_t len, char **ret,
                   struct error *err);
// Folds, refuses blocked paths, resolves, and opens with flags (O_NONBLOCK and O_NOCTTY are added: no FIFO
// and no terminal can hold us). Words of errors are the tool's.
int workspace_open_place(const struct workspace *workspace, const char *given, size_t len, int flags,
                         struct place *ret, struct error *err);
// For writers: path as above; fd is the parent directory, made if create_dirs; *ret_name points into
// ret->real. The last part is no symlink (it may be absent). Directories are made only by
// workspace_make_parents.
int workspace_find_target(const struct workspace *workspace, const char *given, size_t len, struct place *ret,
                          struct error *err);
// The real path of a folded path; errno value or 0. EXDEV: it leads outside.
int workspace_resolve(const struct workspace *workspace, const char *path, char **ret_real);
// Opens a real path (no symlinks in it) below the root. -1 and errno.
int workspace_open_real(const struct workspace *workspace, const char *real, int flags);
// Makes the missing directories of real's parent and opens it. -1 and errno; *ret_name points into real.
int workspace_open_parent(const struct workspace *workspace, const char *real, bool create_dirs,
                          const char **ret_name);
