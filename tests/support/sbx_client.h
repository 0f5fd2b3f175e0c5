// The program that tests take for `sbx`.
#pragma once

// Its path, for the life of the process: the target sbx_client (tests/fakes/sbx_client.c), beside the test programs.
// Call it before threads are started.
const char *sbx_client_program(void);
