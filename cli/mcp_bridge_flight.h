// One message on its way: an HTTP exchange with the daemon that never blocks, on a connection of its own, so that a long
// call holds up nothing and a restart of the daemon is noticed by nobody else. The owner polls: mcp_flight_events says for
// what, mcp_flight_step goes on.
#pragma once
#include "api/client/http.h"
#include "cli/mcp_bridge_message.h"
#include "controller/base/time.h"

#define MCP_FLIGHT_SILENCE_MS (10 * 60 * 1000) // nothing at all from the daemon for so long: it hangs

struct mcp_flight {
    struct mcp_flight *next;
    struct mcp_message message;
    char *where; // for sentences: "127.0.0.1:18788"
    int fd;      // -1: it has not begun
    bool is_connected;
    struct buffer out; // what is still to be sent; freed when it is
    size_t sent;
    struct answer_reader reader;
    struct buffer event; // the data of the event being read
    bool is_other_event; // it is none of the protocol's
    bool is_answered;    // the answer has come in a stream
    bool is_cancelled;   // whatever comes is thrown away
    bool is_over;        // the owner is done with it
    struct boot_time deadline;
};
// Takes *message on success. headers: lines "Name: value\r\n".
int mcp_flight_new(const struct http_target *target, const char *path, const struct buffer *headers, struct mcp_span line,
                   struct mcp_message *message, struct mcp_flight **ret, struct error *err);
int mcp_flight_open(struct mcp_flight *flight, const struct http_target *target, struct error *err); // begins; ERROR_UNREACHABLE
void mcp_flight_free(struct mcp_flight *flight); // NULL allowed; closes the connection, which ends the daemon's wait
void mcp_flight_keep_alive(struct mcp_flight *flight); // the time of its silence begins anew
bool mcp_flight_is_sent(const struct mcp_flight *flight);
bool mcp_flight_is_stream(const struct mcp_flight *flight);
size_t mcp_flight_held_bytes(const struct mcp_flight *flight);
short mcp_flight_events(const struct mcp_flight *flight);
// 1: all of the answer is there; 0: more is to come; -1: it failed.
int mcp_flight_step(struct mcp_flight *flight, struct error *err);
// Streams: calls fn with the data of each event that is whole by now. -1: an event is too large.
int mcp_flight_each_event(struct mcp_flight *flight, void (*fn)(void *arg, struct mcp_flight *flight, struct mcp_span data), void *arg,
                          struct error *err);
