// export_pro_context: one big Markdown file with what a model needs to know of the workspace. File contents
// go in as they are: no secret-looking text is masked, for the bundle stays in the workspace that holds the
// same text already.
#include "api/guest/bridge.h"
#include "api/guest/bundle.h"
#include "api/guest/command.h"
#include "api/guest/git.h"
#include "api/guest/text_file.h"
#include "api/guest/tree.h"
#include "controller/base/memory.h"
#include "controller/base/time.h"
#include <string.h>

#define DEFAULT_TITLE "CodexPro Context Bundle"
#define MAX_TOTAL_BYTES 1000000
#define RESERVE_BYTES 6144 // for the list of what was skipped
#define MAX_TREE_ENTRIES 800
#define MAX_BRIDGE_BYTES 80000

static const struct tool_arg args[] = {
    {"title", ARG_STRING, "Heading of the bundle.", .default_text = DEFAULT_TITLE},
    {"selected_paths", ARG_STRING_LIST, "Files that shall be in it, before all others."},
    {"extra_globs", ARG_STRING_LIST, "Name patterns of more files, such as src/**/*.ts."},
    {"include_important_files", ARG_BOOLEAN, "README.md, AGENTS.md, package.json and the like.",
     .has_default = true, .default_number = 1},
    {"include_changed_files", ARG_BOOLEAN, "Files that differ from the last commit, and new ones.",
     .has_default = true, .default_number = 1},
    {"include_diff", ARG_BOOLEAN, "The git diff.", .has_default = true, .default_number = 1},
    {"include_ai_bridge", ARG_BOOLEAN, "The planning files in .ai-bridge; missing ones are made.",
     .has_default = true, .default_number = 1},
    {"max_depth", ARG_INTEGER, "Levels of the directory tree.", .has_default = true, .default_number = 3,
     .min = 1, .max = 6},
    {"max_files", ARG_INTEGER, "Most files.", .has_default = true, .default_number = 24, .min = 1, .max = 80},
    {"max_file_bytes", ARG_INTEGER, "Largest file; never above 180000.", .has_default = true,
     .default_number = 60000, .min = 1000, .max = 250000},
    {"max_total_bytes", ARG_INTEGER, "Largest bundle; never above 1000000.", .has_default = true,
     .default_number = 700000, .min = 20000, .max = 2000000},
    {NULL},
};

static const struct tool_field fields[] = {
    {"path", FIELD_STRING},           {"bytes", FIELD_INTEGER},     {"files_included", FIELD_STRINGS},
    {"files_skipped", FIELD_STRINGS}, {"truncated", FIELD_BOOLEAN}, {NULL},
};

struct export
{
    struct tool_call *call;
    struct bundle bundle;
    struct bundle_files files;
    json_t *included;
};

static size_t limit(const struct export *export, const char *name, size_t most)
{
    size_t asked = (size_t)json_get_int(export->call->args, name, (json_int_t)most);
    return asked < most ? asked : most;
}

static void add_head(struct export *export)
{
    char now[WALL_TIME_TEXT_SIZE];
    wall_time_format(wall_time_now(), now);
    CLEANUP_FREE char *title = bridge_fold_line(json_get_text(export->call->args, "title"));
    bundle_format(&export->bundle,
                  "# %s\n\nGenerated: %s\nRoot: %s\nBash mode: full\nWrite mode: workspace\n",
                  title ? title : DEFAULT_TITLE, now, export->call->workspace->root);
}

static void add_tree(struct export *export)
{
    struct tree tree = {0};
    struct tree_options options = {.max_depth = (int)json_get_int(export->call->args, "max_depth", 3),
                                   .max_entries = MAX_TREE_ENTRIES,
                                   .is_cancelled = export->call->is_cancelled};
    CLEANUP_CLOSE int fd = workspace_open_real(export->call->workspace, ".", O_RDONLY | O_DIRECTORY);
    bundle_format(&export->bundle, "\n## Repository Tree\n\n");
    if (fd >= 0)
        tree_draw(fd, ".", &options, &tree);
    bundle_add_fenced(&export->bundle, "", buffer_text(&tree.text), tree.text.len,
                      export->bundle.text.max / 8);
    export->bundle.is_truncated |= tree.is_truncated;
    buffer_free(&tree.text);
}

static void add_git_text(struct export *export, const char *heading, char *text)
{
    bundle_format(&export->bundle, "\n## %s\n\n", heading);
    bundle_add_fenced(&export->bundle, "", text, strlen(text), export->bundle.text.max / 8);
    free(text);
}

