// What git says about the workspace. Worker threads only.
#pragma once
#include "api/guest/request.h"

// `git ARGS...` in the root with optional locks, colours and file-system monitors off. As command_run.
struct command_result;
int git_run(struct guest *guest, const char *const *args, const atomic_bool *is_cancelled,
            struct command_result *ret, struct error *err);
// The same with another bound than 1 MiB for what git prints; result->is_cut says that there was more.
int git_run_limited(struct guest *guest, const char *const *args, size_t max_bytes,
                    const atomic_bool *is_cancelled, struct command_result *ret, struct error *err);
// Status with branch, trimmed; git's own words where there is no repository. The caller owns it.
char *git_status_text(struct guest *guest, const atomic_bool *is_cancelled);
char *git_recent_commits(struct guest *guest, const atomic_bool *is_cancelled); // one a line, "" if none

void git_unsaved_request(struct request *request); // chat2shell/git_unsaved
