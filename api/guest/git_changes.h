// What git says has changed in the workspace: against the index, or in the index. Paths are relative to the
// workspace root, wherever in its repository that lies, and may hold any byte but NUL.
#pragma once
#include "api/guest/guest.h"
#include "api/guest/text.h"
#include <stdatomic.h>

#define GIT_CHANGES_MAX_DIFF_BYTES 120000

struct git_change {
    char *status;          // "M", "R100", …, or "??" for an untracked file
    char *path, *new_path; // new_path: of a rename or copy, else NULL
};

struct git_changes {
    struct git_change *list;
    size_t count;
    char *status_error, *diff_error; // what went wrong, NULL: nothing
    char *diff;                      // any bytes; NULL: not asked for
    size_t diff_len, additions, deletions;
};

struct git_changes_question {
    const char *path; // "." is everything
    bool is_staged, wants_diff;
    const atomic_bool *is_cancelled;
};

// Failures of git are in the result. -1: it could not be run to its end.
int git_changes_ask(struct guest *guest, const struct git_changes_question *question, struct git_changes *ret,
                    struct error *err);
// "STATUS<tab>NAME" as git writes it; the caller owns it.
char *git_change_line(const struct git_change *change);
// Over the status, the diff and what is in the untracked files.
void git_changes_fingerprint(const struct git_changes *changes, const struct workspace *workspace,
                             char digest[TEXT_SHA256_SIZE]);
void git_changes_free(struct git_changes *changes);
