// The resources, one row each.
#include "api/operator/resource.h"
#include <string.h>

#define RECORDS(kind_id, kind_name, plural_name, singular_name, short)                                       \
    [kind_id] = {.group = API_GROUP,                                                                         \
                 .version = API_VERSION,                                                                     \
                 .api_version = API_GROUP "/" API_VERSION,                                                   \
                 .kind = kind_name,                                                                          \
                 .plural = plural_name,                                                                      \
                 .singular = singular_name,                                                                  \
                 .short_name = short,                                                                        \
                 .feed = FEED_RECORDS,                                                                       \
                 .record_kind = kind_id}

static const struct resource of_kinds[KIND_COUNT] = {
    RECORDS(KIND_WORKSPACE, "Workspace", "workspaces", "workspace", "ws"),
    RECORDS(KIND_APPROVAL, "Approval", "approvals", "approval", "appr"),
    RECORDS(KIND_SANDBOX, "Sandbox", "sandboxes", "sandbox", "sbx"),
    RECORDS(KIND_SESSION, "Session", "sessions", "session", "sess"),
    RECORDS(KIND_EXPOSURE, "Exposure", "exposures", "exposure", "exp"),
    RECORDS(KIND_APPROVAL_RULE, "ApprovalRule", "approvalrules", "approvalrule", "rule"),
};

const struct resource *resource_of_kind(enum kind kind)
{
    return &of_kinds[kind];
}

struct json_span image_meta(struct json_span image)
{
    return json_member(image, "metadata");
}

const char *json_object_name(const json_t *object)
{
    const char *name = json_get_text(json_object_get(object, "metadata"), "name");
    return name ? name : "";
}
