// `chat2shell mcp`: an MCP server on standard input and output that hands every line to the running daemon's HTTP endpoint
// and writes what comes back. One thread, one poll(); nothing on standard output but the protocol, sentences on standard
// error. It outlives the daemon: while there is none, every request is answered with an error that says so.
//
// What it keeps is bounded: requests under way, lines, answers and output (the constants of mcp_bridge.c).
#pragma once
#include "api/client/mcp.h"

struct mcp_bridge_options {
    int input_fd, output_fd;
    // Where the daemon is now; asked again after it was not there. On success *ret's host, port and path are the caller's.
    int (*locate)(void *arg, struct mcp_client *ret, struct error *err);
    void *arg;
};
// Until the client ends its side, or a signal. *ret_signal: the signal that ended it, or 0.
int mcp_bridge_run(const struct mcp_bridge_options *options, int *ret_signal, struct error *err);
