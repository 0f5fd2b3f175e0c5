// DELETE of a kind's list: every object that the selectors fit, one after the other, each by the policy of its kind. What
// the policy refuses stays, and the answer names it.
#include "api/operator/body.h"
#include "api/operator/delete.h"
#include "api/operator/resource.h"
#include "controller/base/memory.h"
#include <string.h>

#define COLLECTION_MAX 1000 // of one request

struct collection {
    struct call *call;
    struct delete_options options;
    struct record_list list; // what is to be deleted
    size_t next;
    json_t *items;  // as they are now
    json_t *causes; // one for each that stays
    size_t refused;
    struct error first;
};

static void collection_free(struct collection *collection)
{
    record_list_free(&collection->list);
    json_decref(collection->items);
    json_decref(collection->causes);
    free(collection);
}

static void answer(struct collection *collection)
{
    struct call *call = collection->call;
    CLEANUP_FREE char *kind = mem_format("%sList", kind_info(call->match.kind)->name);
    struct error err = ERROR_INIT;
    if (collection->refused) {
        error_set(&err, collection->first.code, collection->first.hint, "%zu of %zu %s could not be deleted: %s", collection->refused,
                  collection->list.count, kind_info(call->match.kind)->plural, collection->first.message);
        operator_fail_with(call, &err, collection->causes);
    } else {
        operator_answer(call, 200, json_pack("{s:s, s:s, s:{}, s:O}", "kind", kind, "apiVersion", API_GROUP "/" API_VERSION, "metadata",
                                             "items", collection->items));
    }
    collection_free(collection);
}

static void delete_next(struct collection *collection);

static void run_next(void *arg)
{
    delete_next(arg);
}

static void refuse(struct collection *collection, const struct record *record, const struct error *err)
{
    if (collection->refused++ == 0)
        error_copy(&collection->first, err);
    body_add_cause(collection->causes, record->meta.name, error_meaning(err->code)->reason, "%s", err->message);
}

static void on_deleted(void *arg, int result, struct record *record, json_t *unsaved, const struct error *err)
{
    struct collection *collection = arg;
    json_decref(unsaved);
    if (result == 0)
        json_array_append_new(collection->items, record_to_json(record));
    else if (err->code != ERROR_NOT_FOUND) // gone meanwhile is gone
        refuse(collection, collection->list.items[collection->next - 1], err);
    record_free(record);
    loop_post(collection->call->world->loop, run_next, collection); // never deeper for more objects
}

static void delete_next(struct collection *collection)
{
    struct call *call = collection->call;
    if (collection->next == collection->list.count) {
        answer(collection);
        return;
    }
    const struct record *record = collection->list.items[collection->next++];
    (collection->options.is_dry_run ? request_delete_dry_run : request_delete)(call->world, call->principal, call->manager, record->kind,
                                                                               record->meta.uid, 0, on_deleted, collection);
}

// ---- which
// ---------------------------------------------------------------------------------------------------------------
static bool is_chosen(const struct record *record, const struct selector *labels, const struct selector *fields)
{
    if (!labels->count && !fields->count)
        return true;
    CLEANUP_JSON json_t *image = record_to_json(record);
    CLEANUP_FREE char *text = json_to_text(image);
    return image_fits((struct json_span){text, strlen(text)}, labels, fields);
}

static void choose(struct record_list *list, const struct selector *labels, const struct selector *fields)
{
    size_t kept = 0;
    for (size_t i = 0; i < list->count; i++) {
        struct record *record = list->items[i];
        if (is_chosen(record, labels, fields))
            list->items[kept++] = record;
        else
            record_free(record);
    }
    list->count = kept;
}

static int find_chosen(struct call *call, struct record_list *ret, struct error *err)
{
    CLEANUP(selector_clear) struct selector labels = {0};
    CLEANUP(selector_clear) struct selector fields = {0};
    struct record_list list = {0};
    int64_t revision;
    if (selector_parse_labels(call->query[QUERY_LABEL_SELECTOR], &labels, err) < 0 ||
        selector_parse_fields(call->query[QUERY_FIELD_SELECTOR], resource_fields(resource_of_kind(call->match.kind)), &fields, err) < 0 ||
        store_list(call->world->store, call->match.kind, &list, &revision, err) < 0)
        return -1;
    choose(&list, &labels, &fields);
    if (list.count > COLLECTION_MAX) {
        error_set(err, ERROR_TOO_LARGE, "narrow the selectors", "%zu %s fit, and one request deletes at most %d", list.count,
                  kind_info(call->match.kind)->plural, COLLECTION_MAX);
        record_list_free(&list);
        return -1;
    }
    *ret = list;
    return 0;
}

static void start(struct call *call)
{
    delete_next(call->state);
}

void objects_delete_collection(struct call *call)
{
    CLEANUP_JSON json_t *causes = json_array();
    struct delete_options options = {0};
    struct record_list list = {0};
    struct error err = ERROR_INIT;
    if (delete_options_read(call, &options, causes, &err) == 0 && (options.uid || options.resource_version))
        error_set(&err, ERROR_USAGE, "delete the one object by its name", "preconditions are of one object, not of a list");
    if (err.code != ERROR_NONE || find_chosen(call, &list, &err) < 0) {
        operator_fail_with(call, &err, causes);
        return;
    }
    struct collection *collection = mem_alloc(sizeof(*collection));
    *collection = (struct collection){.call = call, .options = options, .list = list, .items = json_array(), .causes = json_array()};
    call->state = collection;
    operator_wait_on_loop(call, start, NULL);
}
