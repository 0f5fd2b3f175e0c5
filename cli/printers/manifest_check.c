// The head of a manifest: what must be known before it can be sent anywhere.
#include "cli/printers/manifest.h"
#include "controller/base/cleanup.h"
#include "controller/base/json.h"
#include "controller/fields/problems.h"
#include <string.h>

static const char *const top_fields[] = {"apiVersion", "kind", "metadata", "spec", "status"};

static void check_names(const json_t *value, struct field_problem_list *problems)
{
    const char *name;
    json_t *member;
    json_object_foreach((json_t *)value, name, member)
    {
        bool is_known = false;
        for (size_t i = 0; i < ARRAY_LEN(top_fields); i++)
            is_known |= strcmp(name, top_fields[i]) == 0;
        if (is_known)
            continue;
        struct field_path path = {.name = name};
        const char *nearest = problems_nearest(name, top_fields, ARRAY_LEN(top_fields));
        CLEANUP_FREE char *quoted = problems_quote(name);
        problems_add(problems, &path, CAUSE_UNKNOWN,
                     nearest ? "unknown field %s; did you mean `%s`?" : "unknown field %s", quoted, nearest);
    }
}

static const char *need_text(const json_t *value, const char *name, struct field_problem_list *problems)
{
    struct field_path path = {.name = name};
    const json_t *member = json_object_get(value, name);
    if (!member || json_is_null(member))
        problems_add(problems, &path, CAUSE_REQUIRED, "must be specified");
    else if (!json_is_string(member))
        problems_add(problems, &path, CAUSE_TYPE, "must be a string");
    return json_string_value(member);
}

static void check_version(const json_t *value, struct field_problem_list *problems)
{
    const char *version = need_text(value, "apiVersion", problems);
    struct field_path path = {.name = "apiVersion"};
    if (!version || strcmp(version, API_GROUP "/" API_VERSION) == 0)
        return;
    CLEANUP_FREE char *quoted = problems_quote(version);
    problems_add(problems, &path, CAUSE_WORD, "must be '" API_GROUP "/" API_VERSION "', not %s", quoted);
}

static const struct kind_info *check_kind(const json_t *value, struct field_problem_list *problems)
{
    const char *kind = need_text(value, "kind", problems), *known[KIND_COUNT];
    struct field_path path = {.name = "kind"};
    if (!kind)
        return NULL;
    for (size_t i = 0; i < KIND_COUNT; i++) {
        known[i] = kind_info((enum kind)i)->name;
        if (strcmp(known[i], kind) == 0)
            return kind_info((enum kind)i);
    }
    const char *nearest = problems_nearest(kind, known, KIND_COUNT);
    CLEANUP_FREE char *quoted = problems_quote(kind);
    problems_add(problems, &path, CAUSE_WORD,
                 nearest
                     ? "unknown kind %s; did you mean '%s'?"
                     : "unknown kind %s; must be 'Workspace', 'Approval', 'ApprovalRule', 'Sandbox', 'Session' or 'Exposure'",
                 quoted, nearest);
    return NULL;
}

int manifest_check(const struct manifest *manifest, size_t document, const struct kind_info **ret_info,
                   json_t *causes, struct error *err)
{
    const json_t *value = manifest->documents[document].value;
    struct field_problem_list problems = {0};
    check_version(value, &problems);
    const struct kind_info *info = check_kind(value, &problems);
    check_names(value, &problems);
    if (problems_finish(&problems, causes, err) < 0)
        return -1;
    *ret_info = info;
    return 0;
}
