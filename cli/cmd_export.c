// export: the branches of a sandbox's repository as a Git bundle. The bundle is made inside; here it is only bytes for a file.
#include "cli/command.h"
#include "cli/exec_stream.h"
#include "cli/terminal.h"
#include "controller/base/fs.h"
#include "controller/base/memory.h"
#include "reconcilers/bundle.h"
#include <errno.h>
#include <libgen.h>
#include <stdio.h>
#include <string.h>

#define GIT_NOTHING 128 // git bundle's exit code for an empty bundle, and for no repository

struct target {
    int dir_fd, fd;
    char *name, *temp_name;
    bool may_replace;
};

static void target_clear(struct target *target)
{
    if (target->fd >= 0) {
        close(target->fd);
        unlinkat(target->dir_fd, target->temp_name, 0);
    }
    if (target->dir_fd >= 0)
        close(target->dir_fd);
    free(target->name);
    free(target->temp_name);
}

static int refuse_existing(const char *file, struct error *err)
{
    return error_set(err, ERROR_EXISTS, "choose another name, or use --force", "%s exists already", file);
}

static int target_open(struct target *target, const char *file, struct error *err)
{
    CLEANUP_FREE char *for_dir = mem_strdup(file), *for_name = mem_strdup(file);
    struct stat info;
    target->dir_fd = open(dirname(for_dir), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (target->dir_fd < 0)
        return error_errno(err, errno, "name a file in a directory that is there", "cannot open the directory of %s", file);
    target->name = mem_strdup(basename(for_name));
    if (fstatat(target->dir_fd, target->name, &info, AT_SYMLINK_NOFOLLOW) == 0 && (!target->may_replace || !S_ISREG(info.st_mode)))
        return refuse_existing(file, err);
    target->temp_name = mem_format(".%s.%ld.part", target->name, (long)getpid());
    target->fd = openat(target->dir_fd, target->temp_name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    return target->fd < 0 ? error_errno(err, errno, "name a file in a directory that you may write", "cannot write in the directory of %s", file) : 0;
}

// The file appears whole, and never in the place of one that came meanwhile.
static int target_commit(struct target *target, const char *file, struct error *err)
{
    if (fsync(target->fd) < 0)
        return error_errno(err, errno, NULL, "cannot write %s", file);
    int r = target->may_replace ? renameat(target->dir_fd, target->temp_name, target->dir_fd, target->name)
                                : linkat(target->dir_fd, target->temp_name, target->dir_fd, target->name, 0);
    if (r < 0 && errno == EEXIST)
        return refuse_existing(file, err);
    if (r < 0)
        return error_errno(err, errno, NULL, "cannot write %s", file);
    fsync(target->dir_fd);
    return 0;
}

static int run(struct invocation *in, struct error *err)
{
    const char *sandbox = in->arguments[0], *file = in->arguments[1];
    CLEANUP(target_clear) struct target target = {.dir_fd = -1, .fd = -1, .may_replace = invocation_switch(in, "force", false)};
    const struct rest *rest = invocation_rest(in, err);
    if (!rest || target_open(&target, file, err) < 0)
        return -1;
    const struct exec_stream stream = {.sandbox = sandbox, .label = "export: a bundle of the branches", .argv = bundle_argv, .input_fd = -1, .output_fd = target.fd, .error_fd = STDERR_FILENO,
                                       .output_max_bytes = BUNDLE_MAX_BYTES};
    int exit_code;
    struct stat info;
    if (exec_stream_run(rest, &stream, &exit_code, err) < 0)
        return error_context(err, "cannot export from %s", sandbox);
    if (fstat(target.fd, &info) < 0 || (exit_code == GIT_NOTHING && !info.st_size))
        return error_set(err, ERROR_STATE, "see what is there: chat2shell exec SANDBOX -- git branch -v",
                         "the workspace of %s has no branch with commits to export", sandbox);
    if (exit_code)
        return error_set(err, ERROR_IO, "its words are above", "git ended with exit code %d in %s", exit_code, sandbox);
    if (target_commit(&target, file, err) < 0)
        return -1;
    terminal_note("%s: %lld bytes; read it with: git fetch %s 'refs/heads/*:refs/remotes/%s/*'", file, (long long)info.st_size, file, sandbox);
    return 0;
}

static const struct example examples[] = {{"chat2shell export dev dev.bundle", "then: git fetch dev.bundle 'refs/heads/*:refs/remotes/dev/*'"}};
static const struct option_row options[] = {{.name = "force", .doc = "replace FILE if it exists"}};
const struct command command_export = {
    .name = "export", .synopsis = "SANDBOX FILE", .summary = "Write the branches of a sandbox's repository as a Git bundle", .min_arguments = 2,
    .max_arguments = 2, .run = run, COMMAND_EXAMPLES(examples), COMMAND_OPTIONS(options),
};
