// libmicrohttpd, loaded when a server starts. It brings GnuTLS and eight more libraries along, which take longer to load than
// most commands take to run; and only `serve` needs them. Its functions are called by their own names: microhttpd_library.c has
// one of that name for each that the sources use (another one is a line there; without it the program does not link).
#pragma once
#include "controller/base/error.h"

// Before anything else of the library is called. Any thread. ERROR_UNSUPPORTED.
int microhttpd_load(struct error *err);
