// describe: one object in words: its fields, its conditions, what happened to it.
#include "cli/objects.h"
#include "cli/printers/print.h"
#include "controller/base/cleanup.h"
#include "controller/base/memory.h"
#include "controller/base/time.h"
#include <stdio.h>
#include <string.h>

#define BLOCK_MAX_BYTES (1024 * 1024)

static void print_label(const char *label)
{
    printf("%s%s%s\n", style_on(stdout, STYLE_HEADING), label, style_off(stdout, STYLE_HEADING));
}

static void print_field(const char *label, const char *value)
{
    CLEANUP_FREE char *line = mem_format("%-13s %s\n", label, value && *value ? value : "<none>");
    print_text(line);
}

static void print_map(const char *label, const json_t *map)
{
    const char *key;
    json_t *value;
    bool is_first = true;
    if (!json_object_size(map))
        print_field(label, NULL);
    json_object_foreach((json_t *)map, key, value)
    {
        CLEANUP_FREE char *pair = mem_format("%s=%s", key, json_is_string(value) ? json_string_value(value) : "");
        print_field(is_first ? label : "", pair);
        is_first = false;
    }
}

static void print_head(const json_t *object)
{
    const json_t *metadata = json_object_get(object, "metadata");
    print_field("Name:", object_name(object));
    print_field("Kind:", json_get_text(object, "kind"));
    print_field("Id:", object_uid(object));
    print_map("Labels:", json_object_get(metadata, "labels"));
    print_map("Annotations:", json_object_get(metadata, "annotations"));
    print_field("Created:", json_get_text(metadata, "creationTimestamp"));
    if (json_get_text(metadata, "deletionTimestamp"))
        print_field("Deleting:", json_get_text(metadata, "deletionTimestamp"));
}

// A part as YAML, two blanks in. The text is made printable by yaml_write.
static void print_block(const char *label, const json_t *value)
{
    CLEANUP(buffer_free) struct buffer out = BUFFER_INIT(BLOCK_MAX_BYTES);
    print_label(label);
    yaml_write(&out, value);
    for (const char *at = buffer_text(&out); *at;) {
        size_t len = strcspn(at, "\n");
        printf("  %.*s\n", (int)len, at);
        at += len + (at[len] == '\n');
    }
}

static void print_status(const json_t *status)
{
    CLEANUP_JSON json_t *rest = json_copy((json_t *)status);
    json_object_del(rest, "conditions");
    if (json_object_size(rest))
        print_block("Status:", rest);
}

static void print_rows(const char *label, struct text_table *table)
{
    print_label(label);
    if (table->row_count < 2)
        puts("  <none>");
    else
        text_table_print(table, true);
}

// Most conditions are good when they are True; these tell of something bad.
static enum style style_of_condition(const char *type, const char *status)
{
    static const char *const bad[] = {CONDITION_FAILED, CONDITION_STALLED, CONDITION_REVOKED};
    bool is_true = status && strcmp(status, "True") == 0, is_bad = false;
    for (size_t i = 0; type && i < ARRAY_LEN(bad); i++)
        is_bad |= strcmp(type, bad[i]) == 0;
    if (is_bad)
        return is_true ? STYLE_BAD : STYLE_PLAIN;
    return is_true ? STYLE_GOOD : STYLE_WARN;
}

static void print_conditions(const json_t *conditions)
{
    CLEANUP(text_table_free) struct text_table table = {0};
    text_table_add_row(&table, (const char *[]){"  TYPE", "STATUS", "SINCE", "REASON", "MESSAGE"}, 5);
    for (size_t i = 0; i < json_array_size(conditions); i++) {
        const json_t *at = json_array_get(conditions, i);
        const char *type = json_get_text(at, "type");
        CLEANUP_FREE char *indented = mem_format("  %s", type ? type : "");
        text_table_add_row(&table, (const char *[]){indented, json_get_text(at, "status"), json_get_text(at, "lastTransitionTime"), json_get_text(at, "reason"),
                                                    json_get_text(at, "message")}, 5);
        text_table_style(&table, 1, style_of_condition(type, json_get_text(at, "status")));
    }
    print_rows("Conditions:", &table);
}

static void print_events(const json_t *list)
{
    CLEANUP(text_table_free) struct text_table table = {0};
    text_table_add_row(&table, (const char *[]){"  LAST SEEN", "COUNT", "TYPE", "REASON", "MESSAGE"}, 5);
    const json_t *items = json_object_get(list, "items");
    for (size_t i = 0; i < json_array_size(items); i++) {
        const json_t *at = json_array_get(items, i);
        const char *last = json_get_text(at, "lastTimestamp");
        CLEANUP_FREE char *indented = mem_format("  %s", last ? last : "");
        CLEANUP_FREE char *count = mem_format("%lld", (long long)json_get_int(at, "count", 1));
        text_table_add_row(&table, (const char *[]){indented, count, json_get_text(at, "type"), json_get_text(at, "reason"), json_get_text(at, "message")}, 5);
    }
    print_rows("Events:", &table);
}

static int run(struct invocation *in, struct error *err)
{
    const struct rest *rest = invocation_rest(in, err);
    const struct kind_info *info = rest ? object_kind(in->arguments[0], err) : NULL;
    CLEANUP_JSON json_t *object = NULL, *events = NULL;
    if (!info || object_get(rest, info, in->arguments[1], &object, err) < 0)
        return -1;
    CLEANUP_FREE char *uid = http_escape(object_uid(object));
    CLEANUP_FREE char *path = mem_format("/api/v1/namespaces/default/events?fieldSelector=involvedObject.uid%%3D%s", uid);
    if (rest_get(rest, path, &events, err) < 0)
        return -1;
    print_head(object);
    if (json_object_size(json_object_get(object, "spec")))
        print_block("Spec:", json_object_get(object, "spec"));
    print_status(json_object_get(object, "status"));
    print_conditions(json_object_get(json_object_get(object, "status"), "conditions"));
    print_events(events);
    return 0;
}

static const struct example examples[] = {{"chat2shell describe sandbox dev", "why it is as it is"}};
const struct command command_describe = {
    .name = "describe", .synopsis = "KIND NAME", .summary = "Show one object with its conditions and events", .min_arguments = 2, .max_arguments = 2,
    .run = run, COMMAND_EXAMPLES(examples),
};
