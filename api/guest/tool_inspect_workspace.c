// inspect_workspace: a map of the repository.
#include "api/guest/repo.h"
#include "api/guest/blocked.h"
#include "api/guest/workspace.h"
#include "controller/base/buffer.h"
#include "controller/base/memory.h"
#include <errno.h>
#include <string.h>

// Each list of the answer, as text, roughly: a client can hardly read more, and it has to fit into memory
// with the map.
#define MAX_FILES_BYTES (1536 * 1024)
#define MAX_SYMBOLS_BYTES (2 * 1024 * 1024)
#define MAX_RELATIONS_BYTES (1536 * 1024)
#define MAX_SHORT_BYTES (256 * 1024) // the others
#define MAX_LIST 2000                // entry points, important files, areas

static const struct tool_arg args[] = {
    {"path", ARG_STRING, "Only this file or directory."},
    {"max_files", ARG_INTEGER, "Most files to list.", .has_default = true, .default_number = 300, .min = 1,
     .max = 100000},
    {"include_symbols", ARG_BOOLEAN, "List functions, classes and types.", .has_default = true,
     .default_number = 1},
    {"include_relationships", ARG_BOOLEAN, "List which file imports which.", .has_default = true,
     .default_number = 1},
    {"max_symbols", ARG_INTEGER, "Most symbols to list.", .has_default = true, .default_number = 500,
     .min = 1, .max = 100000},
    {"max_relationships", ARG_INTEGER, "Most relationships to list.", .has_default = true,
     .default_number = 800, .min = 1, .max = 250000},
    {NULL},
};

static const struct tool_field area_fields[] = {
    {"path", FIELD_STRING}, {"role", FIELD_STRING}, {"files", FIELD_INTEGER}, {NULL}};
static const struct tool_field file_fields[] = {{"path", FIELD_STRING},        {"bytes", FIELD_INTEGER},
                                                {"modifiedMs", FIELD_NUMBER},  {"language", FIELD_STRING},
                                                {"role", FIELD_STRING},        {"generated", FIELD_BOOLEAN},
                                                {"entrypoint", FIELD_BOOLEAN}, {NULL}};
static const struct tool_field symbol_fields[] = {{"name", FIELD_STRING},
                                                  {"kind", FIELD_STRING},
                                                  {"path", FIELD_STRING},
                                                  {"line", FIELD_INTEGER},
                                                  {"exported", FIELD_BOOLEAN},
                                                  {"confidence", FIELD_STRING},
                                                  {NULL}};
static const struct tool_field relation_fields[] = {{"from", FIELD_STRING},   {"to", FIELD_STRING},
                                                    {"kind", FIELD_STRING},   {"confidence", FIELD_STRING},
                                                    {"source", FIELD_STRING}, {NULL}};
static const struct tool_field returned_fields[] = {
    {"files", FIELD_INTEGER}, {"symbols", FIELD_INTEGER}, {"relationships", FIELD_INTEGER}, {NULL}};
static const struct tool_field fields[] = {
    {"schema_version", FIELD_INTEGER},
    {"path", FIELD_STRING},
    {"languages", FIELD_STRINGS},
    {"project_types", FIELD_STRINGS},
    {"entrypoints", FIELD_STRINGS},
    {"important_files", FIELD_STRINGS},
    {"areas", FIELD_OBJECTS, .fields = area_fields},
    {"files", FIELD_OBJECTS, .fields = file_fields},
    {"symbols", FIELD_OBJECTS, .fields = symbol_fields},
    {"relationships", FIELD_OBJECTS, .fields = relation_fields},
    {"coverage", FIELD_OBJECT, .fields = repo_coverage_fields},
    {"warnings", FIELD_STRINGS},
    {"output_limited", FIELD_BOOLEAN},
    {"returned", FIELD_OBJECT, .fields = returned_fields},
    {"cache", FIELD_OBJECT, .fields = repo_cache_fields},
    {"symbol_source", FIELD_STRING},
    {NULL},
};

