// Objects, lists, Tables and selections made from text without parsing are, byte for byte, what they are when made from JSON
// values. The long way, as the oracle, stands here.
#include "api/operator/rendering.h"
#include "controller/base/json.h"
#include "controller/base/memory.h"
#include "controller/fields/fields.h"
#include "schemas/kinds/tables.h"
#include "tests/support/store_fixture.h"
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RECORDS 60 // of each kind

// ---- the oracle: Tables and lists from JSON values
static json_t *make_column(const char *name, const char *type, const char *format, const char *doc,
                           int priority)
{
    return json_pack("{s:s, s:s, s:s, s:s, s:i}", "name", name, "type", type, "format", format, "description",
                     doc, "priority", priority);
}

static bool is_number(const struct field *field)
{
    return field->type == FIELD_INT;
}

// The phase stands first among the columns, behind the name: it is what people look for.
typedef void column_fn(const struct field *field, const json_t *from, void *arg);

static void each_of(const struct field_table *table, const json_t *from, bool is_phase, column_fn *fn,
                    void *arg)
{
    for (size_t i = 0; i < table->count; i++)
        if (table->fields[i].column && (strcmp(table->fields[i].name, "phase") == 0) == is_phase)
            fn(&table->fields[i], from, arg);
}

static void each_column(enum kind kind, const json_t *spec, const json_t *status, column_fn *fn, void *arg)
{
    each_of(kind_status_table(kind), status, true, fn, arg);
    each_of(kind_spec_table(kind), spec, false, fn, arg);
    each_of(kind_status_table(kind), status, false, fn, arg);
}

static void add_column(const struct field *field, const json_t *from, void *columns)
{
    (void)from;
    json_array_append_new(columns, make_column(field->column, is_number(field) ? "integer" : "string", "",
                                               field->doc, field->column_priority));
}

static json_t *empty_cell(const struct field *field)
{
    if (field->column_empty)
        return json_loads(field->column_empty, JSON_DECODE_ANY, NULL);
    return is_number(field) ? json_null() : json_string("<none>");
}

static void add_cell(const struct field *field, const json_t *from, void *cells)
{
    json_t *value = json_object_get(from, field->name);
    if (json_is_string(value) || json_is_integer(value))
        json_array_append(cells, value);
    else if (value && !json_is_null(value)) {
        CLEANUP_FREE char *text = json_to_text(value);
        json_array_append_new(cells, json_from_text(text));
    } else {
        json_array_append_new(cells, empty_cell(field));
    }
}

// ---- kinds: the field tables say what is shown

static json_t *kind_columns(enum kind kind)
{
    json_t *columns = json_array();
    json_array_append_new(
        columns, make_column("Name", "string", "name", "Name, unique among the objects of the kind.", 0));
    each_column(kind, NULL, NULL, add_column, columns);
    json_array_append_new(columns, make_column("Age", "string", "", "Time since it was made.", 0));
    return columns;
}

static json_t *kind_cells(enum kind kind, const json_t *image, struct wall_time now)
{
    json_t *cells = json_array();
    json_array_append_new(cells, json_string(json_object_name(image)));
    each_column(kind, json_object_get(image, "spec"), json_object_get(image, "status"), add_cell, cells);
    json_array_append_new(cells, age_cell(json_get_text(json_object_get(image, "metadata"), "creationTimestamp"), now));
    return cells;
}

static json_t *metadata_of(json_t *image)
{
    return json_pack("{s:s, s:s, s:O}", "kind", "PartialObjectMetadata", "apiVersion", "meta.k8s.io/v1", "metadata",
                     json_object_get(image, "metadata"));
}

static json_t *row_of(enum kind kind, json_t *image, enum rendering_include include, struct wall_time now)
{
    json_t *row = json_pack("{s:o}", "cells", kind_cells(kind, image, now));
    if (include == INCLUDE_OBJECT)
        json_object_set(row, "object", image);
    else if (include == INCLUDE_METADATA)
        json_object_set_new(row, "object", metadata_of(image));
    return row;
}

