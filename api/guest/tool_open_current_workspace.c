// open_current_workspace: the first look at the workspace.
#include "api/guest/directory.h"
#include "api/guest/git.h"
#include "api/guest/skills.h"
#include "api/guest/tree.h"
#include "controller/base/memory.h"
#include <dirent.h>
#include <string.h>
#include <strings.h>

#define MAX_TREE_ENTRIES 500

static const struct tool_arg args[] = {
    {"include_tree", ARG_BOOLEAN, "Add a directory tree.", .has_default = true},
    {"max_depth", ARG_INTEGER, "Levels of that tree.", .has_default = true, .default_number = 2, .min = 1,
     .max = 8},
    {"include_skills", ARG_BOOLEAN, "List the SKILL.md files of the workspace.", .has_default = true},
    {"include_global_skills", ARG_BOOLEAN, "With include_skills: those of the home directory too.",
     .has_default = true},
    {NULL},
};

static const struct tool_field count_fields[] = {
    {"total", FIELD_INTEGER},  {"workspace", FIELD_INTEGER}, {"user", FIELD_INTEGER},
    {"plugin", FIELD_INTEGER}, {"other", FIELD_INTEGER},     {NULL},
};

static const struct tool_field fields[] = {
    {"selected_workspace_id", FIELD_STRING},
    {"agents_loaded", FIELD_BOOLEAN},
    {"agents_path", FIELD_STRING, .is_optional = true},
    {"skills", FIELD_STRINGS},
    {"skill_inventory", FIELD_OBJECTS, .fields = skill_entry_fields},
    {"skill_counts", FIELD_OBJECT, .fields = count_fields},
    {"tree", FIELD_STRING, .is_optional = true},
    {"git_status", FIELD_STRING},
    {"bash_mode", FIELD_STRING},
    {"write_mode", FIELD_STRING},
    {"tool_mode", FIELD_STRING},
    {NULL},
};

static const char *find_name(const struct directory *directory, const char *name, bool any_case)
{
    for (size_t i = 0; i < directory->count; i++)
        if ((any_case ? strcasecmp : strcmp)(directory->entries[i].name, name) == 0 &&
            directory->entries[i].type != DT_DIR)
            return directory->entries[i].name;
    return NULL;
}

// Each name exactly first, then in any case. Only named, not read.
static const char *find_agents_file(const struct directory *directory)
{
    static const char *const names[] = {"AGENTS.override.md", "AGENTS.md", "agents.md", ".agents.md"};
    const char *found = NULL;
    for (size_t i = 0; !found && i < 2 * ARRAY_LEN(names); i++)
        found = find_name(directory, names[i % ARRAY_LEN(names)], i >= ARRAY_LEN(names));
    return found;
}

static void add_agents(struct tool_call *call, struct buffer *text)
{
    CLEANUP_CLOSE int fd = workspace_open_real(call->workspace, ".", O_RDONLY | O_DIRECTORY);
    CLEANUP_DIRECTORY struct directory directory = {0};
    if (fd >= 0)
        directory_read(fd, false, &directory);
    const char *path = find_agents_file(&directory);
    json_object_set_new(call->structured, "agents_loaded", json_boolean(path != NULL));
    json_set_text(call->structured, "agents_path", path);
    buffer_format(text, "AGENTS: %s\n", path ? path : "none");
}

static void add_skills(struct tool_call *call, struct buffer *text)
{
    CLEANUP_SKILLS struct skills skills = {0};
    struct skills_options options = {
        .include_global = json_get_bool(call->args, "include_global_skills", false),
        .max_files = SKILLS_MAX,
        .is_cancelled = call->is_cancelled,
    };
    if (json_get_bool(call->args, "include_skills", false))
        skills_scan(call->workspace, &options, &skills);
    json_t *names = json_array(), *inventory = json_array();
    json_t *counts = json_pack("{s:i s:i s:i s:i s:i}", "total", (int)skills.count, "workspace", 0, "user", 0,
                               "plugin", 0, "other", 0);
    buffer_append_text(text, "Skills:");
    for (size_t i = 0; i < skills.count; i++) {
        const struct skill *skill = &skills.list[i];
        json_array_append_new(inventory, skills_entry(skill));
        json_array_append_new(names, json_from_text(skill->name));
        json_object_set_new(counts, skill->source, json_integer(json_get_int(counts, skill->source, 0) + 1));
        buffer_format(text, "%s %s", i ? "," : "", skill->name);
    }
    buffer_append_text(text, skills.count ? "\n" : " none\n");
    json_object_set_new(call->structured, "skills", names);
    json_object_set_new(call->structured, "skill_inventory", inventory);
    json_object_set_new(call->structured, "skill_counts", counts);
}

static void add_git(struct tool_call *call, struct buffer *text)
{
    CLEANUP_FREE char *status = git_status_text(call->guest, call->is_cancelled);
    CLEANUP_FREE char *commits = git_recent_commits(call->guest, call->is_cancelled);
    json_set_text(call->structured, "git_status", status);
    buffer_format(text, "\nGit status:\n%s\n", status);
    if (*commits)
        buffer_format(text, "\nRecent commits:\n%s\n", commits);
}

static void add_tree(struct tool_call *call, struct buffer *text)
{
    CLEANUP_CLOSE int fd = workspace_open_real(call->workspace, ".", O_RDONLY | O_DIRECTORY);
    if (fd < 0 || !json_get_bool(call->args, "include_tree", false))
        return;
    struct tree_options options = {.max_depth = (int)json_get_int(call->args, "max_depth", 2),
                                   .max_entries = MAX_TREE_ENTRIES,
                                   .is_cancelled = call->is_cancelled};
    struct tree tree;
    tree_draw(fd, ".", &options, &tree);
    json_object_set_new(call->structured, "tree", json_from_bytes(tree.text.data, tree.text.len));
    buffer_format(text, "\nTree:\n%s\n", tree.text.data);
    buffer_free(&tree.text);
}

static int run(struct tool_call *call, struct error *err)
{
    (void)err;
    static const char *const modes[][2] = {
        {"bash_mode", "full"}, {"write_mode", "workspace"}, {"tool_mode", "standard"}};
    struct buffer text = BUFFER_INIT(8 * 1024 * 1024);
    buffer_format(&text, "# Workspace\nWorkspace: %s\nRoot: %s\n", call->workspace->id,
                  call->workspace->root);
    json_set_text(call->structured, "selected_workspace_id", call->workspace->id);
    for (size_t i = 0; i < ARRAY_LEN(modes); i++) {
        json_set_text(call->structured, modes[i][0], modes[i][1]);
        buffer_format(&text, "%s: %s\n", modes[i][0], modes[i][1]);
    }
    add_agents(call, &text);
    add_skills(call, &text);
    add_git(call, &text);
    add_tree(call, &text);
    call->text_len = text.len;
    call->text = buffer_take_string(&text);
    return 0;
}

const struct tool guest_tool_open_current_workspace = {
    .name = "open_current_workspace",
    .title = "Open workspace",
    .description = "Look at the workspace first: where it is, whether it has instructions for agents, its "
                   "git status and last "
                   "commits, and on request its directory tree and skills.",
    .args = args,
    .fields = fields,
    .hints = {.is_read_only = true},
    .run = run,
};
