// Every path of this API, one row each.
#include "api/operator/internal.h"
#include "controller/base/memory.h"
#include <string.h>

#define OBJECTS "/apis/" API_GROUP "/" API_VERSION "/{kind}"
#define OWN "/chat2shell/v1"

static const struct route routes[] = {
    {"GET", OBJECTS, objects_list, BODY_NONE},
    {"POST", OBJECTS, objects_create, BODY_OBJECT},
    {"DELETE", OBJECTS, objects_delete_collection, BODY_OPTIONAL},
    {"GET", OBJECTS "/{name}", objects_get, BODY_NONE},
    {"GET", OBJECTS "/{name}/status", objects_get, BODY_NONE}, // written by the reconcilers only
    {"PUT", OBJECTS "/{name}", objects_replace, BODY_OBJECT},
    {"PATCH", OBJECTS "/{name}", objects_patch, BODY_PATCH},
    {"DELETE", OBJECTS "/{name}", objects_delete, BODY_OPTIONAL},
    {"GET", "/api/v1/namespaces/default/events", events_list, BODY_NONE},
    {"GET", "/api/v1/namespaces/default/events/{name}", events_get, BODY_NONE},
    {"GET", "/api/v1/events", events_list, BODY_NONE},
    {"GET", "/api/v1/namespaces", namespaces_list, BODY_NONE},
    {"GET", "/api/v1/namespaces/{name}", namespaces_get, BODY_NONE},
    {"GET", OWN "/status", status_show, BODY_NONE},
    {"GET", OWN "/doctor", doctor_show, BODY_NONE},
    {"GET", OWN "/usage", usage_show, BODY_NONE},
    {"POST", OWN "/stop", stop_daemon, BODY_OPTIONAL},
    {"POST", OWN "/workspaces", workspaces_add, BODY_OBJECT},
    {"GET", OWN "/sandboxes/{name}/unsaved", unsaved_show, BODY_NONE},
    {"POST", OWN "/sandboxes/{name}/logs", logs_show, BODY_OPTIONAL},
    {"POST", OWN "/sandboxes/{name}/exec", operator_exec_start, BODY_OBJECT},
    {"POST", OWN "/sandboxes/{name}/ports/{id}/connect", ports_connect, BODY_OPTIONAL},
    {"POST", OWN "/sandboxes/{name}/exec/{id}/write", operator_exec_write, BODY_OBJECT},
    {"POST", OWN "/sandboxes/{name}/exec/{id}/read", operator_exec_read, BODY_OPTIONAL},
    {"POST", OWN "/sandboxes/{name}/exec/{id}/signal", operator_exec_signal, BODY_OBJECT},
    {"POST", OWN "/sandboxes/{name}/exec/{id}/end", operator_exec_end, BODY_OPTIONAL},
    {"GET", OWN "/tokens", tokens_list, BODY_NONE},
    {"POST", OWN "/tokens", tokens_create, BODY_OBJECT},
    {"DELETE", OWN "/tokens/{name}", tokens_revoke, BODY_OPTIONAL},
    {"GET", OWN "/kubeconfig", kubeconfig_show, BODY_NONE},
    {"POST", OWN "/kubeconfig", kubeconfig_open, BODY_OPTIONAL},
    {"DELETE", OWN "/kubeconfig", kubeconfig_close, BODY_OPTIONAL},
    {"GET", "/version", version_show, BODY_NONE},
    {"GET", "/api", discovery_core, BODY_NONE},
    {"GET", "/apis", discovery_groups_list, BODY_NONE},
    {"GET", "/apis/" API_GROUP, discovery_group, BODY_NONE},
    {"GET", "/apis/authorization.k8s.io", discovery_group, BODY_NONE},
    {"GET", "/api/v1", discovery_resources, BODY_NONE},
    {"GET", "/apis/" API_GROUP "/" API_VERSION, discovery_resources, BODY_NONE},
    {"GET", "/apis/authorization.k8s.io/v1", discovery_resources, BODY_NONE},
    {"POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", access_review, BODY_REVIEW},
    {"POST", "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews", access_rules, BODY_REVIEW},
    {"GET", "/openapi/v2", openapi_v2, BODY_NONE},
    {"GET", "/openapi/v3", openapi_index, BODY_NONE},
    {"GET", "/openapi/v3/api/v1", openapi_document, BODY_NONE},
    {"GET", "/openapi/v3/apis/" API_GROUP "/" API_VERSION, openapi_document, BODY_NONE},
    {"GET", "/openapi/v3/apis/authorization.k8s.io/v1", openapi_document, BODY_NONE},
    {"GET", "/metrics", metrics_show, BODY_NONE},
    {"GET", "/livez", health_show, BODY_NONE},
    {"GET", "/readyz", health_show, BODY_NONE},
    {"GET", "/healthz", health_show, BODY_NONE},
    {"GET", "/livez/{name}", health_check_show, BODY_NONE},
    {"GET", "/readyz/{name}", health_check_show, BODY_NONE},
    {"GET", "/healthz/{name}", health_check_show, BODY_NONE},
};

