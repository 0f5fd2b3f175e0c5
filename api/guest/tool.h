// What a tool is. Each tool is one file with one `const struct tool`; adding one is that file and one line in
// tools.c. Its argument table gives both the advertised inputSchema and the validation, its field table
// the outputSchema, so neither can drift from the other.
#pragma once
#include "controller/base/error.h"
#include "controller/base/json.h"
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct guest;
struct request;
struct workspace;

enum tool_arg_type { ARG_STRING, ARG_INTEGER, ARG_BOOLEAN, ARG_STRING_LIST, ARG_OBJECT };

struct tool_arg {
    const char *name; // NULL ends a table
    enum tool_arg_type type;
    const char *doc;
    bool is_required, has_default;
    int64_t min, max;              // integers; max 0: no upper bound
    int64_t default_number;        // integers and booleans
    const char *default_text;      // strings
    const char *const *choices;    // strings; NULL-terminated
    bool is_sha256;                // strings: 64 hex digits
    bool is_not_empty;             // strings
    const struct tool_arg *fields; // objects
};

enum tool_field_type {
    FIELD_STRING,
    FIELD_INTEGER,
    FIELD_NUMBER,
    FIELD_BOOLEAN,
    FIELD_STRINGS,
    FIELD_OBJECT,
    FIELD_OBJECTS,
    FIELD_ANY // whatever somebody else's file holds
};

struct tool_field {
    const char *name; // NULL ends a table
    enum tool_field_type type;
    bool is_optional, is_nullable;
    const struct tool_field *fields; // FIELD_OBJECT, FIELD_OBJECTS
};

struct tool_hints {
    bool is_read_only, is_destructive, is_idempotent, is_open_world;
};

// One call on a worker. `structured` starts with codexpro_tool and codexpro_title, and workspace_id and root
// where the tool has a workspace; run adds its fields and sets text.
struct tool_call {
    struct guest *guest;
    const struct workspace *workspace;
    const json_t *args; // validated, defaults filled in
    const atomic_bool *is_cancelled;
    json_t *structured;
    json_t *content; // what comes after the text item (an image), an array owned by the call; NULL: nothing
    char *text;      // UTF-8, owned by the call
    size_t text_len;
};

struct tool {
    const char *name, *title, *description;
    const struct tool_arg *args;     // NULL: none
    const struct tool_field *fields; // beside the common ones
    struct tool_hints hints;
    const char *file_arg;                                  // an argument that a chat fills with an attachment
    bool has_no_workspace;                                 // no workspace_id and root in its results
    int (*run)(struct tool_call *call, struct error *err); // on a worker thread, or
    void (*start)(struct request *request, const json_t *args); // on the loop thread; answers by tool_answer*
};

extern const struct tool *const guest_tools[]; // NULL-terminated, in the order of tools/list
const struct tool *guest_tool_find(const char *name);
json_t *guest_tool_describe(const struct tool *tool); // the tools/list entry

// Checks args (NULL: none) against the table. On success *ret_args is an object of the caller's with defaults
// filled in. On failure -1 and *ret_problem (the caller's) is one line an issue, each ending in "at PATH".
int guest_tool_check_args(const struct tool *tool, const json_t *args, json_t **ret_args, char **ret_problem);

// Words for failures: own checks start "CodexProError: ", the system's "Error: ENOENT: ...".
int guest_tool_fail(struct error *err, const char *hint, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
int guest_tool_fail_type(struct error *err, const char *format, ...) __attribute__((format(printf, 2, 3)));
int guest_tool_fail_errno(struct error *err, int errno_value, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

json_t *guest_tool_start_structured(const struct tool *tool, const struct workspace *workspace);
json_t *guest_tool_result(json_t *structured, const char *text, size_t len); // takes structured
json_t *guest_tool_failure(const struct tool *tool, const struct error *err);
void guest_tool_call_request(struct request *request); // the method tools/call
