// Lists and single objects.
#include "api/operator/internal.h"
#include "api/operator/selectors.h"
#include "controller/base/memory.h"
#include <inttypes.h>
#include <string.h>

static const char *const object_fields[] = {"metadata.name", "metadata.uid", NULL};

static const char *get_field(const void *arg, const char *field)
{
    const struct record *record = arg;
    return strcmp(field, "metadata.name") == 0 ? record->meta.name : record->meta.uid;
}

// Keeps what both selectors fit, in order.
static void filter(struct record_list *list, const struct selector *labels, const struct selector *fields)
{
    size_t kept = 0;
    for (size_t i = 0; i < list->count; i++) {
        struct record *record = list->items[i];
        if (selector_fits_labels(labels, &record->meta.labels) &&
            selector_fits_fields(fields, get_field, record))
            list->items[kept++] = record;
        else
            record_free(record);
    }
    list->count = kept;
}

static json_t *list_to_json(enum kind kind, const struct record_list *list, int64_t revision)
{
    CLEANUP_FREE char *name = mem_format("%sList", kind_info(kind)->name),
                      *version = mem_format("%" PRId64, revision);
    json_t *items = json_array();
    for (size_t i = 0; i < list->count; i++)
        json_array_append_new(items, record_to_json(list->items[i]));
    return json_pack("{s:s, s:s, s:{s:s}, s:o}", "kind", name, "apiVersion", API_GROUP "/" API_VERSION,
                     "metadata", "resourceVersion", version, "items", items);
}

static bool is_served(struct call *call)
{
    const char *watch = call->query[QUERY_WATCH], *next = call->query[QUERY_CONTINUE];
    if (watch && strcmp(watch, "false") != 0 && strcmp(watch, "0") != 0) {
        operator_fail_as(call, 0, ERROR_UNSUPPORTED, "list again, or wait for the object's status",
                         "watches are not served by this version");
        return false;
    }
    if (next && *next) {
        operator_fail_as(call, 0, ERROR_EXPIRED, "list again without it",
                         "this continue token is not one of this server's: lists come whole");
        return false;
    }
    return true;
}

void objects_list(struct call *call)
{
    CLEANUP(selector_clear) struct selector labels = {0};
    CLEANUP(selector_clear) struct selector fields = {0};
    struct error err = ERROR_INIT;
    struct record_list list = {0};
    int64_t revision = 0;
    enum kind kind = call->match.kind;
    if (!is_served(call))
        return;
    if (selector_parse_labels(call->query[QUERY_LABEL_SELECTOR], &labels, &err) < 0 ||
        selector_parse_fields(call->query[QUERY_FIELD_SELECTOR], object_fields, &fields, &err) < 0 ||
        store_list(call->world->store, kind, &list, &revision, &err) < 0) {
        operator_fail(call, &err);
        return;
    }
    filter(&list, &labels, &fields);
    json_t *body = operator_wants_table(call)
                       ? table_of_records(kind, list.items, list.count, revision,
                                          clock_wall(call->world->clock), call->query[QUERY_INCLUDE_OBJECT])
                       : list_to_json(kind, &list, revision);
    record_list_free(&list);
    operator_answer(call, 200, body);
}

void objects_get(struct call *call)
{
    CLEANUP_RECORD struct record *record = operator_resolve(call, call->match.kind);
    if (record)
        operator_answer_record(call, 200, record);
}
