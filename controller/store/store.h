// The store: SQLite in WAL mode, one writer thread, one global revision, a change feed with both images.
//
// Reads may come from any thread and return copies; no read transaction outlives one function. Writes are
// transactions: a function that runs on the store thread inside a savepoint of a group commit. Races are settled
// there (one active sandbox a workspace, "live and not deleting", joins): read what must hold, then write.
//
//     static int claim(struct store_tx *tx, void *arg, struct error *err) { … tx_get …; return tx_create(…); }
//     if (store_transact(store, claim, &request, err) < 0) return -1;
#pragma once
#include "controller/base/buffer.h"
#include "controller/base/json_span.h"
#include "controller/clock.h"
#include "controller/record.h"

struct store;
struct store_tx;

struct store_options {
    const char *state_dir;   // made 0700 (tightened if wider); holds chat2shell.sqlite (0600), lock, reserve
    struct clock *clock;
    size_t reserve_bytes;    // preallocated, released when the disk is full so that deletes still commit; 0 = 4 MiB
    size_t disk_floor_bytes; // below this much free space tx_create fails with ERROR_DISK; 0 = 64 MiB
    int64_t feed_keep_ms;    // 0 = 5 minutes
    int64_t feed_keep_rows;  // 0 = 10,000; the feed keeps whichever is more
};
#define STORE_DATABASE_NAME "chat2shell.sqlite"

// Takes the lock (ERROR_STATE naming the PID that holds it), checks schema and integrity, migrates after a backup.
// A newer schema or a corrupt file is refused untouched (ERROR_UNSUPPORTED, ERROR_CORRUPT).
int store_open(const struct store_options *options, struct store **ret, struct error *err);
// Completes what is queued and resumes the waiters that are left (as timed out). Before loop_stop of their loops.
void store_close(struct store *store);

// ---- reads ----------------------------------------------------------------------------------------------------
int store_get(struct store *store, enum kind kind, const char *name, struct record **ret, struct error *err);     // live
int store_get_uid(struct store *store, enum kind kind, const char *uid, struct record **ret, struct error *err);  // or tombstone
// Name, uid, or unique prefix (>= 8 characters) of a uid, live only; an ambiguous prefix lists the candidates.
int store_resolve(struct store *store, enum kind kind, const char *text, struct record **ret, struct error *err);
// All live records, oldest first, as of one revision.
int store_list(struct store *store, enum kind kind, struct record_list *ret, int64_t *ret_revision, struct error *err);
// At most max of them, oldest first: those in use before those that failed, are kept only or go, and of each the newest. *ret_left_out is
// how many there are beside them.
int store_list_foremost(struct store *store, enum kind kind, size_t max, struct record_list *ret, size_t *ret_left_out, struct error *err);
// Those of all that are bound to one record: Sandboxes to a workspace's uid, Sessions and Exposures to a sandbox's; NULL:
// those that are bound to none. By index: costs what it finds, however many records there are.
int store_list_bound(struct store *store, enum kind kind, const char *to_uid, struct record_list *ret, struct error *err);
// The uids of at most max live records, oldest first, for a caller that reads each one fresh later anyway. *at is where to go on: 0
// begins, and comes back when all were told. fn must not use the store.
int store_each_uid(struct store *store, enum kind kind, size_t max, int64_t *at, void (*fn)(void *arg, const char *uid), void *arg,
                   struct error *err);
// The uids of the live Sandboxes that are bound to no workspace yet and whose spec names this one (NULL: any). By index; as above.
int store_each_waiting(struct store *store, const char *workspace_name, void (*fn)(void *arg, const char *uid), void *arg, struct error *err);
// How many live records are in which phase ("unknown": none yet), in the order of the words. fn must not use the store.
int store_count_phases(struct store *store, enum kind kind, void (*fn)(void *arg, const char *phase, int64_t count), void *arg,
                       struct error *err);
