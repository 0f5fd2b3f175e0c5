#include "cli/command.h"
#include "cli/daemon.h"
#include <malloc.h>

// Threads of a mostly idle daemon do not need an arena each: two keep its memory small.
#define ARENAS 2

static int run(struct invocation *in, struct error *err)
{
    mallopt(M_ARENA_MAX, ARENAS);
    const struct config *config = invocation_config(in, err);
    return config ? daemon_run(config, err) : -1;
}

static const struct example examples[] = {
    {"CHAT2SHELL_ENABLE_TUNNEL=0 chat2shell serve", "serve MCP on http://127.0.0.1:18788/mcp, without a tunnel"},
};
const struct command command_serve = {
    .name = "serve", .synopsis = "", .summary = "Run the daemon in the foreground until SIGTERM or `chat2shell stop`", .run = run,
    .details = "Settings come from the environment: chat2shell help environment.", COMMAND_EXAMPLES(examples),
};
