// Which file imports which: the imports as written, resolved to files of the map. What leads to none (a
// package, a system header) is no relationship.
#include "api/guest/repo_internal.h"
#include "controller/base/buffer.h"
#include "controller/base/cleanup.h"
#include "controller/base/memory.h"
#include <limits.h>
#include <stdlib.h>
#include <string.h>

struct relating {
    struct repo *repo;
    const struct repo_file *from;
    struct buffer path; // at work
    size_t room;
};

// path = dir (of `of`, without its last part) and target, "." and ".." folded. False if it leads out or is
// too long.
static bool join(struct buffer *path, const char *of, const char *target)
{
    const char *slash = of ? strrchr(of, '/') : NULL;
    path->len = 0;
    path->is_over = false;
    if (slash)
        buffer_append(path, of, (size_t)(slash - of));
    for (const char *part = target; *part;) {
        size_t len = strcspn(part, "/");
        if (len == 2 && memcmp(part, "..", 2) == 0) {
            if (!path->len)
                return false;
            const char *last = memrchr(path->data, '/', path->len);
            path->len = last ? (size_t)(last - path->data) : 0;
        } else if (len && !(len == 1 && *part == '.')) {
            if (path->len)
                buffer_append_char(path, '/');
            buffer_append(path, part, len);
        }
        part += len + (part[len] == '/');
    }
    return !path->is_over;
}

// Tries the path with each ending; NULL-terminated.
static const struct repo_file *find_with(struct relating *at, const char *const *endings)
{
    size_t len = at->path.len;
    for (; *endings; endings++) {
        at->path.len = len;
        if (buffer_append_text(&at->path, *endings) < 0)
            continue;
        const struct repo_file *file = repo_find(at->repo, buffer_text(&at->path));
        if (file)
            return file;
    }
    at->path.len = len;
    return NULL;
}

static const struct repo_file *find_script(struct relating *at, const char *target)
{
    static const char *const endings[] = {"",           ".ts",        ".tsx",      ".mts",       ".cts",
                                          ".js",        ".jsx",       ".mjs",      ".cjs",       ".json",
                                          "/index.ts",  "/index.tsx", "/index.js", "/index.jsx", "/index.mjs",
                                          "/index.cjs", NULL};
    static const char *const typed[] = {".ts", ".tsx", ".mts", NULL}; // './x.js' names what x.ts becomes
    if (!join(&at->path, at->from->path, target))
        return NULL;
    const struct repo_file *file = find_with(at, endings);
    if (!file && at->path.len > 3 && memcmp(at->path.data + at->path.len - 3, ".js", 3) == 0) {
        at->path.len -= 3;
        file = find_with(at, typed);
    }
    return file;
}

// Beside the file, else from the root or its usual folders of headers.
static const struct repo_file *find_beside_or_below(struct relating *at, const char *target,
                                                    const char *const *tops)
{
    static const char *const plain[] = {"", NULL};
    const struct repo_file *file = join(&at->path, at->from->path, target) ? find_with(at, plain) : NULL;
    for (; !file && *tops; tops++)
        file = join(&at->path, *tops, target) ? find_with(at, plain) : NULL;
    return file;
}

static const struct repo_file *find_c(struct relating *at, const char *target)
{
    static const char *const tops[] = {"x", "include/x", "src/x", NULL};
    return find_beside_or_below(at, target, tops);
}

static const struct repo_file *find_shell(struct relating *at, const char *target)
{
    static const char *const tops[] = {"x", NULL};
    return find_beside_or_below(at, target, tops);
}

static const struct repo_file *find_python(struct relating *at, const char *target)
{
    static const char *const endings[] = {".py", "/__init__.py", NULL};
    size_t dots = strspn(target, ".");
    CLEANUP(buffer_free) struct buffer path = BUFFER_INIT(PATH_MAX);
    for (size_t i = 1; i < dots; i++)
        buffer_append_text(&path, "../");
    for (const char *c = target + dots; *c; c++)
        buffer_append_char(&path, *c == '.' ? '/' : *c);
    const char *relative = buffer_text(&path);
    const struct repo_file *file = NULL;
    if (join(&at->path, at->from->path, relative))
        file = find_with(at, endings); // of the package, or a script's neighbour
    if (!file && !dots && join(&at->path, NULL, relative))
        file = find_with(at, endings);
    return file;
}

// "mod x;" in lib.rs, main.rs or mod.rs is x.rs beside it; in y.rs it is y/x.rs.
static const struct repo_file *find_rust(struct relating *at, const char *target)
{
    static const char *const endings[] = {".rs", "/mod.rs", NULL};
    const char *slash = strrchr(at->from->path, '/'), *name = slash ? slash + 1 : at->from->path;
    const struct repo_file *file = join(&at->path, at->from->path, target) ? find_with(at, endings) : NULL;
    if (file)
        return file;
    CLEANUP_FREE char *inner = mem_format("%.*s/%s", (int)strcspn(name, "."), name, target);
    return join(&at->path, at->from->path, inner) ? find_with(at, endings) : NULL;
}

static const struct repo_file *resolve(struct relating *at, const char *target)
{
    static const struct repo_file *(*const finders[LANGUAGE_COUNT])(struct relating * at,
                                                                    const char *target) = {
        [LANGUAGE_JAVASCRIPT] = find_script,
        [LANGUAGE_TYPESCRIPT] = find_script,
        [LANGUAGE_C] = find_c,
        [LANGUAGE_CPP] = find_c,
        [LANGUAGE_PYTHON] = find_python,
        [LANGUAGE_RUST] = find_rust,
        [LANGUAGE_SHELL] = find_shell,
    };
    enum language language = at->from->class.language;
    return finders[language] ? finders[language](at, target) : NULL;
}

static bool is_known(const struct repo *repo, size_t first, uint32_t to)
{
    for (size_t i = first; i < repo->relation_count; i++)
        if (repo->relations[i].to == to)
            return true;
    return false;
}

static void relate_file(struct relating *at)
{
    struct repo *repo = at->repo;
    const struct facts *facts = &at->from->facts;
    size_t first = repo->relation_count;
    for (uint32_t i = 0; i < facts->import_count && repo->relation_count < REPO_MAX_RELATIONS; i++) {
        const struct repo_file *to = resolve(at, facts->imports[i]);
        if (!to || to == at->from || is_known(repo, first, (uint32_t)(to - repo->files)))
            continue;
        if (repo->relation_count == at->room) {
            at->room = at->room ? 2 * at->room : 256;
            repo->relations = mem_realloc_array(repo->relations, at->room, sizeof(struct repo_relation));
        }
        repo->relations[repo->relation_count++] =
            (struct repo_relation){(uint32_t)(at->from - repo->files), (uint32_t)(to - repo->files),
                                   at->from->class.role == ROLE_TEST};
    }
}

void repo_relate(struct repo *repo)
{
    struct relating at = {.repo = repo, .path = BUFFER_INIT(PATH_MAX)};
    for (size_t i = 0; i < repo->count; i++) {
        at.from = &repo->files[i];
        relate_file(&at);
    }
    if (repo->relation_count == REPO_MAX_RELATIONS) {
        repo->is_truncated = true;
        repo_warn(repo, "only the first %d relationships were kept", REPO_MAX_RELATIONS);
    }
    buffer_free(&at.path);
}
