#include "controller/record.h"
#include "schemas/kinds/common.h"
#include "schemas/kinds/tables.h"
#include <assert.h>
#include <strings.h>

static const struct kind_info kinds[KIND_COUNT] = {
    [KIND_WORKSPACE] = {KIND_WORKSPACE, "Workspace", "workspace", "workspaces", "ws", "ws_", true},
    [KIND_APPROVAL] = {KIND_APPROVAL, "Approval", "approval", "approvals", "appr", "approval_", true},
    [KIND_SANDBOX] = {KIND_SANDBOX, "Sandbox", "sandbox", "sandboxes", "sbx", "sbx_", true},
    [KIND_SESSION] = {KIND_SESSION, "Session", "session", "sessions", "sess", "session_", false},
    [KIND_EXPOSURE] = {KIND_EXPOSURE, "Exposure", "exposure", "exposures", "exp", "exp_", true},
    [KIND_APPROVAL_RULE] = {KIND_APPROVAL_RULE, "ApprovalRule", "approvalrule", "approvalrules", "rule", "rule_", true},
};

static const struct {
    const struct field_table *spec, *status;
} tables[KIND_COUNT] = {
    [KIND_WORKSPACE] = {&workspace_spec_table, &workspace_status_table},
    [KIND_APPROVAL] = {&approval_spec_table, &approval_status_table},
    [KIND_SANDBOX] = {&sandbox_spec_table, &sandbox_status_table},
    [KIND_SESSION] = {&session_spec_table, &session_status_table},
    [KIND_EXPOSURE] = {&exposure_spec_table, &exposure_status_table},
    [KIND_APPROVAL_RULE] = {&approval_rule_spec_table, &approval_rule_status_table},
};

const struct kind_info *kind_info(enum kind kind)
{
    assert(kind >= 0 && kind < KIND_COUNT);
    return &kinds[kind];
}

const struct kind_info *kind_find(const char *word)
{
    for (size_t i = 0; i < KIND_COUNT; i++) {
        const struct kind_info *info = &kinds[i];
        const char *const names[] = {info->name, info->singular, info->plural, info->short_name};
        for (size_t n = 0; n < sizeof(names) / sizeof(names[0]); n++)
            if (strcasecmp(names[n], word) == 0)
                return info;
    }
    return NULL;
}

const struct field_table *kind_spec_table(enum kind kind)
{
    assert(kind >= 0 && kind < KIND_COUNT);
    return tables[kind].spec;
}

const struct field_table *kind_status_table(enum kind kind)
{
    assert(kind >= 0 && kind < KIND_COUNT);
    return tables[kind].status;
}