static json_t *list_of(const struct rendering *rendering, enum kind kind, json_t *items, struct wall_time now)
{
    json_t *shown = json_array(), *image;
    size_t i;
    json_array_foreach(items, i, image)
        json_array_append_new(shown, rendering->form == RENDER_TABLE      ? row_of(kind, image, rendering->include, now)
                                     : rendering->form == RENDER_METADATA ? metadata_of(image)
                                                                          : json_incref(image));
    CLEANUP_FREE char *name = mem_format("%sList", kind_info(kind)->name);
    json_t *list = rendering->form == RENDER_TABLE
                       ? json_pack("{s:s, s:s, s:o, s:o}", "kind", "Table", "apiVersion", "meta.k8s.io/v1", "columnDefinitions",
                                   kind_columns(kind), "rows", shown)
                   : rendering->form == RENDER_METADATA
                       ? json_pack("{s:s, s:s, s:o}", "kind", "PartialObjectMetadataList", "apiVersion", "meta.k8s.io/v1", "items", shown)
                       : json_pack("{s:s, s:s, s:o}", "kind", name, "apiVersion", API_GROUP "/" API_VERSION, "items", shown);
    json_object_set_new(list, "metadata", json_pack("{s:s, s:s, s:i}", "resourceVersion", "77", "continue", "a-token", "remainingItemCount", 5));
    return list;
}

// ---- the oracle: selecting among JSON values
static const char *old_field(const void *arg, const char *path)
{
    static char number[32], name[64];
    const json_t *at = arg;
    while (at && *path) {
        size_t len = strcspn(path, ".");
        snprintf(name, sizeof(name), "%.*s", (int)len, path);
        at = json_object_get(at, name);
        path += len + (path[len] == '.');
    }
    if (json_is_string(at))
        return json_string_value(at);
    snprintf(number, sizeof(number), "%" JSON_INTEGER_FORMAT, json_integer_value(at));
    return json_is_integer(at) ? number : json_is_boolean(at) ? (json_is_true(at) ? "true" : "false") : "";
}

static const char *old_label(const void *arg, const char *key)
{
    return json_get_text(arg, key);
}

// ---- records as random as their field tables let them be
static unsigned seed = 20251130;

static unsigned chance(unsigned below)
{
    seed = seed * 1103515245u + 12345u;
    return (seed >> 16) % below;
}

static const char *random_text(void)
{
    static const char *const texts[] = {"plain",       "",         "with \"quotes\" and \\",      "tab\tnew\nline\x01\x7f", "\xc3\xa9t\xc3\xa9",
                                        "\xf0\x9f\x9a\x80", "\xe2\x80\xa8", "}],{[\":", "a,b:c", "null"};
    return texts[chance(ARRAY_LEN(texts))];
}

static void fill_table(const struct field_table *table, void *at);

static void fill_list(const struct field *field, void *at)
{
    struct {
        char *items;
        size_t count;
    } *list = at;
    list->count = chance(3);
    list->items = list->count ? mem_alloc(list->count * field->fields->size) : NULL;
    for (size_t i = 0; i < list->count; i++) {
        char *item = list->items + i * field->fields->size;
        CLEANUP_FREE char *key = mem_format("Key%zu", i); // merge keys must differ
        fill_table(field->fields, item);
        mem_replace((char **)(item + fields_find(field->fields, field->key)->offset), key);
    }
}

static void fill_field(const struct field *field, void *at)
{
    switch (field->type) {
    case FIELD_TEXT:
        mem_replace((char **)at, random_text());
        return;
    case FIELD_BOOL:
        *(bool *)at = chance(2);
        return;
    case FIELD_INT:
    case FIELD_QUANTITY:
    case FIELD_MILLI:
        *(int64_t *)at = chance(2) ? (int64_t)chance(70000) * 70001 : 0;
        return;
    case FIELD_ENUM:
        *(int *)at = (int)chance(2);
        return;
    case FIELD_TIME:
        *(struct wall_time *)at = (struct wall_time){chance(2) ? STORE_FIXTURE_START_MS + chance(30000) : 0};
        return;
    case FIELD_OBJECT:
        fill_table(field->fields, at);
        return;
    case FIELD_LIST:
        fill_list(field, at);
        return;
    case FIELD_TEXT_LIST:
        for (unsigned i = chance(3); i > 0; i--)
            text_list_add(at, random_text());
        return;
    case FIELD_TEXT_MAP:
        text_map_set(at, "key", random_text());
        return;
    case FIELD_JSON:
        *(json_t **)at = chance(2) ? json_pack("[{s:s, s:f, s:n}]", "path", random_text(), "real", 1.5, "nothing") : NULL;
        return;
    }
}

static void fill_table(const struct field_table *table, void *at)
{
    for (size_t i = 0; i < table->count; i++)
        if (table->fields[i].is_required || chance(3))
            fill_field(&table->fields[i], (char *)at + table->fields[i].offset);
}

