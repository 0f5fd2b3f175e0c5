#include "api/guest/dispatch.h"
#include "api/guest/methods.h"
#include "controller/base/memory.h"
#include <ctype.h>
#include <string.h>

static struct request *find_request(struct guest *guest, const json_t *id)
{
    struct request *request = guest->requests;
    while (request && !json_equal(request->id, id))
        request = request->next;
    return request;
}

static void cancel_request(struct guest *guest, const json_t *params)
{
    const json_t *id = json_object_get(params, "requestId");
    struct request *request = id ? find_request(guest, id) : NULL;
    if (!request || atomic_exchange(&request->is_cancelled, true))
        return; // it was answered meanwhile
    if (request->cancel)
        request->cancel(request);
}

static void notify(struct guest *guest, const char *method, const json_t *message)
{
    if (strcmp(method, "notifications/cancelled") == 0)
        cancel_request(guest, json_object_get(message, "params"));
}

static void start_request(struct guest *guest, const struct method *method, json_t *message)
{
    struct request *request = mem_alloc(sizeof(*request));
    request->guest = guest;
    request->message = json_incref(message);
    request->id = json_object_get(message, "id");
    request->params = json_object_get(message, "params");
    request->next = guest->requests;
    if (guest->requests)
        guest->requests->prev = request;
    guest->requests = request;
    guest->request_count++;
    method->start(request);
}

static void call(struct guest *guest, const json_t *id, const char *name, json_t *message)
{
    const json_t *params = json_object_get(message, "params");
    const struct method *method = method_find(name);
    if (!method)
        rpc_send_error(guest, id, RPC_UNKNOWN_METHOD, "Method not found");
    else if (params && !json_is_object(params))
        rpc_send_error(guest, id, RPC_INVALID_PARAMS, "params must be an object");
    else if (guest->request_count >= GUEST_MAX_IN_FLIGHT)
        rpc_send_error(guest, id, GUEST_ERROR_LIMIT,
                       "too many requests are under way: wait for some answers");
    else if (find_request(guest, id))
        rpc_send_error(guest, id, RPC_INVALID_REQUEST, "a request with this id is under way");
    else
        start_request(guest, method, message);
}

static void dispatch_message(struct guest *guest, json_t *message)
{
    const json_t *id = json_object_get(message, "id"), *version = json_object_get(message, "jsonrpc");
    const char *method = json_get_text(message, "method");
    bool has_good_id = json_is_string(id) || json_is_integer(id);
    if (!json_is_object(message) || !json_is_string(version) ||
        strcmp(json_string_value(version), "2.0") != 0)
        rpc_send_error(guest, has_good_id ? id : NULL, RPC_INVALID_REQUEST,
                       "one JSON-RPC 2.0 object a line, please");
    else if (id && !has_good_id)
        rpc_send_error(guest, NULL, RPC_INVALID_REQUEST, "id must be a string or an integer");
    else if (method && id)
        call(guest, id, method, message);
    else if (method)
        notify(guest, method, message);
    else if (!json_object_get(message, "result") && !json_object_get(message, "error"))
        rpc_send_error(guest, id, RPC_INVALID_REQUEST, "method must be a string");
    // else: an answer, and this server asks nothing
}

static bool is_blank(const char *text, size_t len)
{
    while (len && isspace((unsigned char)*text))
        text++, len--;
    return !len;
}

void dispatch_line(struct guest *guest, const char *text, size_t len)
{
    struct error err = ERROR_INIT;
    CLEANUP_JSON json_t *message = NULL;
    if (is_blank(text, len))
        return;
    if (json_parse_with_nul(text, len, &message, &err) < 0)
        rpc_send_error(guest, NULL, RPC_PARSE_ERROR, err.message);
    else
        dispatch_message(guest, message);
}
