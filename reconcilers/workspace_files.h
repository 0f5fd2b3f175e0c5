// Managed workspaces on disk: WORKSPACE_ROOT/ws_…/root. The wrapper is the controller's (0700), `root` is what a
// sandbox mounts. Trash: WORKSPACE_ROOT/.trash/ws_…, on the same file system, never overwritten, never deleted.
#pragma once
#include "controller/config.h"

// Makes the directory (again: fine) and tells its path and identity. *ret_root is the caller's.
int workspace_files_make(const struct config *config, const char *uid, char **ret_root, int64_t *ret_device, int64_t *ret_inode, struct error *err);
// Moves the wrapper to the trash with renameat2(NOREPLACE). Already there or never made: success.
int workspace_files_trash(const struct config *config, const char *uid, struct error *err);
// 0 if path is (still) the directory with this identity; ERROR_NOT_FOUND or ERROR_CONFLICT otherwise.
int workspace_files_check(const char *path, int64_t device, int64_t inode, struct error *err);
