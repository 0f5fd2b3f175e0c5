// The program that tests take for `sbx`.
#pragma once

// Its path, for the life of the process: tests/fakes/sbx_client.c, built beside the test programs when it is
// first wanted or has changed; tests/fakes/sbx, which does the same at seven times the cost, where it cannot
// be built. Call it before threads are started.
const char *sbx_client_program(void);
