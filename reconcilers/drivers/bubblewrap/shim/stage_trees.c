#include "controller/base/cleanup.h"
#include "reconcilers/drivers/bubblewrap/shim/stage.h"
#include "reconcilers/drivers/bubblewrap/shim/tree.h"
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

static int check_mount(const struct shim_mount *mount, struct error *err)
{
    struct stat info;
    if (fstat(mount->fd, &info) < 0)
        return error_errno(err, errno, NULL, "cannot look at the directory for %s", mount->target);
    if (!S_ISDIR(info.st_mode))
        return error_set(err, ERROR_REFUSED, NULL, "what is to be mounted at %s is not a directory", mount->target);
    if ((mount->device || mount->inode) && (mount->device != (int64_t)info.st_dev || mount->inode != (int64_t)info.st_ino))
        return error_set(err, ERROR_REFUSED, "ask for approval again",
                         "the directory at %s is not the one that was approved: it was replaced", mount->target);
    return 0;
}

// The host's programs are readable to everybody with or without a map, so a file system without maps is no obstacle.
static int open_usr(struct stage *stage, struct error *err)
{
    CLEANUP_CLOSE int fd = open("/usr", O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return error_errno(err, errno, NULL, "cannot open /usr");
    stage->usr_tree = tree_open_as_root(fd, TREE_MAP_SYSTEM, stage->identity, NULL);
    if (stage->usr_tree < 0)
        stage->usr_tree = tree_open_as_root(fd, TREE_MAP_NONE, stage->identity, err);
    return stage->usr_tree < 0 ? -1 : 0;
}

// Upper and work directory of the overlay, owned by root inside.
static int make_layers(const struct stage *stage, struct error *err)
{
    static const char *const names[] = {SHIM_LAYERS_NAME, SHIM_LAYERS_NAME "/upper", SHIM_LAYERS_NAME "/work"};
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        if (mkdirat(SHIM_FD_DIRECTORY, names[i], 0755) < 0 && errno != EEXIST)
            return error_errno(err, errno, NULL, "cannot make the sandbox's layer directories");
        if (stage->identity->kind == IDENTITY_RANGE &&
            fchownat(SHIM_FD_DIRECTORY, names[i], stage->identity->base, stage->identity->base, AT_SYMLINK_NOFOLLOW) < 0)
            return error_errno(err, errno, NULL, "cannot give the sandbox its layer directories");
    }
    return 0;
}

static int open_layers(struct stage *stage, struct error *err)
{
    if (make_layers(stage, err) < 0)
        return -1;
    CLEANUP_CLOSE int fd = openat(SHIM_FD_DIRECTORY, SHIM_LAYERS_NAME, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return error_errno(err, errno, NULL, "cannot open the sandbox's layer directories");
    if (stage->identity->kind != IDENTITY_RANGE)
        return stage->layers_tree = TAKE_FD(fd), 0; // detached later, inside
    stage->layers_tree = tree_open_as_root(fd, TREE_MAP_NONE, stage->identity, err);
    return stage->layers_tree < 0 ? -1 : 0;
}

static int open_as_root(struct stage *stage, struct error *err)
{
    const struct shim_config *config = stage->config;
    for (size_t i = 0; i < config->mount_count; i++)
        if ((stage->trees[i] = tree_open_as_root(config->mounts[i].fd, TREE_MAP_OWNER, stage->identity, err)) < 0)
            return error_context(err, "%s", config->mounts[i].target);
    stage->programs_tree = tree_open_as_root(SHIM_FD_PROGRAMS, TREE_MAP_OWNER, stage->identity, NULL);
    if (stage->programs_tree < 0)
        stage->programs_tree = tree_open_as_root(SHIM_FD_PROGRAMS, TREE_MAP_NONE, stage->identity, err);
    if (stage->programs_tree < 0 || open_usr(stage, err) < 0)
        return -1;
    if (config->template_fd >= 0)
        stage->template_tree = tree_open_as_root(config->template_fd, TREE_MAP_SYSTEM, stage->identity, err);
    return config->template_fd >= 0 && stage->template_tree < 0 ? -1 : 0;
}

int stage_open_trees(struct stage *stage, struct error *err)
{
    const struct shim_config *config = stage->config;
    stage->usr_tree = stage->programs_tree = stage->template_tree = stage->layers_tree = -1;
    for (size_t i = 0; i < SHIM_MAX_MOUNTS; i++)
        stage->trees[i] = -1;
    for (size_t i = 0; i < config->mount_count; i++)
        if (check_mount(&config->mounts[i], err) < 0)
            return -1;
    if (config->template_fd >= 0 && open_layers(stage, err) < 0)
        return -1;
    return stage->identity->kind == IDENTITY_RANGE ? open_as_root(stage, err) : 0;
}

void stage_close(struct stage *stage)
{
    int *const single[] = {&stage->usr_tree, &stage->programs_tree, &stage->template_tree, &stage->layers_tree};
    for (size_t i = 0; i < ARRAY_LEN(single); i++)
        if (*single[i] >= 0)
            close(TAKE_FD(*single[i]));
    for (size_t i = 0; i < SHIM_MAX_MOUNTS; i++)
        if (stage->trees[i] >= 0)
            close(TAKE_FD(stage->trees[i]));
}