struct inspection {
    const struct repo *repo;
    const json_t *args;
    json_t *to, *strong, *built_in; // the two strings stand in thousands of entries
    char *scope;                    // "" for all, else a path without symlinks
    size_t cut_entries, cut_size;   // entries that found no room
};

static bool is_inside(const struct inspection *at, const char *path)
{
    size_t len = strlen(at->scope);
    return !len || (strncmp(path, at->scope, len) == 0 && (!path[len] || path[len] == '/'));
}

static bool is_asked(const struct inspection *at, const char *name)
{
    return json_get_bool(at->args, name, true);
}

struct bound {
    size_t entries, bytes; // that may still come
};

// Room for one entry more.
static bool has_room(struct inspection *at, struct bound *left, size_t bytes)
{
    if (!left->entries)
        at->cut_entries++;
    else if (left->bytes < bytes)
        at->cut_size++;
    if (!left->entries || left->bytes < bytes)
        return false;
    left->entries--;
    left->bytes -= bytes;
    return true;
}

static json_t *list_of(struct inspection *at, const char *name)
{
    json_t *list = json_array();
    json_object_set_new(at->to, name, list);
    return list;
}

// ---- languages, kinds of project
// -----------------------------------------------------------------------------------

static void set_languages(struct inspection *at)
{
    bool is_there[LANGUAGE_COUNT] = {0};
    json_t *list = list_of(at, "languages");
    for (size_t i = 0; i < at->repo->count; i++)
        is_there[at->repo->files[i].class.language] = true;
    for (size_t i = 0; i < LANGUAGE_COUNT; i++) // they are in the order of their names
        if (is_there[i] && i != LANGUAGE_UNKNOWN)
            json_array_append_new(list, json_string(language_names[i]));
}

struct project_mark {
    const char *type, *name;
    bool is_ending; // of a file's name
};

static bool has_mark(const struct repo *repo, const struct project_mark *mark)
{
    size_t mark_len = strlen(mark->name);
    for (size_t i = 0; i < repo->count; i++) {
        const char *slash = strrchr(repo->files[i].path, '/'),
                   *name = slash ? slash + 1 : repo->files[i].path;
        size_t len = strlen(name);
        if (mark->is_ending ? len > mark_len && strcmp(name + len - mark_len, mark->name) == 0
                            : strncmp(name, mark->name, mark_len) == 0 &&
                                  (!name[mark_len] || strcmp(mark->name, "build.gradle") == 0))
            return true;
    }
    return false;
}

static void set_project_types(struct inspection *at)
{
    static const struct project_mark marks[] = {
        {"node", "package.json", false},
        {"python", "pyproject.toml", false},
        {"python", "requirements.txt", false},
        {"go", "go.mod", false},
        {"rust", "Cargo.toml", false},
        {"swift", "Package.swift", false},
        {"jvm", "pom.xml", false},
        {"jvm", "build.gradle", false},
        {"dotnet", ".sln", true},
        {"dotnet", ".csproj", true},
        {"native", "CMakeLists.txt", false},
        {"native", "Makefile", false},
    };
    json_t *list = list_of(at, "project_types");
    const char *last = "";
    for (size_t i = 0; i < ARRAY_LEN(marks); i++) {
        if (strcmp(last, marks[i].type) == 0 || !has_mark(at->repo, &marks[i]))
            continue;
        last = marks[i].type;
        json_array_append_new(list, json_string(last));
    }
}

// ---- files
// ---------------------------------------------------------------------------------------------------------

static void add_path(struct inspection *at, json_t *list, struct bound *left, const char *path)
{
    if (!left->entries)
        at->cut_size++;
    else if (has_room(at, left, strlen(path) + 8))
        json_array_append_new(list, json_from_text(path));
}

static void set_paths(struct inspection *at)
{
    json_t *entrypoints = list_of(at, "entrypoints"), *important = list_of(at, "important_files");
    struct bound bounds[] = {{MAX_LIST, MAX_SHORT_BYTES}, {MAX_LIST, MAX_SHORT_BYTES}};
    for (size_t i = 0; i < at->repo->count; i++) {
        const struct repo_file *file = &at->repo->files[i];
        if (file->class.is_entrypoint && is_inside(at, file->path))
            add_path(at, entrypoints, &bounds[0], file->path);
        if (file->class.is_important && is_inside(at, file->path))
            add_path(at, important, &bounds[1], file->path);
    }
}

