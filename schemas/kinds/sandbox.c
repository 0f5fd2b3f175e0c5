#include "schemas/kinds/common.h"

#define MEMORY_MIN (16LL << 20)
#define MEMORY_MAX (1LL << 40)
#define CPUS_MIN 50
#define CPUS_MAX 256000

static const char *const session_words[] = {"", "guest", "codexpro", NULL};

static const struct field spec_fields[] = {
    FIELD(struct sandbox_spec, workspace_ref, "workspaceRef", FIELD_TEXT,
          "Name of the workspace that the sandbox works in.", CHECKED(record_name), .max = 63,
          .is_required = true, .is_immutable = true, .column = "Workspace", .is_selectable = true),
    FIELD(struct sandbox_spec, driver, "driver", FIELD_TEXT,
          "What runs it ('bubblewrap', 'sbx'); the server's default if absent.", CHECKED(record_name),
          .max = 63, .is_immutable = true, .is_selectable = true),
    FIELD(struct sandbox_spec, template_name, "template", FIELD_TEXT,
          "Root file system ('host', 'debian-12'); the driver's default if absent.", .max = 128,
          CHECKED(plain_text), .is_immutable = true),
    FIELD(struct sandbox_spec, memory_bytes, "memory", FIELD_QUANTITY,
          "Memory limit in bytes, or like '512Mi'; the driver's default if absent.", .min = MEMORY_MIN,
          .max = MEMORY_MAX, .is_immutable = true),
    FIELD(struct sandbox_spec, cpus_milli, "cpus", FIELD_MILLI,
          "Processor limit, like '1.5' or '500m'; the driver's default if absent.", .min = CPUS_MIN,
          .max = CPUS_MAX, .is_immutable = true),
    FIELD(struct sandbox_spec, session, "session", FIELD_ENUM,
          "Tool server inside: 'codexpro' (the default of the driver sbx) or the embedded 'guest' (of bubblewrap).",
          .words = session_words, .is_immutable = true, .is_selectable = true),
};
const struct field_table sandbox_spec_table =
    FIELD_TABLE(struct sandbox_spec, spec_fields, "A disposable machine around one workspace.");

static const struct field capability_fields[] = {
    FIELD(struct capability, name, "name", FIELD_TEXT, "What it is about: docker, packages, network, sudo.",
          .is_required = true),
    FIELD(struct capability, is_available, "available", FIELD_BOOL, "Whether the sandbox can do it.",
          .is_required = true),
    FIELD(struct capability, message, "message", FIELD_TEXT, "Why not, or what to do instead."),
};
static const struct field_table capability_table =
    FIELD_TABLE(struct capability, capability_fields, "Something that sandboxes of some drivers can do.");

static const struct field status_fields[] = {
    STATUS_FIELDS(struct sandbox_status),
    FIELD(struct sandbox_status, driver, "driver", FIELD_TEXT, "The driver that runs it.",
          .column = "Driver"),
    FIELD(struct sandbox_status, template_name, "template", FIELD_TEXT, "The template that it was made from.",
          .column = "Template", .column_priority = 1),
    FIELD(struct sandbox_status, workspace_uid, "workspaceUid", FIELD_TEXT,
          "Uid of the workspace that spec.workspaceRef was bound to.", .is_selectable = true),
    FIELD(struct sandbox_status, workspace_root, "workspaceRoot", FIELD_TEXT,
          "Absolute path of the workspace, the same inside and outside.", .column = "Root",
          .column_priority = 1),
    FIELD(struct sandbox_status, runtime_name, "runtimeName", FIELD_TEXT,
          "The driver's name of the runtime, from uid and attempt.", .column = "Runtime",
          .column_priority = 1, .is_selectable = true),
    FIELD(struct sandbox_status, attempt, "attempt", FIELD_INT,
          "Number of the create attempt that the runtime name belongs to."),
    FIELD(struct sandbox_status, isolation, "isolation", FIELD_TEXT,
          "How strong the wall is: namespace or microvm.", .column = "Isolation", .is_selectable = true),
    FIELD(struct sandbox_status, capabilities, "capabilities", FIELD_LIST,
          "What can and cannot be done inside.", .fields = &capability_table, .key = "name"),
    FIELD(struct sandbox_status, limits, "limits", FIELD_TEXT_LIST, "Limits that hold: memory, pids, cpu."),
    FIELD(struct sandbox_status, last_activity_at, "lastActivityAt", FIELD_TIME,
          "When the last tool call reached the sandbox."),
    FIELD(struct sandbox_status, expires_at, "expiresAt", FIELD_TIME,
          "When it is removed unless a tool call reaches it before.", .column = "Expires",
          .column_priority = 1),
    FIELD(struct sandbox_status, started_at, "startedAt", FIELD_TIME, "When its tool server first answered."),
};
const struct field_table sandbox_status_table =
    FIELD_TABLE(struct sandbox_status, status_fields, "Observed state of a sandbox.");