int64_t store_revision(struct store *store);
// What a reader sees has not changed as long as this has not: records by the revision, sandboxes' last activity by a count.
struct store_version {
    int64_t revision, activity;
};
struct store_version store_version(struct store *store);

// One piece of a kind's live records as API objects, oldest first, as they were at one revision: the feed has what
// changed since. ERROR_EXPIRED when the revision is older than the feed or newer than the store: begin again.
struct store_page_request {
    enum kind kind;
    int64_t revision; // 0 = the newest
    int64_t after;    // page_item.id of the last one that is already known; 0 = from the first
    size_t limit;
    const char *name; // only this one; NULL = all
    bool must_count;  // fill `rest`
};
struct store_page_item {
    int64_t id; // order of birth
    size_t at, len; // of its image in the page's text: compact JSON
};
struct store_page {
    int64_t revision;
    struct buffer text;
    struct store_page_item *items;
    size_t count, room;
    bool has_more;
    int64_t rest; // how many follow this page; -1 = not counted
};
int store_read_page(struct store *store, const struct store_page_request *request, struct store_page *ret, struct error *err);
void store_page_clear(struct store_page *page);
#define STORE_PAGE_INIT {.text = BUFFER_INIT(SIZE_MAX / 4), .rest = -1} // for those who make pages of something else
void store_page_add(struct store_page *page, int64_t id, const char *text, size_t len);
void store_page_end_item(struct store_page *page, int64_t id, size_t begin); // the image is what was appended since
static inline struct json_span store_page_image(const struct store_page *page, size_t i)
{
    return (struct json_span){page->text.data + page->items[i].at, page->items[i].len};
}

// ---- writes ---------------------------------------------------------------------------------------------------
typedef int (*store_tx_fn)(struct store_tx *tx, void *arg, struct error *err);
// After the commit (or the failure), on the store thread. Must not block or transact; may loop_post or resume.
typedef void (*store_done_fn)(void *arg, int result, const struct error *err);
// Asynchronous. fn fails → only its own savepoint is undone. The queue holds at most 4,096; beyond: ERROR_LIMIT
// through done. After store_close began: ERROR_UNAVAILABLE through done.
void store_submit(struct store *store, store_tx_fn fn, store_done_fn done, void *arg);
// Waits for the commit. Never on the store thread, the loop thread or an HTTP thread.
int store_transact(struct store *store, store_tx_fn fn, void *arg, struct error *err);

// Who writes: principal ("mcp", "operator:uid=1000", "controller") and field manager ("kubectl", "chat2shell", …).
struct store_actor {
    const char *principal, *manager;
};

int tx_get(struct store_tx *tx, enum kind kind, const char *name, struct record **ret, struct error *err);
int tx_get_uid(struct store_tx *tx, enum kind kind, const char *uid, struct record **ret, struct error *err);
int tx_list(struct store_tx *tx, enum kind kind, struct record_list *ret, struct error *err); // live
int tx_list_bound(struct store_tx *tx, enum kind kind, const char *to_uid, struct record_list *ret, struct error *err); // as store_list_bound
// The live ones among Workspaces or Approvals of a mode and exactly this path; path NULL: of any. By index.
int tx_list_of_path(struct store_tx *tx, enum kind kind, enum workspace_mode mode, const char *path, struct record_list *ret, struct error *err);
int store_list_of_path(struct store *store, enum kind kind, enum workspace_mode mode, const char *path, struct record_list *ret, struct error *err);
// The live Sandboxes with this ANNOTATION_REQUEST that are on their way to run: neither did they yet, nor failed, nor go. By index.
int tx_list_starting(struct store_tx *tx, const char *request, struct record_list *ret, struct error *err);
int tx_count_live(struct store_tx *tx, enum kind kind, int64_t *ret, struct error *err);
// Live Sandboxes created after `since` by this principal, or one of its own ("principal:…").
int tx_count_born_since(struct store_tx *tx, struct wall_time since, const char *principal, int64_t *ret, struct error *err);
int tx_count_pending_approvals(struct store_tx *tx, int64_t *ret, struct error *err);
// Live Approvals, decided or not, that were asked for after `since` by this principal, or one of its own.
int tx_count_approvals_since(struct store_tx *tx, struct wall_time since, const char *principal, int64_t *ret, struct error *err);
// The uid of the live rejected Approval that has `newer` newer ones, the caller's; NULL if there are not so many.
int tx_find_old_rejected(struct store_tx *tx, int64_t newer, char **ret, struct error *err);
struct wall_time tx_now(struct store_tx *tx);