static void set_files(struct inspection *at)
{
    json_t *list = list_of(at, "files");
    struct bound left = {(size_t)json_get_int(at->args, "max_files", 300), MAX_FILES_BYTES};
    for (size_t i = 0; i < at->repo->count; i++) {
        const struct repo_file *file = &at->repo->files[i];
        if (!is_inside(at, file->path) || !has_room(at, &left, strlen(file->path) + 150))
            continue;
        json_t *entry = json_object();
        json_set_text(entry, "path", file->path);
        json_object_set_new(entry, "bytes", json_integer(file->size));
        json_object_set_new(entry, "modifiedMs", json_real((double)file->mtime_ns / 1e6));
        json_set_text(entry, "language", language_names[file->class.language]);
        json_set_text(entry, "role", file_role_names[file->class.role]);
        json_object_set_new(entry, "generated", json_boolean(file->class.role == ROLE_GENERATED));
        json_object_set_new(entry, "entrypoint", json_boolean(file->class.is_entrypoint));
        json_array_append_new(list, entry);
    }
}

struct area {
    const char *path; // not terminated
    size_t len, files, order;
    enum file_role role;
};

static int by_files(const void *a, const void *b)
{
    const struct area *x = a, *y = b;
    if (x->files != y->files)
        return x->files > y->files ? -1 : 1;
    return x->order < y->order ? -1 : 1;
}

static bool is_shown_area(const struct inspection *at, const struct area *area)
{
    size_t len = strcspn(at->scope, "/");
    return !len || (area->len == 1 && *area->path == '.') ||
           (area->len == len && memcmp(area->path, at->scope, len) == 0);
}

// Files are sorted by path, so those of an area stand together; those of the root do not.
static struct area *find_area(struct area *areas, size_t *count, const char *path)
{
    size_t len = strcspn(path, "/");
    bool is_root = !path[len];
    struct area *area = is_root ? &areas[0] : &areas[*count - 1];
    if (is_root || (*count > 1 && area->len == len && memcmp(area->path, path, len) == 0))
        return area;
    area = &areas[(*count)++];
    *area = (struct area){.path = path, .len = len, .order = *count, .role = ROLE_OTHER};
    return area;
}

static void set_areas(struct inspection *at)
{
    json_t *list = list_of(at, "areas");
    CLEANUP_FREE struct area *areas = mem_realloc_array(NULL, at->repo->count + 2, sizeof(*areas));
    struct bound left = {SIZE_MAX, MAX_SHORT_BYTES};
    size_t count = 1;
    areas[0] = (struct area){.path = ".", .len = 1, .role = ROLE_OTHER};
    for (size_t i = 0; i < at->repo->count; i++) {
        struct area *area = find_area(areas, &count, at->repo->files[i].path);
        if (area->role == ROLE_OTHER)
            area->role = at->repo->files[i].class.role;
        area->files++;
    }
    qsort(areas, count, sizeof(*areas), by_files);
    for (size_t i = 0; i < count; i++) {
        if (!areas[i].files || !is_shown_area(at, &areas[i]) || !has_room(at, &left, areas[i].len + 60))
            continue;
        json_t *entry = json_object();
        json_object_set_new(entry, "path", json_from_bytes(areas[i].path, areas[i].len));
        json_set_text(entry, "role", file_role_names[areas[i].role]);
        json_object_set_new(entry, "files", json_integer((json_int_t)areas[i].files));
        json_array_append_new(list, entry);
    }
}

// ---- symbols and relationships
// -------------------------------------------------------------------------------------

