// Commands as data: one table row a command (commands.c) with its options; the table drives parsing, usage errors, help and
// the man page. One file a command (cmd_NAME.c) has the row's `run`.
//
//     static int run(struct invocation *in, struct error *err) { … invocation_option(in, "output") … }
#pragma once
#include "api/client/rest.h"
#include "controller/config.h"
#include <stdbool.h>
#include <stddef.h>

// Exit codes that are not an error's (error_meaning().exit_code): main.c and `help exit-codes` describe them all.
#define EXIT_EXEC_FAILED 125 // `exec`: ours failed
#define ARGUMENTS_MAX_VALUES 64 // of one option that may be repeated

struct option_row {
    const char *name;           // "output"
    char letter;                // 'o', or 0
    const char *value;          // placeholder "FORMAT"; NULL = a switch (--name, --name=true|false)
    const char *doc;            // one line
    const char *const *choices; // allowed values, NULL-terminated, "x=" for all that begin so; NULL = any
    bool is_repeatable;
    const char *bare;           // of an option with a value that may stand alone (--wait, --wait=VALUE): its value then; NULL: a value is needed
};
struct example {
    const char *line, *doc;
};
struct invocation;
struct command {
    const char *name;      // "get"
    const char *synopsis;  // "KIND[,KIND…] [NAME]"; "" = no arguments
    const char *summary;   // one line
    const char *details;   // further lines of help; NULL = none
    const struct example *examples;
    size_t example_count;
    const struct option_row *options;
    size_t option_count;
    int min_arguments, max_arguments; // max -1: any number
    bool takes_rest;                  // what follows "--" is another program's
    int (*run)(struct invocation *in, struct error *err);
    const struct command *children; // sub-commands; `run` is NULL then, or what it does without one
    size_t child_count;
};
extern const struct command *const commands[];
extern const size_t command_count;

struct option_value {
    const struct option_row *row;
    const char *text; // switches: "true" or "false"
};
struct invocation {
    const struct command *parent, *command; // parent: of a sub-command, else NULL
    struct option_value *values;
    size_t value_count;
    const char **arguments; // positional, NULL-terminated
    int argument_count;
    char **rest; // after "--", NULL-terminated; NULL if there was none
    bool is_help_wanted; // the command's help instead of what it does
    int exit_code; // for a `run` that returns 0 and still has something to tell (exec, doctor)
    struct config config;
    bool is_configured;
    struct rest rest_client;
};

// As kubectl takes them for objects without a namespace, which ours are: they change nothing.
#define OPTIONS_NAMESPACE                                                                                                        \
    {.name = "all-namespaces", .letter = 'A', .doc = "accepted as by kubectl: no object has a namespace, so all are meant anyhow"}, \
    {.name = "namespace", .letter = 'n', .value = "NAMESPACE", .doc = "accepted as by kubectl, and changes nothing: no object has a namespace"}
extern const struct option_row global_options[]; // of every command, before it or after it: --help, --color, --quiet
extern const size_t global_option_count;

// Of the options of a command (NULL: before one is named), its own first, then the global ones; NULL: there is none.
const struct option_row *option_at(const struct command *command, size_t index);
const struct option_row *option_find(const struct command *command, const char *name, size_t len);
const struct option_row *option_find_letter(const struct command *command, char letter);

// ---- arguments.c ------------------------------------------------------------------------------------------------------
// Fills in from argv (after the program's name). ERROR_USAGE with what is wrong and a likely meaning.
int invocation_parse(struct invocation *in, int argc, char **argv, struct error *err);
void invocation_clear(struct invocation *in);
const char *invocation_option(const struct invocation *in, const char *name); // the last value, NULL if absent
bool invocation_switch(const struct invocation *in, const char *name, bool fallback);
size_t invocation_values(const struct invocation *in, const char *name, const char *ret[ARGUMENTS_MAX_VALUES]);
// "chat2shell approval approve"; the caller owns it.
char *invocation_name(const struct invocation *in);
bool invocation_is_output(const struct invocation *in, const char *format); // is --output that?

// ---- context.c --------------------------------------------------------------------------------------------------------
const struct config *invocation_config(struct invocation *in, struct error *err); // read once; NULL on failure
const struct rest *invocation_rest(struct invocation *in, struct error *err);     // the daemon's operator API
// "http://127.0.0.1:18788/mcp", asking the daemon where the port is automatic. The caller owns it; NULL on failure.
char *invocation_mcp_url(struct invocation *in, struct error *err);

// ---- usage.c, groups in commands.c, man.c ---------------------------------------------------------------------------------------------------
const struct command *command_find(const char *name);
const struct command *command_find_child(const struct command *command, const char *name);
void usage_print(void);                                                                   // all commands
void usage_print_command(const struct command *parent, const struct command *command);
bool usage_print_topic(const char *topic); // false if there is none
struct help_topic {
    const char *name, *doc;
    void (*print)(void);
};
extern const struct help_topic help_topics[];
extern const size_t help_topic_count;
extern const char *const completion_shells[]; // NULL-terminated
struct exit_code {
    const char *code, *doc;
};
extern const struct exit_code exit_codes[];
extern const size_t exit_code_count;
// What help groups the commands by; those in none of the rows belong to the last group.
struct command_group {
    const char *title; // NULL ends the table
    const char *const *names;
};
extern const struct command_group command_groups[];
const struct command_group *command_group_of(const struct command *command);
// Man source onto stdout: of a command, of "config", or (NULL) the overview. ERROR_USAGE.
int man_print(const char *page, struct error *err);
int man_write(const char *directory, struct error *err); // all pages, a file each

// The error in at most three lines on stderr (or a Status with -o json). Nothing if its message is empty: what there was to
// say was said piece by piece.
void complain(const struct invocation *in, const struct error *err);
void complain_text(const char *text); // somebody else's words, as they are
void complain_line(const char *text); // one of several mistakes, on one line
void complain_hint(const struct error *err); // the last of the lines by itself
// Options that several commands share.
extern const char *const output_kinds[];    // table, wide, json, yaml, name
extern const char *const output_documents[]; // table, json, yaml
#define OPTION_OUTPUT(words, text) {.name = "output", .letter = 'o', .value = "FORMAT", .doc = text, .choices = words}
#define COMMAND_EXAMPLES(list) .examples = (list), .example_count = sizeof(list) / sizeof((list)[0])
#define COMMAND_OPTIONS(list) .options = (list), .option_count = sizeof(list) / sizeof((list)[0])
#define COMMAND_CHILDREN(list) .children = (list), .child_count = sizeof(list) / sizeof((list)[0])

extern const struct command command_serve;
extern const struct command command_stop;
extern const struct command command_setup;
extern const struct command command_status;
extern const struct command command_doctor;
extern const struct command command_version;
extern const struct command command_get;
extern const struct command command_describe;
extern const struct command command_apply;
extern const struct command command_diff;
extern const struct command command_edit;
extern const struct command command_delete;
extern const struct command command_label;
extern const struct command command_annotate;
extern const struct command command_recreate;
extern const struct command command_export;
extern const struct command command_approval;
extern const struct command command_workspace;
extern const struct command command_token;
extern const struct command command_exec;
extern const struct command command_port_forward;
extern const struct command command_cp;
extern const struct command command_logs;
extern const struct command command_top;
extern const struct command command_mcp;
extern const struct command command_kubeconfig;
extern const struct command command_help;
extern const struct command command_wait;
extern const struct command command_events;
extern const struct command command_explain;
extern const struct command command_completion;
