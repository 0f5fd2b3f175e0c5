// OpenAPI v3: an index of the groups' documents and each group's document. The kinds' schemas come from the
// field tables; what all objects share comes from schemas/openapi. Made once, when first asked for.
#include "api/operator/discovery.h"
#include "api/operator/internal.h"
#include "api/operator/openapi_paths.h"
#include "api/operator/openapi_v2.h"
#include "controller/base/memory.h"
#include "controller/embedded.h"
#include "controller/hash.h"
#include "schemas/kinds/tables.h"
#include <assert.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#define GROUPS_MAX 8
#define META "io.k8s.apimachinery.pkg.apis.meta.v1."

// ---- schemas
static void add_embedded(json_t *schemas, const char *name)
{
    const struct embedded_file *file = embedded_find(name);
    json_t *part = NULL;
    assert(file);
    int parsed = json_parse(file->data, file->size, &part, NULL);
    assert(parsed == 0);
    json_object_update(schemas, part);
    json_decref(part);
}

static json_t *reference(const char *name, const char *doc)
{
    CLEANUP_FREE char *path = mem_format("#/components/schemas/%s", name);
    return json_pack("{s:s, s:[{s:s}]}", "description", doc, "allOf", "$ref", path);
}

static json_t *text_schema(const char *doc)
{
    return json_pack("{s:s, s:s}", "type", "string", "description", doc);
}

static json_t *named(const char *group, const char *version, const char *kind)
{
    return json_pack("[{s:s, s:s, s:s}]", "group", group, "version", version, "kind", kind);
}

static json_t *selectable(const struct resource *resource)
{
    json_t *fields = json_array();
    for (const char *const *at = resource_fields(resource); *at; at++) {
        CLEANUP_FREE char *path = mem_format(".%s", *at);
        if (strncmp(*at, "metadata.", 9) != 0)
            json_array_append_new(fields, json_pack("{s:s}", "fieldPath", path));
    }
    return fields;
}

static json_t *kind_schema(enum kind kind)
{
    const struct kind_info *info = kind_info(kind);
    const struct field_table *spec = kind_spec_table(kind);
    json_t *status = fields_to_openapi(kind_status_table(kind));
    json_object_set_new(status, "readOnly", json_true());
    json_t *properties =
        json_pack("{s:o, s:o, s:o, s:o, s:o}", "apiVersion",
                  text_schema("Group and version: " API_GROUP "/" API_VERSION "."), "kind",
                  text_schema("The object's kind, in CamelCase. Cannot be changed."), "metadata",
                  reference(META "ObjectMeta", "Name, labels and the server's own bookkeeping."), "spec",
                  fields_to_openapi(spec), "status", status);
    return json_pack("{s:s, s:s, s:o, s:o, s:o}", "type", "object", "description", spec->doc, "properties",
                     properties, "x-kubernetes-group-version-kind", named(API_GROUP, API_VERSION, info->name),
                     "x-kubernetes-selectable-fields", selectable(resource_of_kind(kind)));
}

static json_t *list_schema(enum kind kind)
{
    CLEANUP_FREE char *name = mem_format("%sList", kind_info(kind)->name);
    CLEANUP_FREE char *item =
        mem_format("#/components/schemas/" OPENAPI_OWN_PREFIX "%s", kind_info(kind)->name);
    json_t *properties =
        json_pack("{s:o, s:o, s:o, s:{s:s, s:s, s:{s:s}}}", "apiVersion", text_schema("Group and version."),
                  "kind", text_schema("The list's kind."), "metadata",
                  reference(META "ListMeta", "Version and continue token."), "items", "type", "array",
                  "description", "The objects, oldest first.", "items", "$ref", item);
    return json_pack("{s:s, s:s, s:o, s:[s], s:o}", "type", "object", "description", "A list of objects.",
                     "properties", properties, "required", "items", "x-kubernetes-group-version-kind",
                     named(API_GROUP, API_VERSION, name));
}

