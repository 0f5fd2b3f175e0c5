#include "cli/command.h"
#include "cli/exec_stream.h"
#include <unistd.h>

// Without a command: the shell that whoever is inside has, as at a login.
static const char *const login_shell[] = {
    "/bin/sh", "-c", "s=${SHELL:-/bin/bash}; [ -x \"$s\" ] || s=/bin/sh; exec \"$s\" -l", NULL};

static int choose_terminal(const struct invocation *in, bool *ret, struct error *err)
{
    *ret = invocation_switch(in, "tty", false);
    if (*ret && invocation_switch(in, "no-stdin", false))
        return error_set(err, ERROR_USAGE, "leave out one of them", "--tty wants the keyboard, and --no-stdin gives none");
    if (*ret && !isatty(STDIN_FILENO))
        return error_set(err, ERROR_USAGE, "leave out -t: the command then gets standard input as it is",
                         "--tty wants a terminal, and standard input is none");
    return 0;
}

static int run(struct invocation *in, struct error *err)
{
    bool has_terminal, has_command = in->rest && in->rest[0];
    const char *env[ARGUMENTS_MAX_VALUES + 1] = {0};
    in->exit_code = EXIT_EXEC_FAILED; // unless the command ran
    if (choose_terminal(in, &has_terminal, err) < 0)
        return -1;
    if (!has_command && !has_terminal)
        return error_set(err, ERROR_USAGE, "chat2shell exec SANDBOX -- COMMAND, or a shell: chat2shell exec -it SANDBOX",
                         "the command to run is missing behind --");
    invocation_values(in, "env", env);
    const struct rest *rest = invocation_rest(in, err);
    const struct exec_stream stream = {.sandbox = in->arguments[0], .argv = has_command ? (const char *const *)in->rest : login_shell,
                                       .cwd = invocation_option(in, "cwd"), .env = env,
                                       .input_fd = invocation_switch(in, "no-stdin", false) ? -1 : STDIN_FILENO, .output_fd = STDOUT_FILENO,
                                       .error_fd = STDERR_FILENO, .forwards_signals = true, .has_terminal = has_terminal};
    int exit_code;
    if (!rest || exec_stream_run(rest, &stream, &exit_code, err) < 0)
        return -1;
    in->exit_code = exit_code;
    return 0;
}

static const struct example examples[] = {
    {"chat2shell exec -it dev", "a shell in the sandbox dev, as at its keyboard"},
    {"chat2shell exec dev -- sh -c 'uname -a; id'", "run a command in it"},
    {"chat2shell exec -it -e EDITOR=vi dev -- git commit", "run one that wants a terminal"},
    {"tar c src | chat2shell exec dev -- tar x", "copy a directory into it"},
};
static const struct option_row options[] = {
    {.name = "stdin", .letter = 'i', .doc = "give it standard input: it has it anyhow, unless --no-stdin is given"},
    {.name = "tty", .letter = 't', .doc = "give it a terminal; standard input must be one"},
    {.name = "cwd", .letter = 'w', .value = "DIR", .doc = "directory to run it in; by default the workspace"},
    {.name = "env", .letter = 'e', .value = "NAME=VALUE", .doc = "set a variable of its environment; may be repeated", .is_repeatable = true},
    {.name = "no-stdin", .letter = 'n', .doc = "give it no standard input"},
};
const struct command command_exec = {
    .name = "exec", .synopsis = "SANDBOX [OPTIONS] [-- COMMAND [ARGUMENT…]]", .summary = "Run a command in a sandbox, with its streams and exit status here",
    .min_arguments = 1, .max_arguments = 1, .takes_rest = true, .run = run,
    .details = "The command gets standard input byte by byte, and the signals INT, TERM, HUP and QUIT. With -t it has a terminal: every key goes\n"
               "to it, Ctrl-C and Ctrl-Z too, and it learns of the window's size; without a command it is a login shell. The exit status is the\n"
               "command's, 128 + N if signal N ended it. When this command ends before, so does the other: by SIGHUP on a terminal.",
    COMMAND_EXAMPLES(examples), COMMAND_OPTIONS(options),
};
