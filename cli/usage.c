// Help from the command table: examples first, then options.
#include "cli/command.h"
#include "cli/terminal.h"
#include "controller/base/cleanup.h"
#include <stdio.h>
#include <string.h>

static void print_examples(const struct command *command)
{
    for (size_t i = 0; i < command->example_count; i++)
        printf("%s  %s\n      %s\n", i ? "" : "Examples:\n", command->examples[i].line, command->examples[i].doc);
    if (command->example_count)
        putchar('\n');
}

static void print_choices(const char *const *choices)
{
    for (size_t i = 0; choices && choices[i]; i++)
        printf("%s%s", i ? ", " : "; one of ", choices[i]);
}

static void print_option(const struct option_row *row)
{
    char name[64];
    snprintf(name, sizeof(name), row->bare ? "--%s[=%s]" : row->value ? "--%s=%s" : "--%s%s", row->name, row->value ? row->value : "");
    char letter[] = {'-', row->letter, ',', '\0'};
    printf("  %-3s %-20s%s%s", row->letter ? letter : "", name, strlen(name) > 20 ? "\n                           " : " ", row->doc);
    print_choices(row->value ? row->choices : NULL);
    putchar('\n');
}

static void print_heading(const char *text)
{
    printf("\n%s%s:%s\n", style_on(stdout, STYLE_HEADING), text, style_off(stdout, STYLE_HEADING));
}

static void print_group(const struct command_group *group)
{
    print_heading(group->title);
    for (size_t i = 0; i < command_count; i++)
        if (command_group_of(commands[i]) == group)
            printf("  %-12s %s\n", commands[i]->name, commands[i]->summary);
}

void usage_print(void)
{
    puts("chat2shell gives a chat assistant a full shell in disposable sandboxes, and never on the host.");
    for (size_t group = 0; command_groups[group].title; group++)
        print_group(&command_groups[group]);
    print_heading("Options of every command");
    for (size_t i = 0; i < global_option_count; i++)
        print_option(&global_options[i]);
    puts("\nMore: chat2shell COMMAND --help, chat2shell help exit-codes, chat2shell help environment, man chat2shell");
}

void usage_print_command(const struct command *parent, const struct command *command)
{
    printf("%s\n\n", command->summary);
    print_examples(command);
    bool has_own_place = strstr(command->synopsis, "[OPTIONS]") != NULL;
    printf("Usage: chat2shell %s%s%s%s%s%s\n", parent ? parent->name : "", parent ? " " : "", command->name, command->synopsis[0] ? " " : "",
           command->synopsis, command->option_count && !has_own_place ? " [OPTIONS]" : "");
    if (command->child_count)
        print_heading("Commands");
    for (size_t i = 0; i < command->child_count; i++)
        printf("  %-10s %s\n", command->children[i].name, command->children[i].summary);
    if (command->option_count)
        print_heading("Options");
    for (size_t i = 0; i < command->option_count; i++)
        print_option(&command->options[i]);
    if (command->details)
        printf("\n%s\n", command->details);
    puts("\nOptions of every command (--help, --color, --quiet): chat2shell help");
}

// ---- topics -------------------------------------------------------------------------------------------------------------
static void print_exit_codes(void)
{
    puts("Exit codes\n");
    for (size_t i = 0; i < exit_code_count; i++)
        printf("  %-4s %s\n", exit_codes[i].code, exit_codes[i].doc);
}

static void print_environment(void)
{
    puts("Environment: the only configuration. The daemon and the commands must see the same values.\n");
    const struct config_variable *variable;
    for (size_t i = 0; (variable = config_variable(i)) != NULL; i++)
        printf("  %s (default %s)\n      %s\n", variable->name, variable->fallback[0] ? variable->fallback : "empty", variable->doc);
}

const struct help_topic help_topics[] = {
    {"exit-codes", "what the exit code of a command says", print_exit_codes},
    {"environment", "the variables that daemon and commands read", print_environment},
};
const size_t help_topic_count = ARRAY_LEN(help_topics);

bool usage_print_topic(const char *topic)
{
    for (size_t i = 0; i < help_topic_count; i++)
        if (strcmp(help_topics[i].name, topic) == 0) {
            help_topics[i].print();
            return true;
        }
    return false;
}

const struct exit_code exit_codes[] = {
    {"0", "it worked"},
    {"1", "it failed"},
    {"2", "the command line or the input is wrong; nothing was done"},
    {"3", "there is no such object, file or session"},
    {"4", "somebody else was first: a conflict, or the name is taken"},
    {"5", "policy or the object's state does not permit it"},
    {"6", "it did not end in time"},
    {"7", "the daemon does not answer"},
    {"125", "exec: chat2shell itself failed; the command's own status is passed through otherwise"},
    {"126", "exec: the command could not be run"},
    {"127", "exec: there is no such command"},
    {"130", "interrupted"},
};
const size_t exit_code_count = ARRAY_LEN(exit_codes);
