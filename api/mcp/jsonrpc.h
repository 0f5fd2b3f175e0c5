// JSON-RPC 2.0 messages: what one value is, and how answers are written. An id is echoed as it came, type and
// value; integers beyond 64 bits cannot be read by the JSON library and are refused with the whole text as a
// parse error.
#pragma once
#include "controller/base/json.h"

enum jsonrpc_code {
    JSONRPC_PARSE_ERROR = -32700,
    JSONRPC_INVALID_REQUEST = -32600,
    JSONRPC_METHOD_NOT_FOUND = -32601,
    JSONRPC_INVALID_PARAMS = -32602,
    JSONRPC_INTERNAL_ERROR = -32603,
    MCP_HEADER_MISMATCH = -32020,     // 2026-07-28
    MCP_UNSUPPORTED_VERSION = -32022, // 2026-07-28
};
enum jsonrpc_kind { JSONRPC_REQUEST, JSONRPC_NOTIFICATION, JSONRPC_RESPONSE, JSONRPC_INVALID };

struct jsonrpc_message { // borrows from the value it was read from
    enum jsonrpc_kind kind;
    const char *method;
    const json_t *id;     // NULL where there is none or it is not a legal one
    const json_t *params; // object, or NULL (absent and null alike)
    const char *problem;  // JSONRPC_INVALID: the sentence
};
// More values than any message needs: parsed, they would take many times the text's size. Looked at before parsing.
#define JSONRPC_VALUES_MAX 100000
bool jsonrpc_has_too_many_values(const char *bytes, size_t len);
void jsonrpc_classify(const json_t *value, struct jsonrpc_message *ret);

// Both are allocated texts; *ret_len (NULL allowed) their length. id NULL = left out. data's reference is
// taken.
char *jsonrpc_error_text(const json_t *id, int code, const char *message, json_t *data, size_t *ret_len);
// result: JSON text of result_len bytes, put in as it is.
char *jsonrpc_result_text(const json_t *id, const char *result, size_t result_len, size_t *ret_len);