// Against the last commit; where there is none, against the index.
static void add_diff(struct export *export)
{
    static const char *const commands[][7] = {
        {"diff", "--no-ext-diff", "--no-textconv", "--no-color", "HEAD", "--", NULL},
        {"diff", "--no-ext-diff", "--no-textconv", "--no-color", "--", NULL}};
    struct tool_call *call = export->call;
    CLEANUP(command_result_free) struct command_result result = {0};
    struct error err = ERROR_INIT;
    bundle_format(&export->bundle, "\n## Git Diff\n\n");
    for (size_t i = 0; i < ARRAY_LEN(commands); i++) {
        command_result_free(&result);
        result = (struct command_result){0};
        if (git_run(call->guest, commands[i], call->is_cancelled, &result, &err) < 0) {
            bundle_format(&export->bundle, "[no diff: %s]\n", err.message);
            return;
        }
        if (result.exit_code == 0)
            break;
    }
    if (result.exit_code != 0)
        bundle_format(&export->bundle, "[no diff: %.300s]\n", result.errors.data);
    else if (!result.out.len)
        bundle_format(&export->bundle, "No changes.\n");
    else
        bundle_add_fenced(&export->bundle, "diff", result.out.data, result.out.len,
                          export->bundle.text.max / 3);
    export->bundle.is_truncated |= result.is_cut;
}

static void add_bridge_file(struct export *export, int dir, const char *path)
{
    CLEANUP_CLOSE int fd = -1;
    CLEANUP_TEXT_FILE struct text_file file = {0};
    struct error err = ERROR_INIT;
    if (bridge_open_file(dir, path, O_RDONLY, &fd, &err) == 0 && fd < 0)
        return;
    if (fd < 0 || text_file_read(fd, path, MAX_BRIDGE_BYTES, &file, &err) < 0) {
        bundle_format(&export->bundle, "\n### %s\n\n[unreadable: %s]\n", path, err.message);
    } else if (file.len) {
        bundle_format(&export->bundle, "\n### %s\n\n", path);
        bundle_add_fenced(&export->bundle, "", file.text, file.len, export->bundle.text.max / 8);
    }
}

static void add_bridge(struct export *export, int dir)
{
    static const char *const paths[] = {BRIDGE_PLAN,
                                        BRIDGE_STATUS,
                                        BRIDGE_DIFF,
                                        BRIDGE_DIR "/codex-status.md",
                                        BRIDGE_DIR "/decisions.md",
                                        BRIDGE_DIR "/open-questions.md",
                                        BRIDGE_EXECUTION_LOG};
    bundle_format(&export->bundle, "\n## Existing AI Bridge Context\n");
    for (size_t i = 0; i < ARRAY_LEN(paths); i++)
        add_bridge_file(export, dir, paths[i]);
}

// ---- files
// -----------------------------------------------------------------------------------------------------------

static int read_numbered(struct export *export, const char *path, struct buffer *ret, struct error *err)
{
    CLEANUP_PLACE struct place place = PLACE_INIT;
    CLEANUP_TEXT_FILE struct text_file file = {0};
    CLEANUP(text_lines_free) struct text_lines lines = {0};
    if (workspace_open_place(export->call->workspace, path, strlen(path), O_RDONLY, &place, err) < 0 ||
        text_file_read(place.fd, path, limit(export, "max_file_bytes", TEXT_MAX_READ_BYTES), &file,
                       err) < 0)
        return -1;
    text_split(file.text, file.len, &lines);
    return text_number_lines(&lines, 1, lines.count, ret);
}

static const char *reason_of(const struct error *err)
{
    if (err->code == ERROR_NOT_FOUND)
        return "missing";
    return strstr(err->message, "Not a file") ? "not a file" : err->message;
}

static void add_file(struct export *export, const char *path)
{
    struct error err = ERROR_INIT;
    CLEANUP(buffer_free) struct buffer numbered = BUFFER_INIT(MAX_TOTAL_BYTES * 4);
    if (json_array_size(export->included) >= (size_t)json_get_int(export->call->args, "max_files", 24)) {
        bundle_skip(&export->files, path, "more than max_files");
        export->bundle.is_truncated = true;
    } else if (read_numbered(export, path, &numbered, &err) < 0) {
        bundle_skip(&export->files, path, reason_of(&err));
    } else if (!bundle_add_whole(&export->bundle, path, buffer_text(&numbered), numbered.len)) {
        bundle_skip(&export->files, path, "no room within max_total_bytes");
    } else {
        json_array_append_new(export->included, json_from_text(path));
    }
}

