// A live record's row as API object, in text: exactly what json_to_text(record_to_json(record)) would give for the record in it. Its JSON columns
// are that already, so they are copied, not parsed. Rows of a program that wrote them otherwise are read the long way.
#include "controller/base/json.h"
#include "controller/base/json_span.h"
#include "controller/base/memory.h"
#include "controller/fields/write.h"
#include "controller/store/internal.h"
#include "controller/hash.h"
#include "schemas/kinds/common.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define OWN_API_VERSION "\"apiVersion\":\"" API_GROUP "/" API_VERSION "\""
#define TEXT_FORM "1" // to be raised where the texts of columns change for another reason than the field tables

// ---- which rows are as this program would write them
static void add_tables(struct buffer *to, const struct field_table *table, int depth)
{
    for (size_t i = 0; table && i < table->count && depth < 8; i++) {
        const struct field *field = &table->fields[i];
        buffer_format(to, "%d %s %d %d %s;", depth, field->name, (int)field->type, field->is_required, field->default_json ? field->default_json : "");
        for (size_t word = 0; field->words && field->words[word]; word++)
            buffer_format(to, "%s,", field->words[word]);
        add_tables(to, field->fields, depth + 1);
    }
}

static void describe_form(char text[32])
{
    CLEANUP(buffer_free) struct buffer tables = BUFFER_INIT(1 << 20);
    buffer_append_text(&tables, TEXT_FORM);
    add_tables(&tables, &record_meta_table, 0);
    for (int kind = 0; kind < KIND_COUNT; kind++) {
        buffer_format(&tables, "%s:", kind_info((enum kind)kind)->name);
        add_tables(&tables, kind_spec_table((enum kind)kind), 0);
        add_tables(&tables, kind_status_table((enum kind)kind), 0);
    }
    snprintf(text, 32, "%016" PRIx64, hash_text(buffer_text(&tables)));
}

int image_form_open(struct store *store, struct sql *sql, struct error *err)
{
    char mine[32], from[32];
    int64_t newest = 0;
    describe_form(mine);
    sqlite3_stmt *stmt = sql_query(sql, SQL_META_GET, err, "t", "text_form");
    int row = stmt ? sql_next(sql, stmt, err) : -1;
    bool is_same = row > 0 && strcmp(sql_text(stmt, 0), mine) == 0;
    if (row > 0)
        sql_done(stmt);
    if (row < 0)
        return -1;
    if (is_same)
        return sql_number(sql, SQL_META_GET, &store->text_form_from, err, "t", "text_form_from");
    if (sql_number(sql, SQL_REVISION, &newest, err, "") < 0)
        return -1;
    snprintf(from, sizeof(from), "%" PRId64, newest);
    store->text_form_from = newest;
    if (sql_run(sql, SQL_META_PUT, NULL, "tt", "text_form_from", from) == 0) // else: this is found out again at the next start
        sql_run(sql, SQL_META_PUT, NULL, "tt", "text_form", mine);
    return 0;
}

// ---- metadata
static void put_name(struct buffer *to, const char *name)
{
    buffer_append_text(to, ",\"");
    buffer_append_text(to, name);
    buffer_append_text(to, "\":");
}

static void put_column(struct buffer *to, sqlite3_stmt *row, enum record_column column)
{
    buffer_append(to, sql_text(row, column), (size_t)sqlite3_column_bytes(row, column));
}

static void put_time(struct buffer *to, const char *name, int64_t ms)
{
    char text[WALL_TIME_TEXT_SIZE];
    if (!ms)
        return;
    wall_time_format((struct wall_time){ms}, text);
    put_name(to, name);
    buffer_append_char(to, '"');
    buffer_append_text(to, text);
    buffer_append_char(to, '"');
}

static void put_part(struct buffer *to, const char *name, struct json_span value)
{
    if (value.len <= 2) // absent, or empty
        return;
    put_name(to, name);
    json_put_span(to, value);
}

static void put_annotations(struct buffer *to, struct json_span annotations, const char *created_by)
{
    buffer_append_text(to, ",\"annotations\":{");
    if (annotations.len > 2) {
        buffer_append(to, annotations.at + 1, annotations.len - 2);
        buffer_append_char(to, ',');
    }
    buffer_append_text(to, "\"" ANNOTATION_CREATED_BY "\":");
    json_put_string(to, created_by);
    buffer_append_char(to, '}');
}

static void put_owners(struct buffer *to, struct json_span owners)
{
    size_t cursor = 0;
    struct json_span owner;
    if (owners.len <= 2)
        return;
    buffer_append_text(to, ",\"ownerReferences\":");
    for (char before = '['; json_next_item(owners, &cursor, &owner); before = ',') {
        buffer_append_char(to, before);
        bool has_version = json_member(owner, "apiVersion").at;
        buffer_append(to, owner.at, owner.len - !has_version);
        if (!has_version)
            buffer_append_text(to, owner.len > 2 ? "," OWN_API_VERSION "}" : OWN_API_VERSION "}");
    }
    buffer_append_char(to, ']');
}