static void add_symbols(struct inspection *at, json_t *list, struct bound *left, const struct repo_file *file)
{
    CLEANUP_JSON json_t *path = NULL; // one string for all
    for (uint32_t i = 0; i < file->facts.symbol_count; i++) {
        const struct symbol *symbol = &file->facts.symbols[i];
        if (!has_room(at, left, strlen(file->path) + strlen(symbol->name) + 100))
            continue;
        if (!path)
            path = json_from_text(file->path);
        json_t *entry = json_object();
        json_object_set_new(entry, "name", json_from_text(symbol->name));
        json_set_text(entry, "kind", symbol_kind_names[symbol->kind]);
        json_object_set(entry, "path", path);
        json_object_set_new(entry, "line", json_integer(symbol->line));
        json_object_set_new(entry, "exported", json_boolean(symbol->is_exported));
        json_object_set(entry, "confidence", at->strong);
        json_array_append_new(list, entry);
    }
}

static void set_symbols(struct inspection *at)
{
    json_t *list = list_of(at, "symbols");
    struct bound left = {(size_t)json_get_int(at->args, "max_symbols", 500), MAX_SYMBOLS_BYTES};
    for (size_t i = 0; i < at->repo->count && is_asked(at, "include_symbols"); i++)
        if (is_inside(at, at->repo->files[i].path))
            add_symbols(at, list, &left, &at->repo->files[i]);
}

static void set_relations(struct inspection *at)
{
    json_t *list = list_of(at, "relationships");
    struct bound left = {(size_t)json_get_int(at->args, "max_relationships", 800), MAX_RELATIONS_BYTES};
    for (size_t i = 0; i < at->repo->relation_count && is_asked(at, "include_relationships"); i++) {
        const struct repo_relation *relation = &at->repo->relations[i];
        const char *from = at->repo->files[relation->from].path, *to = at->repo->files[relation->to].path;
        if ((!is_inside(at, from) && !is_inside(at, to)) ||
            !has_room(at, &left, strlen(from) + strlen(to) + 110))
            continue;
        json_t *entry = json_object();
        json_set_text(entry, "from", from);
        json_set_text(entry, "to", to);
        json_set_text(entry, "kind", relation->is_test ? "tests" : "imports");
        json_object_set(entry, "confidence", at->strong);
        json_object_set(entry, "source", at->built_in);
        json_array_append_new(list, entry);
    }
}

// ---- the whole
// -----------------------------------------------------------------------------------------------------

static json_int_t size_of(const struct inspection *at, const char *name)
{
    return (json_int_t)json_array_size(json_object_get(at->to, name));
}

static void set_limits(struct inspection *at)
{
    json_t *coverage = repo_coverage(at->repo), *warnings = json_copy(json_object_get(coverage, "warnings"));
    if (at->cut_entries)
        json_array_append_new(
            warnings, json_string("the lists were cut at max_files, max_symbols or max_relationships: "
                                  "raise them, or narrow with path"));
    if (at->cut_size)
        json_array_append_new(warnings,
                              json_string("the answer is as large as one may be: narrow with path"));
    json_object_set_new(at->to, "coverage", coverage);
    json_object_set_new(at->to, "warnings", warnings);
    json_object_set_new(at->to, "output_limited", json_boolean(at->cut_entries || at->cut_size));
    json_object_set_new(at->to, "returned",
                        json_pack("{s:I s:I s:I}", "files", size_of(at, "files"), "symbols",
                                  size_of(at, "symbols"), "relationships", size_of(at, "relationships")));
    json_object_set_new(at->to, "cache", repo_cache(at->repo));
    json_set_text(at->to, "symbol_source", at->repo->is_by_ctags ? "universal-ctags" : "built-in scanner");
}

static void append_list(struct buffer *text, const char *label, const json_t *list, size_t max)
{
    size_t i;
    json_t *item;
    buffer_format(text, "%s:", label);
    json_array_foreach(list, i, item) if (i < max)
        buffer_format(text, "%s %s", i ? "," : "", json_string_value(item));
    buffer_append_text(text, !json_array_size(list)        ? " none\n"
                             : json_array_size(list) > max ? ", …\n"
                                                           : "\n");
}

