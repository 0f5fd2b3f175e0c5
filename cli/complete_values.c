// What an argument or an option's value can be: from the tables, and names and ids from the daemon.
#include "api/tools/tools.h"
#include "cli/complete.h"
#include "cli/targets.h"
#include "controller/base/memory.h"
#include <stdio.h>
#include <string.h>

#define NAMES_MAX "1000" // asked of the daemon at once
#define TIMEOUT_MS 900

// ---- from the daemon ----------------------------------------------------------------------------------------------------
static bool is_given(const struct completion *completion, const char *name)
{
    for (int i = 0; i < completion->in.argument_count; i++)
        if (strcmp(completion->in.arguments[i], name) == 0)
            return true;
    return false;
}

static const struct rest *connect_rest(struct completion *completion)
{
    const struct rest *rest = invocation_rest(&completion->in, NULL);
    if (rest)
        completion->in.rest_client.timeout_ms = TIMEOUT_MS;
    return rest;
}

// A row's second cell is the phase, or the like.
static void add_row(const struct completion *completion, const json_t *row, bool wants_uid, const char *suffix)
{
    const json_t *metadata = json_object_get(json_object_get(row, "object"), "metadata");
    const char *text = json_get_text(metadata, wants_uid ? "uid" : "name");
    const json_t *about = json_array_get(json_object_get(row, "cells"), 1);
    CLEANUP_FREE char *candidate = text ? mem_format("%s%s", text, suffix) : NULL;
    if (candidate && !is_given(completion, candidate))
        complete_add(completion, candidate, json_is_string(about) ? json_string_value(about) : NULL);
}

// fields: a field selector, or NULL; suffix: what stands behind each. Ids where one is begun.
static void add_names(struct completion *completion, const struct kind_info *info, const char *fields, const char *suffix)
{
    const struct rest *rest = connect_rest(completion);
    CLEANUP_JSON json_t *table = NULL;
    CLEANUP_FREE char *all = target_path(info, NULL);
    CLEANUP_FREE char *escaped = http_escape(fields ? fields : "");
    CLEANUP_FREE char *path = mem_format("%s?limit=" NAMES_MAX "%s%s", all, fields ? "&fieldSelector=" : "", escaped);
    const struct rest_ask ask = {.method = "GET", .path = path, .accept = REST_AS_TABLE};
    if (!rest || rest_call(rest, &ask, &table, NULL, NULL, NULL) < 0)
        return;
    const json_t *rows = json_object_get(table, "rows");
    bool wants_uid = info->uid_prefix && strncmp(completion->word, info->uid_prefix, strlen(info->uid_prefix)) == 0;
    for (size_t i = 0; i < json_array_size(rows); i++)
        add_row(completion, json_array_get(rows, i), wants_uid, suffix);
}

static void add_tokens(struct completion *completion)
{
    const struct rest *rest = connect_rest(completion);
    CLEANUP_JSON json_t *list = NULL;
    if (!rest || rest_get(rest, REST_OWN "/tokens", &list, NULL) < 0)
        return;
    const json_t *items = json_object_get(list, "items");
    for (size_t i = 0; i < json_array_size(items); i++) {
        const char *name = json_get_text(json_array_get(items, i), "name");
        if (name)
            complete_add(completion, name, json_get_text(json_array_get(items, i), "expiresAt"));
    }
}

// ---- kinds and what is of them ------------------------------------------------------------------------------------------
// "sandboxes,wo": the last of a list.
static void skip_list(struct completion *completion)
{
    const char *comma = strrchr(completion->word, ',');
    if (comma)
        completion_move_on(completion, (size_t)(comma + 1 - completion->word));
}

static void add_kinds(struct completion *completion, bool is_list)
{
    if (is_list)
        skip_list(completion);
    for (int kind = 0; kind < KIND_COUNT; kind++)
        complete_add(completion, kind_info((enum kind)kind)->plural, kind_info((enum kind)kind)->short_name);
    complete_add(completion, events_info.plural, events_info.short_name);
    if (is_list)
        complete_add(completion, "all", "every kind");
}

