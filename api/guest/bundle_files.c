// Which files go into a bundle: the selected ones, what git says has changed, well-known files of the root,
// and globs.
#include "api/guest/blocked.h"
#include "api/guest/bridge.h"
#include "api/guest/bundle.h"
#include "api/guest/collate.h"
#include "api/guest/command.h"
#include "api/guest/git.h"
#include "api/guest/walk.h"
#include "controller/base/memory.h"
#include <stdlib.h>
#include <string.h>

#define MAX_SELECTED 500
#define MAX_GLOBS 50
#define MAX_FOUND 2000 // by git and by globs
#define MAX_SKIPPED 300

static const char *const well_known[] = {
    "AGENTS.md",       "README.md",          "CLAUDE.md",          "package.json",     "package-lock.json",
    "pnpm-lock.yaml",  "yarn.lock",          "tsconfig.json",      "Cargo.toml",       "go.mod",
    "pyproject.toml",  "requirements.txt",   "vite.config.ts",     "vite.config.js",   "next.config.js",
    "next.config.mjs", "next.config.ts",     "svelte.config.js",   "astro.config.mjs", "nuxt.config.ts",
    "angular.json",    "tailwind.config.js", "tailwind.config.ts", "CMakeLists.txt",   "Makefile",
};

struct choosing {
    struct tool_call *call;
    struct bundle_files *files;
    struct glob globs[MAX_GLOBS];
    size_t glob_count, found;
};

void bundle_files_free(struct bundle_files *files)
{
    for (size_t i = 0; i < files->count; i++)
        free(files->list[i].path);
    free(files->list);
    json_decref(files->skipped);
    *files = (struct bundle_files){0};
}

void bundle_skip(struct bundle_files *files, const char *path, const char *reason)
{
    if (json_array_size(files->skipped) >= MAX_SKIPPED) {
        files->is_cut = true;
        return;
    }
    CLEANUP_FREE char *text = mem_format("%s [%s]", path, reason);
    json_array_append_new(files->skipped, json_from_text(text));
}

static void add(struct bundle_files *files, const char *path, enum bundle_rank rank)
{
    for (size_t i = 0; i < files->count; i++)
        if (strcmp(files->list[i].path, path) == 0)
            return;
    files->list = mem_realloc_array(files->list, files->count + 1, sizeof(struct bundle_file));
    files->list[files->count] = (struct bundle_file){mem_strdup(path), rank, files->count};
    files->count++;
}

// What others found, not the caller named. The bundle and its neighbours are no content of it.
static void add_found(struct choosing *choosing, const char *path)
{
    if (strncmp(path, BRIDGE_DIR "/", strlen(BRIDGE_DIR "/")) == 0 || blocked_path(path))
        return;
    if (choosing->found == MAX_FOUND) {
        choosing->files->is_cut = true;
        return;
    }
    choosing->found++;
    add(choosing->files, path, BUNDLE_FOUND);
}

static void add_selected(struct choosing *choosing)
{
    size_t i;
    json_t *given;
    json_array_foreach(json_object_get(choosing->call->args, "selected_paths"), i, given)
    {
        struct error err = ERROR_INIT;
        CLEANUP_FREE char *path = NULL;
        if (workspace_fold(choosing->call->workspace, json_string_value(given), json_string_length(given),
                           &path, &err) < 0)
            bundle_skip(choosing->files, json_string_value(given), err.message);
        else
            add(choosing->files, path, BUNDLE_SELECTED);
    }
}

static void add_well_known(struct choosing *choosing)
{
    struct stat meta;
    for (size_t i = 0; i < ARRAY_LEN(well_known); i++)
        if (fstatat(choosing->call->workspace->root_fd, well_known[i], &meta, AT_SYMLINK_NOFOLLOW) == 0)
            add(choosing->files, well_known[i], BUNDLE_WELL_KNOWN);
}

