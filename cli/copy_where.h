// The two places of `cp`: which of them is in a sandbox, and what is there.
#pragma once
#include "api/client/rest.h"
#include "controller/base/error.h"
#include <stdbool.h>

struct copy_place {
    char *sandbox; // NULL: on the host
    char *path;    // as given; "-": a tar stream
};
void copy_place_clear(struct copy_place *place);
// "SANDBOX:PATH", or a path of the host: what begins with / or . is always one.
int copy_place_parse(const char *text, struct copy_place *ret, struct error *err);
bool copy_place_is_stream(const struct copy_place *place);

// The last component of a path, and what is before it ("." if nothing is). Slashes at the end do not count. The name is empty
// where the path ends in ".", ".." or is a root: then only what is in that directory is meant.
struct copy_name {
    char *directory, *name;
    bool ends_in_slash, means_content; // content: "dir/."
};
void copy_name_clear(struct copy_name *name);
void copy_name_split(const char *path, struct copy_name *ret);

enum copy_kind { COPY_NOTHING, COPY_NO_PARENT, COPY_FILE, COPY_DIRECTORY };
// What is at a path inside, links followed (with follows, or a slash behind it, for the last component too): asked of the sandbox's
// own shell, so the answer is its word only. ret_resolved (NULL allowed): the path with all links resolved; the caller's.
int copy_look_inside(const struct rest *rest, const struct copy_place *place, bool follows, enum copy_kind *ret, char **ret_resolved, struct error *err);