static void add_files(struct export *export)
{
    const struct bundle_files *files = &export->files;
    bundle_format(&export->bundle, "\n## Selected Files\n\n");
    for (size_t i = 0; i < files->count && i < 100; i++)
        bundle_format(&export->bundle, "- %s\n", files->list[i].path);
    if (files->count > 100)
        bundle_format(&export->bundle, "- and %zu more\n", files->count - 100);
    bundle_format(&export->bundle, "%s\n## File Contents\n", files->count ? "" : "None.\n");
    for (size_t i = 0; i < files->count && !atomic_load(export->call->is_cancelled); i++)
        add_file(export, files->list[i].path);
}

static void add_skipped(struct export *export)
{
    size_t i;
    json_t *item;
    export->bundle.reserve = 0;
    bundle_format(&export->bundle, "\n## Skipped Files\n\n");
    json_array_foreach(export->files.skipped, i, item)
        bundle_format(&export->bundle, "- %s\n", json_string_value(item));
    if (!i)
        bundle_format(&export->bundle, "None.\n");
    export->bundle.is_truncated |= export->files.is_cut;
}

static void set_result(struct export *export)
{
    json_t *to = export->call->structured;
    json_set_text(to, "path", BRIDGE_CONTEXT);
    json_object_set_new(to, "bytes", json_integer((json_int_t) export->bundle.text.len));
    json_object_set(to, "files_included", export->included);
    json_object_set(to, "files_skipped", export->files.skipped);
    json_object_set_new(to, "truncated", json_boolean(export->bundle.is_truncated));
    struct buffer text = BUFFER_INIT(256 * 1024);
    size_t i;
    json_t *item;
    buffer_format(&text, "# Context bundle\nPath: %s\nBytes: %zu\nTruncated: %s\n\nFiles included:\n",
                  BRIDGE_CONTEXT, export->bundle.text.len, export->bundle.is_truncated ? "yes" : "no");
    json_array_foreach(export->included, i, item) buffer_format(&text, "- %s\n", json_string_value(item));
    buffer_append_text(&text, "\nFiles skipped:\n");
    json_array_foreach(export->files.skipped, i, item)
        buffer_format(&text, "- %s\n", json_string_value(item));
    export->call->text_len = text.len;
    export->call->text = buffer_take_string(&text);
}

static void free_export(struct export *export)
{
    buffer_free(&export->bundle.text);
    bundle_files_free(&export->files);
    json_decref(export->included);
}

static int run(struct tool_call *call, struct error *err)
{
    CLEANUP(free_export) struct export export = {.call = call, .included = json_array()};
    CLEANUP_CLOSE int dir = -1;
    bool has_bridge = json_get_bool(call->args, "include_ai_bridge", true);
    export.bundle = (struct bundle){.text = BUFFER_INIT(limit(&export, "max_total_bytes", MAX_TOTAL_BYTES)),
                                    .reserve = RESERVE_BYTES};
    if (bundle_choose(call, &export.files, err) < 0 || bridge_open(call->workspace, true, &dir, err) < 0 ||
        (has_bridge && bridge_make_files(dir, err) < 0))
        return -1;
    add_head(&export);
    add_tree(&export);
    add_git_text(&export, "Git Status", git_status_text(call->guest, call->is_cancelled));
    add_git_text(&export, "Recent Commits", git_recent_commits(call->guest, call->is_cancelled));
    if (json_get_bool(call->args, "include_diff", true))
        add_diff(&export);
    if (has_bridge)
        add_bridge(&export, dir);
    add_files(&export);
    add_skipped(&export);
    if (atomic_load(call->is_cancelled)) // half a bundle would stand in the place of a whole one
        return guest_tool_fail(err, NULL, "the request was cancelled");
    CLEANUP_TEXT_FILE_LOCK struct text_file_lock lock = text_file_lock(BRIDGE_CONTEXT);
    if (bridge_replace(dir, BRIDGE_CONTEXT, buffer_text(&export.bundle.text), export.bundle.text.len, err) <
        0)
        return -1;
    set_result(&export);
    return 0;
}

const struct tool guest_tool_export_pro_context = {
    .name = "export_pro_context",
    .title = "Export context bundle",
    .description =
        "Write one Markdown file, .ai-bridge/pro-context.md, that tells another model about the workspace: "
        "tree, "
        "git state and diff, planning files and the contents of chosen files. Use it to take a task to a "
        "model that has no tools here. It returns the path and which files went in, not the text.",
    .args = args,
    .fields = fields,
    .hints = {0},
    .run = run,
};
