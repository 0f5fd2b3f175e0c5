// get --watch: the list, then a line (or a document) for each change, of several kinds at once.
#include "api/client/watch.h"
#include "cli/get.h"
#include "cli/objects.h"
#include "cli/server_table.h"
#include "controller/base/memory.h"
#include <stdio.h>
#include <string.h>
#include <unistd.h>

struct watched { // one target
    char *path, *since;
    json_t *columns; // columnDefinitions as the server sent them: later tables come without
    size_t widths[TABLE_MAX_COLUMNS];
};
struct watching {
    struct get *get;
    struct watched each[WATCH_MAX_ASKS];
    size_t last; // whose rows stand under the last headings
    bool has_rows;
};

static void watching_clear(struct watching *watching)
{
    for (size_t i = 0; i < WATCH_MAX_ASKS; i++) {
        free(watching->each[i].path);
        free(watching->each[i].since);
        json_decref(watching->each[i].columns);
    }
}

// ---- rows ---------------------------------------------------------------------------------------------------------------
// Columns only grow, so that rows stand below each other; headings come again where the kind is another one.
static void print_rows(struct watching *watching, size_t index, struct text_table *table)
{
    struct watched *watched = &watching->each[index];
    bool is_other = !watching->has_rows || watching->last != index;
    if (watching->has_rows && is_other && watching->get->has_headings)
        putchar('\n');
    memcpy(table->least_widths, watched->widths, sizeof(watched->widths));
    text_table_print(table, watching->get->has_headings && is_other);
    text_table_widths(table, 0, watched->widths);
    watching->last = index;
    watching->has_rows = true;
}

static int print_table(struct watching *watching, size_t index, const char *word, json_t *server_table, struct error *err)
{
    struct get *get = watching->get;
    struct watched *watched = &watching->each[index];
    CLEANUP(text_table_free) struct text_table table = {0};
    const json_t *columns = json_object_get(server_table, "columnDefinitions");
    if (!watched->columns && json_array_size(columns))
        watched->columns = json_deep_copy(columns);
    if (!json_array_size(columns) && watched->columns)
        json_object_set_new(server_table, "columnDefinitions", json_deep_copy(watched->columns));
    get_finish_table(get, get->targets.items[index].info, server_table);
    if (invocation_switch(get->in, "output-watch-events", false))
        server_table_add_word(server_table, "Event", word);
    if (get_take_table(get, server_table, &table, err) < 0)
        return -1;
    if (table.row_count > 1)
        print_rows(watching, index, &table);
    return 0;
}

static int print_object(struct get *get, const char *word, json_t *object, struct error *err)
{
    bool is_document = invocation_is_output(get->in, "json") || invocation_is_output(get->in, "yaml");
    if (!is_document || !invocation_switch(get->in, "output-watch-events", false))
        return get_print(get, object, err);
    CLEANUP_JSON json_t *event = json_pack("{s:s, s:O}", "type", word, "object", object);
    return get_print(get, event, err);
}

static int on_event(void *arg, size_t ask, enum watch_type type, json_t *object, struct error *err)
{
    static const char *const words[] = {[WATCH_ADDED] = "ADDED", [WATCH_MODIFIED] = "MODIFIED", [WATCH_DELETED] = "DELETED"};
    struct watching *watching = arg;
    if (!object)
        return 0; // a state told anew: its objects are printed again
    int r = watching->get->form == GET_TABLE ? print_table(watching, ask, words[type], object, err)
                                             : print_object(watching->get, words[type], object, err);
    if (r < 0)
        return -1;
    return fflush(stdout) != 0 || ferror(stdout); // nobody listens
}

// ---- the state first ----------------------------------------------------------------------------------------------------
static int print_items(struct get *get, const json_t *list, const struct kind_info *info, struct error *err)
{
    size_t i;
    json_t *item;
    if (get->is_sorted && server_items_sort(json_object_get(list, "items"), &get->sort, err) < 0)
        return -1;
    json_array_foreach(json_object_get(list, "items"), i, item)
    {
        CLEANUP_JSON json_t *whole = target_object(info, item);
        if (print_object(get, "ADDED", whole, err) < 0)
            return -1;
    }
    return 0;
}

static int list_first(struct watching *watching, size_t index, struct error *err)
{
    struct get *get = watching->get;
    struct watched *watched = &watching->each[index];
    bool is_table = get->form == GET_TABLE, is_quiet = invocation_switch(get->in, "watch-only", false);
    const char *more = is_table && get->is_sorted ? "includeObject=Object" : "";
    CLEANUP_FREE char *path = mem_format("%s%s%s", watched->path, *more ? strchr(watched->path, '?') ? "&" : "?" : "", more);
    CLEANUP_JSON json_t *list = NULL;
    if (get_list(get, path, &list, err) < 0)
        return -1;
    watched->since = mem_strdup_or_null(json_get_text(json_object_get(list, "metadata"), "resourceVersion"));
    if (is_quiet) {
        watched->columns = json_deep_copy(json_object_get(list, "columnDefinitions"));
        return 0;
    }
    if (!is_table)
        return print_items(get, list, get->targets.items[index].info, err);
    if (get->is_sorted && server_table_sort(list, &get->sort, err) < 0)
        return -1;
    return print_table(watching, index, "ADDED", list, err);
}

// Names are watched as names: a uid or a part of one is looked up first.
static int find_path(const struct get *get, const struct target *target, char **ret, struct error *err)
{
    CLEANUP_FREE char *term = NULL;
    if (target->name) {
        CLEANUP_JSON json_t *object = NULL;
        CLEANUP_FREE char *path = target_path(target->info, target->name);
        if (rest_get(get->rest, path, &object, err) < 0)
            return -1;
        term = mem_format("metadata.name=%s", object_name(object));
    }
    *ret = target_query(get->in, target->info, term ? term : get->fields, NULL);
    return 0;
}

static int start(struct watching *watching, struct watch_ask *asks, struct error *err)
{
    const struct get *get = watching->get;
    for (size_t i = 0; i < get->targets.count; i++) {
        struct watched *watched = &watching->each[i];
        if (find_path(get, &get->targets.items[i], &watched->path, err) < 0 || list_first(watching, i, err) < 0)
            return -1;
        asks[i] = (struct watch_ask){.path = watched->path, .accept = get->form == GET_TABLE ? REST_AS_TABLE : NULL, .since = watched->since};
    }
    fflush(stdout);
    return 0;
}

int get_watch(struct get *get, struct error *err)
{
    CLEANUP(watching_clear) struct watching watching = {.get = get};
    struct watch_ask asks[WATCH_MAX_ASKS];
    if (get->targets.count > WATCH_MAX_ASKS)
        return error_set(err, ERROR_USAGE, "name fewer, or use a selector", "more than %d things cannot be watched at once", WATCH_MAX_ASKS);
    if (start(&watching, asks, err) < 0)
        return -1;
    return watch_follow(get->rest, asks, get->targets.count, WATCH_FOREVER, STDOUT_FILENO, on_event, &watching, err) < 0 ? -1 : 0;
}
