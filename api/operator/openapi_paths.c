#include "api/operator/openapi_paths.h"
#include "controller/base/memory.h"
#include <string.h>

#define META "#/components/schemas/io.k8s.apimachinery.pkg.apis.meta.v1."

// ---- query arguments
static const struct parameter {
    const char *name, *type, *doc;
} parameters[] = {
    {"dryRun", "string", "All: say what would happen, and store nothing."},
    {"fieldManager", "string", "Who writes, as managedFields remembers it."},
    {"fieldValidation", "string",
     "Strict (the default here): unknown and duplicate fields are an error that names them. Warn, Ignore: "
     "they are dropped."},
    {"force", "boolean", "Server-side apply only: take over fields that other managers set."},
    {"labelSelector", "string", "Choose by labels: app=web,tier!=test,env in (dev,stage),owner,!legacy."},
    {"fieldSelector", "string", "Choose by fields: metadata.name=dev,status.phase=running."},
    {"limit", "integer", "No more objects than this; the answer has a continue token for the others."},
    {"continue", "string", "Token of an earlier answer: go on from there."},
    {"resourceVersion", "string", "Version that the answer must have, or that a watch begins at."},
    {"resourceVersionMatch", "string", "Exact or NotOlderThan."},
    {"watch", "boolean", "Stream changes instead of listing."},
    {"allowWatchBookmarks", "boolean", "Send the position of a quiet watch about once a minute."},
    {"sendInitialEvents", "boolean", "Begin a watch with the state as it is, ended by a bookmark."},
    {"timeoutSeconds", "integer", "End a watch after so long."},
};
enum { // rows of `parameters`, as sets
    WRITING = 1 << 0 | 1 << 1 | 1 << 2,
    PATCHING = WRITING | 1 << 3,
    CHOOSING = 1 << 4 | 1 << 5,
    LISTING = CHOOSING | 0x3fc0,
    DELETING = 1 << 0,
};

static json_t *parameter_list(unsigned set)
{
    json_t *list = json_array();
    for (size_t i = 0; i < ARRAY_LEN(parameters); i++)
        if (set & 1u << i)
            json_array_append_new(list, json_pack("{s:s, s:s, s:s, s:{s:s, s:b}}", "name", parameters[i].name,
                                                  "in", "query", "description", parameters[i].doc, "schema",
                                                  "type", parameters[i].type, "uniqueItems", 1));
    return list;
}

// ---- operations
enum body { NO_BODY, OBJECT_BODY, PATCH_BODY, DELETE_BODY };
static const struct operation_row {
    const char *verb, *method, *action, *word; // word: in operationId
    bool is_of_collection;
    unsigned parameters;
    enum body body;
    int status;
} rows[] = {
    {"list", "get", "list", "list", true, LISTING, NO_BODY, 200},
    {"create", "post", "post", "create", true, WRITING, OBJECT_BODY, 201},
    {"deletecollection", "delete", "deletecollection", "deletecollection", true, LISTING | DELETING,
     DELETE_BODY, 200},
    {"get", "get", "get", "read", false, 0, NO_BODY, 200},
    {"update", "put", "put", "replace", false, WRITING, OBJECT_BODY, 200},
    {"patch", "patch", "patch", "patch", false, PATCHING, PATCH_BODY, 200},
    {"delete", "delete", "delete", "delete", false, DELETING, DELETE_BODY, 200},
};

static char *schema_path(const struct api_group *group, const char *kind)
{
    if (strcmp(group->name, "chat2shell.dev") == 0)
        return mem_format("#/components/schemas/" OPENAPI_OWN_PREFIX "%s", kind);
    return mem_format("#/components/schemas/io.k8s.api.%s.v1.%s", *group->name ? "authorization" : "core",
                      kind);
}

static json_t *content_of(const char *media, const char *schema)
{
    return json_pack("{s:{s:{s:s}}}", media, "schema", "$ref", schema);
}