static void put_metadata(struct buffer *to, sqlite3_stmt *row)
{
    const struct json_span meta = {sql_text(row, COLUMN_META), (size_t)sqlite3_column_bytes(row, COLUMN_META)};
    struct json_span labels = {0}, annotations = {0}, finalizers = {0}, owners = {0}, managed = {0}, name, value;
    const struct {
        const char *name;
        struct json_span *to;
    } parts[] = {{"labels", &labels}, {"annotations", &annotations}, {"finalizers", &finalizers}, {"owners", &owners}, {"managedFields", &managed}};
    for (size_t cursor = 0; json_next_member(meta, &cursor, &name, &value);)
        for (size_t i = 0; i < ARRAY_LEN(parts); i++)
            if (json_span_is(name, parts[i].name))
                *parts[i].to = value;
    buffer_append_text(to, "{\"name\":\"");
    put_column(to, row, COLUMN_NAME);
    buffer_append_text(to, "\",\"uid\":\"");
    put_column(to, row, COLUMN_UID);
    buffer_append_text(to, "\",\"resourceVersion\":\"");
    put_column(to, row, COLUMN_RESOURCE_VERSION);
    buffer_append_text(to, "\",\"generation\":");
    put_column(to, row, COLUMN_GENERATION);
    put_time(to, "creationTimestamp", sqlite3_column_int64(row, COLUMN_CREATED_AT));
    put_time(to, "deletionTimestamp", sqlite3_column_int64(row, COLUMN_DELETION_AT));
    put_part(to, "labels", labels);
    put_annotations(to, annotations, sql_text(row, COLUMN_CREATED_BY));
    put_part(to, "finalizers", finalizers);
    put_owners(to, owners);
    put_part(to, "managedFields", managed);
    buffer_append_char(to, '}');
}

// ---- status
static void put_activity_time(struct buffer *to, const char *name, struct wall_time time)
{
    CLEANUP_JSON json_t *json = time_to_json(time);
    buffer_format(to, "%s\"%s\":\"%s\"", to->data[to->len - 1] == '{' ? "" : ",", name, json_string_value(json));
}

static bool stands_behind_activity(struct json_span name)
{
    const struct field_table *table = kind_status_table(KIND_SANDBOX);
    bool is_behind = false;
    for (size_t i = 0; i < table->count; i++) {
        if (json_span_is(name, table->fields[i].name))
            return is_behind;
        is_behind |= strcmp(table->fields[i].name, ACTIVITY_LAST_FIELD) == 0;
    }
    return false;
}

// A sandbox's activity has a table of its own, and its places among the other members.
static void put_sandbox_status(struct store *store, sqlite3_stmt *row, struct json_span status, struct buffer *to)
{
    struct record_activity activity = activity_of(store, sql_text(row, COLUMN_UID), (struct wall_time){sqlite3_column_int64(row, COLUMN_CREATED_AT)});
    size_t cursor = 0, behind = 1;
    struct json_span name, value;
    while (json_next_member(status, &cursor, &name, &value) && !stands_behind_activity(name))
        behind = cursor;
    buffer_append(to, status.at, behind);
    put_activity_time(to, ACTIVITY_FIRST_FIELD, activity.last_at);
    put_activity_time(to, ACTIVITY_LAST_FIELD, activity.expires_at);
    if (behind == 1 && status.len > 2)
        buffer_append_char(to, ',');
    buffer_append(to, status.at + behind, status.len - behind);
}

static void put_status(struct store *store, sqlite3_stmt *row, struct buffer *to)
{
    const struct json_span status = {sql_text(row, COLUMN_STATUS), (size_t)sqlite3_column_bytes(row, COLUMN_STATUS)};
    bool is_sandbox = strcmp(sql_text(row, COLUMN_KIND), kind_info(KIND_SANDBOX)->name) == 0;
    if (is_sandbox && status.len >= 2)
        put_sandbox_status(store, row, status, to);
    else
        json_put_span(to, status);
}

// ---- all of it
static int put_long_way(struct store *store, sqlite3_stmt *row, struct buffer *to, struct error *err)
{
    CLEANUP_RECORD struct record *record = NULL;
    if (row_to_record(store, row, &record, err) < 0)
        return -1;
    CLEANUP_JSON json_t *json = record_to_json(record);
    CLEANUP_FREE char *text = json_to_text(json);
    return buffer_append_text(to, text);
}

int image_put(struct store *store, sqlite3_stmt *row, struct buffer *to, struct error *err)
{
    if (sqlite3_column_int64(row, COLUMN_RESOURCE_VERSION) <= store->text_form_from)
        return put_long_way(store, row, to, err);
    buffer_append_text(to, "{" OWN_API_VERSION ",\"kind\":\"");
    put_column(to, row, COLUMN_KIND);
    buffer_append_text(to, "\",\"metadata\":");
    put_metadata(to, row);
    buffer_append_text(to, ",\"spec\":");
    put_column(to, row, COLUMN_SPEC);
    buffer_append_text(to, ",\"status\":");
    put_status(store, row, to);
    return buffer_append_char(to, '}');
}