static void fill_meta(struct record_meta *meta)
{
    static const char *const keys[] = {"app", "tier", "example.org/x", "y"};
    for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
        if (chance(2))
            text_map_set(&meta->labels, keys[i], chance(2) ? "web" : "");
        if (chance(2))
            text_map_set(&meta->annotations, keys[i], random_text());
    }
    text_list_add(&meta->finalizers, "example.org/waits");
    if (chance(2))
        text_list_add(&meta->finalizers, "example.org/more");
    if (!chance(4)) {
        meta->owners.items = mem_alloc(sizeof(*meta->owners.items));
        meta->owners.items[0] = (struct owner_reference){.api_version = chance(2) ? mem_strdup("apps/v1") : NULL,
                                                          .kind = mem_strdup("Sandbox"),
                                                          .name = mem_strdup("own \"er"),
                                                          .uid = mem_strdup("sbx_x"),
                                                          .controller = chance(2) ? json_true() : NULL};
        meta->owners.count = 1;
    }
}

static void free_bound(struct record *record) // unique and foreign keys are not what this is about
{
    char **texts[] = {record->kind == KIND_SANDBOX ? &record->status.sandbox.workspace_uid : NULL,
                      record->kind == KIND_SESSION ? &record->status.session.sandbox_uid : NULL,
                      record->kind == KIND_EXPOSURE ? &record->status.exposure.sandbox_uid : NULL};
    for (size_t i = 0; i < ARRAY_LEN(texts); i++)
        if (texts[i])
            mem_replace(texts[i], NULL);
    if (record->kind == KIND_APPROVAL)
        record->spec.approval.decision = APPROVAL_APPROVED;
}

// What a reader fills in is there in every record that came in through a door.
static int take_defaults(struct record *record, struct error *err)
{
    CLEANUP_JSON json_t *spec = record_spec_to_json(record);
    CLEANUP_JSON json_t *status = record_status_to_json(record);
    return record_spec_from_store_json(record, spec, err) < 0 ? -1 : record_status_from_json(record, status, err);
}

struct making {
    enum kind kind;
    int count;
};

static int make_in_tx(struct store_tx *tx, void *arg, struct error *err)
{
    static const char *const principals[] = {"mcp", "mcp:oauth:\"ann\" \xc3\xa9", "operator:uid=0"};
    const struct making *making = arg;
    for (int i = 0; i < making->count; i++) {
        CLEANUP_RECORD struct record *record = record_new(making->kind);
        const struct store_actor actor = {principals[chance(3)], "test"};
        fill_table(kind_spec_table(record->kind), &record->spec);
        fill_table(kind_status_table(record->kind), &record->status);
        fill_meta(&record->meta);
        free_bound(record);
        if (take_defaults(record, err) < 0 || tx_create(tx, &actor, record, err) < 0 ||
            (chance(4) == 0 && tx_delete(tx, &store_fixture_operator, record->kind, record->meta.uid, err) < 0))
            return -1;
    }
    return 0;
}

static void make_records(struct store_fixture *fixture)
{
    struct error err = ERROR_INIT;
    for (int kind = 0; kind < KIND_COUNT; kind++) {
        struct making making = {(enum kind)kind, RECORDS};
        assert_ok(store_transact(fixture->store, make_in_tx, &making, &err));
    }
}

// Of all records of a kind: the page, and the same as JSON values.
static json_t *read_both(struct store_fixture *fixture, enum kind kind, struct store_page *ret)
{
    struct error err = ERROR_INIT;
    struct record_list list;
    json_t *images = json_array();
    assert_ok(store_list(fixture->store, kind, &list, NULL, &err));
    for (size_t i = 0; i < list.count; i++)
        json_array_append_new(images, record_to_json(list.items[i]));
    record_list_free(&list);
    assert_ok(store_read_page(fixture->store, &(struct store_page_request){.kind = kind, .limit = 1000}, ret, &err));
    assert_int_equal(ret->count, json_array_size(images));
    return images;
}

static void check_images(struct store_fixture *fixture, enum kind kind)
{
    struct store_page page;
    CLEANUP_JSON json_t *images = read_both(fixture, kind, &page);
    for (size_t i = 0; i < page.count; i++) {
        struct json_span image = store_page_image(&page, i);
        CLEANUP_FREE char *text = mem_strndup(image.at, image.len), *wanted = json_to_text(json_array_get(images, i));
        assert_string_equal(text, wanted);
    }
    store_page_clear(&page);
}

static void an_image_is_the_record_as_json_text(void **state)
{
    make_records(*state);
    for (int kind = 0; kind < KIND_COUNT; kind++)
        check_images(*state, (enum kind)kind);
}

