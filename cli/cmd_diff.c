// diff: what `apply` would change.
#include "cli/apply.h"
#include "cli/child.h"
#include "cli/objects.h"
#include "cli/printers/print.h"
#include "cli/prune.h"
#include "cli/removal.h"
#include "cli/scratch.h"
#include "cli/selection.h"
#include "cli/unified_diff.h"
#include "controller/base/memory.h"
#include <stdio.h>
#include <string.h>

#define TEXT_MAX_BYTES (16u * 1024 * 1024)
#define EXIT_DIFFERENT 1
#define EXIT_TROUBLE 2
#define EXTERNAL "KUBECTL_EXTERNAL_DIFF"

// Both sides of one object; "" where it is not there.
struct sides {
    char *word; // "workspace/demo"
    char *file; // as kubectl names them: GROUP.VERSION.Kind..NAME
    char *live, *merged;
};
struct command_diff {
    struct invocation *in;
    struct sides *items;
    size_t count;
};

static void sides_free(struct command_diff *diff)
{
    for (size_t i = 0; i < diff->count; i++) {
        free(diff->items[i].word);
        free(diff->items[i].file);
        free(diff->items[i].live);
        free(diff->items[i].merged);
    }
    free(diff->items);
}

// ---- the texts ----------------------------------------------------------------------------------------------------------------
static char *text_of(const json_t *object)
{
    CLEANUP(buffer_free) struct buffer text = BUFFER_INIT(TEXT_MAX_BYTES);
    if (object)
        yaml_write(&text, object);
    return buffer_take_string(&text);
}

// What an apply does not decide is the same on both sides: the state goes on meanwhile.
static json_t *comparable(const struct command_diff *diff, const json_t *object, const json_t *live)
{
    static const char *const made_up[] = {"uid", "creationTimestamp", "resourceVersion"}; // of an object that is not there, in a dry run
    json_t *copy = json_deep_copy(object), *metadata = json_object_get(copy, "metadata");
    const json_t *live_metadata = json_object_get(live, "metadata");
    for (size_t i = 0; i < ARRAY_LEN(made_up); i++) {
        json_t *value = json_object_get(live_metadata, made_up[i]);
        if (value)
            json_object_set(metadata, made_up[i], value);
        else
            json_object_del(metadata, made_up[i]);
    }
    if (json_object_get(live, "status"))
        json_object_set(copy, "status", json_object_get(live, "status"));
    else
        json_object_del(copy, "status");
    if (!invocation_switch(diff->in, "show-managed-fields", false))
        json_object_del(metadata, "managedFields");
    return copy;
}

static void add(struct command_diff *diff, const json_t *live, const json_t *merged)
{
    const json_t *either = live ? live : merged;
    CLEANUP_JSON json_t *before = live ? comparable(diff, live, live) : NULL, *after = merged ? comparable(diff, merged, live) : NULL;
    struct sides *sides = &diff->items[diff->count++];
    *sides = (struct sides){.word = object_word(either), .live = text_of(before), .merged = text_of(after),
                            .file = mem_format(API_GROUP "." API_VERSION ".%s..%s", selection_kind(either)->name, object_name(either))};
    if (strcmp(sides->live, sides->merged) != 0)
        return;
    free(sides->word);
    free(sides->file);
    free(sides->live);
    free(sides->merged);
    diff->count--;
}

// ---- showing them ---------------------------------------------------------------------------------------------------------------
static void show(const struct command_diff *diff)
{
    for (size_t i = 0; i < diff->count; i++) {
        const struct sides *sides = &diff->items[i];
        CLEANUP(buffer_free) struct buffer text = BUFFER_INIT(4 * TEXT_MAX_BYTES);
        CLEANUP_FREE char *from = mem_format("live/%s", sides->word), *to = mem_format("merged/%s", sides->word);
        unified_diff(sides->live, sides->merged, from, to, &text);
        unified_diff_print(buffer_text(&text));
    }
}

static int write_side(const struct scratch *scratch, const char *directory, const struct command_diff *diff, bool is_live, struct error *err)
{
    if (scratch_make_directory(scratch, directory, err) < 0)
        return -1;
    for (size_t i = 0; i < diff->count; i++) {
        const char *text = is_live ? diff->items[i].live : diff->items[i].merged;
        CLEANUP_FREE char *name = mem_format("%s/%s", directory, diff->items[i].file);
        if (*text && scratch_write(scratch, name, text, strlen(text), err) < 0)
            return -1;
    }
    return 0;
}

