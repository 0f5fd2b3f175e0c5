// A strict lexical pass over one JSON text before it is parsed. It says whether the text is JSON at all (RFC
// 8259), whether it is within the limits, and where the raw text of the few members lies that are given back
// exactly as they came: an id may be an integer of any size, which the JSON library cannot hold. Pure; it
// recurses JSON_MAX_DEPTH levels at most.
#pragma once
#include "controller/base/json.h"

// More values than any message needs: parsed, they would take many times the text's size.
#define JSONRPC_VALUES_MAX 100000
#define JSONRPC_NUMBER_MAX_CHARACTERS 1024
#define JSONRPC_MESSAGES_MAX 50 // of one batch

enum jsonrpc_part { // what is looked for in each message
    JSONRPC_PART_ID,
    JSONRPC_PART_REQUEST_ID,     // params.requestId
    JSONRPC_PART_PROGRESS_TOKEN, // params._meta.progressToken
    JSONRPC_PART_COUNT
};
struct jsonrpc_slice { // of the text; len 0: not there
    size_t at, len;
    unsigned times; // the key was seen
    bool is_unfit;  // its text breaks a limit
};
struct jsonrpc_found {
    struct jsonrpc_slice parts[JSONRPC_PART_COUNT];
};

struct jsonrpc_scan {
    const char *bytes; // NUL-terminated behind len
    size_t len;
    size_t at;         // where reading stopped
    const char *limit; // the first limit that the text breaks, as a sentence; NULL: none
    bool is_batch;     // an array at the top
    struct jsonrpc_found messages[JSONRPC_MESSAGES_MAX];
    size_t message_count; // of an array: its elements; at most JSONRPC_MESSAGES_MAX are in messages
    // A copy of the text with integers beyond 64 bits written as reals of the same length, so that it can be
    // parsed and no reader takes them for another integer; NULL: the text needs none. Owned.
    char *patched;
    size_t value_count;
    struct jsonrpc_found *found; // of the message that is read
};
// False: not JSON, from scan->at on. A text that breaks a limit is JSON: its parts are found all the same.
bool jsonrpc_scan(struct jsonrpc_scan *scan, const char *bytes, size_t len);
void jsonrpc_scan_clear(struct jsonrpc_scan *scan);
