// Records in memory: life, copies, JSON at the edges, conditions. Backed by the field tables.
// No locks: a record belongs to one thread at a time (copies share nothing).
#pragma once
#include "controller/base/error.h"
#include "schemas/kinds/conditions.h"
#include "schemas/kinds/kinds.h"

// What is fixed for each kind. One row a kind in schemas/kinds/kinds.c.
struct kind_info {
    enum kind kind;
    const char *name;       // "Sandbox"
    const char *singular;   // "sandbox"
    const char *plural;     // "sandboxes"
    const char *short_name; // "sbx"
    const char *uid_prefix; // "sbx_"
    bool is_user_creatable; // Session is not
};
#define API_GROUP "chat2shell.dev"
#define API_VERSION "v1"
const struct kind_info *kind_info(enum kind kind);
// By kind name, singular, plural or short name, any case. NULL if unknown.
const struct kind_info *kind_find(const char *word);

struct record *record_new(enum kind kind);
struct record *record_copy(const struct record *from);
void record_free(struct record *record); // NULL allowed
static inline void record_cleanup(struct record **at)
{
    record_free(*at);
}
#define CLEANUP_RECORD __attribute__((cleanup(record_cleanup)))

struct record_list {
    struct record **items;
    size_t count;
};
void record_list_free(struct record_list *list);

// The whole API object: apiVersion, kind, metadata, spec, status (phase included). New reference.
json_t *record_to_json(const struct record *record);
json_t *record_spec_to_json(const struct record *record);
json_t *record_status_to_json(const struct record *record);
// Reads "spec" of a manifest into record->spec: defaults applied, every unknown field, wrong type, bad enum and
// out-of-range value collected. On failure ERROR_INVALID whose message holds them all (at most 20), each naming
// its path ("spec.port: must be at least 1"), and *ret_causes (NULL allowed) an array [{field, message, reason}].
int record_spec_from_json(struct record *record, const json_t *spec, json_t **ret_causes, struct error *err);
// The store's own bytes: lenient about unknown fields (a newer minor version wrote them), bounds and checks; only a
// wrong type is an error (ERROR_CORRUPT).
int record_spec_from_store_json(struct record *record, const json_t *spec, struct error *err);
int record_status_from_json(struct record *record, const json_t *status, struct error *err);
// Everything in record->meta, for the store's meta column: times to the millisecond. Its form is private to the store.
json_t *record_meta_to_json(const struct record *record);
int record_meta_from_store_json(struct record *record, const json_t *meta, struct error *err);

// Reads "metadata" of a manifest or request: name, labels, annotations, ownerReferences and finalizers replace the record's (of the
// finalizers the server's own, API_GROUP "/…", stay as they are); resourceVersion is put into meta.resource_version (0 if
// absent); what the server owns (uid, generation, creationTimestamp, managedFields, selfLink,
// deletionTimestamp, deletionGracePeriodSeconds) and what does not concern a stored object (namespace, generateName) is
// accepted and ignored so that `get -o yaml | apply` round-trips. A name that is absent leaves the record's. The annotation ANNOTATION_CREATED_BY is
// never stored: equal to meta.created_by, or given for a new record, it is dropped; otherwise refused. Strict about
// everything else; problems as in record_spec_from_json, but appended to `causes` (NULL allowed), so that a caller can
// collect metadata's and spec's and word them once (fields_causes_to_error). record->meta untouched on failure.
#define ANNOTATION_CREATED_BY "chat2shell.dev/created-by" // computed on output from meta.created_by
#define ANNOTATION_REQUEST "chat2shell.dev/request"       // Sandbox: digest of the create's arguments; the same request joins it
#define ANNOTATION_REMOVED_AT "chat2shell.dev/removed-at" // of tombstones only; computed on output from meta.removed_at
int record_meta_from_json(struct record *record, const json_t *metadata, json_t *causes, struct error *err);
// ---- field management (managedFields) -----------------------------------------------------------------------------
// What callers own of the record as an object of kind_owned_table (schemas/kinds/tables.h): without the server's own
// annotations and finalizers (those that begin with API_GROUP "/"). New reference.
json_t *record_owned_json(const struct record *record);
// After a write by `manager` with operation Update at `now`: the owned leaves that differ between before (NULL: a create)
// and record become the manager's; other managers lose them; removed ones belong to nobody. At most 32 Update managers:
// the oldest are merged into "ancient-changes". No difference: no change.
void record_touch_managed(struct record *record, const struct record *before, const char *manager, struct wall_time now);
// The same for operation Apply: `set` (controller/fields/owned.h) is all that the manager owns as an applier from now on.
// Nothing that differs and the same set as before: no change, the time included.
void record_apply_managed(struct record *record, const struct record *before, const char *manager, const json_t *set,
                          struct wall_time now);
const json_t *record_applied_by(const struct record *record, const char *manager); // its set, borrowed; NULL if it never applied
json_t *record_managed_by_others(const struct record *record, const char *manager); // all entries but that one. New reference.
// managedFields as a client sent them with a PUT or PATCH: an empty list (or one empty entry) resets them; what is not
// valid changes nothing.
void record_set_managed(struct record *record, const json_t *given);
// Refuses changed immutable fields, naming them.
int record_check_update(const struct record *before, const struct record *after, struct error *err);
bool record_spec_equals(const struct record *a, const struct record *b);
bool record_status_equals(const struct record *a, const struct record *b);

// DNS-1123 label, at most 63 characters.
int record_check_name(const char *name, struct error *err);

// ---- text parts -------------------------------------------------------------------------------------------------
bool text_list_has(const struct text_list *list, const char *text);
void text_list_add(struct text_list *list, const char *text); // no duplicates
void text_list_remove(struct text_list *list, const char *text);
void text_list_clear(struct text_list *list);
bool owners_equal(const struct owner_list *a, const struct owner_list *b);
void owners_copy(const struct owner_list *from, struct owner_list *to); // what `to` had is freed
json_t *owners_to_json(const struct owner_list *owners);                // as ownerReferences; new reference
const char *text_map_get(const struct text_map *map, const char *key);
void text_map_set(struct text_map *map, const char *key, const char *value); // NULL removes

// ---- conditions ---------------------------------------------------------------------------------------------------
struct condition_list *record_conditions(struct record *record);
const struct condition *record_condition(const struct record *record, const char *type); // NULL if absent
bool record_is_true(const struct record *record, const char *type);
bool record_is_false(const struct record *record, const char *type);
// The one function that sets a condition: writes lastTransitionTime only on a flip of status (design 3).
// Returns true if anything changed. reason is a CamelCase word; message is formatted.
bool record_set_condition(struct record *record, const char *type, enum condition_status status, struct wall_time now,
                          const char *reason, const char *message_format, ...) __attribute__((format(printf, 6, 7)));
bool record_drop_condition(struct record *record, const char *type);
// Computes the phase (printer word) from conditions and metadata, and puts it into status.phase. Words: sandbox
// creating, running, destroying, destroyed, failed; workspace pending, approved, retained, trashed, revoked; approval pending, approved, rejected, revoked; session starting, ready, failed, ended; exposure
// pending, published, failed, removed; approval rule pending, active, expired, exhausted, outside, removed. A tombstone's: destroyed, trashed, revoked, ended, removed.
const char *record_compute_phase(struct record *record);
