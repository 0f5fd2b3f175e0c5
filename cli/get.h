// What `get` and `events` do: list, print in a form, go on watching.
#pragma once
#include "cli/printers/columns.h"
#include "cli/printers/jsonpath.h"
#include "cli/targets.h"

enum get_form { GET_TABLE, GET_OBJECTS, GET_JSONPATH, GET_COLUMNS }; // OBJECTS: json, yaml, name
struct get {
    struct invocation *in;
    const struct rest *rest;
    struct targets targets;
    enum get_form form;
    bool is_wide, has_several_kinds;
    struct jsonpath *jsonpath;
    struct custom_columns *columns;
    struct json_expression sort; // --sort-by
    bool is_sorted;
    char *fields; // a further field selector, or NULL
    bool has_headings; // still to be printed (custom columns)
    bool has_documents; // one has been printed (yaml)
    struct error *missing; // of several that are named: those that are not there, told behind what was found
    size_t missing_count;
};
// Reads --output, --sort-by and the rest of the options that there are; targets and fields are the caller's to fill in.
int get_prepare(struct invocation *in, struct get *ret, struct error *err);
void get_clear(struct get *get);
int get_run(struct get *get, struct error *err); // lists, and watches with --watch

int get_prepare_form(struct get *get, const char *output, struct error *err); // get_form.c
int get_raw(struct invocation *in, const char *path, struct error *err);      // get_raw.c

// ---- get_list.c
// A collection's Table or List, in pieces of --chunk-size. New reference.
int get_list(const struct get *get, const char *path, json_t **ret, struct error *err);
int get_check_chunk_size(const struct invocation *in, struct error *err);

// ---- get_print.c
// One object, or a List, in any form but the table's.
int get_print(struct get *get, json_t *object, struct error *err);
// Further columns, names with kinds.
void get_finish_table(const struct get *get, const struct kind_info *info, json_t *table);
int get_take_table(const struct get *get, const json_t *server_table, struct text_table *ret, struct error *err);

// ---- get_watch.c
int get_watch(struct get *get, struct error *err);

#define GET_OUTPUT_MAX_BYTES (256u * 1024 * 1024)
extern const char *const get_outputs[];
#define OPTION_WATCH {.name = "watch", .letter = 'w', .doc = "go on with every change, until interrupted"}
#define OPTION_WATCH_ONLY {.name = "watch-only", .doc = "only what changes from now on"}
#define OPTION_WATCH_EVENTS {.name = "output-watch-events", .doc = "say with each change what it is: ADDED, MODIFIED or DELETED"}
#define OPTION_NO_HEADERS {.name = "no-headers", .doc = "leave the headings out"}
#define OPTION_CHUNK_SIZE \
    {.name = "chunk-size", .value = "COUNT", .doc = "how many objects are asked for at once; 500 by default, 0: all"}
#define OPTION_SORT {.name = "sort-by", .value = "PATH", .doc = "in the order of a field, like .metadata.creationTimestamp"}