static void add_git_names(struct choosing *choosing, const char *const *git_args)
{
    CLEANUP(command_result_free) struct command_result result = {0};
    if (git_run(choosing->call->guest, git_args, choosing->call->is_cancelled, &result, NULL) < 0 ||
        result.exit_code != 0)
        return; // no repository: nothing has changed
    const char *end = result.out.data + result.out.len;
    for (const char *name = result.out.data, *stop; (stop = memchr(name, '\0', (size_t)(end - name)));
         name = stop + 1)
        if (*name && stop[-1] != '/') // a nested repository is named with a slash
            add_found(choosing, name);
}

static void add_changed(struct choosing *choosing)
{
    static const char *const worktree[] = {"ls-files",           "-z", "--modified", "--others",
                                           "--exclude-standard", NULL};
    static const char *const staged[] = {"diff",       "--cached",      "--name-only",  "-z",
                                         "--relative", "--no-ext-diff", "--no-renames", NULL};
    add_git_names(choosing, worktree);
    add_git_names(choosing, staged);
}

static bool wants(void *context, const char *path)
{
    struct choosing *choosing = context;
    bool is_asked = false;
    for (size_t i = 0; !is_asked && i < choosing->glob_count; i++)
        is_asked = glob_accepts(&choosing->globs[i], path);
    if (is_asked)
        add_found(choosing, path);
    return false; // its name is enough
}

static int visit_nothing(void *context, const struct walk_file *file, struct error *err)
{
    (void)context, (void)file, (void)err;
    return 0;
}

static int add_globs(struct choosing *choosing, struct error *err)
{
    size_t i;
    json_t *given;
    CLEANUP_PLACE struct place root = PLACE_INIT;
    struct walk_result result = {0};
    struct walk_options options = {.workspace = choosing->call->workspace,
                                   .include_hidden = true,
                                   .is_cancelled = choosing->call->is_cancelled,
                                   .visit = visit_nothing,
                                   .wants = wants,
                                   .context = choosing};
    json_array_foreach(json_object_get(choosing->call->args, "extra_globs"), i, given)
    {
        if (glob_compile(json_string_value(given), &choosing->globs[choosing->glob_count]))
            choosing->glob_count++;
        else
            bundle_skip(choosing->files, json_string_value(given), "a glob with too many alternatives");
    }
    if (!choosing->glob_count)
        return 0;
    if (workspace_open_place(choosing->call->workspace, ".", 1, O_RDONLY | O_DIRECTORY, &root, err) < 0 ||
        walk_files(&options, &root, &result, err) < 0)
        return -1;
    choosing->files->is_cut |= result.is_out_of_time;
    return 0;
}

static int by_rank(const void *a, const void *b)
{
    const struct bundle_file *x = a, *y = b;
    if (x->rank != y->rank)
        return x->rank < y->rank ? -1 : 1;
    if (x->rank == BUNDLE_FOUND)
        return collate_names(x->path, y->path);
    return x->order < y->order ? -1 : 1;
}

static void free_choosing(struct choosing *choosing)
{
    for (size_t i = 0; i < choosing->glob_count; i++)
        glob_free(&choosing->globs[i]);
}

int bundle_choose(struct tool_call *call, struct bundle_files *ret, struct error *err)
{
    CLEANUP(bundle_files_free) struct bundle_files files = {.skipped = json_array()};
    CLEANUP(free_choosing) struct choosing choosing = {.call = call, .files = &files};
    if (json_array_size(json_object_get(call->args, "selected_paths")) > MAX_SELECTED)
        return guest_tool_fail(err, "use extra_globs", "selected_paths has more than %d paths.",
                               MAX_SELECTED);
    if (json_array_size(json_object_get(call->args, "extra_globs")) > MAX_GLOBS)
        return guest_tool_fail(err, "join them with {a,b}", "extra_globs has more than %d patterns.",
                               MAX_GLOBS);
    add_selected(&choosing);
    if (json_get_bool(call->args, "include_important_files", true))
        add_well_known(&choosing);
    if (json_get_bool(call->args, "include_changed_files", true))
        add_changed(&choosing);
    if (add_globs(&choosing, err) < 0)
        return -1;
    if (files.count)
        qsort(files.list, files.count, sizeof(struct bundle_file), by_rank);
    *ret = files;
    files = (struct bundle_files){0};
    return 0;
}
