#include "cli/manifests.h"
#include "api/operator/selectors.h"
#include "cli/manifest_files.h"
#include "cli/objects.h"
#include "controller/base/json.h"
#include "controller/base/memory.h"
#include <stdio.h>
#include <string.h>

struct reading {
    struct invocation *in;
    enum manifests_check check;
    struct manifests *manifests;
    struct selector selector;
    size_t tried, failed;
    enum error_code first_code;
};

int kind_rank(enum kind kind)
{
    return kind == KIND_SANDBOX ? 1 : kind == KIND_SESSION || kind == KIND_EXPOSURE ? 2 : 0;
}

// ---- telling ----------------------------------------------------------------------------------------------------------------
bool manifests_complain(const struct manifest_item *item, const json_t *causes)
{
    size_t i;
    json_t *cause;
    fflush(stdout);
    json_array_foreach((json_t *)causes, i, cause)
    {
        CLEANUP_FREE char *line = manifest_word_cause(item->manifest, item->document, cause);
        complain_line(line);
    }
    return json_array_size(causes) > 0;
}

void manifests_tell(const struct invocation *in, const struct manifest_item *item, const json_t *causes, const struct error *err)
{
    struct error placed = *err;
    if (manifests_complain(item, causes)) {
        complain_hint(err);
        return;
    }
    CLEANUP_FREE char *place = manifest_place(item->manifest, item->document, "metadata.name");
    error_context(&placed, "%s", place);
    complain(in, &placed);
}

static void count_failure(struct reading *reading, enum error_code code)
{
    if (!reading->failed++)
        reading->first_code = code;
}

// ---- reading ----------------------------------------------------------------------------------------------------------------
static int take_stream(void *arg, struct manifest *manifest)
{
    struct reading *reading = arg;
    struct manifests *manifests = reading->manifests;
    if (manifests->stream_count == MANIFEST_FILES_MAX) {
        manifest_free(manifest);
        return -1;
    }
    manifests->streams[manifests->stream_count++] = *manifest;
    return 0;
}

static void fail_stream(void *arg, const struct error *err)
{
    struct reading *reading = arg;
    complain(reading->in, err);
    reading->tried++;
    count_failure(reading, err->code);
}

// ---- checking ---------------------------------------------------------------------------------------------------------------
static int add_cause(json_t *causes, const char *field, const char *message, struct error *err)
{
    json_array_append_new(causes, json_pack("{s:s, s:s}", "field", field, "message", message));
    return error_set(err, ERROR_INVALID, NULL, "%s: %s", field, message);
}

static int check_name(const struct manifest_item *item, json_t *causes, struct error *err)
{
    const json_t *metadata = json_object_get(item->value, "metadata");
    if (*object_name(item->value) || (metadata && !json_is_object(metadata)))
        return 0;
    if (json_object_get(metadata, "generateName"))
        return add_cause(causes, "metadata.generateName", "cannot be applied: each time it would be another object; give metadata.name", err);
    return add_cause(causes, "metadata.name", "must be specified", err);
}

static int check_content(const struct manifest_item *item, json_t *causes, struct error *err)
{
    CLEANUP_RECORD struct record *record = record_new(item->info->kind);
    CLEANUP_JSON json_t *more = NULL;
    int r = record_meta_from_json(record, json_object_get(item->value, "metadata"), causes, err);
    r |= record_spec_from_json(record, json_object_get(item->value, "spec"), &more, err);
    json_array_extend(causes, more);
    return r;
}

static int check_item(const struct reading *reading, struct manifest_item *item, json_t *causes, struct error *err)
{
    if (manifest_check(item->manifest, item->document, &item->info, causes, err) < 0)
        return -1;
    int r = check_name(item, causes, err);
    return reading->check == MANIFESTS_OBJECTS ? r | check_content(item, causes, err) : r;
}

static bool is_selected(const struct reading *reading, const struct manifest_item *item)
{
    if (!reading->selector.count)
        return true;
    CLEANUP_RECORD struct record *record = record_new(item->info->kind);
    record_meta_from_json(record, json_object_get(item->value, "metadata"), NULL, NULL);
    return selector_fits_labels(&reading->selector, &record->meta.labels);
}

