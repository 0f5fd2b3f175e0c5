// The stand-in for Docker Sandboxes under a test: its settings, its faults, what was asked of it.
#pragma once
#include "tests/support/driver_bench.h"

// faults: the rules of its fault file, as JSON objects parted by commas ("" = none); settings likewise the members of an object.
void sbx_rig_set(const struct driver_bench *bench, const char *settings, const char *faults);
// Runs `sbx ARGS…` as somebody at the keyboard would. The exit code; output (NULL allowed): what it printed.
int sbx_rig_run(const struct driver_bench *bench, char *output, size_t size, const char *const *args);
size_t sbx_rig_count_calls(const struct driver_bench *bench, const char *words); // calls whose argv begins with these words; "": all
bool sbx_rig_has(const struct driver_bench *bench, const char *name); // does `ls` list it?
void sbx_rig_init(const struct driver_bench *bench); // what the operator does once: the network policy
void sbx_rig_stop(const struct driver_bench *bench); // its daemon, with all that it started
// Ample deadlines for the driver's calls, and short pauses between its looks: before its first one.
void sbx_rig_hurry(struct driver_bench *bench);
// The client of the newest call whose argv begins with these words; 0 if there is none.
int sbx_rig_client_pid(const struct driver_bench *bench, const char *words);
