#include "cli/command.h"
#include "cli/exec_stream.h"
#include <unistd.h>

static int run(struct invocation *in, struct error *err)
{
    in->exit_code = EXIT_EXEC_FAILED; // unless the command ran
    if (!in->rest || !in->rest[0])
        return error_set(err, ERROR_USAGE, "chat2shell exec SANDBOX -- COMMAND", "the command to run is missing behind --");
    const struct rest *rest = invocation_rest(in, err);
    const struct exec_stream stream = {.sandbox = in->arguments[0], .argv = (const char *const *)in->rest, .cwd = invocation_option(in, "cwd"),
                                       .input_fd = invocation_switch(in, "no-stdin", false) ? -1 : STDIN_FILENO, .output_fd = STDOUT_FILENO,
                                       .error_fd = STDERR_FILENO, .forwards_signals = true};
    int exit_code;
    if (!rest || exec_stream_run(rest, &stream, &exit_code, err) < 0)
        return -1;
    in->exit_code = exit_code;
    return 0;
}

static const struct example examples[] = {
    {"chat2shell exec dev -- sh -c 'uname -a; id'", "run a command in the sandbox dev"},
    {"tar c src | chat2shell exec dev -- tar x", "copy a directory into it"},
};
static const struct option_row options[] = {
    {.name = "cwd", .value = "DIR", .doc = "directory to run it in; by default the workspace"},
    {.name = "no-stdin", .letter = 'n', .doc = "give it no standard input"},
};
const struct command command_exec = {
    .name = "exec", .synopsis = "SANDBOX [OPTIONS] -- COMMAND [ARGUMENT…]", .summary = "Run a command in a sandbox, with its streams and exit status here",
    .min_arguments = 1, .max_arguments = 1, .takes_rest = true, .run = run,
    .details = "The command gets standard input byte by byte, and the signals INT, TERM, HUP and QUIT; there is no terminal.",
    COMMAND_EXAMPLES(examples), COMMAND_OPTIONS(options),
};