static void set_text(struct tool_call *call, struct inspection *at)
{
    struct buffer text = BUFFER_INIT(1024 * 1024);
    size_t i;
    json_t *item;
    buffer_format(&text, "# Workspace map\nPath: %s\n", json_get_text(at->to, "path"));
    append_list(&text, "Languages", json_object_get(at->to, "languages"), 20);
    append_list(&text, "Project types", json_object_get(at->to, "project_types"), 20);
    append_list(&text, "Entry points", json_object_get(at->to, "entrypoints"), 20);
    append_list(&text, "Important files", json_object_get(at->to, "important_files"), 20);
    buffer_append_text(&text, "\nAreas:\n");
    json_array_foreach(json_object_get(at->to, "areas"), i, item) if (i < 40)
        buffer_format(&text, "- %s: %s, %lld files\n", json_get_text(item, "path"),
                      json_get_text(item, "role"), (long long)json_get_int(item, "files", 0));
    buffer_format(&text, "\nListed: %lld files, %lld symbols (%s), %lld relationships of %zu, %zu and %zu.\n",
                  (long long)size_of(at, "files"), (long long)size_of(at, "symbols"),
                  json_get_text(at->to, "symbol_source"), (long long)size_of(at, "relationships"),
                  at->repo->count, at->repo->symbol_count, at->repo->relation_count);
    json_array_foreach(json_object_get(at->to, "warnings"), i, item)
        buffer_format(&text, "Warning: %s\n", json_string_value(item));
    call->text_len = text.len;
    call->text = buffer_take_string(&text);
}

// A path that is not there is no error: the lists are empty then.
static int read_scope(struct tool_call *call, char **ret, struct error *err)
{
    const json_t *given = json_object_get(call->args, "path");
    CLEANUP_FREE char *path = NULL;
    CLEANUP_FREE char *real = NULL;
    if (given &&
        workspace_fold(call->workspace, json_string_value(given), json_string_length(given), &path, err) < 0)
        return -1;
    if (path && blocked_path(path))
        return guest_tool_fail(err, NULL, "Path is blocked by safety rules: %s", path);
    int result = path ? workspace_resolve(call->workspace, path, &real) : 0;
    if (result == EXDEV)
        return guest_tool_fail(err, NULL, "Path resolves outside workspace root through a symlink: %s", path);
    if (!real)
        real = mem_strdup(path ? path : ".");
    *ret = strcmp(real, ".") == 0 ? mem_strdup("") : TAKE_PTR(real);
    return 0;
}

static void free_inspection(struct inspection *at)
{
    free(at->scope);
    json_decref(at->strong);
    json_decref(at->built_in);
}

static int run(struct tool_call *call, struct error *err)
{
    CLEANUP(free_inspection)
    struct inspection at = {.args = call->args,
                            .to = call->structured,
                            .strong = json_string("strong"),
                            .built_in = json_string("built-in import extraction")};
    CLEANUP_REPO const struct repo *repo = NULL;
    if (read_scope(call, &at.scope, err) < 0 || repo_get(call, &repo, err) < 0)
        return -1;
    at.repo = repo;
    json_object_set_new(at.to, "schema_version", json_integer(1));
    const char *given = json_get_text(call->args, "path");
    json_set_text(at.to, "path", given ? given : ".");
    set_languages(&at);
    set_project_types(&at);
    set_paths(&at);
    set_areas(&at);
    set_files(&at);
    set_symbols(&at);
    set_relations(&at);
    set_limits(&at);
    set_text(call, &at);
    return 0;
}

const struct tool guest_tool_inspect_workspace = {
    .name = "inspect_workspace",
    .title = "Inspect workspace",
    .description =
        "Get a map of the repository: languages, kinds of project, entry points, areas, files with their "
        "roles, "
        "declared symbols and which file imports which. Use it once on an unknown code base, or with path "
        "before a larger change, instead of reading many files. It says what its limits left out.",
    .args = args,
    .fields = fields,
    .hints = {.is_read_only = true, .is_idempotent = true},
    .run = run,
};
