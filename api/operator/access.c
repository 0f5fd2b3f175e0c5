// authorization.k8s.io/v1: who reaches this API may do all that it offers.
#include "api/operator/discovery.h"
#include "api/operator/internal.h"
#include "controller/base/memory.h"
#include <string.h>

static bool has_word(const char *const *words, const char *word)
{
    for (; *words; words++)
        if (strcmp(*words, word) == 0)
            return true;
    return false;
}

static bool is_any(const char *word)
{
    return !word || !*word || strcmp(word, "*") == 0;
}

static bool offers(const struct api_group *group, const char *resource, const char *verb)
{
    for (size_t i = 0; i < group->count; i++)
        if ((is_any(resource) || strcmp(group->resources[i].plural, resource) == 0) &&
            (is_any(verb) || has_word(group->resources[i].verbs, verb)))
            return true;
    return false;
}

// Of an object's parts there is one by itself, its status, and that is only read.
static bool is_status_read(const char *group, const char *resource, const char *part, const char *verb)
{
    return group && strcmp(group, API_GROUP) == 0 && resource && strcmp(resource, "*") != 0 && strcmp(part, "status") == 0 && verb &&
           strcmp(verb, "get") == 0;
}

// attributes: spec.resourceAttributes.
static bool is_offered(const json_t *attributes)
{
    const char *group = json_get_text(attributes, "group"), *verb = json_get_text(attributes, "verb"),
               *resource = json_get_text(attributes, "resource"),
               *part = json_get_text(attributes, "subresource");
    size_t count;
    const struct api_group *groups = discovery_groups(&count);
    if (part && *part && !is_status_read(group, resource, part, verb))
        return false;
    for (size_t i = 0; i < count; i++)
        if (((group && strcmp(group, "*") == 0) || strcmp(groups[i].name, group ? group : "") == 0) &&
            offers(&groups[i], resource, verb))
            return true;
    return false;
}

static void answer_review(struct call *call, const char *kind, json_t *status)
{
    json_t *spec = json_deep_copy(json_object_get(call->body, "spec"));
    operator_answer(call, 201,
                    json_pack("{s:s, s:s, s:{s:n}, s:o, s:o}", "kind", kind, "apiVersion",
                              "authorization.k8s.io/v1", "metadata", "creationTimestamp", "spec",
                              spec ? spec : json_object(), "status", status));
}

void access_review(struct call *call)
{
    const json_t *spec = json_object_get(call->body, "spec"),
                 *attributes = json_object_get(spec, "resourceAttributes"),
                 *path = json_object_get(spec, "nonResourceAttributes");
    if (!attributes == !path) {
        operator_fail_as(call, 0, ERROR_INVALID, "send spec.resourceAttributes or spec.nonResourceAttributes",
                         "spec must have exactly one of resourceAttributes and nonResourceAttributes");
        return;
    }
    bool is_allowed = path || is_offered(attributes);
    answer_review(
        call, "SelfSubjectAccessReview",
        json_pack("{s:b, s:s}", "allowed", is_allowed, "reason",
                  is_allowed ? "operators may do all that this API offers" : "this API does not offer it"));
}

static json_t *words_to_json(const char *const *words)
{
    json_t *array = json_array();
    for (; *words; words++)
        json_array_append_new(array, json_string(*words));
    return array;
}

void access_rules(struct call *call)
{
    size_t count;
    const struct api_group *groups = discovery_groups(&count);
    json_t *rules = json_array();
    for (size_t i = 0; i < count; i++)
        for (size_t r = 0; r < groups[i].count; r++)
            json_array_append_new(
                rules, json_pack("{s:o, s:[s], s:[s]}", "verbs", words_to_json(groups[i].resources[r].verbs),
                                 "apiGroups", groups[i].name, "resources", groups[i].resources[r].plural));
    answer_review(call, "SelfSubjectRulesReview",
                  json_pack("{s:o, s:[{s:[s], s:[s]}], s:b}", "resourceRules", rules, "nonResourceRules",
                            "verbs", "get", "nonResourceURLs", "*", "incomplete", 0));
}
