// What this API lists and watches: the kinds of chat2shell, and core v1's Events and Namespaces. Objects are
// seen here as images: API objects in compact JSON text (controller/base/json_span.h), as they are or as they were.
#pragma once
#include "api/operator/selectors.h"
#include "controller/base/json.h"
#include "controller/store/store.h"

enum resource_feed { FEED_RECORDS, FEED_EVENTS, FEED_NONE, FEED_COUNT }; // where changes come from

struct resource_column {
    const char *name, *type, *doc;
    int priority; // 0 shown, 1 only wide
    // The cell, a new reference. now: for ages.
    json_t *(*cell)(const json_t *image, struct wall_time now);
};
struct resource {
    const char *group, *version, *api_version; // group "" = core
    const char *kind, *plural, *singular, *short_name;
    bool is_namespaced;
    enum resource_feed feed;
    enum kind record_kind;                 // FEED_RECORDS only
    const char *const *fields;             // NULL: the field tables'
    const struct resource_column *columns; // NULL: the field tables'
    size_t column_count;
};
const struct resource *resource_of_kind(enum kind kind);
extern const struct resource resource_events, resource_namespaces;
#define EVENTS_NAMESPACE "default"

// ---- fields (resource_fields.c)
// The paths that a fieldSelector may name, NULL at the end. Static.
const char *const *resource_fields(const struct resource *resource);
bool image_fits(struct json_span image, const struct selector *labels, const struct selector *fields);
struct json_span image_meta(struct json_span image);
const char *json_object_name(const json_t *object); // "" if it has none

// ---- objects (resource_read.c). Any thread.
struct resource_page_request {
    int64_t revision; // 0 = the newest
    int64_t after;    // store_page_item.id of the last known one; 0 = from the first
    size_t limit;
    const char *name;      // only this one, NULL = all
    const char *about_uid; // Events of this object only, NULL = all
    bool must_count;
};
// As store_read_page. Events are not kept as they were: their pages go on from where the last one ended.
int resource_read_page(struct store *store, const struct resource *resource,
                       const struct resource_page_request *request, struct store_page *ret,
                       struct error *err);
int64_t resource_newest(struct store *store, enum resource_feed feed); // the revision of now
// ERROR_EXPIRED: changes after this revision are not all known any more.
int resource_check_revision(struct store *store, enum resource_feed feed, int64_t revision,
                            struct error *err);

struct resource_change { // images are owned; before NULL: none
    enum store_change_type type;
    enum kind record_kind;
    int64_t revision;
    char *before, *after;
    size_t before_len, after_len;
};
void resource_change_clear(struct resource_change *change);
// In order, those after `after`. ERROR_EXPIRED as resource_check_revision.
int resource_read_changes(struct store *store, enum resource_feed feed, int64_t after, size_t limit,
                          struct resource_change **ret, size_t *ret_count, struct error *err);
// Event NAME as `get` asks for it. ERROR_NOT_FOUND.
int resource_get(struct store *store, const struct resource *resource, const char *name, char **ret,
                 struct error *err);
