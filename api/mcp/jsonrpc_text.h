// The text of one POST's body, read: the parsed value, and for each message in it the parts that are given
// back exactly as they came.
#pragma once
#include "api/mcp/jsonrpc.h"
#include "api/mcp/jsonrpc_scan.h"

struct jsonrpc_text {
    json_t *value;            // an object, an array, or something that is no message; owned
    struct jsonrpc_raw *raws; // of the one message, or of an array's elements in their order; owned
    size_t raw_count;         // at most JSONRPC_MESSAGES_MAX, also where an array is longer
};
struct jsonrpc_refusal {
    int code;      // JSONRPC_PARSE_ERROR: no JSON; JSONRPC_INVALID_REQUEST: JSON beyond a limit
    char *id_text; // of a single message where it can be told; owned
    char message[256];
};
// bytes: NUL-terminated behind len. -1 with *refusal, then *ret is untouched. *ret is the caller's, as is
// refusal->id_text.
int jsonrpc_text_read(const char *bytes, size_t len, struct jsonrpc_text *ret,
                      struct jsonrpc_refusal *refusal);
// The raw id of the one request that these bytes are; NULL where they are none or it cannot be told. Allocated.
char *jsonrpc_request_id(const char *bytes, size_t len);
void jsonrpc_text_clear(struct jsonrpc_text *text);
