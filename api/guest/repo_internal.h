// Inside of the repository map: its parts. All run under the lock of repo.c.
#pragma once
#include "api/guest/repo.h"

void repo_warn(struct repo *repo, const char *format, ...) __attribute__((format(printf, 2, 3)));
void repo_file_free(struct repo_file *file);

// repo_walk.c: fills files (binary ones too), reading only what is not in `old` unchanged: what it can keep
// it moves out of there. *ret_reads counts the files it had to read.
void repo_walk(struct tool_call *call, struct repo *old, struct repo *to, size_t *ret_reads);
// repo_relations.c
void repo_relate(struct repo *repo);
// repo_ctags.c: replaces the scanner's symbols of files that were not given to ctags yet, where there is one.
void repo_run_ctags(struct tool_call *call, struct repo *repo);