const struct route *route_table(size_t *ret_count)
{
    *ret_count = ARRAY_LEN(routes);
    return routes;
}

void route_match_clear(struct route_match *match)
{
    free(match->name);
    free(match->id);
    *match = (struct route_match){0};
}

static bool take_kind(const char *segment, size_t len, enum kind *ret)
{
    for (int kind = 0; kind < KIND_COUNT; kind++) {
        const char *plural = kind_info((enum kind)kind)->plural;
        if (strlen(plural) == len && memcmp(plural, segment, len) == 0) {
            *ret = (enum kind)kind;
            return true;
        }
    }
    return false;
}

static void take_text(char **to, const char *segment, size_t len)
{
    free(*to);
    *to = mem_strndup(segment, len);
}

static bool fits_segment(const char *pattern, size_t pattern_len, const char *segment, size_t len,
                         struct route_match *match)
{
    if (pattern[0] != '{')
        return pattern_len == len && memcmp(pattern, segment, len) == 0;
    if (!len)
        return false;
    if (strncmp(pattern, "{kind}", pattern_len) == 0)
        return take_kind(segment, len, &match->kind);
    take_text(strncmp(pattern, "{name}", pattern_len) == 0 ? &match->name : &match->id, segment, len);
    return true;
}

static bool fits(const char *pattern, const char *path, struct route_match *match)
{
    while (*pattern == '/' && *path == '/') {
        size_t pattern_len = strcspn(++pattern, "/"), len = strcspn(++path, "/");
        if (!fits_segment(pattern, pattern_len, path, len, match))
            return false;
        pattern += pattern_len;
        path += len;
    }
    return !*pattern && !*path;
}

// The methods of one path, for the Allow header: a closed set of texts, so that they are static.
static const char *word_methods(unsigned methods)
{
    enum { GET = 1, POST = 2, PUT = 4, PATCH = 8, DELETE = 16 };
    switch (methods) {
    case GET:
        return "GET";
    case POST:
        return "POST";
    case DELETE:
        return "DELETE";
    case GET | POST:
        return "GET, POST";
    case GET | POST | DELETE:
        return "GET, POST, DELETE";
    default:
        return "GET, PUT, PATCH, DELETE";
    }
}

static unsigned method_bit(const char *method)
{
    static const char *const names[] = {"GET", "POST", "PUT", "PATCH", "DELETE"};
    for (unsigned i = 0; i < ARRAY_LEN(names); i++)
        if (strcmp(names[i], method) == 0)
            return 1u << i;
    return 0;
}

void route_find(const char *method, const char *path, struct route_match *ret)
{
    unsigned methods = 0;
    *ret = (struct route_match){0};
    for (size_t i = 0; i < ARRAY_LEN(routes); i++) {
        struct route_match match = {.route = &routes[i]};
        if (!fits(routes[i].pattern, path, &match)) {
            route_match_clear(&match);
        } else if (strcmp(routes[i].method, method) == 0) {
            *ret = match;
            return;
        } else {
            methods |= method_bit(routes[i].method);
            route_match_clear(&match);
        }
    }
    if (methods)
        ret->allow = word_methods(methods);
}
