#include "cli/mcp_bridge_message.h"
#include "controller/base/json.h"
#include "controller/base/memory.h"
#include "controller/base/utf8.h"
#include <string.h>

#define META_VERSION "io.modelcontextprotocol/protocolVersion"

void mcp_message_clear(struct mcp_message *message)
{
    free(message->method);
    free(message->version);
    free(message->name);
    free(message->cancels);
    for (size_t i = 0; i < message->id_count; i++)
        free(message->ids[i]);
    free(message->ids);
    *message = (struct mcp_message){0};
}

// ---- reading --------------------------------------------------------------------------------------------------------
// A string's text; NULL if it is none, or holds a NUL.
static char *decode(struct mcp_span span)
{
    CLEANUP_JSON json_t *value = NULL;
    if (!span.len || span.text[0] != '"' || json_parse(span.text, span.len, &value, NULL) < 0)
        return NULL;
    return mem_strdup(json_string_value(value));
}

static char *decode_member(struct mcp_span object, const char *name)
{
    struct mcp_span value;
    return mcp_span_member(object, name, &value) ? decode(value) : NULL;
}

static bool is_integer(struct mcp_span span)
{
    size_t at = span.len && span.text[0] == '-';
    for (size_t i = at; i < span.len; i++)
        if (span.text[i] < '0' || span.text[i] > '9')
            return false;
    return span.len > at;
}

// A legal id as text; NULL otherwise.
static char *read_id(struct mcp_span object, const char *name)
{
    struct mcp_span id;
    if (!mcp_span_member(object, name, &id) || !utf8_is_valid(id.text, id.len))
        return NULL;
    bool is_string = id.len > 1 && id.text[0] == '"' && id.text[id.len - 1] == '"';
    return is_string || is_integer(id) ? mem_strndup(id.text, id.len) : NULL;
}

static void add_id(struct mcp_message *message, char *taken)
{
    message->ids = mem_realloc_array(message->ids, message->id_count + 1, sizeof(*message->ids));
    message->ids[message->id_count++] = taken;
}

static void read_batch(struct mcp_span line, struct mcp_message *ret)
{
    struct mcp_span element, method;
    ret->kind = MCP_MESSAGE_BATCH;
    while (ret->id_count < MCP_BATCH_IDS_MAX && mcp_span_element(&line, &element)) {
        char *id = mcp_span_member(element, "method", &method) ? read_id(element, "id") : NULL;
        if (id)
            add_id(ret, id);
    }
}

static void read_params(struct mcp_span params, struct mcp_message *ret)
{
    struct mcp_span meta;
    if (mcp_span_member(params, "_meta", &meta))
        ret->version = decode_member(meta, META_VERSION);
    if (strcmp(ret->method, "notifications/cancelled") == 0)
        ret->cancels = read_id(params, "requestId");
    else if (strcmp(ret->method, "tools/call") == 0 || strcmp(ret->method, "prompts/get") == 0)
        ret->name = decode_member(params, "name");
    else if (strcmp(ret->method, "resources/read") == 0)
        ret->name = decode_member(params, "uri");
}

void mcp_message_read(const char *line, size_t len, struct mcp_message *ret)
{
    struct mcp_span whole = mcp_span_trim((struct mcp_span){line, len}), params, ignored;
    *ret = (struct mcp_message){0};
    if (whole.len && whole.text[0] == '[') {
        read_batch(whole, ret);
        return;
    }
    ret->method = decode_member(whole, "method");
    if (!ret->method)
        return;
    if (mcp_span_member(whole, "params", &params))
        read_params(params, ret);
    char *id = read_id(whole, "id");
    if (id)
        add_id(ret, id);
    else if (mcp_span_member(whole, "id", &ignored))
        return; // an id of an illegal kind
    ret->kind = id ? MCP_MESSAGE_REQUEST : MCP_MESSAGE_NOTIFICATION;
}

// ---- headers --------------------------------------------------------------------------------------------------------
static bool is_plain(const char *value)
{
    size_t len = strlen(value);
    for (size_t i = 0; i < len; i++)
        if ((unsigned char)value[i] < 0x20 || (unsigned char)value[i] > 0x7E)
            return false;
    return len && value[0] != ' ' && value[len - 1] != ' ' && strncmp(value, "=?base64?", 9) != 0;
}

// A value that a header cannot hold goes in base64 where the protocol has a way to say so, and nowhere otherwise.
static void put_header(struct buffer *head, const char *name, const char *value, bool may_be_coded)
{
    if (is_plain(value)) {
        buffer_format(head, "%s: %s\r\n", name, value);
    } else if (may_be_coded) {
        CLEANUP_JSON json_t *coded = json_encode_base64(value, strlen(value));
        buffer_format(head, "%s: =?base64?%s?=\r\n", name, json_string_value(coded));
    }
}

void mcp_message_put_headers(const struct mcp_message *message, const char *negotiated, struct buffer *head)
{
    bool is_initialize = message->method && strcmp(message->method, "initialize") == 0;
    if (message->version) {
        put_header(head, "MCP-Protocol-Version", message->version, false);
        put_header(head, "Mcp-Method", message->method, false);
        if (message->name)
            put_header(head, "Mcp-Name", message->name, true);
    } else if (negotiated && !is_initialize) {
        put_header(head, "MCP-Protocol-Version", negotiated, false);
    }
}

// ---- errors -----------------------------------------------------------------------------------------------------------
char *mcp_error_line(const char *id, int code, const char *message)
{
    CLEANUP_JSON json_t *error = json_pack("{s:i, s:o}", "code", code, "message", json_from_bytes(message, strlen(message)));
    CLEANUP_FREE char *text = json_to_text(error);
    if (!id)
        return mem_format("{\"jsonrpc\":\"2.0\",\"error\":%s}", text);
    return mem_format("{\"jsonrpc\":\"2.0\",\"id\":%s,\"error\":%s}", id, text);
}

bool mcp_ids_are_same(const char *a, const char *b)
{
    if (strcmp(a, b) == 0)
        return true;
    CLEANUP_FREE char *left = decode((struct mcp_span){a, strlen(a)});
    CLEANUP_FREE char *right = decode((struct mcp_span){b, strlen(b)});
    return left && right && strcmp(left, right) == 0;
}
