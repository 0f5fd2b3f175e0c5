// One JSON-RPC request under way. It is made by the dispatcher, answered exactly once by one of the three
// functions at the end (loop thread), and gone after that.
#pragma once
#include "api/guest/guest.h"
#include "api/guest/tool.h"
#include "controller/base/guest_protocol.h"
#include "controller/base/json.h"
#include <stdatomic.h>

#define RPC_PARSE_ERROR (-32700)
#define RPC_INVALID_REQUEST (-32600)
#define RPC_UNKNOWN_METHOD (-32601)
#define RPC_INVALID_PARAMS (-32602)
#define RPC_INTERNAL_ERROR (-32603)

struct request {
    struct guest *guest;
    json_t *message;  // owned
    const json_t *id; // borrowed from message
    json_t *params;   // borrowed; NULL if there are none
    atomic_bool is_cancelled;
    // Ends a wait early (loop thread); it must answer. NULL: whoever works looks at is_cancelled.
    void (*cancel)(struct request *request);
    void *context;  // the waiter's
    struct job job; // while a worker has it
    const struct tool *tool;
    json_t *args;                          // of the tool, defaults filled in; owned
    char *answer;                          // the whole line, made by a worker; owned
    void (*work)(struct request *request); // a worker's part of a method that is no tool
    struct request *prev, *next;
};

// A line with an unusable id gets id null.
void rpc_send_error(struct guest *guest, const json_t *id, int code, const char *message);
void rpc_send_notification(struct guest *guest, const char *method, json_t *params); // takes params; loop thread
char *rpc_result_text(const json_t *id, json_t *result); // takes result; any thread
char *rpc_error_text(const json_t *id, int code, const char *message);

// Runs request->work on a worker; it must set request->answer.
void request_submit(struct request *request, void (*work)(struct request *request));
void request_answer(struct request *request, json_t *result); // takes result
void request_fail(struct request *request, int code, const struct error *err);
void request_fail_cancelled(struct request *request);
