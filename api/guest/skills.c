#include "api/guest/skills.h"
#include "api/guest/directory.h"
#include "controller/base/memory.h"
#include <ctype.h>
#include <dirent.h>
#include <linux/openat2.h>
#include <string.h>

#define MAX_HEAD_BYTES 16384 // front matter is at the start

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
    const struct place_of_skills *place;
    int base_fd;
    struct skills *skills;
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
        return len ? mem_strndup(value + is_quoted, len - 2 * is_quoted) : NULL;
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
    const char *dir_name = strrchr(dir_path, '/');
    char *name = front_matter_value(head, "name");
    if (!name)
        name = mem_strdup(dir_name ? dir_name + 1 : dir_path);
    struct skills *skills = scan->skills;
    if (is_known(skills, name)) {
        free(name);
        return;
    }
    skills->list = mem_realloc_array(skills->list, skills->count + 1, sizeof(struct skill));
    skills->list[skills->count++] = (struct skill){
        .name = name,
        .description = front_matter_value(head, "description"),
        .source = scan->place->source,
        .path = mem_format("%s/%s/SKILL.md", scan->place->is_global ? "~" : "$WORKSPACE", dir_path),
    };
}

static int open_in(const struct scan *scan, const char *path, int flags)
{
    // A workspace skill whose real file lies outside is not one; the user's own home may be linked together.
    uint64_t resolve = RESOLVE_NO_MAGICLINKS | (scan->place->is_global ? 0 : RESOLVE_BENEATH);
    return fs_openat2(scan->base_fd, path, flags | O_NONBLOCK | O_NOCTTY, 0, resolve);
}

static void look_for_skill(struct scan *scan, const char *dir_path)
{
    CLEANUP_FREE char *path = mem_format("%s/SKILL.md", dir_path);
    CLEANUP_CLOSE int fd = open_in(scan, path, O_RDONLY);
    struct stat meta;
    if (fd >= 0 && fstat(fd, &meta) == 0 && S_ISREG(meta.st_mode))
        add_skill(scan, dir_path, fd);
}

static void scan_directory(struct scan *scan, const char *dir_path, int depth)
{
    CLEANUP_CLOSE int fd = open_in(scan, dir_path, O_RDONLY | O_DIRECTORY);
    CLEANUP_DIRECTORY struct directory directory = {0};
    if (fd < 0 || directory_read(fd, false, &directory) < 0)
        return;
    look_for_skill(scan, dir_path);
    for (size_t i = 0;
         i < directory.count && depth < scan->place->max_depth && scan->skills->count < SKILLS_MAX; i++) {
        const struct directory_entry *entry = &directory.entries[i];
        if ((entry->type != DT_DIR && entry->type != DT_LNK) || strcmp(entry->name, "node_modules") == 0 ||
            strcmp(entry->name, ".git") == 0)
            continue;
        CLEANUP_FREE char *sub = mem_format("%s/%s", dir_path, entry->name);
        scan_directory(scan, sub, depth + 1);
    }
}

void skills_scan(const struct workspace *workspace, bool include_global, struct skills *ret)
{
    *ret = (struct skills){0};
    CLEANUP_CLOSE int home = open(workspace->home, O_PATH | O_DIRECTORY | O_CLOEXEC);
    for (size_t i = 0; i < ARRAY_LEN(places); i++) {
        if (places[i].is_global && (!include_global || home < 0))
            continue;
        struct scan scan = {&places[i], places[i].is_global ? home : workspace->root_fd, ret};
        scan_directory(&scan, places[i].dir, 0);
    }
}
