// JSON-RPC 2.0 messages of an untrusted tool server: bounded before they are parsed, taken apart strictly.
#pragma once
#include "controller/base/json.h"

enum rpc_message_kind {
    RPC_MESSAGE_BAD,    // *ret_fault says what it is
    RPC_MESSAGE_HUGE,   // more values than RPC_VALUES_MAX; was not parsed
    RPC_MESSAGE_ANSWER, // result or error, with an integer id
    RPC_MESSAGE_UNASKED // a request or notification of the server
};
struct rpc_message { // members borrowed from root
    json_t *root;
    json_t *result, *error; // of an answer: exactly one
    json_int_t id;
    const char *method; // unasked
    json_t *method_id;  // unasked: integer or short string, or NULL
};
#define RPC_MESSAGE_HUGE_WORDS "it sent a message of more than 200000 values"

// root is the caller's whatever is returned (NULL if nothing was parsed). fault: words after "it broke the protocol with".
enum rpc_message_kind rpc_message_parse(const char *bytes, size_t len, struct rpc_message *ret, const char **ret_fault);
// The server's error object as ours: code mapped, message printable and bounded. Borrows; error of any type.
void rpc_message_error(const json_t *error, struct error *ret);
bool rpc_message_is_error(const json_t *error); // has code and message
json_t *rpc_message_request(json_int_t id /* 0 = notification */, const char *method, json_t *params /* borrowed, or NULL */);
