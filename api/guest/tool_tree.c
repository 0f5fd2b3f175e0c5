// tree: directory listing.
#include "api/guest/tool.h"
#include "api/guest/tree.h"
#include <errno.h>
#include <string.h>

static const struct tool_arg args[] = {
    {"path", ARG_STRING, "Directory to list.", .default_text = "."},
    {"max_depth", ARG_INTEGER, "Levels to descend.", .has_default = true, .default_number = 4, .min = 1,
     .max = 12},
    {"include_hidden", ARG_BOOLEAN, "Show names that start with a dot.", .has_default = true},
    {"max_entries", ARG_INTEGER, "Most entries to show.", .has_default = true, .default_number = 800,
     .min = 1, .max = 3000},
    {NULL},
};

static const struct tool_field fields[] = {
    {"text", FIELD_STRING}, {"entries", FIELD_INTEGER}, {"truncated", FIELD_BOOLEAN}, {NULL}};

static int run(struct tool_call *call, struct error *err)
{
    CLEANUP_PLACE struct place place = PLACE_INIT;
    const json_t *path = json_object_get(call->args, "path");
    if (workspace_open_place(call->workspace, json_string_value(path), json_string_length(path), O_RDONLY,
                             &place, err) < 0)
        return -1;
    struct stat meta;
    if (fstat(place.fd, &meta) < 0 || !S_ISDIR(meta.st_mode))
        return guest_tool_fail(err, "use read for a file", "Not a directory: %s", place.path);
    struct tree_options options = {
        .max_depth = (int)json_get_int(call->args, "max_depth", 4),
        .max_entries = (int)json_get_int(call->args, "max_entries", 800),
        .include_hidden = json_get_bool(call->args, "include_hidden", false),
        .is_cancelled = call->is_cancelled,
    };
    struct tree tree;
    tree_draw(place.fd, place.path, &options, &tree);
    json_object_set_new(call->structured, "text", json_from_bytes(tree.text.data, tree.text.len));
    json_object_set_new(call->structured, "entries", json_integer(tree.entries));
    json_object_set_new(call->structured, "truncated", json_boolean(tree.is_truncated));
    call->text_len = tree.text.len;
    call->text = buffer_take_string(&tree.text);
    return 0;
}

const struct tool guest_tool_tree = {
    .name = "tree",
    .title = "Directory tree",
    .description = "Draw the directories and files below a directory of the workspace, directories first. "
                   "Version control "
                   "internals, dependencies, build output and key files are left out.",
    .args = args,
    .fields = fields,
    .hints = {.is_read_only = true, .is_idempotent = true},
    .run = run,
};
