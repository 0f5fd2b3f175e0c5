#include "reconcilers/session/rpc_message.h"
#include "reconcilers/session/rpc.h"
#include "controller/base/utf8.h"
#include <string.h>

#define MESSAGE_BYTES 900
#define ID_BYTES 128

// Counts what a parser would have to allocate, before it allocates anything: values outside strings.
static bool has_too_many_values(const char *bytes, size_t len)
{
    size_t values = 0;
    bool in_string = false;
    for (size_t i = 0; i < len; i++) {
        char c = bytes[i];
        if (in_string) {
            i += c == '\\';
            in_string = c != '"';
        } else {
            in_string = c == '"';
            values += c == ',' || c == '[' || c == '{';
        }
    }
    return values > RPC_VALUES_MAX;
}

// What the codes of JSON-RPC and of the guest's protocol mean here.
static enum error_code code_of(json_int_t code)
{
    static const struct {
        json_int_t code;
        enum error_code meaning;
    } table[] = {
        {-32602, ERROR_INVALID},
        {-32601, ERROR_UNSUPPORTED},
        {GUEST_ERROR_CANCELLED, ERROR_CANCELLED},
        {GUEST_ERROR_UNKNOWN_SESSION, ERROR_NOT_FOUND},
        {GUEST_ERROR_LIMIT, ERROR_LIMIT},
    };
    for (size_t i = 0; i < ARRAY_LEN(table); i++)
        if (table[i].code == code)
            return table[i].meaning;
    return ERROR_UNAVAILABLE;
}

void rpc_message_error(const json_t *error, struct error *ret)
{
    const json_t *message = json_object_get(error, "message");
    const char *bytes = json_is_string(message) ? json_string_value(message) : "";
    size_t len = json_is_string(message) ? json_string_length(message) : 0;
    CLEANUP_FREE char *text = utf8_to_printable(bytes, utf8_cut(bytes, len < MESSAGE_BYTES ? len : MESSAGE_BYTES), false);
    error_set(ret, code_of(json_get_int(error, "code", 0)), NULL, "%s", *text ? text : "the tool server failed without saying why");
}

bool rpc_message_is_error(const json_t *error)
{
    return json_is_object(error) && json_is_integer(json_object_get(error, "code")) && json_is_string(json_object_get(error, "message"));
}

static enum rpc_message_kind bad(const char **ret_fault, const char *fault)
{
    *ret_fault = fault;
    return RPC_MESSAGE_BAD;
}

static enum rpc_message_kind take_unasked(struct rpc_message *message, const char **ret_fault)
{
    json_t *id = json_object_get(message->root, "id");
    message->method = json_get_text(message->root, "method");
    bool is_good_id = json_is_integer(id) || (json_is_string(id) && json_string_length(id) <= ID_BYTES);
    if (!message->method || (id && !is_good_id))
        return bad(ret_fault, "a malformed request");
    message->method_id = id;
    return RPC_MESSAGE_UNASKED;
}

static enum rpc_message_kind take_answer(struct rpc_message *message, const char **ret_fault)
{
    json_t *id = json_object_get(message->root, "id");
    message->result = json_object_get(message->root, "result");
    message->error = json_object_get(message->root, "error");
    if (!json_is_integer(id) || !message->result == !message->error || (message->error && !rpc_message_is_error(message->error)))
        return bad(ret_fault, "an answer that is not one");
    message->id = json_integer_value(id);
    return RPC_MESSAGE_ANSWER;
}

enum rpc_message_kind rpc_message_parse(const char *bytes, size_t len, struct rpc_message *ret, const char **ret_fault)
{
    *ret = (struct rpc_message){0};
    if (has_too_many_values(bytes, len))
        return RPC_MESSAGE_HUGE;
    if (json_parse_with_nul(bytes, len, &ret->root, NULL) < 0 || !json_is_object(ret->root))
        return bad(ret_fault, "a message that is not a JSON object");
    const char *version = json_get_text(ret->root, "jsonrpc");
    if (!version || strcmp(version, "2.0") != 0)
        return bad(ret_fault, "a message that is not JSON-RPC 2.0");
    return json_object_get(ret->root, "method") ? take_unasked(ret, ret_fault) : take_answer(ret, ret_fault);
}

json_t *rpc_message_request(json_int_t id, const char *method, json_t *params)
{
    json_t *message = json_pack("{s:s, s:s}", "jsonrpc", "2.0", "method", method);
    json_object_set_new(message, "params", params ? json_incref(params) : json_object());
    if (id)
        json_object_set_new(message, "id", json_integer(id));
    return message;
}
