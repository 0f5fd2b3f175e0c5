#include "schemas/kinds/common.h"

static const struct field spec_fields[] = {
    FIELD(struct exposure_spec, sandbox_ref, "sandboxRef", FIELD_TEXT,
          "Name of the sandbox whose port is published.", CHECKED(record_name), .max = 63,
          .is_required = true, .is_immutable = true, .column = "Sandbox", .is_selectable = true),
    FIELD(struct exposure_spec, port, "port", FIELD_INT, "TCP port inside the sandbox.", .min = 1,
          .max = 65535, .is_required = true, .is_immutable = true, .column = "Port", .is_selectable = true),
};
const struct field_table exposure_spec_table =
    FIELD_TABLE(struct exposure_spec, spec_fields, "A TCP port of a sandbox, published on the host.");

static const struct field status_fields[] = {
    STATUS_FIELDS(struct exposure_status),
    FIELD(struct exposure_status, sandbox_uid, "sandboxUid", FIELD_TEXT,
          "Uid of the sandbox that spec.sandboxRef was bound to.", .is_selectable = true),
    FIELD(struct exposure_status, host_port, "hostPort", FIELD_INT, "TCP port on the host.",
          .column = "Host-Port", .is_selectable = true),
    FIELD(struct exposure_status, host_address, "hostAddress", FIELD_TEXT,
          "Address on the host that the port is bound to.", .column = "Host-Address", .column_priority = 1),
};
const struct field_table exposure_status_table =
    FIELD_TABLE(struct exposure_status, status_fields, "Observed state of an exposure.");
