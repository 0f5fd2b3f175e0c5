#include "schemas/kinds/common.h"
#include "controller/base/error.h"

static int check_spec(const void *value, struct error *err)
{
    const struct approval_spec *spec = value;
    if (spec->mode == WORKSPACE_MANAGED)
        return error_set(err, ERROR_INVALID, NULL,
                         "mode: must be 'clone' or 'direct': a managed workspace needs no approval");
    return 0;
}

static const struct field spec_fields[] = {
    FIELD(struct approval_spec, path, "path", FIELD_TEXT,
          "Host directory that is asked for, resolved and absolute.", CHECKED(absolute_path),
          .is_required = true, .is_immutable = true, .column = "Path", .is_selectable = true),
    FIELD(struct approval_spec, mode, "mode", FIELD_ENUM,
          "clone: the repository is only read. direct: the directory is mounted read-write.",
          .words = workspace_mode_words, .is_required = true, .is_immutable = true, .column = "Mode", .is_selectable = true),
    FIELD(struct approval_spec, requester, "requester", FIELD_TEXT, "Principal that asked.", .max = 256,
          CHECKED(plain_text), .is_immutable = true, .column = "Requester", .is_selectable = true),
    FIELD(struct approval_spec, decision, "decision", FIELD_ENUM,
          "The operator's decision; absent while pending.", .words = decision_words, .is_selectable = true),
    FIELD(struct approval_spec, shown_resource_version, "shownResourceVersion", FIELD_INT,
          "Resource version that the operator saw when deciding; the decision is refused if the approval "
          "changed since.",
          .min = 0, .max = INT64_MAX),
    FIELD(struct approval_spec, reason, "reason", FIELD_TEXT, "The operator's words.", .max = 1024),
};
const struct field_table approval_spec_table =
    FIELD_TABLE(struct approval_spec, spec_fields, "A request to use a host directory, and its decision.",
                .check = check_spec, .rule = "self.mode != 'managed'", .rule_doc = "a managed workspace needs no approval");

static const struct field status_fields[] = {
    STATUS_FIELDS(struct approval_status),
    FIELD(struct approval_status, device, "device", FIELD_INT,
          "Device number of the directory when it was asked for."),
    FIELD(struct approval_status, inode, "inode", FIELD_INT,
          "Inode number of the directory when it was asked for."),
    FIELD(struct approval_status, workspace_ref, "workspaceRef", FIELD_TEXT,
          "Uid of the workspace that the approval made.", .column = "Workspace", .is_selectable = true),
    FIELD(struct approval_status, decided_at, "decidedAt", FIELD_TIME, "When it was decided."),
    FIELD(struct approval_status, decided_by, "decidedBy", FIELD_TEXT, "Principal that decided.",
          .column = "Decided-By", .column_priority = 1),
    FIELD(struct approval_status, exposes, "exposes", FIELD_JSON,
          "Mode direct: what the directory exposes, as a list of path and what."),
};
const struct field_table approval_status_table =
    FIELD_TABLE(struct approval_status, status_fields, "Observed state of an approval.");
