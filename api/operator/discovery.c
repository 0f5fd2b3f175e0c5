// Discovery: which groups, versions and resources there are, in the plain and in the aggregated form.
#include "api/operator/discovery.h"
#include "api/operator/internal.h"
#include "controller/base/memory.h"
#include <string.h>

// ---- what there is, one row a resource
static const char *const read_verbs[] = {"get", "list", "watch", NULL};
static const char *const all_verbs[] = {
    "create", "delete", "deletecollection", "get", "list", "patch", "update", "watch", NULL};
static const char *const create_verbs[] = {"create", NULL};
static const char *const session_verbs[] = {"delete", "get", "list", "watch", NULL};

static const struct api_resource core_resources[] = {
    {"events", "event", "ev", "Event", true, false, read_verbs},
    {"namespaces", "namespace", "ns", "Namespace", false, false, read_verbs},
};
static const struct api_resource own_resources[] = {
    {"approvalrules", "approvalrule", "rule", "ApprovalRule", false, true, all_verbs},
    {"approvals", "approval", "appr", "Approval", false, true, all_verbs},
    {"exposures", "exposure", "exp", "Exposure", false, true, all_verbs},
    {"sandboxes", "sandbox", "sbx", "Sandbox", false, true, all_verbs},
    {"sessions", "session", "sess", "Session", false, true, session_verbs},
    {"workspaces", "workspace", "ws", "Workspace", false, true, all_verbs},
};
static const struct api_resource review_resources[] = {
    {"selfsubjectaccessreviews", "selfsubjectaccessreview", NULL, "SelfSubjectAccessReview", false, false,
     create_verbs},
    {"selfsubjectrulesreviews", "selfsubjectrulesreview", NULL, "SelfSubjectRulesReview", false, false,
     create_verbs},
};
static const struct api_group groups[] = {
    {"", "v1", core_resources, ARRAY_LEN(core_resources)},
    {API_GROUP, API_VERSION, own_resources, ARRAY_LEN(own_resources)},
    {"authorization.k8s.io", "v1", review_resources, ARRAY_LEN(review_resources)},
};

const struct api_group *discovery_groups(size_t *ret_count)
{
    *ret_count = ARRAY_LEN(groups);
    return groups;
}

char *api_group_version(const struct api_group *group)
{
    return *group->name ? mem_format("%s/%s", group->name, group->version) : mem_strdup(group->version);
}

static json_t *words(const char *const *list)
{
    json_t *array = json_array();
    for (; *list; list++)
        json_array_append_new(array, json_string(*list));
    return array;
}

static void set_other_names(json_t *json, const struct api_resource *resource)
{
    if (resource->short_name)
        json_object_set_new(json, "shortNames", json_pack("[s]", resource->short_name));
    if (resource->is_in_all)
        json_object_set_new(json, "categories", json_pack("[s, s]", "all", "chat2shell"));
}

// ---- plain
static json_t *resource_to_json(const struct api_resource *resource)
{
    json_t *json = json_pack("{s:s, s:s, s:b, s:s, s:o}", "name", resource->plural, "singularName",
                             resource->singular, "namespaced", resource->is_namespaced, "kind",
                             resource->kind, "verbs", words(resource->verbs));
    set_other_names(json, resource);
    return json;
}

static json_t *resource_list(const struct api_group *group)
{
    CLEANUP_FREE char *version = api_group_version(group);
    json_t *resources = json_array();
    for (size_t i = 0; i < group->count; i++)
        json_array_append_new(resources, resource_to_json(&group->resources[i]));
    return json_pack("{s:s, s:s, s:s, s:o}", "kind", "APIResourceList", "apiVersion", "v1", "groupVersion",
                     version, "resources", resources);
}

static json_t *group_to_json(const struct api_group *group)
{
    CLEANUP_FREE char *version = api_group_version(group);
    return json_pack("{s:s, s:[{s:s, s:s}], s:{s:s, s:s}}", "name", group->name, "versions", "groupVersion",
                     version, "version", group->version, "preferredVersion", "groupVersion", version,
                     "version", group->version);
}

// ---- aggregated
static json_t *kind_to_json(const struct api_group *group, const char *kind)
{
    return json_pack("{s:s, s:s, s:s}", "group", group->name, "version", group->version, "kind", kind);
}

