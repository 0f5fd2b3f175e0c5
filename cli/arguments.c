// The command line against the command table.
#include "cli/command.h"
#include "controller/base/memory.h"
#include "controller/fields/problems.h"
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define NAMES_MAX 64

static const char *const colour_words[] = {"auto", "always", "never", NULL};
const struct option_row global_options[] = {
    {.name = "help", .letter = 'h', .doc = "show the command's help"},
    {.name = "color", .value = "WHEN", .doc = "colours: auto is on a terminal, unless NO_COLOR is set or TERM is dumb", .choices = colour_words},
    {.name = "quiet", .letter = 'q', .doc = "print results and errors only: no notes, no progress, no word of what was done"},
};
const size_t global_option_count = ARRAY_LEN(global_options);

char *invocation_name(const struct invocation *in)
{
    if (!in->command)
        return mem_strdup("chat2shell");
    return mem_format("chat2shell %s%s%s", in->parent ? in->parent->name : "", in->parent ? " " : "", in->command->name);
}

static int fail_usage(const struct invocation *in, struct error *err, const char *what, const char *word, const char *nearest, const char *mark)
{
    CLEANUP_FREE char *name = invocation_name(in);
    CLEANUP_FREE char *quoted = problems_quote(word);
    error_set(err, ERROR_USAGE, NULL, "%s %s", what, quoted);
    if (nearest)
        return error_hint(err, "did you mean `%s%s`?", mark, nearest);
    return in->command ? error_hint(err, "%s --help", name) : error_hint(err, "chat2shell help");
}

// ---- options ------------------------------------------------------------------------------------------------------------
const struct option_row *option_at(const struct command *command, size_t index)
{
    size_t own = command ? command->option_count : 0;
    if (index < own)
        return &command->options[index];
    return index - own < global_option_count ? &global_options[index - own] : NULL;
}

const struct option_row *option_find(const struct command *command, const char *name, size_t len)
{
    const struct option_row *row;
    for (size_t i = 0; (row = option_at(command, i)) != NULL; i++)
        if (strlen(row->name) == len && strncmp(row->name, name, len) == 0)
            return row;
    return NULL;
}

const struct option_row *option_find_letter(const struct command *command, char letter)
{
    const struct option_row *row;
    for (size_t i = 0; (row = option_at(command, i)) != NULL; i++)
        if (letter && row->letter == letter)
            return row;
    return NULL;
}

static int refuse_option(const struct invocation *in, const char *word, struct error *err)
{
    const char *names[NAMES_MAX];
    const struct option_row *row;
    size_t count = 0;
    while (count < NAMES_MAX && (row = option_at(in->command, count)) != NULL)
        names[count++] = row->name;
    CLEANUP_FREE char *bare = mem_strndup(word, strcspn(word, "="));
    const char *nearest = strncmp(bare, "--", 2) == 0 ? problems_nearest(bare + 2, names, count) : NULL;
    return fail_usage(in, err, "there is no option", bare, nearest, "--");
}

// A choice that ends in "=" stands for all that begin like it.
static bool is_choice(const char *choice, const char *text)
{
    size_t len = strlen(choice);
    bool is_open = len && choice[len - 1] == '=';
    return is_open ? strncmp(choice, text, len) == 0 && text[len] : strcmp(choice, text) == 0;
}

static int check_value(const struct invocation *in, const struct option_row *row, const char *text, struct error *err)
{
    static const char *const booleans[] = {"true", "false", NULL};
    const char *const *choices = row->value ? row->choices : booleans;
    size_t count = 0;
    for (; choices && choices[count]; count++)
        if (is_choice(choices[count], text))
            return 0;
    if (!choices)
        return 0;
    CLEANUP(buffer_free) struct buffer all = BUFFER_INIT(512);
    for (size_t i = 0; i < count; i++)
        buffer_format(&all, "%s%s", i ? ", " : "", choices[i]);
    CLEANUP_FREE char *quoted = problems_quote(text);
    CLEANUP_FREE char *name = invocation_name(in);
    const char *nearest = problems_nearest(text, choices, count);
    error_set(err, ERROR_USAGE, NULL, "--%s cannot be %s: it is one of %s", row->name, quoted, buffer_text(&all));
    return nearest ? error_hint(err, "did you mean `--%s %s`?", row->name, nearest) : error_hint(err, "%s --help", name);
}