// in: kind, spec, optional meta.name, labels, annotations, finalizers, owners, and status (conditions the creator
// sets at birth). out: uid, name, revision, generation 1, timestamps, createdBy, managedFields. ERROR_EXISTS if a
// live record has the name. Set meta.uid beforehand to choose it (must be id_make's form), and meta.managed_fields if it
// is made by an apply (record_apply_managed); else every leaf becomes the actor's.
int tx_create(struct store_tx *tx, const struct store_actor *actor, struct record *record, struct error *err);
// Writes record->spec (callers' side). meta.resource_version != 0 must be current, else ERROR_CONFLICT; immutable
// fields checked; generation + 1 if it changed; equal spec is no write. record's meta is updated.
int tx_write_spec(struct store_tx *tx, const struct store_actor *actor, struct record *record, struct error *err);
// Labels, annotations, finalizers, owners. The last finalizer of a deleted record going removes it (tombstone,
// DELETED in the feed) in the same commit.
int tx_write_meta(struct store_tx *tx, const struct store_actor *actor, struct record *record, struct error *err);
// Spec and metadata in one write, as clients of the API make them: like the two above, but meta.managed_fields is stored as
// it is given (record_touch_managed, record_apply_managed), and is reason enough for a write by itself.
int tx_write_object(struct store_tx *tx, const struct store_actor *actor, struct record *record, struct error *err);
// The owning reconciler's status. Checked against uid, and against generation (a status computed from an older
// generation is ERROR_CONFLICT) and resource_version if != 0. observedGeneration and phase are set here. Equal = no write.
int tx_write_status(struct store_tx *tx, struct record *record, struct error *err);
// Asks for deletion: sets deletion_at, or removes at once where no finalizer is left. Again = no write.
int tx_delete(struct store_tx *tx, const struct store_actor *actor, enum kind kind, const char *uid, struct error *err);
// Conveniences for reconcilers: one-write transactions.
int store_write_status(struct store *store, struct record *record, struct error *err);
int store_write_meta(struct store *store, const struct store_actor *actor, struct record *record, struct error *err);

// ---- side tables -------------------------------------------------------------------------------------------------
// Activity: kept in memory, flushed at most every 30 s and at close; merged into status.lastActivityAt/expiresAt on read.
void store_touch_activity(struct store *store, const char *sandbox_uid, struct wall_time at);
struct wall_time store_activity(struct store *store, const char *sandbox_uid);
// Secrets: a table of their own that no serializer reads. Deleted with their record.
int tx_put_secret(struct store_tx *tx, const char *uid, const char *name, const char *value, struct error *err);
int store_get_secret(struct store *store, const char *uid, const char *name, char **ret, struct error *err);
// Events (Kubernetes Events of one object): counted when repeated, at most 64 an object and 10,000 in all, kept 1 h
// after the last occurrence. Asynchronous; never fails the caller. reason CamelCase; type "Normal"/"Warning".
void store_event(struct store *store, const struct record *about, bool is_warning, const char *reason, const char *format, ...)
    __attribute__((format(printf, 5, 6)));
struct store_event_row {
    char *uid, *kind, *name, *type, *reason, *message; // of the object
    struct wall_time first_at, last_at;
    int64_t count, id;
    int64_t version; // grows with each occurrence of any event, and with the end of any
    bool has_ended;  // store_read_events only: it is kept no more
};
// Oldest first; uid NULL = all. At most `limit`.
int store_list_events(struct store *store, const char *uid, size_t limit, struct store_event_row **ret, size_t *ret_count,
                      struct error *err);
