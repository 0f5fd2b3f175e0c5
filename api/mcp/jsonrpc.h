// JSON-RPC 2.0 messages: what one value is, and how answers are written. An id is echoed as it came, byte for
// byte, whatever its size: it is kept as raw JSON text beside the parsed value, never read as a number.
#pragma once
#include "controller/base/json.h"

enum jsonrpc_code {
    JSONRPC_PARSE_ERROR = -32700,
    JSONRPC_INVALID_REQUEST = -32600,
    JSONRPC_METHOD_NOT_FOUND = -32601,
    JSONRPC_INVALID_PARAMS = -32602,
    JSONRPC_INTERNAL_ERROR = -32603,
    MCP_REQUEST_CANCELLED = -32800,   // outside of what the protocol reserves; as the language servers have it
    MCP_HEADER_MISMATCH = -32020,     // 2026-07-28
    MCP_UNSUPPORTED_VERSION = -32022, // 2026-07-28
};
enum jsonrpc_kind { JSONRPC_REQUEST, JSONRPC_NOTIFICATION, JSONRPC_RESPONSE, JSONRPC_INVALID };

// Longer ones are refused. An integer's limit is that of every number (jsonrpc_scan.h).
#define JSONRPC_ID_STRING_MAX_BYTES (64 * 1024) // its JSON text, quotes and escapes included

// Parts of a message that are given back as they came: raw JSON text of a string or an integer. NULL where
// there is none, or where it is not legal as an id.
struct jsonrpc_raw {
    char *id;
    char *request_id;       // params.requestId
    char *progress_token;   // params._meta.progressToken
    const char *id_problem; // what is wrong with an id that is there; a sentence
};
struct jsonrpc_message { // borrows from the value and the raw parts it was read from
    enum jsonrpc_kind kind;
    const char *method;
    const char *id_text; // raw JSON text; NULL where there is none or it is not a legal one
    const char *request_id_text;
    const char *progress_token_text;
    const json_t *params; // object, or NULL (absent and null alike)
    const char *problem;  // JSONRPC_INVALID: the sentence
};
void jsonrpc_classify(const json_t *value, const struct jsonrpc_raw *raw, struct jsonrpc_message *ret);

// A string's text; NULL for other values and for a string with a NUL, which a C string would cut short.
const char *jsonrpc_plain_text(const json_t *value);

// Both are allocated texts; *ret_len (NULL allowed) their length. id_text NULL = left out. data's reference
// is taken.
char *jsonrpc_error_text(const char *id_text, int code, const char *message, json_t *data, size_t *ret_len);
// result: JSON text of result_len bytes, put in as it is.
char *jsonrpc_result_text(const char *id_text, const char *result, size_t result_len, size_t *ret_len);
