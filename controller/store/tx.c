// What a transaction may do. Each write reads the record fresh, makes the new one beside it, and commits both images
// with it; the caller's record is replaced only when all went well.
#include "controller/store/internal.h"
#include "controller/base/json.h"
#include "controller/base/memory.h"
#include "controller/ids.h"
#include "controller/policy.h"
#include <assert.h>
#include <string.h>

static void swap_records(struct record *a, struct record *b)
{
    struct record kept = *a;
    *a = *b;
    *b = kept;
}

int tx_get(struct store_tx *tx, enum kind kind, const char *name, struct record **ret, struct error *err)
{
    return rows_get(tx->store, tx->sql, SQL_GET_NAME, kind, name, ret, err);
}

int tx_get_uid(struct store_tx *tx, enum kind kind, const char *uid, struct record **ret, struct error *err)
{
    return rows_get(tx->store, tx->sql, SQL_GET_UID, kind, uid, ret, err);
}

int tx_list(struct store_tx *tx, enum kind kind, struct record_list *ret, struct error *err)
{
    return rows_list(tx->store, tx->sql, sql_query(tx->sql, SQL_LIST, err, "t", kind_info(kind)->name), ret, err);
}

int tx_list_bound(struct store_tx *tx, enum kind kind, const char *to_uid, struct record_list *ret, struct error *err)
{
    return rows_list_bound(tx->store, tx->sql, kind, to_uid, ret, err);
}

struct wall_time tx_now(struct store_tx *tx)
{
    return tx->now;
}

// ---- shared by the writes ----------------------------------------------------------------------------------------

// A live record by uid.
static int get_live(struct store_tx *tx, enum kind kind, const char *uid, struct record **ret, struct error *err)
{
    assert(uid);
    CLEANUP_RECORD struct record *current = NULL;
    if (tx_get_uid(tx, kind, uid, &current, err) < 0)
        return -1;
    if (current->meta.removed_at.ms)
        return error_set(err, ERROR_NOT_FOUND, NULL, "the %s '%s' was removed", kind_info(kind)->singular, current->meta.name);
    *ret = TAKE_PTR(current);
    return 0;
}

static int check_version(const struct record *current, int64_t seen, struct error *err)
{
    if (seen == 0 || seen == current->meta.resource_version)
        return 0;
    return error_set(err, ERROR_CONFLICT, "read it again and apply the change to what it is now",
                     "the %s '%s' was changed: it has resourceVersion %lld, not %lld", kind_info(current->kind)->singular,
                     current->meta.name, (long long)current->meta.resource_version, (long long)seen);
}

// Nothing of a half-done write may be committed, whatever the caller's function makes of the failure.
static int break_request(struct store_tx *tx, struct error *err)
{
    tx->is_broken = true;
    tx->broken = err ? *err : (struct error){.code = ERROR_IO, .message = "a write failed half done"};
    return -1;
}

// Row, side tables, feed. before is NULL for a create.
static int put(struct store_tx *tx, enum store_change_type type, const struct record *before, struct record *after, struct error *err)
{
    struct error mine = ERROR_INIT;
    after->meta.resource_version = tx->revision + 1;
    if (row_write(tx->sql, before ? SQL_UPDATE : SQL_INSERT, after, &mine) < 0)
        return error_copy(err, &mine);
    CLEANUP_JSON json_t *before_image = before ? record_to_json(before) : NULL;
    CLEANUP_JSON json_t *after_image = record_to_json(after);
    if ((type == STORE_DELETED && (sql_run(tx->sql, SQL_ACTIVITY_DROP, &mine, "t", after->meta.uid) < 0 ||
                                   sql_run(tx->sql, SQL_SECRETS_DROP, &mine, "t", after->meta.uid) < 0)) ||
        feed_append(tx, type, after, before_image, after_image, &mine) < 0) {
        error_copy(err, &mine);
        return break_request(tx, &mine);
    }
    tx->revision++;
    return 0;
}

// The last finalizer of a record whose deletion was asked for is gone, or it never had one.
static int put_changed(struct store_tx *tx, const struct record *before, struct record *after, struct error *err)
{
    bool is_removed = after->meta.deletion_at.ms && after->meta.finalizers.count == 0;
    if (is_removed)
        after->meta.removed_at = tx->now;
    record_compute_phase(after);
    return put(tx, is_removed ? STORE_DELETED : STORE_MODIFIED, before, after, err);
}

// ---- create --------------------------------------------------------------------------------------------------------

static int choose_identity(struct record *record, struct error *err)
{
    char text[ID_TEXT_SIZE];
    if (record->meta.uid && !id_is_of(record->kind, record->meta.uid))
        return error_set(err, ERROR_INVALID, NULL, "'%s' is not a uid of a %s", record->meta.uid, kind_info(record->kind)->singular);
    if (!record->meta.uid) {
        id_make(record->kind, text);
        mem_replace(&record->meta.uid, text);
    }
    if (!record->meta.name) {
        id_to_name(record->meta.uid, text);
        mem_replace(&record->meta.name, text);
    }
    return record_check_name(record->meta.name, err);
}