// "sandbox/", then names.
static void add_pair(struct completion *completion)
{
    const char *slash = strchr(completion->word, '/');
    completion->directive = COMPLETE_NO_FILES | (slash ? 0 : COMPLETE_NO_SPACE);
    for (int kind = 0; !slash && kind < KIND_COUNT; kind++) {
        CLEANUP_FREE char *word = mem_format("%s/", kind_info((enum kind)kind)->singular);
        complete_add(completion, word, NULL);
    }
    if (!slash)
        return;
    CLEANUP_FREE char *word = mem_strndup(completion->word, (size_t)(slash - completion->word));
    const struct kind_info *info = target_kind(word, NULL);
    completion_move_on(completion, (size_t)(slash + 1 - completion->word));
    if (info)
        add_names(completion, info, NULL, "");
}

// KIND[,KIND…] NAME…, or KIND/NAME…
static void add_targets(struct completion *completion)
{
    const struct invocation *in = &completion->in;
    const char *first = in->argument_count ? in->arguments[0] : completion->word;
    if (strchr(first, '/'))
        add_pair(completion);
    else if (!in->argument_count)
        add_kinds(completion, true);
    else if (target_kind(first, NULL))
        add_names(completion, target_kind(first, NULL), NULL, "");
}

static void add_kind(struct completion *completion)
{
    add_kinds(completion, false);
}

// ---- other arguments ----------------------------------------------------------------------------------------------------
static void add_sandboxes(struct completion *completion)
{
    add_names(completion, kind_info(KIND_SANDBOX), NULL, "");
}

static void add_failed_sandboxes(struct completion *completion)
{
    add_names(completion, kind_info(KIND_SANDBOX), "status.phase=failed", "");
}

static void add_pending_approvals(struct completion *completion)
{
    add_names(completion, kind_info(KIND_APPROVAL), "status.phase=pending", "");
}

static void add_files(struct completion *completion)
{
    completion->directive = 0;
}

static void add_directories(struct completion *completion)
{
    completion->directive = COMPLETE_DIRECTORIES;
}

// "dev:", behind which a path in the sandbox follows; everything else is a file here.
static void add_copy_end(struct completion *completion)
{
    completion->directive = strpbrk(completion->word, "/.") == completion->word ? 0 : COMPLETE_NO_SPACE;
    if (!strchr(completion->word, ':'))
        add_names(completion, kind_info(KIND_SANDBOX), NULL, ":");
    else
        completion->directive = COMPLETE_NO_FILES;
}

static void add_tools(struct completion *completion)
{
    for (size_t i = 0; i < tool_count; i++)
        complete_add(completion, tools[i].name, NULL);
}

static void add_commands(struct completion *completion)
{
    const struct invocation *in = &completion->in;
    const struct command *parent = in->argument_count ? command_find(in->arguments[0]) : NULL;
    for (size_t i = 0; !in->argument_count && i < command_count; i++)
        complete_add(completion, commands[i]->name, commands[i]->summary);
    for (size_t i = 0; !in->argument_count && i < help_topic_count; i++)
        complete_add(completion, help_topics[i].name, help_topics[i].doc);
    for (size_t i = 0; parent && i < parent->child_count; i++)
        complete_add(completion, parent->children[i].name, parent->children[i].summary);
}

static void add_shells(struct completion *completion)
{
    for (size_t i = 0; completion_shells[i]; i++)
        complete_add(completion, completion_shells[i], NULL);
}

static void add_nothing(struct completion *completion)
{
    (void)completion;
}

typedef void source_fn(struct completion *completion);

