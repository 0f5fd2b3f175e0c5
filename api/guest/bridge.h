// The planning files in .ai-bridge/ that a chat model and a local agent exchange. The directory and the files
// in it are never reached through a symbolic link: what is one is refused. Worker threads only.
#pragma once
#include "api/guest/text.h"
#include "api/guest/workspace.h"
#include "controller/base/fs.h"

#define BRIDGE_DIR ".ai-bridge"
#define BRIDGE_PLAN BRIDGE_DIR "/current-plan.md"
#define BRIDGE_STATUS BRIDGE_DIR "/agent-status.md"
#define BRIDGE_DIFF BRIDGE_DIR "/implementation-diff.patch"
#define BRIDGE_EXECUTION_LOG BRIDGE_DIR "/execution-log.jsonl"
#define BRIDGE_SESSION_LOG BRIDGE_DIR "/session-log.jsonl"
#define BRIDGE_RUN_STATE BRIDGE_DIR "/handoff-run-state.json"
#define BRIDGE_CONTEXT BRIDGE_DIR "/pro-context.md"

// The opened directory. create: makes it if it is missing; else a missing one is *ret_fd -1 and success.
int bridge_open(const struct workspace *workspace, bool create, int *ret_fd, struct error *err);
// Makes those of the usual files that are missing; what is there stays as it is.
int bridge_make_files(int dir, struct error *err);

// The functions below take a path that begins with BRIDGE_DIR "/" and has no further slash.
// Opens a regular file. *ret_fd is -1 if it does not exist.
int bridge_open_file(int dir, const char *path, int flags, int *ret_fd, struct error *err);
// Puts new content in its place at once: a reader sees the old or the new one. An existing file keeps its
// mode.
int bridge_replace(int dir, const char *path, const char *bytes, size_t len, struct error *err);
int bridge_append(int dir, const char *path, const char *bytes, size_t len,
                  struct error *err); // made if missing

// A heading or a name in one line: blanks folded, at most 120 characters. The caller's; NULL if nothing is
// left.
char *bridge_fold_line(const char *text);