static void activity_stands_where_the_field_table_has_it(void **state)
{
    struct store_fixture *fixture = *state;
    struct error err = ERROR_INIT;
    struct record_list list;
    make_records(fixture);
    assert_ok(store_list(fixture->store, KIND_SANDBOX, &list, NULL, &err));
    for (size_t i = 0; i < list.count; i += 2)
        store_touch_activity(fixture->store, list.items[i]->meta.uid, (struct wall_time){STORE_FIXTURE_START_MS + 5000 + (int64_t)i});
    record_list_free(&list);
    check_images(fixture, KIND_SANDBOX);
}

// What an earlier version wrote lacks a field that is always shown now, or has its members in another order.
static void a_row_that_was_written_otherwise_is_shown_as_this_version_writes_it(void **state)
{
    struct store_fixture *fixture = *state;
    struct error err = ERROR_INIT;
    make_records(fixture);
    CLEANUP_FREE char *path = mem_format("%s/" STORE_DATABASE_NAME, fixture->state_dir);
    store_close(fixture->store);
    sqlite3 *db = NULL;
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, "PRAGMA trusted_schema=ON; UPDATE meta SET value = 'other' WHERE key = 'text_form';"
                                      "UPDATE records SET spec = '{ }', status = '{\"phase\": \"x\", \"observedGeneration\": 1, \"new\": [1, 2]}'"
                                      " WHERE kind IN ('Workspace', 'Sandbox')", NULL, NULL, NULL),
                     SQLITE_OK);
    sqlite3_close(db);
    assert_ok(store_open(&fixture->options, &fixture->store, &err));
    make_records(fixture); // beside what is new
    check_images(fixture, KIND_WORKSPACE);
    check_images(fixture, KIND_SANDBOX);
}

static void check_lists(struct store_fixture *fixture, enum kind kind)
{
    static const struct rendering renderings[] = {{RENDER_PLAIN, INCLUDE_METADATA}, {RENDER_METADATA, INCLUDE_METADATA}, {RENDER_TABLE, INCLUDE_METADATA},
                                                  {RENDER_TABLE, INCLUDE_OBJECT}, {RENDER_TABLE, INCLUDE_NONE}};
    const struct wall_time now = {STORE_FIXTURE_START_MS + 3600000};
    struct store_page page;
    CLEANUP_JSON json_t *images = read_both(fixture, kind, &page);
    for (size_t at = 0; at < ARRAY_LEN(renderings); at++) {
        CLEANUP(buffer_free) struct buffer text = BUFFER_INIT(8 << 20);
        struct rendering_list list = {&renderings[at], resource_of_kind(kind), &text, now, 0};
        rendering_list_begin(&list);
        for (size_t i = 0; i < page.count; i++)
            rendering_list_item(&list, store_page_image(&page, i));
        rendering_list_end(&list, 77, "a-token", 5);
        CLEANUP_JSON json_t *wanted = list_of(&renderings[at], kind, images, now);
        CLEANUP_FREE char *wanted_text = json_to_text(wanted);
        assert_string_equal(buffer_text(&text), wanted_text);
    }
    store_page_clear(&page);
}

static void lists_and_tables_are_the_same_bytes(void **state)
{
    make_records(*state);
    for (int kind = 0; kind < KIND_COUNT; kind++)
        check_lists(*state, (enum kind)kind);
}

static void check_selection(const struct store_page *page, const json_t *images, const struct selector *labels, const struct selector *fields)
{
    for (size_t i = 0; i < page->count; i++) {
        const json_t *image = json_array_get(images, i);
        bool wanted = selector_fits(labels, old_label, json_object_get(json_object_get(image, "metadata"), "labels")) &&
                      selector_fits(fields, old_field, image);
        assert_int_equal(image_fits(store_page_image(page, i), labels, fields), wanted);
    }
}

static void check_selectors(struct store_fixture *fixture, enum kind kind)
{
    static const char *const label_texts[] = {"app=web", "app!=web", "!tier", "example.org/x", "app in (web,x),y", "y=", "tier notin (web)", "nothing"};
    static const char *const values[] = {"plain", "", "true", "false", "managed", "null", "1"};
    struct error err = ERROR_INIT;
    const char *const *paths = resource_fields(resource_of_kind(kind));
    struct store_page page;
    CLEANUP_JSON json_t *images = read_both(fixture, kind, &page);
    const struct selector everything = {0};
    for (size_t i = 0; i < ARRAY_LEN(label_texts); i++) {
        CLEANUP(selector_clear) struct selector labels = {0};
        assert_ok(selector_parse_labels(label_texts[i], &labels, &err));
        check_selection(&page, images, &labels, &everything);
    }
    for (size_t path = 0; paths[path]; path++)
        for (size_t i = 0; i < ARRAY_LEN(values); i++) {
            CLEANUP(selector_clear) struct selector fields = {0};
            CLEANUP_FREE char *text = mem_format("%s%s%s", paths[path], chance(2) ? "=" : "!=", values[i]);
            assert_ok(selector_parse_fields(text, paths, &fields, &err));
            check_selection(&page, images, &everything, &fields);
        }
    store_page_clear(&page);
}

