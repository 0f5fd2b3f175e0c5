// Rows and checks that several kinds share. Inside schemas/kinds and controller/record* only.
#pragma once
#include "schemas/kinds/tables.h"

extern const struct field_table condition_table, owner_table, record_meta_table;
extern const struct field_table given_owners_table; // {ownerReferences} as clients send it, into a struct owner_list
extern const char *const workspace_mode_words[]; // by enum workspace_mode
extern const char *const decision_words[];       // by enum approval_decision

extern const struct field_table workspace_spec_table, workspace_status_table, approval_spec_table,
    approval_status_table, sandbox_spec_table, sandbox_status_table, session_spec_table, session_status_table,
    exposure_spec_table, exposure_status_table, approval_rule_spec_table, approval_rule_status_table;

// What every status begins with.
#define STATUS_FIELDS(owner)                                                                                 \
    FIELD(owner, observed_generation, "observedGeneration", FIELD_INT,                                       \
          "The metadata.generation that this status was computed from."),                                    \
        FIELD(owner, conditions, "conditions", FIELD_LIST,                                                   \
              "What is true of the object now; the phase is computed from these.",                           \
              .fields = &condition_table, .key = "type"),                                                    \
        FIELD(owner, phase, "phase", FIELD_TEXT,                                                             \
              "One word for people, computed from the conditions. Programs read the conditions.",            \
              .column = "Status", .is_selectable = true)

// Field checks (fields.h: check).
const char *check_record_name(const void *value); // DNS-1123 label
const char *
check_absolute_path(const void *value); // absolute, no empty, "." or ".." component, no control characters
const char *check_plain_text(const void *value); // no control characters
// A check in a row of a table, with its form for clients: CHECKED(record_name).
#define CHECKED(form) .check = check_##form, .pattern = PATTERN_##form
#define PATTERN_record_name "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"
#define PATTERN_absolute_path "^/[^\\x00-\\x1f\\x7f]*$"
#define PATTERN_plain_text "^[^\\x00-\\x1f\\x7f]*$"