static void set_birth(struct store_tx *tx, const struct store_actor *actor, struct record *record)
{
    struct record_meta *meta = &record->meta;
    meta->generation = 1;
    meta->created_at = tx->now;
    meta->deletion_at.ms = meta->removed_at.ms = 0;
    mem_replace(&meta->created_by, actor->principal);
    record->status.workspace.observed_generation = 0; // first member of every status; no reconciler has seen it
    if (record->kind == KIND_SANDBOX) {
        record->status.sandbox.last_activity_at = tx->now;
        record->status.sandbox.expires_at.ms = tx->now.ms + SANDBOX_IDLE_MS;
    }
    if (!meta->managed_fields)
        record_touch_managed(record, NULL, actor->manager, tx->now);
    record_compute_phase(record);
}

int tx_create(struct store_tx *tx, const struct store_actor *actor, struct record *record, struct error *err)
{
    assert(actor->principal && actor->manager);
    if (tx->is_low_on_disk)
        return error_set(err, ERROR_DISK, "free space there, for example by destroying sandboxes you no longer need",
                         "nothing new is created: the disk of the state directory is nearly full");
    CLEANUP_RECORD struct record *next = record_copy(record);
    if (choose_identity(next, err) < 0)
        return -1;
    set_birth(tx, actor, next);
    if (put(tx, STORE_ADDED, NULL, next, err) < 0)
        return -1;
    swap_records(record, next);
    return 0;
}

// ---- spec ------------------------------------------------------------------------------------------------------------

static void take_spec(struct record *to, const struct record *from)
{
    CLEANUP_RECORD struct record *copy = record_copy(from);
    __typeof__(copy->spec) kept = to->spec;
    to->spec = copy->spec;
    copy->spec = kept;
}

int tx_write_spec(struct store_tx *tx, const struct store_actor *actor, struct record *record, struct error *err)
{
    assert(actor->principal && actor->manager);
    CLEANUP_RECORD struct record *current = NULL;
    if (get_live(tx, record->kind, record->meta.uid, &current, err) < 0 ||
        check_version(current, record->meta.resource_version, err) < 0)
        return -1;
    CLEANUP_RECORD struct record *next = record_copy(current);
    take_spec(next, record);
    if (record_check_update(current, next, err) < 0)
        return -1;
    if (!record_spec_equals(current, next)) {
        next->meta.generation++;
        record_touch_managed(next, current, actor->manager, tx->now);
        if (put_changed(tx, current, next, err) < 0)
            return -1;
    }
    swap_records(record, next);
    return 0;
}

// ---- metadata ----------------------------------------------------------------------------------------------------------

static bool text_lists_equal(const struct text_list *a, const struct text_list *b)
{
    bool is_equal = a->count == b->count;
    for (size_t i = 0; is_equal && i < a->count; i++)
        is_equal = strcmp(a->items[i], b->items[i]) == 0;
    return is_equal;
}

static bool text_maps_equal(const struct text_map *a, const struct text_map *b)
{
    bool is_equal = a->count == b->count;
    for (size_t i = 0; is_equal && i < a->count; i++)
        is_equal = strcmp(a->items[i].key, b->items[i].key) == 0 && strcmp(a->items[i].value, b->items[i].value) == 0;
    return is_equal;
}

static bool meta_equals(const struct record_meta *a, const struct record_meta *b)
{
    return text_lists_equal(&a->finalizers, &b->finalizers) && text_maps_equal(&a->labels, &b->labels) &&
           text_maps_equal(&a->annotations, &b->annotations) && owners_equal(&a->owners, &b->owners);
}

#define SWAP(a, b)                                                                                           \
    do {                                                                                                     \
        __typeof__(a) kept_ = (a);                                                                           \
        (a) = (b);                                                                                           \
        (b) = kept_;                                                                                         \
    } while (0)

static void take_meta(struct record *to, const struct record *from)
{
    CLEANUP_RECORD struct record *copy = record_copy(from);
    SWAP(to->meta.finalizers, copy->meta.finalizers);
    SWAP(to->meta.labels, copy->meta.labels);
    SWAP(to->meta.annotations, copy->meta.annotations);
    SWAP(to->meta.owners, copy->meta.owners);
}

static int check_finalizers(const struct record *current, const struct record *next, struct error *err)
{
    for (size_t i = 0; current->meta.deletion_at.ms && i < next->meta.finalizers.count; i++)
        if (!text_list_has(&current->meta.finalizers, next->meta.finalizers.items[i]))
            return error_set(err, ERROR_INVALID, NULL,
                             "metadata.finalizers: '%s' may not be added: the deletion of '%s' was asked for already",
                             next->meta.finalizers.items[i], current->meta.name);
    return 0;
}

