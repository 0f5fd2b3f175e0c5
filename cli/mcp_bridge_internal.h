// Between the bridge's two files: the loop (mcp_bridge.c) and what a line or an answer leads to (mcp_bridge_traffic.c).
#pragma once
#include "cli/mcp_bridge.h"
#include "cli/mcp_bridge_flight.h"
#include "cli/mcp_bridge_stdio.h"
#include <poll.h>

#define OPEN_MAX 256                         // connections at once; further requests wait for their turn
#define URGENT_MAX 64                        // more for notifications
#define FLIGHTS_MAX 4096                     // with those that wait; above it no line is read
#define UNSENT_MAX_BYTES (64u * 1024 * 1024) // of requests; above it no line is read
#define HELD_MAX_BYTES (64u * 1024 * 1024)   // of answers that are not whole; above it only the largest is read on
#define END_QUIET_MS 2000                    // after the end of input: how long no answer may come before the rest is given up
#define FIXED_POLLS 3

struct mcp_bridge {
    const struct mcp_bridge_options *options;
    struct mcp_input input;
    struct mcp_output output;
    struct mcp_client endpoint; // host NULL: not known
    char *negotiated;           // by initialize
    struct mcp_flight *flights; // the oldest first
    size_t flight_count, open_count;
    int signal_fd, signal;
    struct boot_time end; // of waiting after the end of input
    struct pollfd polls[FIXED_POLLS + FLIGHTS_MAX];
};

void mcp_bridge_tell(const char *format, const char *text); // a line on standard error
// Takes the lines that there are and that fit. True: there may be more of them already.
bool mcp_bridge_take_lines(struct mcp_bridge *bridge);
// Goes on with one flight; its answers are written, and it ends.
void mcp_bridge_step_flight(struct mcp_bridge *bridge, struct mcp_flight *flight, short revents);
// Frees the flights that are over and begins those whose turn it is.
void mcp_bridge_sweep(struct mcp_bridge *bridge);