// With the two directories as its last arguments; its exit code is ours.
static int show_by(const struct command_diff *diff, const char *line, struct error *err)
{
    CLEANUP(scratch_clear) struct scratch scratch = {0};
    CLEANUP_FREE const char **argv = NULL;
    CLEANUP_FREE char *text = NULL;
    size_t count = 0;
    if (child_split(line, 2, &argv, &text, err) < 0 || scratch_make(&scratch, "diff", err) < 0 || write_side(&scratch, "LIVE", diff, true, err) < 0 ||
        write_side(&scratch, "MERGED", diff, false, err) < 0)
        return -1;
    CLEANUP_FREE char *live = scratch_path(&scratch, "LIVE"), *merged = scratch_path(&scratch, "MERGED");
    while (argv[count])
        count++;
    argv[count] = live;
    argv[count + 1] = merged;
    return child_run(argv, &diff->in->exit_code, err);
}

static int show_all(const struct command_diff *diff, struct error *err)
{
    const char *external = getenv(EXTERNAL);
    if (!diff->count)
        return 0;
    if (external && *external)
        return show_by(diff, external, err) < 0 ? error_context(err, EXTERNAL) : 0;
    show(diff);
    diff->in->exit_code = EXIT_DIFFERENT;
    return 0;
}

// ---- all of it ------------------------------------------------------------------------------------------------------------------
static int compare(struct command_diff *diff, struct apply *apply, bool prunes, struct error *err)
{
    CLEANUP_JSON json_t *pruned = NULL;
    if (apply_try(apply, true, err) < 0 || (prunes && prune_find(apply, &pruned, err) < 0))
        return -1;
    diff->items = mem_alloc((apply->count + json_array_size(pruned) + 1) * sizeof(*diff->items));
    for (size_t i = 0; i < apply->count; i++)
        add(diff, apply->items[i].before, apply->items[i].after);
    for (size_t i = 0; i < json_array_size(pruned); i++)
        add(diff, json_array_get(pruned, i), NULL);
    return show_all(diff, err);
}

static int run_checked(struct invocation *in, struct error *err)
{
    CLEANUP(manifests_clear) struct manifests manifests = {0};
    CLEANUP(apply_clear) struct apply apply = {0};
    struct command_diff diff = {.in = in};
    bool prunes = false;
    if (prune_check(in, &prunes, err) < 0)
        return -1;
    if (!invocation_option(in, "filename"))
        return error_set(err, ERROR_USAGE, "chat2shell diff -f FILE", "what to compare is missing");
    if (manifests_read(in, MANIFESTS_OBJECTS, &manifests, err) < 0 || apply_prepare(&apply, in, &manifests, err) < 0)
        return -1;
    int r = compare(&diff, &apply, prunes, err);
    sides_free(&diff);
    return r;
}

// 1 means that there are differences, so no failure may end with it.
static int run(struct invocation *in, struct error *err)
{
    if (run_checked(in, err) == 0)
        return 0;
    if (error_meaning(err->code)->exit_code > EXIT_DIFFERENT)
        return -1;
    complain(in, err);
    in->exit_code = EXIT_TROUBLE;
    return 0;
}

static const struct example examples[] = {
    {"chat2shell diff -f dev.yaml", "what apply would change; 0 nothing, 1 something, more: it cannot be told"},
    {"chat2shell diff -R -f deploy/ --prune -l app=web", "and what --prune would delete"},
    {EXTERNAL "='colordiff -N -u' chat2shell diff -f dev.yaml", "shown by another program"},
};
static const struct option_row options[] = {
    OPTION_FILENAME,
    OPTION_RECURSIVE,
    OPTION_APPLY_SELECTOR,
    OPTION_PRUNE,
    OPTION_PRUNE_ALL,
    OPTION_PRUNE_ALLOWLIST,
    OPTION_FORCE_CONFLICTS,
    OPTION_FIELD_MANAGER,
    {.name = "show-managed-fields", .doc = "also who would be noted for which field"},
    OPTIONS_NAMESPACE,
};
const struct command command_diff = {
    .name = "diff", .synopsis = "-f FILE|DIR|-", .summary = "Show what apply would change", .run = run,
    .details = "The daemon says what each object would be (a dry run), and that is compared with what it is. Exit codes: 0 no differences, 1 differences, 2 and "
               "more as for other commands. " EXTERNAL " names a program that shows the differences: it is run directly, no shell, with two directories as its "
               "last arguments, and its exit code is the command's.",
    COMMAND_EXAMPLES(examples), COMMAND_OPTIONS(options),
};
