#include "schemas/kinds/common.h"
#include "controller/base/error.h"

// A managed workspace has its own fresh directory; a host mode names one that was approved.
static int check_spec(const void *value, struct error *err)
{
    const struct workspace_spec *spec = value;
    if (spec->mode == WORKSPACE_MANAGED && spec->path)
        return error_set(err, ERROR_INVALID, NULL, "path: may not be specified when `mode` is 'managed'");
    if (spec->mode != WORKSPACE_MANAGED && !spec->path)
        return error_set(err, ERROR_INVALID, NULL, "path: must be specified when `mode` is '%s'",
                         workspace_mode_words[spec->mode]);
    return 0;
}

static const struct field spec_fields[] = {
    FIELD(struct workspace_spec, mode, "mode", FIELD_ENUM,
          "managed: a fresh private directory. clone: a private clone of an approved Git repository. direct: "
          "an approved directory itself, read-write.",
          .words = workspace_mode_words, .default_json = "\"managed\"", .is_immutable = true,
          .column = "Mode", .is_selectable = true),
    FIELD(struct workspace_spec, path, "path", FIELD_TEXT,
          "Approved host directory, resolved and absolute. Host modes only.", CHECKED(absolute_path),
          .is_immutable = true, .column = "Path", .column_priority = 1, .is_selectable = true),
};
const struct field_table workspace_spec_table = FIELD_TABLE(
    struct workspace_spec, spec_fields, "Which directory a sandbox works in.", .check = check_spec,
    .rule = "!has(self.mode) || self.mode == 'managed' ? !has(self.path) : has(self.path)",
    .rule_doc = "path must be specified for the modes clone and direct, and for these only");

static const struct field status_fields[] = {
    STATUS_FIELDS(struct workspace_status),
    FIELD(struct workspace_status, root, "root", FIELD_TEXT,
          "Absolute path of the directory on the host and in the sandbox.", .column = "Root",
          .column_priority = 1),
    FIELD(struct workspace_status, device, "device", FIELD_INT,
          "Device number of the directory when it was approved or made."),
    FIELD(struct workspace_status, inode, "inode", FIELD_INT,
          "Inode number of the directory when it was approved or made."),
    FIELD(struct workspace_status, retained_until, "retainedUntil", FIELD_TIME,
          "When an unbound managed workspace moves to the trash.", .column = "Retained-Until",
          .column_priority = 1),
    FIELD(struct workspace_status, bound_sandbox, "boundSandbox", FIELD_TEXT,
          "Uid of the live sandbox that holds the workspace.", .column = "Sandbox", .is_selectable = true),
};
const struct field_table workspace_status_table =
    FIELD_TABLE(struct workspace_status, status_fields, "Observed state of a workspace.");
