// What callers own of an object, in its JSON form: field managers are told apart by these rows. Only names and types count
// here; metadata is read by controller/record_meta.c.
#include "schemas/kinds/common.h"
#include <assert.h>

static const struct field owner_reference_fields[] = {
    {.name = "apiVersion", .type = FIELD_TEXT, .doc = "API group and version of the owner."},
    {.name = "kind", .type = FIELD_TEXT, .doc = "Kind of the owner."},
    {.name = "name", .type = FIELD_TEXT, .doc = "Name of the owner."},
    {.name = "uid", .type = FIELD_TEXT, .doc = "Uid of the owner."},
    {.name = "controller", .type = FIELD_JSON, .doc = "Whether the owner is what manages this object."},
    {.name = "blockOwnerDeletion", .type = FIELD_JSON, .doc = "Kept for clients, without effect."},
};
static const struct field_table owner_reference_table =
    FIELD_TABLE(struct owner_reference, owner_reference_fields, "A record that this one belongs to.");

static const struct field owned_metadata_fields[] = {
    {.name = "labels", .type = FIELD_TEXT_MAP, .doc = "Labels for selectors."},
    {.name = "annotations", .type = FIELD_TEXT_MAP, .doc = "Free text kept for clients."},
    {.name = "finalizers", .type = FIELD_TEXT_LIST, .doc = "What must be undone before the record may go.", .is_set = true},
    {.name = "ownerReferences",
     .type = FIELD_LIST,
     .doc = "Records that this one belongs to.",
     .fields = &owner_reference_table,
     .key = "uid"},
};
static const struct field_table owned_metadata_table =
    FIELD_TABLE(struct record_meta, owned_metadata_fields, "Metadata that callers own.");

#define OBJECT_ROWS(spec_table)                                                                                          \
    {                                                                                                                    \
        {.name = "metadata", .type = FIELD_OBJECT, .doc = "Names, labels and the like.", .fields = &owned_metadata_table}, \
            {.name = "spec", .type = FIELD_OBJECT, .doc = "What is wanted.", .fields = &(spec_table)},                     \
    }
static const struct field rows[KIND_COUNT][2] = {
    [KIND_WORKSPACE] = OBJECT_ROWS(workspace_spec_table), [KIND_APPROVAL] = OBJECT_ROWS(approval_spec_table),
    [KIND_SANDBOX] = OBJECT_ROWS(sandbox_spec_table),     [KIND_SESSION] = OBJECT_ROWS(session_spec_table),
    [KIND_EXPOSURE] = OBJECT_ROWS(exposure_spec_table),   [KIND_APPROVAL_RULE] = OBJECT_ROWS(approval_rule_spec_table),
};
#define OBJECT_TABLE(kind) {.doc = "An object, as far as callers own it.", .fields = rows[kind], .count = 2}
static const struct field_table objects[KIND_COUNT] = {
    OBJECT_TABLE(KIND_WORKSPACE), OBJECT_TABLE(KIND_APPROVAL), OBJECT_TABLE(KIND_SANDBOX),
    OBJECT_TABLE(KIND_SESSION),   OBJECT_TABLE(KIND_EXPOSURE), OBJECT_TABLE(KIND_APPROVAL_RULE),
};

const struct field_table *kind_owned_table(enum kind kind)
{
    assert(kind >= 0 && kind < KIND_COUNT);
    return &objects[kind];
}