static int add_value(struct invocation *in, const struct option_row *row, const char *text, struct error *err)
{
    size_t same = 0;
    for (size_t i = 0; i < in->value_count; i++)
        same += in->values[i].row == row;
    if (check_value(in, row, text, err) < 0)
        return -1;
    if (same && !row->is_repeatable && row->value)
        return error_set(err, ERROR_USAGE, "give it once", "--%s is given twice", row->name);
    if (same >= ARGUMENTS_MAX_VALUES)
        return error_set(err, ERROR_USAGE, "use fewer", "--%s is given more than %d times", row->name, ARGUMENTS_MAX_VALUES);
    in->values = mem_realloc_array(in->values, in->value_count + 1, sizeof(*in->values));
    in->values[in->value_count++] = (struct option_value){row, text};
    return 0;
}

// *at: the word's position in argv; moves on over a value of its own.
static int need_value(struct invocation *in, const struct option_row *row, char **argv, int argc, int *at, struct error *err)
{
    if (!row->value || row->bare)
        return add_value(in, row, row->bare ? row->bare : "true", err);
    if (*at + 1 >= argc) {
        CLEANUP_FREE char *name = invocation_name(in);
        error_set(err, ERROR_USAGE, NULL, "--%s needs a value (%s)", row->name, row->value);
        return error_hint(err, "%s --help", name);
    }
    return add_value(in, row, argv[++*at], err);
}

static int take_long(struct invocation *in, char **argv, int argc, int *at, struct error *err)
{
    const char *name = argv[*at] + 2;
    size_t len = strcspn(name, "=");
    const struct option_row *row = option_find(in->command, name, len);
    if (!row)
        return refuse_option(in, argv[*at], err);
    return name[len] ? add_value(in, row, name + len + 1, err) : need_value(in, row, argv, argc, at, err);
}

static int take_short(struct invocation *in, char **argv, int argc, int *at, struct error *err)
{
    for (const char *c = argv[*at] + 1; *c; c++) {
        const struct option_row *row = option_find_letter(in->command, *c);
        if (!row)
            return refuse_option(in, (char[]){'-', *c, '\0'}, err);
        if (row->value && c[1])
            return add_value(in, row, c[1] == '=' ? c + 2 : c + 1, err);
        if (need_value(in, row, argv, argc, at, err) < 0)
            return -1;
        if (row->value && !row->bare)
            return 0;
    }
    return 0;
}

// ---- commands -----------------------------------------------------------------------------------------------------------
static int find_command(struct invocation *in, const char *word, struct error *err)
{
    const char *names[NAMES_MAX];
    if ((in->command = command_find(word)) != NULL)
        return 0;
    for (size_t i = 0; i < command_count; i++)
        names[i] = commands[i]->name;
    return fail_usage(in, err, "there is no command", word, problems_nearest(word, names, command_count), "chat2shell ");
}

static int find_child(struct invocation *in, const char *word, struct error *err)
{
    const struct command *parent = in->command, *child = command_find_child(parent, word);
    const char *names[NAMES_MAX];
    for (size_t i = 0; i < parent->child_count; i++)
        names[i] = parent->children[i].name;
    CLEANUP_FREE char *mark = mem_format("chat2shell %s ", parent->name);
    if (!child)
        return fail_usage(in, err, "there is no command", word, problems_nearest(word, names, parent->child_count), mark);
    in->parent = parent;
    in->command = child;
    return 0;
}

