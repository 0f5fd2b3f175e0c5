// Named fault points, for tests only: release builds contain no code for them.
//
//     if (FAULT("store.commit.before")) return error_set(err, ERROR_IO, NULL, "fault point");
//
// CHAT2SHELL_FAULT="name:N:action" picks the N-th hit of one point ("N+": that and every later one); action is error,
// exit (_exit(137)), sleep (a minute, so that a test can kill the process there) or sleep=MS. A wrong value aborts.
// CHAT2SHELL_FAULT_LOG=path gets a line with the name for each hit. Tests enumerate the points with `git grep FAULT(`:
// a name is used once.
#pragma once
#ifdef CHAT2SHELL_FAULTS
#include <stdbool.h>
bool fault_hit(const char *name); // true: the caller should fail
#define FAULT(name) fault_hit(name)
#else
#define FAULT(name) 0
#endif
