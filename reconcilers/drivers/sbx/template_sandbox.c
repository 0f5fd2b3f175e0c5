// The sandbox in which the template is made: noted, made, and removed. Its workspace must be some directory of the host: an
// empty one in /tmp, whose path tells nothing about this user.
#include "controller/base/fs.h"
#include "controller/base/memory.h"
#include "reconcilers/drivers/sbx/template.h"
#include <errno.h>
#include <string.h>

#define WORKSPACE_PARENT "/tmp"
#define CREATE_DEADLINE_MS (15 * 60 * 1000) // the image of the shell agent may have to come first
#define REMOVE_DEADLINE_MS (2 * 60 * 1000)
#define UNSETTLED_MS (30 * 60 * 1000) // longer than any create goes on

static char *workspace_of(const struct note *note)
{
    return mem_format(WORKSPACE_PARENT "/%s", note->name);
}

// Newer versions mount a store of the host's skills unless told not to; older ones do not know the flag. *ret_has_ended: sbx
// itself came to an end, so that nothing is still being made.
static int create(const struct setup *setup, const struct note *note, bool *ret_has_ended, struct error *err)
{
    static const char skills[] = "--skills";
    CLEANUP_FREE char *workspace = workspace_of(note);
    struct order order = {.words = {"create", "--name", note->name, skills, "off", "shell", workspace}, .subject = note->name,
                          .deadline_ms = CREATE_DEADLINE_MS, .is_shown = true};
    const struct order plain = {.words = {"create", "--name", note->name, "shell", workspace}, .subject = note->name,
                                .deadline_ms = CREATE_DEADLINE_MS, .is_shown = true};
    CLEANUP(answer_free) struct answer answer;
    order_run(setup, &order, &answer);
    if (sbx_call_says_unknown_flag(&answer.result, skills)) {
        answer_free(&answer);
        order_run(setup, &plain, &answer);
    }
    *ret_has_ended = answer.result.end == CALL_EXITED || answer.result.end == CALL_NOT_STARTED;
    return sbx_call_judge(&answer.result, err);
}

int bootstrap_make(const struct setup *setup, struct notes *notes, const struct note **ret, struct error *err)
{
    struct note note;
    note_make_name(&note);
    CLEANUP_FREE char *workspace = workspace_of(&note);
    if (notes->count == BOOTSTRAP_NOTES_MAX)
        return error_set(err, ERROR_LIMIT, "look at: sbx ls", "too many sandboxes of earlier setups could not be removed");
    notes->items[notes->count++] = note;
    if (notes_write(setup->dir_fd, notes, err) < 0) {
        notes->count--;
        return -1;
    }
    if (mkdir(workspace, 0700) < 0)
        return error_errno(err, errno, NULL, "cannot make the empty directory %s", workspace);
    setup_say(setup, "making the sandbox %s to build it in (the first time its image is downloaded)", note.name);
    bool has_ended = false;
    int r = create(setup, &note, &has_ended, err);
    if (has_ended)
        notes->items[notes->count - 1].since.ms = 0; // settled: whether it is there is known when it is removed
    if (r < 0)
        return error_context(err, "cannot make a sandbox to build the template in");
    *ret = &notes->items[notes->count - 1];
    return 0;
}

// ---- its end -------------------------------------------------------------------------------------------------------------

static void remove_workspace(const struct note *note)
{
    CLEANUP_CLOSE int parent = open(WORKSPACE_PARENT, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    struct stat info;
    if (parent >= 0 && fstatat(parent, note->name, &info, AT_SYMLINK_NOFOLLOW) == 0 && info.st_uid == geteuid())
        fs_remove_tree(parent, note->name, NULL);
}

// *ret_was_there false: sbx knows no such sandbox.
static int remove_one(const struct setup *setup, const struct note *note, bool *ret_was_there, struct error *err)
{
    const struct order order = {.words = {"rm", "-f", note->name}, .subject = note->name, .deadline_ms = REMOVE_DEADLINE_MS, .is_cleanup = true};
    CLEANUP(answer_free) struct answer answer;
    order_run(setup, &order, &answer);
    *ret_was_there = !sbx_call_says_absent(&answer.result);
    if (*ret_was_there && sbx_call_judge(&answer.result, err) < 0)
        return error_context(err, "cannot remove the sandbox %s, in which the template was to be built", note->name);
    remove_workspace(note);
    return 0;
}

int bootstrap_remove_all(const struct setup *setup, struct notes *notes, struct error *err)
{
    struct notes left = {0};
    int r = 0;
    for (size_t i = 0; i < notes->count; i++) {
        const struct note *note = &notes->items[i];
        struct error *first = r == 0 ? err : NULL; // the first failure is the one that is told
        bool was_there = true;
        int64_t age_ms = wall_time_now().ms - note->since.ms;
        if (remove_one(setup, note, &was_there, first) < 0)
            r = -1;
        else if (was_there || age_ms > UNSETTLED_MS || age_ms < 0)
            continue;
        left.items[left.count++] = *note;
    }
    *notes = left;
    return notes_write(setup->dir_fd, notes, r == 0 ? err : NULL) < 0 ? -1 : r;
}
