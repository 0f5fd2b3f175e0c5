// Where each resource's objects and changes come from.
#include "api/operator/resource_core.h"
#include "controller/base/memory.h"
#include <string.h>

static char *text_of(json_t *image) // taken
{
    char *text = json_to_text(image);
    json_decref(image);
    return text;
}

static void add_item(struct store_page *page, int64_t id, json_t *image)
{
    CLEANUP_FREE char *text = text_of(image);
    store_page_add(page, id, text, strlen(text));
}

void resource_change_clear(struct resource_change *change)
{
    free(change->before);
    free(change->after);
    change->before = change->after = NULL;
}

static int page_of_events(struct store *store, const struct resource_page_request *request,
                          struct store_page *ret, struct error *err)
{
    struct store_page page = STORE_PAGE_INIT;
    struct store_event_row *rows = NULL;
    size_t count = 0;
    int64_t version = 0;
    if (store_page_events(store, request->about_uid, request->after, request->limit + 1, &rows, &count,
                          &version, err) < 0)
        return -1;
    if (request->revision && !request->after && request->revision != version + 1) {
        store_events_free(rows, count);
        return error_set(err, ERROR_EXPIRED, "list without resourceVersion",
                         "events are not kept as they were at resource version %lld",
                         (long long)request->revision);
    }
    page.revision = version + 1;
    page.has_more = count > request->limit;
    for (size_t i = 0; i < count && i < request->limit; i++)
        add_item(&page, rows[i].id, event_image(&rows[i]));
    store_events_free(rows, count);
    *ret = page;
    return 0;
}

static int page_of_namespaces(struct store *store, const struct resource_page_request *request, struct store_page *ret)
{
    struct store_page page = STORE_PAGE_INIT;
    page.revision = 1;
    page.rest = request->must_count ? 0 : -1;
    if (!request->after && request->limit)
        add_item(&page, 1, namespace_image(store_created_at(store)));
    *ret = page;
    return 0;
}

int resource_read_page(struct store *store, const struct resource *resource,
                       const struct resource_page_request *request, struct store_page *ret, struct error *err)
{
    if (resource->feed == FEED_EVENTS)
        return page_of_events(store, request, ret, err);
    if (resource->feed == FEED_NONE)
        return page_of_namespaces(store, request, ret);
    const struct store_page_request of_store = {.kind = resource->record_kind,
                                                .revision = request->revision,
                                                .after = request->after,
                                                .limit = request->limit,
                                                .name = request->name,
                                                .must_count = request->must_count};
    return store_read_page(store, &of_store, ret, err);
}

int64_t resource_newest(struct store *store, enum resource_feed feed)
{
    if (feed == FEED_NONE)
        return 1;
    if (feed == FEED_RECORDS) {
        int64_t revision = store_revision(store);
        return revision ? revision : 1;
    }
    struct store_event_row *rows = NULL;
    size_t count = 0;
    int64_t version = 0;
    if (store_page_events(store, NULL, INT64_MAX, 1, &rows, &count, &version, NULL) == 0)
        store_events_free(rows, count);
    return version + 1;
}

static int word_foreign(int64_t revision, struct error *err)
{
    return error_set(err, ERROR_EXPIRED, "list again and go on from there",
                     "the resource version %lld is not one of this server", (long long)revision);
}

static int check_events(struct store *store, int64_t revision, struct error *err)
{
    struct store_event_row *rows = NULL;
    size_t count = 0;
    if (store_read_events(store, revision - 1, 0, &rows, &count, err) < 0)
        return -1;
    store_events_free(rows, count);
    return 0;
}

int resource_check_revision(struct store *store, enum resource_feed feed, int64_t revision, struct error *err)
{
    struct store_feed_row *rows = NULL;
    size_t count = 0;
    if (feed != FEED_RECORDS && revision > resource_newest(store, feed))
        return word_foreign(revision, err);
    if (feed == FEED_EVENTS)
        return check_events(store, revision, err);
    if (feed == FEED_NONE)
        return 0;
    if (store_read_feed(store, revision, 0, &rows, &count, err) < 0)
        return -1;
    store_feed_free(rows, count);
    return 0;
}

static int changes_of_records(struct store *store, int64_t after, size_t limit, struct resource_change **ret,
                              size_t *ret_count, struct error *err)
{
    struct store_feed_row *rows = NULL;
    size_t count = 0;
    if (store_read_feed(store, after, limit, &rows, &count, err) < 0)
        return -1;
    struct resource_change *changes = mem_alloc((count + 1) * sizeof(*changes));
    for (size_t i = 0; i < count; i++)
        changes[i] = (struct resource_change){.type = rows[i].type,
                                              .record_kind = rows[i].kind,
                                              .revision = rows[i].revision,
                                              .before = rows[i].before,
                                              .after = rows[i].after,
                                              .before_len = rows[i].before_len,
                                              .after_len = rows[i].after_len};
    free(rows); // the images have moved
    *ret = changes;
    *ret_count = count;
    return 0;
}

// What an event is about never changes, so its first image and its newest fit the same selectors.
static int changes_of_events(struct store *store, int64_t after, size_t limit, struct resource_change **ret,
                             size_t *ret_count, struct error *err)
{
    struct store_event_row *rows = NULL;
    size_t count = 0;
    if (store_read_events(store, after - 1, limit, &rows, &count, err) < 0)
        return -1;
    struct resource_change *changes = mem_alloc((count + 1) * sizeof(*changes));
    for (size_t i = 0; i < count; i++) {
        char *image = text_of(event_image(&rows[i]));
        size_t len = strlen(image);
        bool is_new = rows[i].count == 1 && !rows[i].has_ended;
        changes[i] = (struct resource_change){.type = rows[i].has_ended ? STORE_DELETED : is_new ? STORE_ADDED : STORE_MODIFIED,
                                              .revision = rows[i].version + 1,
                                              .before = is_new ? NULL : mem_strndup(image, len),
                                              .after = image,
                                              .before_len = is_new ? 0 : len,
                                              .after_len = len};
    }
    store_events_free(rows, count);
    *ret = changes;
    *ret_count = count;
    return 0;
}

int resource_read_changes(struct store *store, enum resource_feed feed, int64_t after, size_t limit,
                          struct resource_change **ret, size_t *ret_count, struct error *err)
{
    if (feed == FEED_RECORDS)
        return changes_of_records(store, after, limit, ret, ret_count, err);
    if (feed == FEED_EVENTS)
        return changes_of_events(store, after, limit, ret, ret_count, err);
    *ret = NULL;
    *ret_count = 0;
    return 0;
}

int resource_get(struct store *store, const struct resource *resource, const char *name, char **ret,
                 struct error *err)
{
    struct store_event_row *row = NULL;
    if (resource->feed == FEED_NONE && strcmp(name, EVENTS_NAMESPACE) == 0) {
        *ret = text_of(namespace_image(store_created_at(store)));
        return 0;
    }
    if (resource->feed == FEED_EVENTS && store_get_event(store, event_id_of_name(name), &row, err) == 0) {
        CLEANUP_JSON json_t *image = event_image(row);
        store_events_free(row, 1);
        if (strcmp(json_object_name(image), name) == 0)
            return *ret = json_to_text(image), 0;
    }
    return error_set(err, ERROR_NOT_FOUND, NULL, "%s \"%.100s\" not found", resource->plural, name);
}