void store_events_free(struct store_event_row *rows, size_t count);
// In order of id, from the one behind `after_id`; uid NULL = all. *ret_version: the newest version, as of the same moment.
int store_page_events(struct store *store, const char *uid, int64_t after_id, size_t limit, struct store_event_row **ret, size_t *ret_count,
                      int64_t *ret_version, struct error *err);
// In order of version, from the one behind `after_version`: what happened since (an event that was counted again once only), and what
// has ended. ERROR_EXPIRED: there is no telling any more which did.
int store_read_events(struct store *store, int64_t after_version, size_t limit, struct store_event_row **ret, size_t *ret_count,
                      struct error *err);
int store_get_event(struct store *store, int64_t id, struct store_event_row **ret, struct error *err); // ERROR_NOT_FOUND
// fn runs on the store thread after each event was committed, and on that of the upkeep after it; quick. One at a time for a store; fn NULL ends it: it will
// not run afterwards.
void store_on_event(struct store *store, void (*fn)(void *arg), void *arg);

// ---- the feed --------------------------------------------------------------------------------------------------
enum store_change_type { STORE_ADDED, STORE_MODIFIED, STORE_DELETED };
struct store_change {
    enum store_change_type type;
    enum kind kind;
    const char *uid, *name;
    int64_t revision;
};
// Called on the store thread after each group commit, in order. Must be quick: enqueue, post, resume.
struct store_subscription *store_subscribe(struct store *store, void (*fn)(void *arg, const struct store_change *changes, size_t count),
                                           void *arg);
void store_unsubscribe(struct store_subscription *subscription); // afterwards fn will not run
// Feed rows with revision > after: before- and after-images as API objects (NULL where there is none). ERROR_EXPIRED
// when `after` is older than the feed or newer than the store (a copy was put back): list again.
struct store_feed_row {
    enum store_change_type type;
    enum kind kind;
    int64_t revision;
    char *before, *after; // compact JSON
    size_t before_len, after_len;
};
int store_read_feed(struct store *store, int64_t after, size_t limit, struct store_feed_row **ret, size_t *ret_count, struct error *err);
void store_feed_free(struct store_feed_row *rows, size_t count);

// ---- waiting ---------------------------------------------------------------------------------------------------
// Calls fn once: when the record's revision is > after_revision (also if it already is), or at the deadline with
// is_timeout. On the store or loop thread; fn re-reads and may add a new waiter. No wake-up is lost: the check against
// the current revision and the registration are one step. A record that does not exist resumes at once. cancel returns
// true if fn will not run (and has not); it may be called at any time, also long after fn ran.
struct store_waiter;
struct loop;
struct store_waiter *store_wait(struct store *store, struct loop *loop, const char *uid, int64_t after_revision,
                                struct boot_time deadline, void (*fn)(void *arg, bool is_timeout), void *arg);
bool store_wait_cancel(struct store_waiter *waiter);

// The random name that this store got when it was made: 32 hex digits, the same for its whole life.
const char *store_instance(const struct store *store);
struct wall_time store_created_at(const struct store *store); // when it was made

// ---- upkeep (the manager calls it every minute) -------------------------------------------------------------------
// Trims the feed, drops tombstones and their activity after 30 days, old events; reports free space.
int store_upkeep(struct store *store, struct error *err);
int64_t store_free_bytes(struct store *store);
bool store_is_low_on_disk(struct store *store);
struct store_stats {
    int64_t revision, feed_rows, database_bytes, writes;
    int64_t live[KIND_COUNT];
};
int store_stats(struct store *store, struct store_stats *ret, struct error *err);
// SQLite's quick check of the whole file (of a huge one what 2 s are enough for). ERROR_CORRUPT. May take that long.
int store_check(struct store *store, struct error *err);
