// What `get` found, in the form that was asked for.
#include "cli/get.h"
#include "cli/objects.h"
#include "cli/server_table.h"
#include "controller/base/memory.h"
#include <stdio.h>
#include <string.h>

// Whole templates are somebody's own form: line ends and tabs stay, what a terminal would obey does not.
static int print_template(const struct get *get, json_t *object, struct error *err)
{
    CLEANUP(buffer_free) struct buffer out = BUFFER_INIT(GET_OUTPUT_MAX_BYTES);
    if (jsonpath_write(get->jsonpath, object, &out, err) < 0)
        return -1;
    print_text(buffer_text(&out));
    return 0;
}

static int print_columns(struct get *get, json_t *object, struct error *err)
{
    CLEANUP(text_table_free) struct text_table table = {0};
    json_t *items = json_object_get(object, "items"), *item;
    bool is_list = json_is_array(items) && strcmp(json_get_text(object, "kind") ? json_get_text(object, "kind") : "", "List") == 0;
    int r = 0;
    size_t i;
    custom_columns_add_heading(get->columns, &table);
    if (!is_list)
        r = custom_columns_add_row(get->columns, object, &table, err);
    else
        json_array_foreach(items, i, item)
            if (r == 0)
                r = custom_columns_add_row(get->columns, item, &table, err);
    if (r < 0)
        return -1;
    text_table_print(&table, get->has_headings && table.row_count > 1);
    get->has_headings &= table.row_count < 2; // once
    return 0;
}

int get_print(struct get *get, json_t *object, struct error *err)
{
    if (get->form == GET_JSONPATH)
        return print_template(get, object, err);
    if (get->form == GET_COLUMNS)
        return print_columns(get, object, err);
    if (get->has_documents && invocation_is_output(get->in, "yaml"))
        puts("---");
    get->has_documents = true;
    object_print(get->in, object);
    return 0;
}

// -L a,b -L c
static void add_label_columns(const struct get *get, json_t *table)
{
    const char *values[ARGUMENTS_MAX_VALUES];
    size_t count = invocation_values(get->in, "label-columns", values);
    for (size_t i = 0; i < count; i++)
        for (const char *at = values[i]; *at;) {
            size_t len = strcspn(at, ",");
            CLEANUP_FREE char *key = mem_strndup(at, len);
            if (len)
                server_table_add_label(table, key);
            at += len + (at[len] == ',');
        }
}

void get_finish_table(const struct get *get, const struct kind_info *info, json_t *table)
{
    add_label_columns(get, table);
    if (invocation_switch(get->in, "show-labels", false))
        server_table_add_labels(table);
    if (get->has_several_kinds)
        server_table_qualify(table, info->singular);
}

int get_take_table(const struct get *get, const json_t *server_table, struct text_table *ret, struct error *err)
{
    if (text_table_from_server(server_table, get->is_wide, ret) == 0)
        return 0;
    return error_set(err, ERROR_INTERNAL, "is the daemon of another version?", "the daemon's answer is not a table");
}
