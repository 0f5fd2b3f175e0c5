// One line of a stdio client: what it is, and what the HTTP headers that go with it must say. The line itself is never
// written anew.
#pragma once
#include "cli/mcp_bridge_span.h"
#include "controller/base/buffer.h"

#define MCP_BATCH_IDS_MAX 50 // of a batch: no revision's server need take more

enum mcp_message_kind {
    MCP_MESSAGE_OTHER, // not JSON-RPC, or a response: the daemon says what it thinks of it
    MCP_MESSAGE_REQUEST,
    MCP_MESSAGE_NOTIFICATION,
    MCP_MESSAGE_BATCH,
};
struct mcp_message {
    enum mcp_message_kind kind;
    char *method;  // decoded; NULL if there is none, or in a batch
    char *version; // of params._meta: it is a message of a revision without handshake. NULL: it is not
    char *name;    // what Mcp-Name repeats; NULL
    char *cancels; // notifications/cancelled: the request's id as JSON text; NULL
    char **ids;    // of the requests in it, as JSON text; a request has one
    size_t id_count;
};
void mcp_message_read(const char *line, size_t len, struct mcp_message *ret);
void mcp_message_clear(struct mcp_message *message);

// Appends "Name: value\r\n" lines. negotiated: what initialize agreed on; NULL if nothing did yet.
void mcp_message_put_headers(const struct mcp_message *message, const char *negotiated, struct buffer *head);

// An answer's line: id (JSON text; NULL = left out) and the sentence. The caller owns it.
char *mcp_error_line(const char *id, int code, const char *message);
bool mcp_ids_are_same(const char *a, const char *b); // JSON texts; "a" and "\u0061" are the same
