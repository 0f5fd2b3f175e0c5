// `create --clone` adds a remote `sandbox-NAME` to the host repository. It is removed with the sandbox: it points nowhere then.
// What somebody fetched through it (refs/sandboxes/NAME) stays, because it may be the only copy of that work.
// Which repository it was is noted before the create, so that a later run of the daemon finds it too.
#include "controller/base/cleanup.h"
#include "controller/base/fs.h"
#include "controller/base/memory.h"
#include "controller/log.h"
#include "reconcilers/drivers/sbx/sbx.h"
#include <errno.h>
#include <string.h>

#define GIT_DEADLINE_MS 10000
#define NOTE_MAX_BYTES 4096

struct tidying {
    struct sbx *sbx;
    char *name;
    void (*done)(void *arg, const struct error *err);
    void *arg;
};

int sbx_clone_note(struct sbx *sbx, const char *name, const char *source, struct error *err)
{
    CLEANUP_CLOSE int dir_fd = -1;
    if (fs_make_private_dir(sbx->clones_dir, &dir_fd, err) < 0 || fs_replace_file(dir_fd, name, source, strlen(source), 0600, err) < 0)
        return error_context(err, "cannot note which repository the clone is of");
    return 0;
}

static char *read_note(struct sbx *sbx, const char *name)
{
    CLEANUP_FREE char *path = mem_format("%s/%s", sbx->clones_dir, name);
    CLEANUP_CLOSE int fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    CLEANUP(buffer_free) struct buffer text = BUFFER_INIT(NOTE_MAX_BYTES);
    if (fd < 0 || fs_read_all(fd, &text, NULL) < 0 || buffer_text(&text)[0] != '/')
        return NULL;
    return buffer_take_string(&text);
}

static void finish(struct tidying *tidying, const struct error *err)
{
    CLEANUP_FREE char *note = mem_format("%s/%s", tidying->sbx->clones_dir, tidying->name);
    if (err == NULL)
        unlink(note);
    tidying->done(tidying->arg, err);
    free(tidying->name);
    free(tidying);
}

static bool says(const struct call_result *result, const char *words)
{
    return strstr(result->output, words) != NULL;
}

// Another git at work is waited for; a repository that went away or that is not ours to write does not hold the sandbox back.
static void on_git(void *arg, const struct call_result *result)
{
    struct tidying *tidying = arg;
    struct error err = ERROR_INIT;
    bool is_done = result->end == CALL_EXITED && (result->exit_code == 0 || says(result, "no such section"));
    bool is_locked = result->end == CALL_EXITED && says(result, "could not lock config file") && says(result, "File exists");
    if (is_locked)
        error_set(&err, ERROR_UNAVAILABLE, "remove .git/config.lock there if no git runs",
                  "another git is changing the configuration of the repository that the clone was made of");
    else if (result->end == CALL_CANCELLED)
        error_set(&err, ERROR_CANCELLED, NULL, "chat2shell is shutting down");
    else if (!is_done)
        log_warning("the remote of a removed sandbox stays in the repository that its clone was made of; see: git remote");
    finish(tidying, err.code != ERROR_NONE ? &err : NULL);
}

// The file alone is read and written: no repository is entered, no other configuration looked at, nothing of it run.
static void start_git(struct tidying *tidying, const char *config)
{
    static const char *const environment[] = {"PATH=/usr/local/bin:/usr/bin:/bin", "LC_ALL=C", "HOME=/nonexistent", "GIT_DIR=/nonexistent",
                                              "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_SYSTEM=/dev/null", "GIT_CONFIG_GLOBAL=/dev/null",
                                              "GIT_TERMINAL_PROMPT=0", NULL};
    struct call_options options = {.deadline_ms = GIT_DEADLINE_MS, .program = "git", .environment = environment};
    const char *const texts[] = {"config", "--file", config, "--no-includes", "--remove-section", NULL};
    sbx_words_add_all(&options.words, texts);
    sbx_words_add(&options.words, "remote.sandbox-%s", tidying->name);
    sbx_call_start(tidying->sbx, &options, on_git, tidying);
}

static bool is_plain(const char *path, mode_t type)
{
    struct stat info;
    return lstat(path, &info) == 0 && (info.st_mode & S_IFMT) == type;
}

void sbx_clone_forget(struct sbx *sbx, const char *name, void (*done)(void *arg, const struct error *err), void *arg)
{
    struct tidying *tidying = mem_alloc(sizeof(*tidying));
    *tidying = (struct tidying){sbx, mem_strdup(name), done, arg};
    CLEANUP_FREE char *source = read_note(sbx, name);
    CLEANUP_FREE char *git = mem_format("%s/.git", source ? source : "");
    CLEANUP_FREE char *config = mem_format("%s/config", git);
    if (source && is_plain(git, S_IFDIR) && is_plain(config, S_IFREG))
        start_git(tidying, config);
    else
        finish(tidying, NULL);
}
