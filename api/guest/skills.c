#include "api/guest/skills.h"
#include "api/guest/directory.h"
#include "controller/base/memory.h"
#include "controller/base/time.h"
#include "controller/base/utf8.h"
#include <ctype.h>
#include <dirent.h>
#include <linux/openat2.h>
#include <string.h>

#define MAX_HEAD_BYTES 16384  // front matter is at the start
#define MAX_DIRECTORIES 20000 // linked directories are followed: a few links can make any number of paths
#define MAX_SCAN_MS 10000
#define WORKSPACE_MARK "$WORKSPACE"
#define HOME_MARK "~"

struct place_of_skills {
    const char *dir, *source;
    bool is_global; // below home, else below the root
    int max_depth;
};

// In order of precedence.
static const struct place_of_skills places[] = {
    {".codex/skills", "workspace", false, 3}, {".agents/skills", "workspace", false, 3},
    {"skills", "workspace", false, 3},        {".codex/skills", "user", true, 3},
    {".agents/skills", "user", true, 3},      {".codex/plugins/cache", "plugin", true, 9},
};

struct scan {
    const struct skills_options *options;
    const struct place_of_skills *place;
    int base_fd;
    struct skills *skills;
    size_t files, directories;
    int64_t deadline_ms;
};

void skills_free(struct skills *skills)
{
    for (size_t i = 0; i < skills->count; i++) {
        free(skills->list[i].name);
        free(skills->list[i].description);
        free(skills->list[i].path);
    }
    free(skills->list);
    *skills = (struct skills){0};
}

// The value of "key:" in the front matter between the two "---" lines, quotes stripped. NULL if absent.
static char *front_matter_value(const char *text, const char *key)
{
    size_t key_len = strlen(key);
    if (strncmp(text, "---", 3) != 0)
        return NULL;
    for (const char *line = strchr(text, '\n'); line && strncmp(line + 1, "---", 3) != 0;
         line = strchr(line + 1, '\n')) {
        if (strncmp(line + 1, key, key_len) != 0 || line[1 + key_len] != ':')
            continue;
        const char *value = line + 2 + key_len;
        value += strspn(value, " \t");
        size_t len = strcspn(value, "\r\n");
        while (len && isspace((unsigned char)value[len - 1]))
            len--;
        bool is_quoted = len >= 2 && (value[0] == '"' || value[0] == '\'') && value[len - 1] == value[0];
        return len ? utf8_to_valid(value + is_quoted, len - 2 * is_quoted, NULL) : NULL;
    }
    return NULL;
}

static bool is_known(const struct skills *skills, const char *name)
{
    for (size_t i = 0; i < skills->count; i++)
        if (strcmp(skills->list[i].name, name) == 0)
            return true;
    return false;
}

static void add_skill(struct scan *scan, const char *dir_path, int fd)
{
    char head[MAX_HEAD_BYTES + 1];
    ssize_t n = pread(fd, head, MAX_HEAD_BYTES, 0);
    head[n > 0 ? n : 0] = '\0';
    const char *slash = strrchr(dir_path, '/'), *own_name = slash ? slash + 1 : dir_path;
    char *name = front_matter_value(head, "name");
    if (!name)
        name = utf8_to_valid(own_name, strlen(own_name), NULL);
    struct skills *skills = scan->skills;
    if (!scan->options->keep_shadowed && is_known(skills, name)) {
        free(name);
        return;
    }
    skills->list = mem_realloc_array(skills->list, skills->count + 1, sizeof(struct skill));
    skills->list[skills->count++] = (struct skill){
        .name = name,
        .description = front_matter_value(head, "description"),
        .source = scan->place->source,
        .path = mem_format("%s/%s/SKILL.md", scan->place->is_global ? HOME_MARK : WORKSPACE_MARK, dir_path),
        .is_global = scan->place->is_global,
    };
}

