// The daemon: every layer put together, started in order, stopped in reverse within a bound.
#pragma once
#include "controller/config.h"

#define DAEMON_STOP_DEADLINE_MS 10000

// Serves until SIGTERM or SIGINT (the operator API's stop request raises SIGTERM). 0 after a clean stop.
int daemon_run(const struct config *config, struct error *err);
