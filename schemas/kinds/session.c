#include "schemas/kinds/common.h"

static const struct field spec_fields[] = {
    FIELD(struct session_spec, sandbox_ref, "sandboxRef", FIELD_TEXT,
          "Name of the sandbox that the tool server runs in.", CHECKED(record_name), .max = 63,
          .is_required = true, .is_immutable = true, .column = "Sandbox", .is_selectable = true),
};
const struct field_table session_spec_table = FIELD_TABLE(
    struct session_spec, spec_fields, "The tool server in a sandbox. Made by the controller only.");

static const struct field status_fields[] = {
    STATUS_FIELDS(struct session_status),
    FIELD(struct session_status, sandbox_uid, "sandboxUid", FIELD_TEXT,
          "Uid of the sandbox that spec.sandboxRef was bound to.", .is_selectable = true),
    FIELD(struct session_status, server_name, "serverName", FIELD_TEXT, "The tool server's own name.",
          .column = "Server"),
    FIELD(struct session_status, server_version, "serverVersion", FIELD_TEXT,
          "The tool server's own version.", .column = "Version"),
    FIELD(struct session_status, last_lines, "lastLines", FIELD_TEXT_LIST,
          "What the tool server printed last before it ended."),
};
const struct field_table session_status_table =
    FIELD_TABLE(struct session_status, status_fields, "Observed state of a tool server.");
