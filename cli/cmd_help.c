#include "cli/command.h"

static int run(struct invocation *in, struct error *err)
{
    if (invocation_switch(in, "man", false)) {
        man_print();
        return 0;
    }
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
    {"chat2shell help --man | man -l -", "everything as a manual page"},
};
static const struct option_row options[] = {{.name = "man", .doc = "print the manual page's source"}};
const struct command command_help = {
    .name = "help", .synopsis = "[COMMAND|exit-codes|environment]", .summary = "Explain the commands", .max_arguments = 2, .run = run,
    COMMAND_EXAMPLES(examples), COMMAND_OPTIONS(options),
};