// Whoever is used to `docker exec` leaves the -- out.
static int refuse_argument(const struct invocation *in, const char *name, const char *argument, struct error *err)
{
    error_set(err, ERROR_USAGE, NULL, "%s does not take the argument '%.100s'", name, argument);
    if (in->command->takes_rest && !in->rest)
        return error_hint(err, "write -- before the command: %s %.100s -- %.100s …", name, in->arguments[0], argument);
    return error_hint(err, "%s --help", name);
}

static int check_counts(const struct invocation *in, struct error *err)
{
    const struct command *command = in->command;
    CLEANUP_FREE char *name = invocation_name(in);
    if (in->is_help_wanted)
        return 0;
    if (command->children && !command->run)
        error_set(err, ERROR_USAGE, NULL, "%s needs a command", name);
    else if (in->rest && !command->takes_rest)
        error_set(err, ERROR_USAGE, NULL, "%s takes nothing after --", name);
    else if (in->argument_count < command->min_arguments)
        error_set(err, ERROR_USAGE, NULL, "%s needs %s", name, command->synopsis);
    else if (command->max_arguments >= 0 && in->argument_count > command->max_arguments)
        return refuse_argument(in, name, in->arguments[command->max_arguments], err);
    else
        return 0;
    return error_hint(err, "%s --help", name);
}

static int take_word(struct invocation *in, char **argv, int argc, int *at, struct error *err)
{
    const char *word = argv[*at];
    if (word[0] == '-' && word[1] == '-')
        return take_long(in, argv, argc, at, err);
    if (word[0] == '-' && word[1])
        return take_short(in, argv, argc, at, err);
    if (!in->command)
        return find_command(in, word, err);
    if (in->command->children)
        return find_child(in, word, err);
    in->arguments[in->argument_count++] = word;
    return 0;
}

// `chat2shell --version`, `chat2shell --help`: these options are commands where none is given.
static int find_implied(struct invocation *in, bool is_version, struct error *err)
{
    if (is_version || invocation_switch(in, "help", false)) {
        in->command = command_find(is_version ? "version" : "help");
        in->is_help_wanted = false; // not help about help
        return 0;
    }
    return error_set(err, ERROR_USAGE, "chat2shell help", "a command is missing");
}

int invocation_parse(struct invocation *in, int argc, char **argv, struct error *err)
{
    bool is_version = false;
    in->arguments = mem_alloc(((size_t)argc + 1) * sizeof(*in->arguments));
    for (int at = 0; at < argc; at++) {
        if (strcmp(argv[at], "--") == 0) {
            in->rest = argv + at + 1;
            break;
        }
        if (!in->command && strcmp(argv[at], "--version") == 0)
            is_version = true;
        else if (take_word(in, argv, argc, &at, err) < 0)
            return -1;
    }
    in->is_help_wanted = invocation_switch(in, "help", false);
    if (!in->command && find_implied(in, is_version, err) < 0)
        return -1;
    return check_counts(in, err);
}

void invocation_clear(struct invocation *in)
{
    free(in->values);
    free(in->arguments);
    config_free(&in->config);
    rest_clear(&in->rest_client);
    *in = (struct invocation){0};
}

const char *invocation_option(const struct invocation *in, const char *name)
{
    const char *found = NULL;
    for (size_t i = 0; i < in->value_count; i++)
        if (strcmp(in->values[i].row->name, name) == 0)
            found = in->values[i].text;
    return found;
}

bool invocation_switch(const struct invocation *in, const char *name, bool fallback)
{
    const char *text = invocation_option(in, name);
    return text ? strcmp(text, "true") == 0 : fallback;
}

size_t invocation_values(const struct invocation *in, const char *name, const char *ret[ARGUMENTS_MAX_VALUES])
{
    size_t count = 0;
    for (size_t i = 0; i < in->value_count && count < ARGUMENTS_MAX_VALUES; i++)
        if (strcmp(in->values[i].row->name, name) == 0)
            ret[count++] = in->values[i].text;
    return count;
}

bool invocation_is_output(const struct invocation *in, const char *format)
{
    const char *output = invocation_option(in, "output");
    return output && strcmp(output, format) == 0;
}
