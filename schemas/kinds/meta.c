// The store's own form of metadata: everything that record_meta holds, times to the millisecond.
#include "schemas/kinds/common.h"

static const struct field meta_fields[] = {
    FIELD(struct record_meta, name, "name", FIELD_TEXT, "Name, unique among the live records of the kind."),
    FIELD(struct record_meta, uid, "uid", FIELD_TEXT, "Public id, never used twice."),
    FIELD(struct record_meta, resource_version, "resourceVersion", FIELD_INT,
          "Store revision of the last write."),
    FIELD(struct record_meta, generation, "generation", FIELD_INT, "Counts the changes of spec."),
    FIELD(struct record_meta, created_at, "createdAt", FIELD_TIME, "When the record was made."),
    FIELD(struct record_meta, deletion_at, "deletionAt", FIELD_TIME, "When deletion was asked for."),
    FIELD(struct record_meta, removed_at, "removedAt", FIELD_TIME,
          "When the last finalizer went; a tombstone since."),
    FIELD(struct record_meta, created_by, "createdBy", FIELD_TEXT, "Principal that made the record."),
    FIELD(struct record_meta, finalizers, "finalizers", FIELD_TEXT_LIST,
          "What must be undone before the record may go."),
    FIELD(struct record_meta, labels, "labels", FIELD_TEXT_MAP, "Labels for selectors."),
    FIELD(struct record_meta, annotations, "annotations", FIELD_TEXT_MAP, "Free text kept for clients."),
    FIELD(struct record_meta, owners, "owners", FIELD_LIST, "Records that this one belongs to.",
          .fields = &owner_table, .key = "uid"),
    FIELD(struct record_meta, managed_fields, "managedFields", FIELD_JSON,
          "Which field manager set which field."),
};
const struct field_table record_meta_table =
    FIELD_TABLE(struct record_meta, meta_fields, "Metadata of a stored record.");
