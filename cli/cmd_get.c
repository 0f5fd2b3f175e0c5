#include "cli/objects.h"
#include "cli/printers/print.h"
#include "controller/base/memory.h"
#include <stdio.h>
#include <string.h>

struct asked { // the kinds of "sandboxes,workspaces"
    const struct kind_info *kinds[KIND_COUNT];
    size_t count;
};

static int parse_kinds(const char *text, struct asked *ret, struct error *err)
{
    while (*text) {
        size_t len = strcspn(text, ",");
        CLEANUP_FREE char *word = mem_strndup(text, len);
        const struct kind_info *info = object_kind(word, err);
        if (!info)
            return -1;
        bool is_new = true;
        for (size_t i = 0; i < ret->count; i++)
            is_new &= ret->kinds[i] != info;
        if (is_new)
            ret->kinds[ret->count++] = info;
        text += len + (text[len] == ',');
    }
    return ret->count ? 0 : error_set(err, ERROR_USAGE, "chat2shell get sandboxes", "no kind is given");
}

// "?labelSelector=…" or "". The caller owns it.
static char *selector_of(const struct invocation *in)
{
    const char *selector = invocation_option(in, "selector");
    if (!selector)
        return mem_strdup("");
    CLEANUP_FREE char *escaped = http_escape(selector);
    return mem_format("?labelSelector=%s", escaped);
}

static int fetch(struct invocation *in, const struct kind_info *info, const char *accept, json_t **ret, struct error *err)
{
    const struct rest *rest = invocation_rest(in, err);
    if (!rest)
        return -1;
    CLEANUP_FREE char *selector = selector_of(in);
    CLEANUP_FREE char *path = rest_path(info, in->argument_count > 1 ? in->arguments[1] : NULL);
    CLEANUP_FREE char *whole = mem_format("%s%s", path, selector);
    return rest_call(rest, &(struct rest_ask){.method = "GET", .path = whole, .accept = accept}, ret, NULL, NULL, err);
}

// ---- objects ------------------------------------------------------------------------------------------------------------
// Items of a server's list carry apiVersion and kind themselves, so that each can stand alone.
static void append_items(json_t *items, const json_t *list, const struct kind_info *info)
{
    size_t i;
    json_t *item;
    json_array_foreach(json_object_get(list, "items"), i, item)
    {
        CLEANUP_JSON json_t *whole = json_pack("{s:s, s:s}", "apiVersion", API_GROUP "/" API_VERSION, "kind", info->name);
        json_object_update(whole, item);
        json_array_append(items, whole);
    }
}

static int print_objects(struct invocation *in, const struct asked *asked, struct error *err)
{
    CLEANUP_JSON json_t *all = json_pack("{s:s, s:s, s:{s:s}, s:[]}", "apiVersion", "v1", "kind", "List", "metadata", "resourceVersion", "", "items");
    json_t *items = json_object_get(all, "items");
    for (size_t i = 0; i < asked->count; i++) {
        CLEANUP_JSON json_t *answer = NULL;
        if (fetch(in, asked->kinds[i], NULL, &answer, err) < 0)
            return -1;
        if (in->argument_count > 1) {
            object_print(in, answer);
            return 0;
        }
        append_items(items, answer, asked->kinds[i]);
    }
    if (!json_array_size(items) && invocation_is_output(in, "name"))
        fprintf(stderr, "No resources found\n");
    object_print(in, all);
    return 0;
}

// ---- tables -------------------------------------------------------------------------------------------------------------
// Several kinds in one answer: names say which is which.
static void qualify_names(struct text_table *table, const struct kind_info *info)
{
    for (size_t row = 1; row < table->row_count; row++) {
        char **name = &table->cells[row * table->column_count];
        char *whole = mem_format("%s/%s", info->singular, *name);
        free(*name);
        *name = whole;
    }
}

static int print_tables(struct invocation *in, const struct asked *asked, struct error *err)
{
    size_t printed = 0;
    for (size_t i = 0; i < asked->count; i++) {
        CLEANUP_JSON json_t *answer = NULL;
        CLEANUP(text_table_free) struct text_table table = {0};
        if (fetch(in, asked->kinds[i], REST_AS_TABLE, &answer, err) < 0)
            return -1;
        if (text_table_from_server(answer, invocation_is_output(in, "wide"), &table) < 0)
            return error_set(err, ERROR_INTERNAL, "is the daemon of another version?", "the daemon's answer is not a table");
        if (table.row_count < 2)
            continue;
        if (asked->count > 1)
            qualify_names(&table, asked->kinds[i]);
        if (printed++)
            putchar('\n');
        text_table_print(&table, !invocation_switch(in, "no-headers", false));
    }
    if (!printed)
        fprintf(stderr, "No resources found\n");
    return 0;
}

static int run(struct invocation *in, struct error *err)
{
    struct asked asked = {0};
    const char *slash = in->argument_count == 1 ? strchr(in->arguments[0], '/') : NULL;
    CLEANUP_FREE char *kind = mem_strndup(in->arguments[0], slash ? (size_t)(slash - in->arguments[0]) : strlen(in->arguments[0]));
    if (slash) // sandbox/NAME; the array has room for one more than argv had words
        in->arguments[in->argument_count++] = slash + 1;
    if (parse_kinds(kind, &asked, err) < 0)
        return -1;
    if (in->argument_count > 1 && (asked.count > 1 || invocation_option(in, "selector")))
        return error_set(err, ERROR_USAGE, "chat2shell get --help", "a name goes with one kind and no selector");
    const char *output = invocation_option(in, "output");
    bool is_table = !output || strcmp(output, "table") == 0 || strcmp(output, "wide") == 0;
    return is_table ? print_tables(in, &asked, err) : print_objects(in, &asked, err);
}

static const struct example examples[] = {
    {"chat2shell get sandboxes", "all sandboxes, one line each"},
    {"chat2shell get sandboxes,workspaces,approvals -o wide", "several kinds, every column"},
    {"chat2shell get sandbox dev -o yaml", "one object, as it can be edited and applied again"},
};
static const struct option_row options[] = {
    OPTION_OUTPUT(output_kinds, "how to print them"),
    {.name = "no-headers", .doc = "leave the headings out"},
    {.name = "selector", .letter = 'l', .value = "SELECTOR", .doc = "only objects with these labels, like app=web,tier!=test"},
};
const struct command command_get = {
    .name = "get", .synopsis = "KIND[,KIND…] [NAME]", .summary = "List objects, or print one", .min_arguments = 1, .max_arguments = 2, .run = run,
    .details = "NAME is a name, a uid, or the first 8 or more characters of a uid.", COMMAND_EXAMPLES(examples), COMMAND_OPTIONS(options),
};
