// chat2shell: the daemon and the operator's command line in one program.
#include "cli/command.h"
#include "cli/complete.h"
#include "cli/terminal.h"
#include <stdio.h>
#include <string.h>

static int finish(struct invocation *in, int result, const struct error *err)
{
    int exit_code = in->exit_code;
    if (result < 0) {
        complain(in, err);
        exit_code = exit_code ? exit_code : error_meaning(err->code)->exit_code;
    } else if (fflush(stdout) != 0 || ferror(stdout)) {
        complain_text("cannot write the output");
        exit_code = exit_code ? exit_code : 1;
    }
    invocation_clear(in);
    return exit_code;
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], COMPLETE_WORD) == 0)
        return complete_run(argc - 2, argv + 2);
    struct invocation in = {0};
    struct error err = ERROR_INIT;
    int result = invocation_parse(&in, argc - 1, argv + 1, &err);
    terminal_choose(invocation_option(&in, "color"), invocation_switch(&in, "quiet", false));
    if (result < 0)
        return finish(&in, result, &err);
    if (in.is_help_wanted)
        usage_print_command(in.parent, in.command);
    else
        result = in.command->run(&in, &err);
    return finish(&in, result, &err);
}