// Arguments by what they are called in a synopsis: the first row that the word begins with.
static source_fn *source_of_word(const char *word)
{
    static const struct {
        const char *word;
        source_fn *source;
    } rows[] = {{"KIND", add_targets},     {"SANDBOX:", add_copy_end}, {"SANDBOX", add_sandboxes}, {"FILE", add_files}, {"PATH", add_directories},
                {"DIR", add_directories}, {"TOOL", add_tools}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        if (strncmp(word, rows[i].word, strlen(rows[i].word)) == 0)
            return rows[i].source;
    return add_nothing;
}

// The n-th word of the synopsis; the last one goes on where it ends in "…". Brackets and further forms do not count.
static source_fn *source_of_synopsis(const char *synopsis, int index)
{
    source_fn *source = add_nothing;
    for (const char *at = synopsis; *at; at += strspn(at, " ")) {
        size_t len = strcspn(at, " ");
        size_t brackets = strspn(at, "[");
        CLEANUP_FREE char *word = mem_strndup(at + brackets, len - brackets);
        if (strncmp(word, "OPTIONS", 7) != 0 && strcmp(word, "|") != 0)
            source = source_of_word(word);
        if (source != add_nothing && (index-- <= 0 || source == add_targets))
            return source;
        at += len;
    }
    return add_nothing;
}

void complete_argument(struct completion *completion)
{
    // Arguments whose name does not say all.
    static const struct {
        const char *parent, *command;
        source_fn *source;
    } rows[] = {
        {"approval", "approve", add_pending_approvals}, {"approval", "reject", add_pending_approvals}, {"approval", "wait", add_pending_approvals},
        {"token", "revoke", add_tokens},                {NULL, "recreate", add_failed_sandboxes},      {NULL, "explain", add_kind},
        {NULL, "cp", add_copy_end},                     {NULL, "help", add_commands},                  {NULL, "completion", add_shells},
        {NULL, "logs", add_sandboxes},                  {NULL, "top", add_sandboxes},
    };
    const struct invocation *in = &completion->in;
    completion->directive = COMPLETE_NO_FILES;
    if (in->command->max_arguments >= 0 && in->argument_count >= in->command->max_arguments)
        return;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        if (strcmp(rows[i].command, in->command->name) == 0 && strcmp(rows[i].parent ? rows[i].parent : "", in->parent ? in->parent->name : "") == 0) {
            rows[i].source(completion);
            return;
        }
    source_of_synopsis(in->command->synopsis, in->argument_count)(completion);
}

// ---- values of options --------------------------------------------------------------------------------------------------
static void add_goals(struct completion *completion)
{
    static const char *const goals[] = {"condition=", "jsonpath=", "delete", "create"};
    static const char *const conditions[] = {CONDITION_READY,  CONDITION_FAILED,    CONDITION_SESSION_READY, CONDITION_DECIDED,
                                             CONDITION_REVOKED, CONDITION_PUBLISHED, CONDITION_REACHABLE,     CONDITION_STALLED};
    bool is_condition = strncmp(completion->word, goals[0], strlen(goals[0])) == 0;
    if (is_condition)
        completion_move_on(completion, strlen(goals[0]));
    for (size_t i = 0; is_condition && i < ARRAY_LEN(conditions); i++)
        complete_add(completion, conditions[i], NULL);
    for (size_t i = 0; !is_condition && i < ARRAY_LEN(goals); i++)
        complete_add(completion, goals[i], NULL);
    completion->directive |= is_condition || completion->word[0] == 'd' ? 0 : COMPLETE_NO_SPACE;
}

static void add_choices(struct completion *completion, const char *const *choices)
{
    for (size_t i = 0; choices[i]; i++) {
        size_t len = strlen(choices[i]);
        bool is_open = len && choices[i][len - 1] == '=' && strncmp(completion->word, choices[i], strlen(completion->word)) == 0;
        complete_add(completion, choices[i], NULL);
        completion->directive |= is_open && *completion->word ? COMPLETE_NO_SPACE : 0;
    }
}

void complete_value(struct completion *completion, const struct option_row *row)
{
    static const char *const booleans[] = {"true", "false", NULL};
    completion->directive = COMPLETE_NO_FILES;
    if (!row->value || row->choices)
        add_choices(completion, row->value ? row->choices : booleans);
    else if (strcmp(row->value, "WHAT") == 0)
        add_goals(completion);
    else if (strcmp(row->value, "KIND/NAME") == 0)
        add_pair(completion);
    else
        source_of_word(row->value)(completion);
}