int tx_write_meta(struct store_tx *tx, const struct store_actor *actor, struct record *record, struct error *err)
{
    assert(actor->principal && actor->manager);
    CLEANUP_RECORD struct record *current = NULL;
    if (get_live(tx, record->kind, record->meta.uid, &current, err) < 0 ||
        check_version(current, record->meta.resource_version, err) < 0)
        return -1;
    CLEANUP_RECORD struct record *next = record_copy(current);
    take_meta(next, record);
    if (check_finalizers(current, next, err) < 0)
        return -1;
    if (!meta_equals(&current->meta, &next->meta)) {
        record_touch_managed(next, current, actor->manager, tx->now);
        if (put_changed(tx, current, next, err) < 0)
            return -1;
    }
    swap_records(record, next);
    return 0;
}

// ---- both ----------------------------------------------------------------------------------------------------------------

static bool managed_equals(const struct record_meta *a, const struct record_meta *b)
{
    return json_array_size(a->managed_fields) == json_array_size(b->managed_fields) &&
           (!json_array_size(a->managed_fields) || json_equal(a->managed_fields, b->managed_fields));
}

int tx_write_object(struct store_tx *tx, const struct store_actor *actor, struct record *record, struct error *err)
{
    assert(actor->principal && actor->manager);
    CLEANUP_RECORD struct record *current = NULL;
    if (get_live(tx, record->kind, record->meta.uid, &current, err) < 0 ||
        check_version(current, record->meta.resource_version, err) < 0)
        return -1;
    CLEANUP_RECORD struct record *next = record_copy(current);
    take_spec(next, record);
    take_meta(next, record);
    json_decref(next->meta.managed_fields);
    next->meta.managed_fields = json_deep_copy(record->meta.managed_fields);
    if (record_check_update(current, next, err) < 0 || check_finalizers(current, next, err) < 0)
        return -1;
    bool is_spec_changed = !record_spec_equals(current, next);
    next->meta.generation += is_spec_changed;
    if ((is_spec_changed || !meta_equals(&current->meta, &next->meta) || !managed_equals(&current->meta, &next->meta)) &&
        put_changed(tx, current, next, err) < 0)
        return -1;
    swap_records(record, next);
    return 0;
}

// ---- status --------------------------------------------------------------------------------------------------------------

static int check_generation(const struct record *current, int64_t seen, struct error *err)
{
    if (seen == current->meta.generation)
        return 0;
    return error_set(err, ERROR_CONFLICT, "read it again", "the status of the %s '%s' was computed from generation %lld, but it has %lld",
                     kind_info(current->kind)->singular, current->meta.name, (long long)seen, (long long)current->meta.generation);
}

static void take_status(struct record *to, const struct record *from)
{
    struct wall_time last = to->status.sandbox.last_activity_at, expires = to->status.sandbox.expires_at;
    CLEANUP_RECORD struct record *copy = record_copy(from);
    SWAP(to->status, copy->status);
    if (to->kind == KIND_SANDBOX) { // the activity table's, whatever the caller read earlier
        to->status.sandbox.last_activity_at = last;
        to->status.sandbox.expires_at = expires;
    }
    to->status.workspace.observed_generation = to->meta.generation; // first member of every status
    record_compute_phase(to);
}

int tx_write_status(struct store_tx *tx, struct record *record, struct error *err)
{
    CLEANUP_RECORD struct record *current = NULL;
    if (get_live(tx, record->kind, record->meta.uid, &current, err) < 0 || check_generation(current, record->meta.generation, err) < 0 ||
        check_version(current, record->meta.resource_version, err) < 0)
        return -1;
    CLEANUP_RECORD struct record *next = record_copy(current);
    take_status(next, record);
    if (!record_status_equals(current, next) && put_changed(tx, current, next, err) < 0)
        return -1;
    swap_records(record, next);
    return 0;
}

// ---- deletion ------------------------------------------------------------------------------------------------------------

int tx_delete(struct store_tx *tx, const struct store_actor *actor, enum kind kind, const char *uid, struct error *err)
{
    assert(actor->principal && actor->manager && uid);
    CLEANUP_RECORD struct record *current = NULL;
    if (tx_get_uid(tx, kind, uid, &current, err) < 0)
        return -1;
    if (current->meta.deletion_at.ms)
        return 0;
    CLEANUP_RECORD struct record *next = record_copy(current);
    next->meta.deletion_at = tx->now;
    return put_changed(tx, current, next, err);
}

// ---- secrets ---------------------------------------------------------------------------------------------------------------

int tx_put_secret(struct store_tx *tx, const char *uid, const char *name, const char *value, struct error *err)
{
    int64_t is_live;
    if (sql_number(tx->sql, SQL_IS_LIVE, &is_live, err, "t", uid) < 0)
        return -1;
    if (!is_live)
        return error_set(err, ERROR_NOT_FOUND, NULL, "there is no live record %s to keep a secret for", uid);
    return sql_run(tx->sql, SQL_SECRET_PUT, err, "ttt", uid, name, value);
}
