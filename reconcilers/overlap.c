// Which direct workspaces must not be mounted at the same time.
#include "controller/base/fs.h"
#include "reconcilers/host_workspace.h"
#include "reconcilers/world.h"
#include <string.h>

int tx_check_overlap(struct store_tx *tx, const struct record *workspace, struct error *err)
{
    if (workspace->spec.workspace.mode != WORKSPACE_DIRECT)
        return 0;
    struct record_list all = {0};
    if (tx_list_of_path(tx, KIND_WORKSPACE, WORKSPACE_DIRECT, NULL, &all, err) < 0)
        return -1;
    const char *path = workspace->spec.workspace.path;
    int r = 0;
    for (size_t i = 0; i < all.count && r == 0; i++) {
        const struct record *other = all.items[i];
        CLEANUP_RECORD struct record *holder = NULL;
        if (strcmp(other->meta.uid, workspace->meta.uid) == 0)
            continue;
        bool is_overlapping = fs_is_below(path, other->spec.workspace.path) || fs_is_below(other->spec.workspace.path, path);
        if (!is_overlapping || tx_find_holder(tx, other->meta.uid, &holder, err) < 0 || !holder)
            continue;
        r = error_set(err, ERROR_STATE, "destroy that sandbox first, or use workspace_mode clone", "the directory overlaps with %s, which the sandbox %s has mounted",
                      other->spec.workspace.path, holder->meta.uid);
    }
    record_list_free(&all);
    return r;
}
