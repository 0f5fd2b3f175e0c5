// What the repository map says about a name: where it is declared, and which files import those that declare
// it.
#pragma once
#include "api/guest/tool.h"

struct declaration {
    char *path;
    size_t line;
    const char *source; // who found it
};
struct importer {
    char *path;
};

// A copy, so that the map is free for others while files are searched.
struct analysis_map {
    struct declaration *declarations; // any case, in the map's order
    size_t declaration_count;
    struct importer *importers; // of the files of the declarations, and of headers of their name
    size_t importer_count;
    json_t *coverage, *cache; // as the tools show them
};

int analysis_map_read(struct tool_call *call, const char *name, struct analysis_map *ret, struct error *err);
void analysis_map_free(struct analysis_map *map);
const struct declaration *analysis_map_find(const struct analysis_map *map, const char *path, size_t line);
bool analysis_map_imports(const struct analysis_map *map, const char *path);
