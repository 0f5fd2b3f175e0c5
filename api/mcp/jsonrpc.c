#include "api/mcp/jsonrpc.h"
#include "controller/base/memory.h"
#include <string.h>

const char *jsonrpc_plain_text(const json_t *value)
{
    const char *text = json_string_value(value);
    return text && strlen(text) == json_string_length(value) ? text : NULL;
}

static void set_invalid(struct jsonrpc_message *message, const char *problem)
{
    message->kind = JSONRPC_INVALID;
    message->problem = problem;
}

void jsonrpc_classify(const json_t *value, const struct jsonrpc_raw *raw, struct jsonrpc_message *ret)
{
    *ret = (struct jsonrpc_message){.kind = JSONRPC_NOTIFICATION};
    if (!json_is_object(value)) {
        set_invalid(ret, "a JSON-RPC message must be an object");
        return;
    }
    const json_t *id = json_object_get(value, "id"), *method = json_object_get(value, "method");
    const json_t *params = json_object_get(value, "params"), *version = json_object_get(value, "jsonrpc");
    const char *version_text = jsonrpc_plain_text(version);
    ret->method = jsonrpc_plain_text(method);
    ret->id_text = raw->id;
    ret->request_id_text = raw->request_id;
    ret->progress_token_text = raw->progress_token;
    ret->params = json_is_object(params) ? params : NULL;
    if (!version_text || strcmp(version_text, "2.0") != 0)
        set_invalid(ret, "jsonrpc must be \"2.0\"");
    else if (!method && (json_object_get(value, "result") || json_object_get(value, "error")))
        ret->kind = JSONRPC_RESPONSE;
    else if (!ret->method)
        set_invalid(ret, "method must be a string");
    else if (id && !ret->id_text)
        set_invalid(ret, raw->id_problem ? raw->id_problem : "id must be a string or an integer");
    else if (params && !json_is_null(params) && !ret->params)
        set_invalid(ret, "params must be an object");
    else if (id)
        ret->kind = JSONRPC_REQUEST;
}

// {"jsonrpc":"2.0","id":ID,"KEY":VALUE}
static char *write_message(const char *id_text, const char *key, const char *value, size_t value_len,
                           size_t *ret_len)
{
    CLEANUP_FREE char *head = mem_format("{\"jsonrpc\":\"2.0\",%s%s%s\"%s\":", id_text ? "\"id\":" : "",
                                         id_text ? id_text : "", id_text ? "," : "", key);
    size_t head_len = strlen(head);
    char *text = mem_realloc(NULL, head_len + value_len + 2); // not zeroed first: an answer may be megabytes
    memcpy(text, head, head_len);
    memcpy(text + head_len, value, value_len);
    memcpy(text + head_len + value_len, "}", 2);
    if (ret_len)
        *ret_len = head_len + value_len + 1;
    return text;
}

char *jsonrpc_result_text(const char *id_text, const char *result, size_t result_len, size_t *ret_len)
{
    return write_message(id_text, "result", result, result_len, ret_len);
}

char *jsonrpc_error_text(const char *id_text, int code, const char *message, json_t *data, size_t *ret_len)
{
    CLEANUP_JSON json_t *error = json_object();
    json_object_set_new(error, "code", json_integer(code));
    json_object_set_new(error, "message", json_from_text(message));
    if (data)
        json_object_set_new(error, "data", data);
    CLEANUP_FREE char *text = json_to_text(error);
    return write_message(id_text, "error", text, strlen(text), ret_len);
}