static json_t *resource_to_aggregated(const struct api_group *group, const struct api_resource *resource)
{
    json_t *json = json_pack("{s:s, s:o, s:s, s:s, s:o}", "resource", resource->plural, "responseKind",
                             kind_to_json(group, resource->kind), "scope",
                             resource->is_namespaced ? "Namespaced" : "Cluster", "singularResource",
                             resource->singular, "verbs", words(resource->verbs));
    set_other_names(json, resource);
    return json;
}

static json_t *group_to_aggregated(const struct api_group *group)
{
    json_t *resources = json_array(), *metadata = json_object();
    for (size_t i = 0; i < group->count; i++)
        json_array_append_new(resources, resource_to_aggregated(group, &group->resources[i]));
    if (*group->name)
        json_set_text(metadata, "name", group->name);
    json_object_set_new(metadata, "creationTimestamp", json_null());
    return json_pack("{s:o, s:[{s:s, s:s, s:o}]}", "metadata", metadata, "versions", "version",
                     group->version, "freshness", "Current", "resources", resources);
}

static json_t *aggregated_list(bool is_core, const char *version)
{
    CLEANUP_FREE char *api_version = mem_format("apidiscovery.k8s.io/%s", version);
    json_t *items = json_array();
    for (size_t i = 0; i < ARRAY_LEN(groups); i++)
        if (!*groups[i].name == is_core)
            json_array_append_new(items, group_to_aggregated(&groups[i]));
    return json_pack("{s:s, s:s, s:{}, s:o}", "kind", "APIGroupDiscoveryList", "apiVersion", api_version,
                     "metadata", "items", items);
}

// The version of aggregated discovery that the client asks for before anything else that is served; NULL:
// none.
static const char *wanted_aggregation(const char *accept)
{
    const char *at = accept ? strstr(accept, "as=APIGroupDiscoveryList") : NULL;
    while (at && at > accept && at[-1] != ',')
        at--;
    if (!at)
        return NULL;
    size_t len = strcspn(at, ",");
    CLEANUP_FREE char *media = mem_strndup(at, len);
    if (strncmp(media + strspn(media, " "), "application/json", 16) != 0 ||
        !strstr(media, "g=apidiscovery.k8s.io"))
        return wanted_aggregation(at[len] ? at + len + 1 : NULL);
    return strstr(media, "v=v2beta1") ? "v2beta1" : strstr(media, "v=v2") ? "v2" : NULL;
}

static void answer_groups(struct call *call, bool is_core, json_t *plain)
{
    const char *version = wanted_aggregation(call->accept);
    if (!version) {
        operator_answer(call, 200, plain);
        return;
    }
    json_decref(plain);
    CLEANUP_FREE char *type =
        mem_format("application/json;g=apidiscovery.k8s.io;v=%s;as=APIGroupDiscoveryList", version);
    operator_answer_as(call, 200, type, aggregated_list(is_core, version));
}

// ---- handlers
void discovery_core(struct call *call)
{
    answer_groups(call, true,
                  json_pack("{s:s, s:[s], s:[{s:s, s:s}]}", "kind", "APIVersions", "versions", "v1",
                            "serverAddressByClientCIDRs", "clientCIDR", "0.0.0.0/0", "serverAddress", ""));
}

void discovery_groups_list(struct call *call)
{
    json_t *list = json_array();
    for (size_t i = 0; i < ARRAY_LEN(groups); i++)
        if (*groups[i].name)
            json_array_append_new(list, group_to_json(&groups[i]));
    answer_groups(call, false,
                  json_pack("{s:s, s:s, s:o}", "kind", "APIGroupList", "apiVersion", "v1", "groups", list));
}

// The group that the path names: its last part is a version where has_version.
static const struct api_group *group_of_path(const char *path, bool has_version)
{
    for (size_t i = 0; i < ARRAY_LEN(groups); i++) {
        CLEANUP_FREE char *version = api_group_version(&groups[i]);
        CLEANUP_FREE char *at = mem_format("%s/%s", *groups[i].name ? "/apis" : "/api",
                                           has_version || !*groups[i].name ? version : groups[i].name);
        if (strcmp(path, at) == 0)
            return &groups[i];
    }
    return NULL;
}

void discovery_group(struct call *call)
{
    const struct api_group *group = group_of_path(http_request_path(call->http), false);
    json_t *json = group_to_json(group);
    json_set_text(json, "kind", "APIGroup");
    json_set_text(json, "apiVersion", "v1");
    operator_answer(call, 200, json);
}

void discovery_resources(struct call *call)
{
    operator_answer(call, 200, resource_list(group_of_path(http_request_path(call->http), true)));
}
