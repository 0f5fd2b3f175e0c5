#include "api/guest/workspace.h"
#include "api/guest/tool.h"
#include "controller/base/memory.h"
#include <errno.h>
#include <limits.h>
#include <sha2.h>
#include <stdio.h>
#include <string.h>

void place_free(struct place *place)
{
    free(place->path);
    free(place->real);
    if (place->fd >= 0)
        close(place->fd);
    *place = (struct place)PLACE_INIT;
}

static void set_id(struct workspace *workspace)
{
    SHA2_CTX context;
    char digest[SHA256_DIGEST_STRING_LENGTH];
    SHA256Init(&context);
    SHA256Update(&context, (const uint8_t *)workspace->root, strlen(workspace->root));
    SHA256End(&context, digest);
    snprintf(workspace->id, sizeof(workspace->id), "ws_%.24s", digest);
}

static char *without_trailing_slashes(const char *path)
{
    size_t len = strlen(path);
    while (len > 1 && path[len - 1] == '/')
        len--;
    return mem_strndup(path, len);
}

int workspace_open(struct workspace *workspace, const char *root, const char *home, struct error *err)
{
    const char *hint = "give an existing directory with --root";
    CLEANUP_CLOSE int fd = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return error_errno(err, errno, hint, "cannot open the workspace root %s", root);
    char *real = realpath(root, NULL);
    if (!real)
        return error_errno(err, errno, hint, "cannot resolve the workspace root %s", root);
    *workspace = (struct workspace){.root_fd = TAKE_FD(fd),
                                    .given = without_trailing_slashes(root),
                                    .root = real,
                                    .home = mem_strdup(home)};
    set_id(workspace);
    return 0;
}

void workspace_close(struct workspace *workspace)
{
    if (workspace->root)
        close(workspace->root_fd);
    free(workspace->given);
    free(workspace->root);
    free(workspace->home);
    *workspace = (struct workspace){.root_fd = -1};
}
