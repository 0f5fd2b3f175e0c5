// The sandbox's first process: `chat2shell-shim inside REPORT_FD IDENTITY COMMAND…`. It tries each hard rule from inside,
// reports the broken ones, waits for a byte to go on, starts the command, reaps what is orphaned, and ends with the
// command's status. It cannot be traced or read by anything else inside.
#pragma once

// Report: one JSON object {"broken":[SENTENCE…],"warnings":[…]} on a SOCK_SEQPACKET descriptor.
#define INSIDE_REPORT_MAX_BYTES 8192
int inside_main(int argc, char **argv);
// The checks alone (tests run them too): adds a sentence for each broken rule.
#include <jansson.h>
void inside_check_rules(json_t *broken);