static void add_kinds(json_t *schemas)
{
    for (int kind = 0; kind < KIND_COUNT; kind++) {
        CLEANUP_FREE char *name = mem_format(OPENAPI_OWN_PREFIX "%s", kind_info((enum kind)kind)->name);
        CLEANUP_FREE char *list = mem_format("%sList", name);
        json_object_set_new(schemas, name, kind_schema((enum kind)kind));
        json_object_set_new(schemas, list, list_schema((enum kind)kind));
    }
}

// ---- documents
static json_t *schemas_of(const struct api_group *group)
{
    json_t *schemas = json_object();
    add_embedded(schemas, "openapi/meta.json");
    if (!*group->name)
        add_embedded(schemas, "openapi/core.json");
    else if (strcmp(group->name, API_GROUP) == 0)
        add_kinds(schemas);
    else
        add_embedded(schemas, "openapi/authorization.json");
    return schemas;
}

static char *make_document(const struct api_group *group, json_t *schemas)
{
    CLEANUP_FREE char *title = api_group_version(group);
    CLEANUP_JSON json_t *document =
        json_pack("{s:s, s:{s:s, s:s}, s:o, s:{s:O}}", "openapi", "3.0.0", "info", "title", title, "version",
                  "v" CHAT2SHELL_VERSION, "paths", openapi_paths(group), "components", "schemas", schemas);
    return json_to_text(document);
}

static struct buffer v2_document = BUFFER_INIT(OPENAPI_V2_MAX);
static char *documents[GROUPS_MAX], *index_text;
static pthread_once_t is_made = PTHREAD_ONCE_INIT;

static char *document_path(const struct api_group *group)
{
    CLEANUP_FREE char *version = api_group_version(group);
    return mem_format("%s/%s", *group->name ? "apis" : "api", version);
}

static void make_all(void)
{
    size_t count;
    const struct api_group *groups = discovery_groups(&count);
    json_t *paths = json_object();
    CLEANUP_JSON json_t *all = json_object();
    assert(count <= GROUPS_MAX);
    for (size_t i = 0; i < count; i++) {
        CLEANUP_FREE char *path = document_path(&groups[i]);
        CLEANUP_JSON json_t *schemas = schemas_of(&groups[i]);
        json_object_update(all, schemas);
        documents[i] = make_document(&groups[i], schemas);
        CLEANUP_FREE char *url = mem_format("/openapi/v3/%s?hash=%016" PRIX64, path, hash_text(documents[i]));
        json_object_set_new(paths, path, json_pack("{s:s}", "serverRelativeURL", url));
    }
    CLEANUP_JSON json_t *index = json_pack("{s:o}", "paths", paths);
    index_text = json_to_text(index);
    openapi_v2_write(all, &v2_document);
    assert(!v2_document.is_over);
}

void openapi_v2(struct call *call)
{
    pthread_once(&is_made, make_all);
    if (!call->accept || !strstr(call->accept, "com.github.proto-openapi.spec.v2"))
        operator_fail_as(call, 406, ERROR_UNSUPPORTED, "read /openapi/v3", "OpenAPI v2 is served as %s only",
                         OPENAPI_V2_MEDIA_TYPE);
    else
        operator_answer_bytes(call, 200, OPENAPI_V2_MEDIA_TYPE, v2_document.data, v2_document.len);
}

void openapi_index(struct call *call)
{
    pthread_once(&is_made, make_all);
    operator_answer_copy(call, 200, "application/json", index_text);
}

void openapi_document(struct call *call)
{
    size_t count;
    const struct api_group *groups = discovery_groups(&count);
    pthread_once(&is_made, make_all);
    for (size_t i = 0; i < count; i++) {
        CLEANUP_FREE char *path = document_path(&groups[i]);
        if (strcmp(http_request_path(call->http) + strlen("/openapi/v3/"), path) == 0) {
            operator_answer_copy(call, 200, "application/json", documents[i]);
            return;
        }
    }
}
