#include "tests/support/sbx_client.h"
#include "controller/base/cleanup.h"
#include "tests/support/support.h"
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

const char *sbx_client_program(void)
{
    static char program[PATH_MAX];
    if (*program)
        return program;
    CLEANUP_FREE char *self = realpath("/proc/self/exe", NULL);
    if (!self)
        fail_msg("cannot resolve /proc/self/exe");
    snprintf(program, sizeof(program), "%s/standin/sbx", dirname(self));
    if (access(program, X_OK) < 0)
        fail_msg("%s is not there; build the target sbx_client", program);
    return program;
}