// A workspace skill whose real file lies outside is not one; the user's own home may be linked together.
static int open_in(int base_fd, bool is_global, const char *path, int flags)
{
    uint64_t resolve = RESOLVE_NO_MAGICLINKS | (is_global ? 0 : RESOLVE_BENEATH);
    return fs_openat2(base_fd, path, flags | O_NONBLOCK | O_NOCTTY, 0, resolve);
}

static int open_home(const struct workspace *workspace)
{
    return open(workspace->home, O_PATH | O_DIRECTORY | O_CLOEXEC);
}

int skills_open(const struct workspace *workspace, const struct skill *skill)
{
    if (!skill->is_global)
        return open_in(workspace->root_fd, false, skill->path + strlen(WORKSPACE_MARK "/"), O_RDONLY);
    CLEANUP_CLOSE int home = open_home(workspace);
    return home < 0 ? -1 : open_in(home, true, skill->path + strlen(HOME_MARK "/"), O_RDONLY);
}

json_t *skills_entry(const struct skill *skill)
{
    json_t *entry = json_object();
    json_set_text(entry, "name", skill->name);
    json_set_text(entry, "description", skill->description);
    json_set_text(entry, "source", skill->source);
    json_set_text(entry, "path", skill->path);
    return entry;
}

// False when the scan has to end: then there may be more.
static bool has_budget(struct scan *scan)
{
    if (scan->files < scan->options->max_files && scan->directories < MAX_DIRECTORIES &&
        boot_time_now().ms < scan->deadline_ms && !atomic_load(scan->options->is_cancelled))
        return true;
    scan->skills->is_cut = true;
    return false;
}

static void look_for_skill(struct scan *scan, const char *dir_path)
{
    CLEANUP_FREE char *path = mem_format("%s/SKILL.md", dir_path);
    CLEANUP_CLOSE int fd = open_in(scan->base_fd, scan->place->is_global, path, O_RDONLY);
    struct stat meta;
    if (fd < 0 || fstat(fd, &meta) < 0 || !S_ISREG(meta.st_mode))
        return;
    scan->files++;
    add_skill(scan, dir_path, fd);
}

static void scan_directory(struct scan *scan, const char *dir_path, int depth)
{
    CLEANUP_CLOSE int fd = open_in(scan->base_fd, scan->place->is_global, dir_path, O_RDONLY | O_DIRECTORY);
    CLEANUP_DIRECTORY struct directory directory = {0};
    if (fd < 0 || directory_read(fd, false, &directory) < 0)
        return;
    scan->directories++;
    look_for_skill(scan, dir_path);
    for (size_t i = 0; i < directory.count && depth < scan->place->max_depth; i++) {
        const struct directory_entry *entry = &directory.entries[i];
        if ((entry->type != DT_DIR && entry->type != DT_LNK) || strcmp(entry->name, "node_modules") == 0 ||
            strcmp(entry->name, ".git") == 0)
            continue;
        if (!has_budget(scan))
            return;
        CLEANUP_FREE char *sub = mem_format("%s/%s", dir_path, entry->name);
        scan_directory(scan, sub, depth + 1);
    }
}

void skills_scan(const struct workspace *workspace, const struct skills_options *options, struct skills *ret)
{
    *ret = (struct skills){0};
    CLEANUP_CLOSE int home = open_home(workspace);
    struct scan scan = {.options = options, .skills = ret, .deadline_ms = boot_time_now().ms + MAX_SCAN_MS};
    for (size_t i = 0; i < ARRAY_LEN(places); i++) {
        if (places[i].is_global && (!options->include_global || home < 0))
            continue;
        if (!has_budget(&scan))
            return;
        scan.place = &places[i];
        scan.base_fd = places[i].is_global ? home : workspace->root_fd;
        scan_directory(&scan, places[i].dir, 0);
    }
}

const struct tool_field skill_entry_fields[] = {{"name", FIELD_STRING},
                                                {"description", FIELD_STRING, .is_optional = true},
                                                {"source", FIELD_STRING},
                                                {"path", FIELD_STRING},
                                                {NULL}};
