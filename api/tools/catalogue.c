#ifdef CHAT2SHELL_CONFORMANCE_TOOLS
#include "api/tools/conformance/conformance.h"
#endif
#include "api/tools/schema_check.h"
#include "api/tools/tools.h"
#include "controller/base/memory.h"
#include "controller/embedded.h"
#include <sha2.h>
#include <string.h>

static json_t *read_entry(const char *tool, struct error *err)
{
    CLEANUP_FREE char *name = mem_format("tools/%s.json", tool);
    const struct embedded_file *file = embedded_find(name);
    json_t *entry = NULL;
    if (!file) {
        error_set(err, ERROR_INTERNAL, "build it again from a clean tree", "the tool catalogue lacks %s",
                  tool);
        return NULL;
    }
    if (json_parse(file->data, file->size, &entry, err) < 0) {
        error_context(err, "tool catalogue, %s", name);
        return NULL;
    }
    return entry;
}

static int check_entry(const json_t *entry, const char *tool, struct error *err)
{
    static const char *const schemas[] = {"inputSchema", "outputSchema"};
    const char *name = json_get_text(entry, "name");
    if (!name || strcmp(name, tool) != 0)
        return error_set(err, ERROR_INTERNAL, NULL, "tool catalogue: the entry of %s has another name", tool);
    for (size_t i = 0; i < ARRAY_LEN(schemas); i++) {
        const json_t *schema = json_object_get(entry, schemas[i]);
        if (!json_is_object(schema))
            return error_set(err, ERROR_INTERNAL, NULL, "tool catalogue: %s has no %s", tool, schemas[i]);
        if (schema_check_keywords(schema, err) < 0)
            return error_context(err, "tool catalogue: %s of %s", schemas[i], tool);
    }
    return 0;
}

static int load_entries(struct catalogue *catalogue, struct error *err)
{
    json_t *list = json_object_get(catalogue->list, "tools");
    for (size_t i = 0; i < tool_count; i++) {
        CLEANUP_JSON json_t *entry = read_entry(tools[i].name, err);
        if (!entry || check_entry(entry, tools[i].name, err) < 0)
            return -1;
        json_array_append(list, entry);
        json_object_set(catalogue->entries, tools[i].name, entry);
    }
#ifdef CHAT2SHELL_CONFORMANCE_TOOLS
    return conformance_extend(catalogue, err);
#else
    return 0;
#endif
}

int catalogue_load(struct catalogue *ret, struct error *err)
{
    struct catalogue catalogue = {.entries = json_object(), .list = json_pack("{s:[]}", "tools")};
    if (load_entries(&catalogue, err) < 0) {
        catalogue_free(&catalogue);
        return -1;
    }
    CLEANUP_FREE char *text = json_to_text(json_object_get(catalogue.list, "tools"));
    SHA256Data((const uint8_t *)text, strlen(text), catalogue.hash);
    *ret = catalogue;
    return 0;
}

void catalogue_free(struct catalogue *catalogue)
{
    json_decref(catalogue->entries);
    json_decref(catalogue->list);
    *catalogue = (struct catalogue){0};
}

static const json_t *schema_of(const struct catalogue *catalogue, const char *tool, const char *which)
{
    return json_object_get(json_object_get(catalogue->entries, tool), which);
}

int catalogue_check(const struct catalogue *catalogue, const char *tool, json_t *arguments, struct error *err)
{
    const json_t *schema = schema_of(catalogue, tool, "inputSchema");
    const json_t *properties = json_object_get(schema, "properties");
    if (json_object_get(arguments, "workspace_id") && json_object_get(properties, "sandbox_id"))
        return error_set(err, ERROR_INVALID, "leave it out: sandbox_id alone says where to work",
                         "workspace_id is internal to the sandbox");
    return schema_check(schema, arguments, SCHEMA_ARGUMENTS, err);
}

int catalogue_fit_result(const struct catalogue *catalogue, const char *tool, json_t *structured, struct error *err)
{
    return schema_check(schema_of(catalogue, tool, "outputSchema"), structured, SCHEMA_RESULT, err);
}
