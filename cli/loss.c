// What the end of a private clone loses. Said before it is asked, and asked only when there is something to lose.
#include "cli/objects.h"
#include "cli/terminal.h"
#include "controller/base/buffer.h"
#include "controller/base/memory.h"
#include "controller/base/utf8.h"
#include <stdio.h>
#include <string.h>

static char *word_loss(const json_t *unsaved, const json_t *sandbox)
{
    const json_t *changed = json_object_get(unsaved, "changedFiles"), *commits = json_object_get(unsaved, "unexportedCommits");
    if (!json_get_bool(unsaved, "isClone", false) || object_is_true(sandbox, CONDITION_FAILED))
        return NULL; // the workspace stays; and of a failed one nothing can be saved any more
    if (!json_is_integer(changed) || !json_is_integer(commits))
        return mem_strdup("what its private clone holds, which cannot be told because it does not answer");
    json_int_t files = json_integer_value(changed), count = json_integer_value(commits);
    if (files <= 0 && count <= 0)
        return NULL;
    CLEANUP(buffer_free) struct buffer loss = BUFFER_INIT(256);
    if (files > 0)
        buffer_format(&loss, "%lld uncommitted change%s", (long long)files, files == 1 ? "" : "s");
    if (count > 0)
        buffer_format(&loss, "%s%lld commit%s that %s nowhere else", loss.len ? " and " : "", (long long)count, count == 1 ? "" : "s", count == 1 ? "is" : "are");
    return buffer_take_string(&loss);
}

static int ask(const char *name, struct error *err)
{
    if (terminal_agrees("Delete it all the same?"))
        return 0;
    error_set(err, ERROR_CANCELLED, NULL, "nothing was deleted");
    return error_hint(err, "save the work first: chat2shell export %s FILE", name);
}

// NULL: nothing.
static int find_loss(const struct rest *rest, const json_t *sandbox, char **ret, struct error *err)
{
    CLEANUP_JSON json_t *unsaved = NULL;
    CLEANUP_FREE char *uid = http_escape(object_uid(sandbox));
    CLEANUP_FREE char *path = mem_format(REST_OWN "/sandboxes/%s/unsaved", uid);
    if (rest_get(rest, path, &unsaved, err) < 0)
        return -1;
    *ret = word_loss(unsaved, sandbox);
    return 0;
}

int loss_foretell(const struct rest *rest, const json_t *sandbox, struct error *err)
{
    CLEANUP_FREE char *loss = NULL, *name = utf8_to_printable(object_name(sandbox), strlen(object_name(sandbox)), false);
    if (find_loss(rest, sandbox, &loss, err) < 0)
        return -1;
    if (loss)
        fprintf(stderr, "Deleting sandbox/%s would lose %s: without --yes it is asked for, or refused.\n", name, loss);
    return 0;
}

int loss_confirm(const struct invocation *in, const struct rest *rest, const json_t *sandbox, struct error *err)
{
    CLEANUP_FREE char *loss = NULL;
    if (find_loss(rest, sandbox, &loss, err) < 0)
        return -1;
    if (!loss)
        return 0;
    CLEANUP_FREE char *name = utf8_to_printable(object_name(sandbox), strlen(object_name(sandbox)), false);
    fprintf(stderr, "Deleting sandbox/%s loses %s.\n", name, loss);
    if (invocation_switch(in, "yes", false))
        return 0;
    if (terminal_can_ask())
        return ask(name, err);
    error_set(err, ERROR_REFUSED, NULL, "sandbox %s was not deleted: unsaved work would be lost", name);
    return error_hint(err, "save it with chat2shell export %s FILE, or use --yes", name);
}