static json_t *body_of(const struct operation_row *row, const char *schema)
{
    static const char *const patch_media[] = {"application/apply-patch+yaml", "application/json-patch+json",
                                              "application/merge-patch+json"};
    json_t *content = json_object();
    if (row->body == OBJECT_BODY)
        json_object_set_new(content, "*/*", json_pack("{s:{s:s}}", "schema", "$ref", schema));
    if (row->body == DELETE_BODY)
        json_object_set_new(content, "*/*", json_pack("{s:{s:s}}", "schema", "$ref", META "DeleteOptions"));
    for (size_t i = 0; i < ARRAY_LEN(patch_media) && row->body == PATCH_BODY; i++)
        json_object_set_new(content, patch_media[i], json_pack("{s:{s:s}}", "schema", "$ref", META "Patch"));
    return json_pack("{s:o}", "content", content);
}

static bool has_verb(const struct api_resource *resource, const char *verb)
{
    for (const char *const *at = resource->verbs; *at; at++)
        if (strcmp(*at, verb) == 0)
            return true;
    return false;
}

static json_t *operation_of(const struct api_group *group, const struct api_resource *resource,
                            const struct operation_row *row)
{
    bool is_list = strcmp(row->verb, "list") == 0, is_ended = row->body == DELETE_BODY;
    CLEANUP_FREE char *id = mem_format("%s%s%s", row->word, *group->name ? "Own" : "CoreV1", resource->kind);
    CLEANUP_FREE char *kind = mem_format("%s%s", resource->kind, is_list ? "List" : "");
    CLEANUP_FREE char *schema = schema_path(group, resource->kind), *answer = schema_path(group, kind);
    CLEANUP_FREE char *status = mem_format("%d", row->status);
    CLEANUP_FREE char *doc = mem_format("%s %s", row->verb, resource->plural);
    json_t *operation = json_pack("{s:s, s:s, s:o, s:{s:{s:s, s:o}}, s:s, s:{s:s, s:s, s:s}}", "operationId",
                                  id, "description", doc, "parameters", parameter_list(row->parameters),
                                  "responses", status, "description", "done", "content",
                                  content_of("application/json", is_ended ? META "Status" : answer),
                                  "x-kubernetes-action", row->action, "x-kubernetes-group-version-kind",
                                  "group", group->name, "version", group->version, "kind", resource->kind);
    if (row->body)
        json_object_set_new(operation, "requestBody", body_of(row, schema));
    return operation;
}

static json_t *name_parameter(const char *name, const char *doc)
{
    return json_pack("{s:s, s:s, s:s, s:b, s:{s:s}}", "name", name, "in", "path", "description", doc,
                     "required", 1, "schema", "type", "string");
}

static json_t *path_item(const struct api_group *group, const struct api_resource *resource,
                         bool is_of_collection, bool has_namespace)
{
    json_t *item = json_object(), *named = json_array();
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        if (rows[i].is_of_collection == is_of_collection && has_verb(resource, rows[i].verb))
            json_object_set_new(item, rows[i].method, operation_of(group, resource, &rows[i]));
    if (!is_of_collection)
        json_array_append_new(named, name_parameter("name", "Name of the object."));
    if (has_namespace)
        json_array_append_new(named, name_parameter("namespace", "Namespace of the object."));
    if (json_array_size(named))
        json_object_set(item, "parameters", named);
    json_decref(named);
    return item;
}

static void add_paths(const struct api_group *group, const struct api_resource *resource, json_t *paths)
{
    CLEANUP_FREE char *version = api_group_version(group);
    const char *root = *group->name ? "/apis" : "/api";
    CLEANUP_FREE char *all = mem_format("%s/%s/%s", root, version, resource->plural);
    CLEANUP_FREE char *base = resource->is_namespaced ? mem_format("%s/%s/namespaces/{namespace}/%s", root,
                                                                   version, resource->plural)
                                                      : mem_strdup(all);
    CLEANUP_FREE char *one = mem_format("%s/{name}", base);
    json_object_set_new(paths, all, path_item(group, resource, true, false));
    if (resource->is_namespaced)
        json_object_set_new(paths, base, path_item(group, resource, true, true));
    if (has_verb(resource, "get"))
        json_object_set_new(paths, one, path_item(group, resource, false, resource->is_namespaced));
}

json_t *openapi_paths(const struct api_group *group)
{
    json_t *paths = json_object();
    for (size_t i = 0; i < group->count; i++)
        add_paths(group, &group->resources[i], paths);
    return paths;
}
