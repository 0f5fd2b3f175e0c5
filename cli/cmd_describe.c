// describe: one object in words: its fields, its conditions, what happened to it.
#include "cli/get.h"
#include "cli/objects.h"
#include "cli/printers/print.h"
#include "cli/several.h"
#include "controller/base/cleanup.h"
#include "controller/base/memory.h"
#include "controller/base/time.h"
#include <stdio.h>
#include <string.h>

#define BLOCK_MAX_BYTES (1024 * 1024)
#define EVENTS "/api/v1/namespaces/default/events"

struct describing {
    struct invocation *in;
    const struct rest *rest;
    bool shows_events;
    size_t printed;
    struct several several;
};

static void describing_clear(struct describing *describing)
{
    several_clear(&describing->several);
}

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

// What an object has beside the usual parts, as Events do.
static void print_others(const json_t *object)
{
    static const char *const usual[] = {"apiVersion", "kind", "metadata", "spec", "status"};
    CLEANUP_JSON json_t *others = json_copy((json_t *)object);
    for (size_t i = 0; i < ARRAY_LEN(usual); i++)
        json_object_del(others, usual[i]);
    if (json_object_size(others))
        print_block("Fields:", others);
}

static int describe(struct describing *describing, const struct kind_info *info, const json_t *object, struct error *err)
{
    CLEANUP_JSON json_t *events = NULL;
    CLEANUP_FREE char *uid = http_escape(object_uid(object));
    CLEANUP_FREE char *path = mem_format("%s?fieldSelector=involvedObject.uid%%3D%s", EVENTS, uid);
    bool has_events = describing->shows_events && info != &events_info;
    if (has_events && rest_get(describing->rest, path, &events, err) < 0)
        return -1;
    fputs(describing->printed++ ? "\n\n" : "", stdout);
    print_head(object);
    if (json_object_size(json_object_get(object, "spec")))
        print_block("Spec:", json_object_get(object, "spec"));
    print_others(object);
    print_status(json_object_get(object, "status"));
    if (info != &events_info)
        print_conditions(json_object_get(json_object_get(object, "status"), "conditions"));
    if (has_events)
        print_events(events);
    return 0;
}

static int describe_items(struct describing *describing, const struct kind_info *info, const json_t *list, const char *prefix, struct error *err)
{
    const json_t *items = json_object_get(list, "items");
    for (size_t i = 0; i < json_array_size(items); i++) {
        CLEANUP_JSON json_t *item = target_object(info, json_array_get(items, i));
        if (strncmp(object_name(item), prefix, strlen(prefix)) == 0 && describe(describing, info, item, err) < 0)
            return -1;
    }
    return 0;
}

// What is of the kind, as far as the selector and the prefix of the name choose it.
static int describe_chosen(struct describing *describing, const struct kind_info *info, const char *prefix, struct error *err)
{
    CLEANUP_JSON json_t *list = NULL;
    const struct get get = {.in = describing->in, .rest = describing->rest, .form = GET_OBJECTS};
    CLEANUP_FREE char *path = target_query(describing->in, info, NULL, NULL);
    return get_list(&get, path, &list, err) < 0 ? -1 : describe_items(describing, info, list, prefix, err);
}

// A name that is not there stands for all that begin like it, as with kubectl.
static int describe_named(struct describing *describing, const struct target *target, struct error *err)
{
    struct error missing = ERROR_INIT;
    CLEANUP_JSON json_t *object = NULL;
    CLEANUP_FREE char *path = target_path(target->info, target->name);
    size_t before = describing->printed;
    if (rest_get(describing->rest, path, &object, &missing) == 0)
        return describe(describing, target->info, object, err);
    if (missing.code != ERROR_NOT_FOUND)
        return error_copy(err, &missing);
    if (describe_chosen(describing, target->info, target->name, err) < 0)
        return -1;
    return describing->printed > before ? 0 : error_copy(err, &missing);
}

static int describe_target(struct describing *describing, const struct target *target, struct error *err)
{
    struct error why = ERROR_INIT;
    if (!target->name)
        return describe_chosen(describing, target->info, "", err);
    if (describe_named(describing, target, &why) == 0)
        return 0;
    return why.code == ERROR_NOT_FOUND ? several_fail(&describing->several, &why, err) : error_copy(err, &why);
}

static int run(struct invocation *in, struct error *err)
{
    struct targets targets = {0};
    CLEANUP(describing_clear) struct describing describing = {.in = in, .shows_events = invocation_switch(in, "show-events", true)};
    if (targets_parse(in, &targets, err) < 0 || get_check_chunk_size(in, err) < 0 || !(describing.rest = invocation_rest(in, err)))
        return -1;
    if (targets.has_names && targets_are_selected(in))
        return error_set(err, ERROR_USAGE, "chat2shell describe --help", "names go with no selector");
    several_begin(&describing.several, in, targets.count == 1);
    for (size_t i = 0; i < targets.count; i++)
        if (describe_target(&describing, &targets.items[i], err) < 0)
            return -1;
    if (several_end(&describing.several, err) < 0)
        return -1;
    if (!describing.printed)
        terminal_note("No resources found");
    return 0;
}

static const struct example examples[] = {
    {"chat2shell describe sandbox dev", "why it is as it is"},
    {"chat2shell describe sbx,ws -l team=web", "everything of two kinds with a label"},
    {"chat2shell describe sandbox/dev workspace/demo", "objects of several kinds"},
};
static const struct option_row options[] = {
    OPTION_SELECTOR,
    {.name = "show-events", .doc = "what happened to it, too; --show-events=false does without"},
    OPTION_CHUNK_SIZE,
    OPTIONS_NAMESPACE,
};
const struct command command_describe = {
    .name = "describe", .synopsis = "KIND[,KIND…] [NAME…] | KIND/NAME…", .summary = "Show objects with their conditions and events", .min_arguments = 1,
    .max_arguments = -1, .run = run, COMMAND_EXAMPLES(examples), COMMAND_OPTIONS(options),
    .details = "NAME is a name, a uid or the beginning of one; where nothing has that name, it stands for all whose name begins like it.",
};