static void selections_are_the_same(void **state)
{
    make_records(*state);
    for (int kind = 0; kind < KIND_COUNT; kind++)
        check_selectors(*state, (enum kind)kind);
}

// ---- spans by themselves
static void every_member_and_item_is_found_as_the_parser_finds_it(void **state)
{
    (void)state;
    static const char text[] = "{\"a\":1,\"b\":{\"a\":\"x\\\"},\\\\\",\"c\":[]},\"d\":[1,[2,3],{\"e\":null},\"]\"],\"f\":-1.5e3,\"\":true}";
    CLEANUP_JSON json_t *json = json_loads(text, 0, NULL);
    const struct json_span whole = {text, sizeof(text) - 1};
    struct json_span name, value;
    size_t cursor = 0, members = 0, items = 0;
    for (; json_next_member(whole, &cursor, &name, &value); members++) {
        CLEANUP_FREE char *key = mem_strndup(name.at, name.len), *got = mem_strndup(value.at, value.len);
        CLEANUP_FREE char *wanted = json_dumps(json_object_get(json, key), JSON_COMPACT | JSON_ENCODE_ANY);
        if (strcmp(key, "f") != 0) // a real is written otherwise
            assert_string_equal(got, wanted);
    }
    assert_int_equal(members, json_object_size(json));
    struct json_span array = json_member(whole, "d");
    for (cursor = 0; json_next_item(array, &cursor, &value);)
        items++;
    assert_int_equal(items, 4);
    assert_null(json_member(whole, "e").at);
    static const char *const names[] = {"f", "e", "a", "f"};
    struct json_span found[4];
    json_find_members(whole, names, 4, found);
    assert_ptr_equal(found[0].at, json_member(whole, "f").at);
    assert_null(found[1].at);
    assert_true(json_span_is(found[2], "1"));
    assert_ptr_equal(found[3].at, found[0].at);
    assert_false(json_span_is_integer(json_member(whole, "f")));
    cursor = 0;
    assert_false(json_next_member((struct json_span){"{}", 2}, &cursor, &name, &value));
    assert_false(json_next_item((struct json_span){"[]", 2}, &cursor, &value));
}

// Whatever a damaged text says, nothing behind its end is read (the sanitizers watch).
static void a_text_that_is_cut_off_or_damaged_is_read_within_its_bounds(void **state)
{
    (void)state;
    static const char text[] = "{\"a\":{\"b\":\"c\\n\"},\"d\":[1,\"x\",{\"y\":2}],\"e\":\"\\\\\"}";
    for (size_t len = 0; len < sizeof(text); len++)
        for (int round = 0; round < 40; round++) {
            CLEANUP_FREE char *copy = mem_alloc(len ? len : 1);
            memcpy(copy, text, len);
            if (round && len)
                copy[chance((unsigned)len)] = "{}[]\",:\\x"[chance(9)];
            struct json_span name, value, item;
            for (size_t cursor = 0, steps = 0; json_next_member((struct json_span){copy, len}, &cursor, &name, &value); steps++) {
                assert_true(value.at >= copy && value.at + value.len <= copy + len && steps < len);
                for (size_t inner = 0, turns = 0; json_next_item(value, &inner, &item); turns++)
                    assert_true(item.at + item.len <= copy + len && turns < len);
            }
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(an_image_is_the_record_as_json_text, store_fixture_setup, store_fixture_teardown),
        cmocka_unit_test_setup_teardown(activity_stands_where_the_field_table_has_it, store_fixture_setup, store_fixture_teardown),
        cmocka_unit_test_setup_teardown(a_row_that_was_written_otherwise_is_shown_as_this_version_writes_it, store_fixture_setup, store_fixture_teardown),
        cmocka_unit_test_setup_teardown(lists_and_tables_are_the_same_bytes, store_fixture_setup, store_fixture_teardown),
        cmocka_unit_test_setup_teardown(selections_are_the_same, store_fixture_setup, store_fixture_teardown),
        cmocka_unit_test(every_member_and_item_is_found_as_the_parser_finds_it),
        cmocka_unit_test(a_text_that_is_cut_off_or_damaged_is_read_within_its_bounds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
