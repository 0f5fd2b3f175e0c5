// Making things below one directory of the host, by names that somebody hostile chose. Everything goes through descriptors:
// no name is followed through a symbolic link or out of the directory, whoever changes the tree meanwhile. What takes the place
// of something old is made whole first: under a name of nobody's (O_TMPFILE) or a temporary one, then linked or renamed.
//
// Paths here are clean: components without "." or "..", no slash at either end; "" is the root itself.
#pragma once
#include "controller/base/error.h"
#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>
#include <time.h>

#define PLACE_DEPTH_MAX 256 // components of a path

struct place {
    int root_fd; // borrowed
    char *parent_path; // of the directory that is open
    int parent_fd;     // -1: none
};
#define PLACE_INIT(fd) {.root_fd = (fd), .parent_fd = -1}
void place_clear(struct place *place);

// The clean form of a path in an archive, relative to what `expected` (its first component; NULL: none) became here: `as`
// (NULL: nothing). The caller's; NULL and ERROR_REFUSED for what leads out or is not below `expected`; ERROR_INVALID if too long.
char *place_clean_path(const char *path, const char *expected, const char *as, struct error *err);
// Does a symbolic link at path (clean) with this target stay below the first `top` components of path? Only targets that climb
// first and then descend are taken: then no chain of such links leads out either.
bool place_is_link_inside(const char *path, const char *target, unsigned top);

// Opens the directory that holds path, making those that are missing; *ret_name points into path. The descriptor is the place's.
int place_open_parent(struct place *place, const char *path, int *ret_fd, const char **ret_name, struct error *err);
// *ret_is_new false: there is one already, and it stays as it is.
int place_make_directory(struct place *place, const char *path, bool *ret_is_new, struct error *err);
int place_set_directory(struct place *place, const char *path, mode_t mode, const struct timespec *mtime, struct error *err);
int place_make_symlink(struct place *place, const char *path, const char *target, const struct timespec *mtime, struct error *err);
// A further name of the file or link at `from`, which lies below the root. ERROR_NOT_FOUND if it is not there.
int place_make_hard_link(struct place *place, const char *path, const char *from, struct error *err);

// A file in the making: nobody sees it until place_file_commit; place_file_drop leaves nothing.
struct place_file {
    int dir_fd, fd;
    char *name;      // that it will have
    char *temp_name; // NULL: it has none yet (O_TMPFILE)
};
#define PLACE_FILE_INIT {.dir_fd = -1, .fd = -1}
int place_file_open(struct place *place, const char *path, struct place_file *ret, struct error *err);
int place_file_commit(struct place_file *file, mode_t mode, const struct timespec *mtime, struct error *err);
void place_file_drop(struct place_file *file); // again, or after a commit: nothing