static void take_document(struct reading *reading, const struct manifest *manifest, size_t document)
{
    struct manifests *manifests = reading->manifests;
    struct manifest_item item = {manifest, document, NULL, manifest->documents[document].value};
    struct error err = ERROR_INIT;
    CLEANUP_JSON json_t *causes = json_array();
    reading->tried++;
    if (check_item(reading, &item, causes, &err) < 0) {
        manifests_tell(reading->in, &item, causes, &err);
        count_failure(reading, err.code ? err.code : ERROR_INVALID);
    } else if (is_selected(reading, &item)) {
        manifests->items[manifests->count++] = item;
    }
}

// ---- no object twice --------------------------------------------------------------------------------------------------------
static int compare_items(const void *a, const void *b)
{
    const struct manifest_item *const *x = a, *const *y = b;
    int kinds = (int)(*x)->info->kind - (int)(*y)->info->kind, names = kinds ? 0 : strcmp(object_name((*x)->value), object_name((*y)->value));
    return kinds ? kinds : names ? names : *x < *y ? -1 : *x > *y;
}

static bool are_same(const struct manifest_item *a, const struct manifest_item *b)
{
    return a->info == b->info && strcmp(object_name(a->value), object_name(b->value)) == 0;
}

static void check_doubles(struct reading *reading)
{
    struct manifests *manifests = reading->manifests;
    CLEANUP_FREE const struct manifest_item **sorted = mem_alloc((manifests->count + 1) * sizeof(struct manifest_item *));
    for (size_t i = 0; i < manifests->count; i++)
        sorted[i] = &manifests->items[i];
    qsort(sorted, manifests->count, sizeof(*sorted), compare_items);
    for (size_t i = 1; i < manifests->count; i++) {
        if (!are_same(sorted[i - 1], sorted[i]))
            continue;
        CLEANUP_FREE char *place = manifest_place(sorted[i - 1]->manifest, sorted[i - 1]->document, "metadata.name");
        CLEANUP_FREE char *message = mem_format("%s/%s is described twice, before that at %s", sorted[i]->info->singular, object_name(sorted[i]->value), place);
        CLEANUP_JSON json_t *causes = json_pack("[{s:s, s:s}]", "field", "metadata.name", "message", message);
        manifests_complain(sorted[i], causes);
        count_failure(reading, ERROR_INVALID);
    }
}

// ---- all of it --------------------------------------------------------------------------------------------------------------
static int conclude(const struct reading *reading, struct error *err)
{
    if (!reading->failed)
        return 0;
    if (reading->tried == 1) {
        error_set(err, reading->first_code, NULL, "%s", ""); // all is said
        return -1;
    }
    return error_set(err, reading->first_code, "nothing was changed: mend what is named above, then run it again", "%zu of %zu could not be done", reading->failed,
                     reading->tried);
}

static void read_all(struct reading *reading)
{
    struct manifests *manifests = reading->manifests;
    const struct manifest_files files = {take_stream, fail_stream, reading};
    size_t documents = 0;
    manifests->streams = mem_alloc(MANIFEST_FILES_MAX * sizeof(*manifests->streams));
    manifest_files_read(reading->in, &files);
    for (size_t i = 0; i < manifests->stream_count; i++)
        documents += manifests->streams[i].count;
    manifests->items = mem_alloc((documents + 1) * sizeof(*manifests->items));
    for (size_t i = 0; i < manifests->stream_count; i++)
        for (size_t n = 0; n < manifests->streams[i].count; n++)
            take_document(reading, &manifests->streams[i], n);
    if (reading->check == MANIFESTS_OBJECTS)
        check_doubles(reading);
}

int manifests_read(struct invocation *in, enum manifests_check check, struct manifests *ret, struct error *err)
{
    struct reading reading = {.in = in, .check = check, .manifests = ret};
    if (check == MANIFESTS_OBJECTS && selector_parse_labels(invocation_option(in, "selector"), &reading.selector, err) < 0)
        return -1;
    read_all(&reading);
    selector_clear(&reading.selector);
    return conclude(&reading, err);
}

void manifests_clear(struct manifests *manifests)
{
    for (size_t i = 0; i < manifests->stream_count; i++)
        manifest_free(&manifests->streams[i]);
    free(manifests->streams);
    free(manifests->items);
    *manifests = (struct manifests){0};
}
