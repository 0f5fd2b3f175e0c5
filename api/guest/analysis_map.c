#include "api/guest/analysis_map.h"
#include "api/guest/repo.h"
#include "controller/base/memory.h"
#include <string.h>
#include <strings.h>

#define MAX_DECLARATIONS 500
#define MAX_IMPORTERS 1000

void analysis_map_free(struct analysis_map *map)
{
    for (size_t i = 0; i < map->declaration_count; i++)
        free(map->declarations[i].path);
    for (size_t i = 0; i < map->importer_count; i++)
        free(map->importers[i].path);
    free(map->declarations);
    free(map->importers);
    json_decref(map->coverage);
    json_decref(map->cache);
    *map = (struct analysis_map){0};
}

static void add_declarations(struct analysis_map *map, const struct repo_file *file, const char *name)
{
    for (uint32_t i = 0; i < file->facts.symbol_count; i++) {
        const struct symbol *symbol = &file->facts.symbols[i];
        if (strcasecmp(symbol->name, name) != 0 || map->declaration_count == MAX_DECLARATIONS)
            continue;
        map->declarations =
            mem_realloc_array(map->declarations, map->declaration_count + 1, sizeof(struct declaration));
        map->declarations[map->declaration_count++] =
            (struct declaration){mem_strdup(file->path), symbol->line, repo_symbol_source(file)};
    }
}

// The file itself, or a header of its name beside it: who includes x.h uses what x.c declares.
static bool stands_for(const char *path, const char *declaring)
{
    if (strcmp(path, declaring) == 0)
        return true;
    const char *dot = strrchr(path, '.'), *other = strrchr(declaring, '.');
    size_t len = dot ? (size_t)(dot - path) : 0;
    return dot && other && dot[1] == 'h' && other[1] == 'c' && len == (size_t)(other - declaring) &&
           strncmp(path, declaring, len) == 0;
}

static bool is_declaring(const struct analysis_map *map, const char *path)
{
    for (size_t i = 0; i < map->declaration_count; i++)
        if (stands_for(path, map->declarations[i].path))
            return true;
    return false;
}

static void add_importers(struct analysis_map *map, const struct repo *repo)
{
    CLEANUP_FREE bool *is_target = mem_alloc(repo->count + 1);
    for (size_t i = 0; i < repo->count; i++)
        is_target[i] = is_declaring(map, repo->files[i].path);
    for (size_t i = 0; i < repo->relation_count && map->importer_count < MAX_IMPORTERS; i++) {
        const struct repo_relation *relation = &repo->relations[i];
        const char *path = repo->files[relation->from].path;
        if (!is_target[relation->to] || analysis_map_imports(map, path))
            continue;
        map->importers = mem_realloc_array(map->importers, map->importer_count + 1, sizeof(struct importer));
        map->importers[map->importer_count++] = (struct importer){mem_strdup(path)};
    }
}

int analysis_map_read(struct tool_call *call, const char *name, struct analysis_map *ret, struct error *err)
{
    CLEANUP_REPO const struct repo *repo = NULL;
    struct analysis_map map = {0};
    if (repo_get(call, &repo, err) < 0)
        return -1;
    for (size_t i = 0; i < repo->count; i++)
        add_declarations(&map, &repo->files[i], name);
    if (map.declaration_count)
        add_importers(&map, repo);
    map.coverage = repo_coverage(repo);
    map.cache = repo_cache(repo);
    *ret = map;
    return 0;
}

const struct declaration *analysis_map_find(const struct analysis_map *map, const char *path, size_t line)
{
    for (size_t i = 0; i < map->declaration_count; i++)
        if (map->declarations[i].line == line && strcmp(map->declarations[i].path, path) == 0)
            return &map->declarations[i];
    return NULL;
}

bool analysis_map_imports(const struct analysis_map *map, const char *path)
{
    for (size_t i = 0; i < map->importer_count; i++)
        if (strcmp(map->importers[i].path, path) == 0)
            return true;
    return false;
}
