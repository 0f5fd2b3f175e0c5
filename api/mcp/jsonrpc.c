#include "api/mcp/jsonrpc.h"
#include "controller/base/memory.h"
#include <string.h>

bool jsonrpc_has_too_many_values(const char *bytes, size_t len)
{
    size_t count = 0;
    bool in_string = false;
    for (size_t i = 0; i < len && count <= JSONRPC_VALUES_MAX; i++) {
        char c = bytes[i];
        if (in_string && c == '\\')
            i++;
        else if (c == '"')
            in_string = !in_string;
        else
            count += !in_string && (c == ',' || c == '[' || c == '{');
    }
    return count > JSONRPC_VALUES_MAX;
}

static void set_invalid(struct jsonrpc_message *message, const char *problem)
{
    message->kind = JSONRPC_INVALID;
    message->problem = problem;
}

static bool is_legal_id(const json_t *id)
{
    return json_is_string(id) || json_is_integer(id);
}

void jsonrpc_classify(const json_t *value, struct jsonrpc_message *ret)
{
    *ret = (struct jsonrpc_message){.kind = JSONRPC_NOTIFICATION};
    if (!json_is_object(value)) {
        set_invalid(ret, "a JSON-RPC message must be an object");
        return;
    }
    const json_t *id = json_object_get(value, "id"), *method = json_object_get(value, "method");
    const json_t *params = json_object_get(value, "params"), *version = json_object_get(value, "jsonrpc");
    ret->method = json_string_value(method);
    if (ret->method && strlen(ret->method) != json_string_length(method)) // a NUL inside: no method's name
        ret->method = NULL;
    ret->id = is_legal_id(id) ? id : NULL;
    ret->params = json_is_object(params) ? params : NULL;
    if (!json_is_string(version) || strcmp(json_string_value(version), "2.0") != 0)
        set_invalid(ret, "jsonrpc must be \"2.0\"");
    else if (!method && (json_object_get(value, "result") || json_object_get(value, "error")))
        ret->kind = JSONRPC_RESPONSE;
    else if (!ret->method)
        set_invalid(ret, "method must be a string");
    else if (id && !ret->id)
        set_invalid(ret, "id must be a string or an integer");
    else if (params && !json_is_null(params) && !ret->params)
        set_invalid(ret, "params must be an object");
    else if (id)
        ret->kind = JSONRPC_REQUEST;
}

// {"jsonrpc":"2.0","id":ID,"KEY":VALUE}
static char *write_message(const json_t *id, const char *key, const char *value, size_t value_len,
                           size_t *ret_len)
{
    CLEANUP_FREE char *id_text = id ? json_to_text(id) : NULL;
    CLEANUP_FREE char *head = mem_format("{\"jsonrpc\":\"2.0\",%s%s%s\"%s\":", id ? "\"id\":" : "",
                                         id ? id_text : "", id ? "," : "", key);
    size_t head_len = strlen(head);
    char *text = mem_realloc(NULL, head_len + value_len + 2); // not zeroed first: an answer may be megabytes
    memcpy(text, head, head_len);
    memcpy(text + head_len, value, value_len);
    memcpy(text + head_len + value_len, "}", 2);
    if (ret_len)
        *ret_len = head_len + value_len + 1;
    return text;
}

char *jsonrpc_result_text(const json_t *id, const char *result, size_t result_len, size_t *ret_len)
{
    return write_message(id, "result", result, result_len, ret_len);
}

char *jsonrpc_error_text(const json_t *id, int code, const char *message, json_t *data, size_t *ret_len)
{
    CLEANUP_JSON json_t *error = json_object();
    json_object_set_new(error, "code", json_integer(code));
    json_object_set_new(error, "message", json_from_text(message));
    if (data)
        json_object_set_new(error, "data", data);
    CLEANUP_FREE char *text = json_to_text(error);
    return write_message(id, "error", text, strlen(text), ret_len);
}
