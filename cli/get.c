#include "cli/get.h"
#include "cli/objects.h"
#include "cli/server_table.h"
#include "cli/terminal.h"
#include "controller/base/memory.h"
#include <stdio.h>
#include <string.h>

// ---- options ------------------------------------------------------------------------------------------------------------
int get_prepare(struct invocation *in, struct get *ret, struct error *err)
{
    const char *output = invocation_option(in, "output"), *sort = invocation_option(in, "sort-by");
    ret->in = in;
    ret->has_headings = !invocation_switch(in, "no-headers", false);
    ret->is_sorted = sort != NULL;
    if (get_check_chunk_size(in, err) < 0 || get_prepare_form(ret, output ? output : "table", err) < 0 ||
        (sort && json_expression_parse(sort, &ret->sort, err) < 0))
        return -1;
    ret->rest = invocation_rest(in, err);
    return ret->rest ? 0 : -1;
}

void get_clear(struct get *get)
{
    jsonpath_free(&get->jsonpath);
    custom_columns_free(&get->columns);
    json_expression_free(&get->sort);
    free(get->fields);
    free(get->missing);
}

// ---- fetching -----------------------------------------------------------------------------------------------------------
// 1: it is there, 0: it is not, and what else is named is printed all the same.
static int fetch(struct get *get, const struct target *target, json_t **ret, struct error *err)
{
    bool is_table = get->form == GET_TABLE, needs_objects = is_table && get->is_sorted;
    struct error local = ERROR_INIT;
    CLEANUP_FREE char *one = target->name ? target_path(target->info, target->name) : NULL;
    CLEANUP_FREE char *path = one ? mem_format("%s%s", one, needs_objects ? "?includeObject=Object" : "")
                                  : target_query(get->in, target->info, get->fields, needs_objects ? "includeObject=Object" : NULL);
    const struct rest_ask ask = {.method = "GET", .path = path, .accept = is_table ? REST_AS_TABLE : NULL};
    if (!one)
        return get_list(get, path, ret, err) < 0 ? -1 : 1;
    if (rest_call(get->rest, &ask, ret, NULL, NULL, &local) == 0)
        return 1;
    if (local.code == ERROR_NOT_FOUND && invocation_switch(get->in, "ignore-not-found", false))
        return 0;
    if (local.code != ERROR_NOT_FOUND || get->targets.count == 1)
        return error_copy(err, &local);
    get->missing = mem_realloc_array(get->missing, get->missing_count + 1, sizeof(*get->missing));
    get->missing[get->missing_count++] = local;
    return 0;
}

static int tell_missing(const struct get *get, struct error *err)
{
    fflush(stdout);
    for (size_t i = 0; i < get->missing_count; i++)
        complain(get->in, &get->missing[i]);
    return get->missing_count ? error_set(err, ERROR_NOT_FOUND, NULL, "%s", "") : 0; // told
}

// ---- objects ------------------------------------------------------------------------------------------------------------
static void append_items(json_t *items, const json_t *list, const struct kind_info *info)
{
    size_t i;
    json_t *item;
    json_array_foreach(json_object_get(list, "items"), i, item) json_array_append_new(items, target_object(info, item));
}

static int fetch_all(struct get *get, json_t *items, struct error *err)
{
    for (size_t i = 0; i < get->targets.count; i++) {
        const struct target *target = &get->targets.items[i];
        CLEANUP_JSON json_t *answer = NULL;
        int r = fetch(get, target, &answer, err);
        if (r < 0)
            return -1;
        if (r && target->name)
            json_array_append(items, answer);
        else if (r)
            append_items(items, answer, target->info);
    }
    return get->is_sorted ? server_items_sort(items, &get->sort, err) : 0;
}

static int print_objects(struct get *get, struct error *err)
{
    CLEANUP_JSON json_t *all = json_pack("{s:s, s:s, s:{s:s}, s:[]}", "apiVersion", "v1", "kind", "List", "metadata", "resourceVersion", "", "items");
    json_t *items = json_object_get(all, "items");
    if (fetch_all(get, items, err) < 0)
        return -1;
    bool is_one = get->targets.count == 1 && get->targets.has_names;
    if (!json_array_size(items) && !is_one && !get->missing_count && (invocation_is_output(get->in, "name") || get->form == GET_COLUMNS))
        terminal_note("No resources found");
    if (!json_array_size(items) && is_one)
        return 0; // --ignore-not-found
    return get_print(get, is_one ? json_array_get(items, 0) : all, err);
}

// ---- tables -------------------------------------------------------------------------------------------------------------
static int print_table(const struct get *get, const struct kind_info *info, json_t *server_table, size_t *printed, struct error *err)
{
    CLEANUP(text_table_free) struct text_table table = {0};
    if (get->is_sorted && server_table_sort(server_table, &get->sort, err) < 0)
        return -1;
    get_finish_table(get, info, server_table);
    if (get_take_table(get, server_table, &table, err) < 0)
        return -1;
    if (table.row_count < 2)
        return 0;
    if ((*printed)++)
        putchar('\n');
    text_table_print(&table, get->has_headings);
    return 0;
}

// Objects of one kind that are named one by one stand in one table. *at moves on over them.
static int fetch_group(struct get *get, size_t *at, json_t **ret, struct error *err)
{
    const struct kind_info *info = get->targets.items[*at].info;
    CLEANUP_JSON json_t *group = NULL;
    for (; *at < get->targets.count && get->targets.items[*at].info == info; ++*at) {
        CLEANUP_JSON json_t *answer = NULL;
        int r = fetch(get, &get->targets.items[*at], &answer, err);
        if (r < 0)
            return -1;
        if (r && group)
            server_table_append(group, answer);
        else if (r)
            group = TAKE_PTR(answer);
    }
    *ret = TAKE_PTR(group);
    return 0;
}

static int print_tables(struct get *get, struct error *err)
{
    size_t printed = 0;
    for (size_t i = 0; i < get->targets.count;) {
        const struct kind_info *info = get->targets.items[i].info;
        CLEANUP_JSON json_t *group = NULL;
        if (fetch_group(get, &i, &group, err) < 0 || (group && print_table(get, info, group, &printed, err) < 0))
            return -1;
    }
    if (!printed && !get->targets.has_names)
        terminal_note("No resources found");
    return 0;
}

static int check(const struct get *get, struct error *err)
{
    if (get->targets.has_names && targets_are_selected(get->in))
        return error_set(err, ERROR_USAGE, "chat2shell get --help", "names go with no selector");
    return 0;
}

int get_run(struct get *get, struct error *err)
{
    for (size_t i = 1; i < get->targets.count; i++)
        get->has_several_kinds |= get->targets.items[i].info != get->targets.items[0].info;
    if (check(get, err) < 0)
        return -1;
    if (invocation_switch(get->in, "watch", false) || invocation_switch(get->in, "watch-only", false))
        return get_watch(get, err);
    if ((get->form == GET_TABLE ? print_tables(get, err) : print_objects(get, err)) < 0)
        return -1;
    return tell_missing(get, err);
}
