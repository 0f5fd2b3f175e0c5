// load_skill: the text of one SKILL.md.
#include "api/guest/skills.h"
#include "api/guest/tool.h"
#include "controller/base/memory.h"
#include <errno.h>
#include <string.h>
#include <strings.h>

#define MAX_SIMILAR 8

static const char *const sources[] = {"workspace", "user", "plugin", "other", NULL};

static const struct tool_arg args[] = {
    {"name", ARG_STRING, "The skill's exact name, as open_current_workspace with include_skills lists it.",
     .is_required = true},
    {"source", ARG_STRING, "Only a skill from there.", .choices = sources},
    {"path", ARG_STRING, "The exact path from that list, where several skills have one name."},
    {"include_global_skills", ARG_BOOLEAN,
     "Look in the home directory too; the default is true unless source or path says it is a workspace's."},
    {"max_skills", ARG_INTEGER, "Most SKILL.md files to look at.", .has_default = true,
     .default_number = SKILLS_MAX, .min = 1, .max = SKILLS_MAX},
    {"max_bytes", ARG_INTEGER, "Most bytes of text to return.", .has_default = true, .default_number = 40000,
     .min = 1000, .max = 100000},
    {NULL},
};

static const struct tool_field fields[] = {
    {"skill", FIELD_OBJECT, .fields = skill_entry_fields},
    {"bytes", FIELD_INTEGER},
    {"total_bytes", FIELD_INTEGER},
    {"truncated", FIELD_BOOLEAN},
    {"text", FIELD_STRING},
    {NULL},
};

static bool asks_global(const json_t *arguments)
{
    const json_t *given = json_object_get(arguments, "include_global_skills");
    const char *source = json_get_text(arguments, "source"), *path = json_get_text(arguments, "path");
    if (given)
        return json_is_true(given);
    return !(source && strcmp(source, "workspace") == 0) && !(path && strncmp(path, "$WORKSPACE/", 11) == 0);
}

static const struct skill *find_skill(const struct skills *skills, const json_t *arguments)
{
    const char *name = json_get_text(arguments, "name"), *source = json_get_text(arguments, "source");
    const char *path = json_get_text(arguments, "path");
    for (size_t i = 0; i < skills->count; i++) {
        const struct skill *skill = &skills->list[i];
        if (strcmp(skill->name, name) == 0 && (!source || strcmp(skill->source, source) == 0) &&
            (!path || strcmp(skill->path, path) == 0))
            return skill;
    }
    return NULL;
}

static bool is_similar(const char *name, const char *asked)
{
    return strcasestr(name, asked) || strcasestr(asked, name) || strncasecmp(name, asked, 3) == 0;
}

static bool is_first_of_name(const struct skills *skills, size_t at)
{
    for (size_t i = 0; i < at; i++)
        if (strcmp(skills->list[i].name, skills->list[at].name) == 0)
            return false;
    return true;
}

static int fail_not_found(const struct skills *skills, const char *name, struct error *err)
{
    CLEANUP(buffer_free) struct buffer similar = BUFFER_INIT(400);
    size_t count = 0;
    for (size_t i = 0; i < skills->count && count < MAX_SIMILAR; i++)
        if (is_first_of_name(skills, i) && is_similar(skills->list[i].name, name) &&
            buffer_format(&similar, "%s%s", count ? ", " : "", skills->list[i].name) == 0)
            count++;
    const char *cut = skills->is_cut ? " (not every directory was looked at)" : "";
    return error_set(err, ERROR_NOT_FOUND, "list them with open_current_workspace and include_skills",
                     "Error: Skill not found: %.200s%s%s%s", name, count ? ". Similar: " : "",
                     buffer_text(&similar), cut);
}

// At most max bytes from the start; *ret_total is the size of the whole file.
static int read_start(int fd, size_t max, char **ret_text, size_t *ret_len, size_t *ret_total)
{
    struct stat meta;
    CLEANUP_FREE char *text = mem_alloc(max + 1);
    size_t len = 0;
    while (len < max) {
        ssize_t n = pread(fd, text + len, max - len, (off_t)len);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -1;
        if (n == 0)
            break;
        len += (size_t)n;
    }
    if (fstat(fd, &meta) < 0)
        return -1;
    *ret_total = len < max || (size_t)meta.st_size < len ? len : (size_t)meta.st_size;
    *ret_len = len;
    *ret_text = TAKE_PTR(text);
    return 0;
}

static void set_result(struct tool_call *call, const struct skill *skill, const char *bytes, size_t len,
                       size_t total)
{
    json_t *to = call->structured, *text = json_from_bytes(bytes, len);
    json_object_set_new(to, "skill", skills_entry(skill));
    json_object_set_new(to, "bytes", json_integer((json_int_t)len));
    json_object_set_new(to, "total_bytes", json_integer((json_int_t)total));
    json_object_set_new(to, "truncated", json_boolean(len < total));
    json_object_set_new(to, "text", text);
    struct buffer out = BUFFER_INIT(1024 * 1024);
    buffer_format(&out, "# Skill: %s\nSource: %s\nPath: %s\nBytes: %zu of %zu\n\n", skill->name,
                  skill->source, skill->path, len, total);
    buffer_append(&out, json_string_value(text), json_string_length(text));
    if (len < total)
        buffer_format(&out, "\n...[cut at %zu bytes: ask for more with max_bytes]", len);
    call->text_len = out.len;
    call->text = buffer_take_string(&out);
}

static int run(struct tool_call *call, struct error *err)
{
    CLEANUP_SKILLS struct skills skills = {0};
    const char *name = json_get_text(call->args, "name");
    if (!name[strspn(name, " \t\r\n")])
        return error_set(err, ERROR_INVALID, NULL, "Error: Skill name is required.");
    struct skills_options options = {.include_global = asks_global(call->args),
                                     .keep_shadowed = true,
                                     .max_files = (size_t)json_get_int(call->args, "max_skills", SKILLS_MAX),
                                     .is_cancelled = call->is_cancelled};
    skills_scan(call->workspace, &options, &skills);
    const struct skill *skill = find_skill(&skills, call->args);
    if (!skill)
        return fail_not_found(&skills, name, err);
    CLEANUP_CLOSE int fd = skills_open(call->workspace, skill);
    CLEANUP_FREE char *text = NULL;
    size_t len, total;
    if (fd < 0 ||
        read_start(fd, (size_t)json_get_int(call->args, "max_bytes", 40000), &text, &len, &total) < 0)
        return guest_tool_fail_errno(err, errno, "read '%s'", skill->path);
    set_result(call, skill, text, len, total);
    return 0;
}

const struct tool guest_tool_load_skill = {
    .name = "load_skill",
    .title = "Load skill",
    .description = "Read the instructions of one skill (a SKILL.md that the workspace or its user keeps for "
                   "models). Call it before a task that a listed skill covers; "
                   "open_current_workspace with include_skills lists them.",
    .args = args,
    .fields = fields,
    .hints = {.is_read_only = true, .is_idempotent = true},
    .run = run,
};
