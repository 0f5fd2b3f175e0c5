// completion: the script that makes a shell ask `chat2shell __complete` (complete.h).
#include "cli/command.h"
#include "controller/base/memory.h"
#include "controller/embedded.h"
#include <stdio.h>

const char *const completion_shells[] = {"bash", "zsh", "fish", NULL};

static int run(struct invocation *in, struct error *err)
{
    CLEANUP_FREE char *name = mem_format("completion/chat2shell.%s", in->command->name);
    const struct embedded_file *file = embedded_find(name);
    if (!file)
        return error_set(err, ERROR_INTERNAL, "report this with the version: chat2shell version", "the script for %s is not in this program", in->command->name);
    fwrite(file->data, 1, file->size, stdout);
    return 0;
}

static const struct example bash_examples[] = {
    {"source <(chat2shell completion bash)", "in this shell; put the line into ~/.bashrc for all to come"},
    {"chat2shell completion bash >/etc/bash_completion.d/chat2shell", "for everybody on this machine"},
};
static const struct example zsh_examples[] = {
    {"source <(chat2shell completion zsh)", "in this shell, behind `autoload -U compinit; compinit`"},
    {"chat2shell completion zsh >\"${fpath[1]}/_chat2shell\"", "for all shells to come"},
};
static const struct example fish_examples[] = {
    {"chat2shell completion fish | source", "in this shell"},
    {"chat2shell completion fish >~/.config/fish/completions/chat2shell.fish", "for all shells to come"},
};
static const struct command children[] = {
    {.name = "bash", .synopsis = "", .summary = "Print the script for bash", .run = run, COMMAND_EXAMPLES(bash_examples)},
    {.name = "zsh", .synopsis = "", .summary = "Print the script for zsh", .run = run, COMMAND_EXAMPLES(zsh_examples)},
    {.name = "fish", .synopsis = "", .summary = "Print the script for fish", .run = run, COMMAND_EXAMPLES(fish_examples)},
};
const struct command command_completion = {
    .name = "completion", .synopsis = "SHELL", .summary = "Print a script that completes commands, options and names in a shell", COMMAND_CHILDREN(children),
    .details = "Kinds, names and ids come from the daemon while you type; where it does not answer within a second there are none.",
};
