#include "cli/command.h"

static int run(struct invocation *in, struct error *err)
{
    const char *directory = invocation_option(in, "directory");
    if (directory)
        return man_write(directory, err);
    if (invocation_switch(in, "man", false))
        return man_print(in->argument_count ? in->arguments[0] : NULL, err);
    if (!in->argument_count) {
        usage_print();
        return 0;
    }
    const struct command *command = command_find(in->arguments[0]);
    const struct command *child = command && in->argument_count > 1 ? command_find_child(command, in->arguments[1]) : NULL;
    if (!command && usage_print_topic(in->arguments[0]))
        return 0;
    if (!command || (in->argument_count > 1 && !child))
        return error_set(err, ERROR_USAGE, "chat2shell help", "there is no help about '%.100s'", in->arguments[child || !command ? 0 : 1]);
    usage_print_command(child ? command : NULL, child ? child : command);
    return 0;
}

static const struct example examples[] = {
    {"chat2shell help approval", "what the approval commands do"},
    {"chat2shell help --man get | man -l -", "a manual page, without installing it"},
    {"chat2shell help --man --directory=/usr/local/share/man/man1", "all pages into a directory"},
};
static const struct option_row options[] = {
    {.name = "man", .doc = "print the source of a manual page: the command's, `config`, or without a COMMAND the overview"},
    {.name = "directory", .value = "DIR", .doc = "write the sources of all manual pages into this directory"},
};
const struct command command_help = {
    .name = "help", .synopsis = "[COMMAND…|exit-codes|environment]", .summary = "Explain the commands", .max_arguments = 2, .run = run,
    COMMAND_EXAMPLES(examples), COMMAND_OPTIONS(options),
};
