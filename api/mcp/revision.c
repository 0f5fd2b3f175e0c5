#include "api/mcp/revision.h"
#include "api/http/http.h"
#include "controller/base/memory.h"
#include "controller/base/utf8.h"
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

// Of a client's own word in an answer that refuses it.
#define MCP_SHOWN_MAX_BYTES 64

static const struct mcp_revision revisions[] = {
    {.name = "2025-03-26", .era = MCP_LEGACY, .has_batches = true},
    {.name = "2025-06-18", .era = MCP_LEGACY},
    {.name = MCP_NEWEST_LEGACY, .era = MCP_LEGACY},
    {.name = MCP_MODERN_REVISION, .era = MCP_MODERN},
};

static char *read_header(const struct http_request *request, const char *name, bool *ret_is_doubled)
{
    *ret_is_doubled = http_request_count_header(request, name) > 1;
    return http_request_header(request, name);
}

void mcp_headers_read(const struct http_request *request, struct mcp_headers *ret)
{
    ret->version = read_header(request, "MCP-Protocol-Version", &ret->is_version_doubled);
    ret->method = read_header(request, "Mcp-Method", &ret->is_method_doubled);
    ret->name = read_header(request, "Mcp-Name", &ret->is_name_doubled);
}

void mcp_headers_clear(struct mcp_headers *headers)
{
    free(headers->version);
    free(headers->method);
    free(headers->name);
    *headers = (struct mcp_headers){0};
}

const struct mcp_revision *mcp_revision_find(const char *name)
{
    for (size_t i = 0; name && i < ARRAY_LEN(revisions); i++)
        if (strcmp(revisions[i].name, name) == 0)
            return &revisions[i];
    return NULL;
}

const struct mcp_revision *mcp_revision_at(size_t index)
{
    return index < ARRAY_LEN(revisions) ? &revisions[index] : NULL;
}

size_t mcp_revision_index(const struct mcp_revision *revision)
{
    return (size_t)(revision - revisions);
}

json_t *mcp_modern_revisions(void)
{
    json_t *names = json_array();
    for (size_t i = 0; i < ARRAY_LEN(revisions); i++)
        if (revisions[i].era == MCP_MODERN)
            json_array_append_new(names, json_string(revisions[i].name));
    return names;
}

static bool is_modern(const char *name)
{
    const struct mcp_revision *revision = mcp_revision_find(name);
    return revision && revision->era == MCP_MODERN;
}

static int refuse(struct mcp_problem *problem, int code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static int refuse(struct mcp_problem *problem, int code, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(problem->message, sizeof(problem->message), format, args);
    va_end(args);
    problem->message[utf8_cut(problem->message, strlen(problem->message))] = '\0';
    problem->http_status = 400;
    problem->code = code;
    problem->data = NULL;
    return -1;
}

static int refuse_doubled(struct mcp_problem *problem, const char *name)
{
    return refuse(problem, MCP_HEADER_MISMATCH, "the %s header is there more than once", name);
}

static int refuse_unknown_revision(struct mcp_problem *problem, const char *name)
{
    return refuse(problem, JSONRPC_INVALID_REQUEST,
                  "MCP-Protocol-Version %.32s is not spoken here; accepted are 2025-03-26, 2025-06-18, "
                  "2025-11-25 and 2026-07-28",
                  name);
}

static const json_t *envelope(const struct jsonrpc_message *message)
{
    return json_object_get(message->params, "_meta");
}

int mcp_find_era(const struct jsonrpc_message *message, const struct mcp_headers *headers, enum mcp_era *ret,
                 struct mcp_problem *problem)
{
    bool has_envelope = json_object_get(envelope(message), MCP_META_VERSION) != NULL;
    bool is_initialize = strcmp(message->method, "initialize") == 0;
    *ret = has_envelope ? MCP_MODERN : MCP_LEGACY;
    if (has_envelope)
        return 0;
    if (headers->is_version_doubled)
        return refuse_doubled(problem, "MCP-Protocol-Version");
    if (message->kind == JSONRPC_NOTIFICATION && is_modern(headers->version)) {
        *ret = MCP_MODERN;
        return 0;
    }
    if (is_modern(headers->version))
        return is_initialize
                   ? refuse(problem, MCP_HEADER_MISMATCH,
                            "initialize belongs to revisions before %s, but the MCP-Protocol-Version header "
                            "names it",
                            MCP_MODERN_REVISION)
                   : refuse(problem, JSONRPC_INVALID_PARAMS, "params._meta must carry %s in revision %s",
                            MCP_META_VERSION, headers->version);
    if (!is_initialize && headers->version && !mcp_revision_find(headers->version))
        return refuse_unknown_revision(problem, headers->version);
    return 0;
}

int mcp_check_response(const struct mcp_headers *headers, struct mcp_problem *problem)
{
    if (headers->is_version_doubled)
        return refuse_doubled(problem, "MCP-Protocol-Version");
    if (is_modern(headers->version))
        return refuse(problem, JSONRPC_INVALID_REQUEST, "clients send no responses in protocol revision %s",
                      headers->version);
    if (headers->version && !mcp_revision_find(headers->version))
        return refuse_unknown_revision(problem, headers->version);
    return 0;
}

// ---- header values that may be base64 ---------------------------------------------------------------------
static char *decode_base64(const char *text, size_t len)
{
    CLEANUP_FREE char *coded = mem_strndup(text, len);
    CLEANUP_FREE char *bytes = NULL;
    size_t count;
    if (json_decode_base64(coded, &bytes, &count, NULL) < 0)
        return NULL;
    char *decoded = mem_strndup(bytes, count);
    if (strlen(decoded) == count && utf8_is_valid(decoded, count))
        return decoded;
    free(decoded);
    return NULL;
}

char *mcp_decode_header(const char *value)
{
    size_t len = strlen(value);
    if (len >= 11 && strncmp(value, "=?base64?", 9) == 0 && strcmp(value + len - 2, "?=") == 0)
        return decode_base64(value + 9, len - 11);
    for (const char *at = value; *at; at++)
        if ((unsigned char)*at >= 0x7F || ((unsigned char)*at < 0x20 && *at != '\t'))
            return NULL;
    return mem_strdup(value);
}

// ---- modern requests --------------------------------------------------------------------------------------
static int check_envelope(const struct jsonrpc_message *message, struct mcp_problem *problem)
{
    const json_t *meta = envelope(message);
    if (!json_is_string(json_object_get(meta, MCP_META_VERSION)))
        return refuse(problem, JSONRPC_INVALID_PARAMS, "params._meta must carry %s, a string",
                      MCP_META_VERSION);
    if (!json_is_object(json_object_get(meta, MCP_META_CAPABILITIES)))
        return refuse(problem, JSONRPC_INVALID_PARAMS, "params._meta must carry %s, an object",
                      MCP_META_CAPABILITIES);
    return 0;
}

// The client's own word, but no more of it than anybody needs: an answer stays small whatever was asked.
static json_t *cut_text(const json_t *word, size_t max)
{
    const char *text = json_string_value(word);
    size_t len = json_string_length(word);
    return json_stringn(text, len > max ? utf8_cut(text, max) : len);
}

static int check_revision(const struct jsonrpc_message *message, struct mcp_problem *problem)
{
    json_t *word = json_object_get(envelope(message), MCP_META_VERSION);
    if (is_modern(jsonrpc_plain_text(word)))
        return 0;
    refuse(problem, MCP_UNSUPPORTED_VERSION, "protocol revision %.32s is not spoken here in params._meta",
           json_string_value(word));
    problem->data = json_pack("{s:o, s:o}", "supported", mcp_modern_revisions(), "requested",
                              cut_text(word, MCP_SHOWN_MAX_BYTES));
    return -1;
}

// Which member of params the Mcp-Name header repeats.
static const char *named_member(const char *method)
{
    static const struct {
        const char *method, *member;
    } table[] = {{"tools/call", "name"}, {"prompts/get", "name"}, {"resources/read", "uri"}};
    for (size_t i = 0; i < ARRAY_LEN(table); i++)
        if (strcmp(table[i].method, method) == 0)
            return table[i].member;
    return NULL;
}

static int check_name_header(const struct jsonrpc_message *message, const struct mcp_headers *headers,
                             struct mcp_problem *problem)
{
    const char *member = named_member(message->method);
    const json_t *wanted = member ? json_object_get(message->params, member) : NULL;
    if (!json_is_string(wanted))
        return 0; // nothing to repeat; the method says what is wrong with its params
    if (headers->is_name_doubled)
        return refuse_doubled(problem, "Mcp-Name");
    CLEANUP_FREE char *name = headers->name ? mcp_decode_header(headers->name) : NULL;
    if (!name)
        return refuse(problem, MCP_HEADER_MISMATCH, "the Mcp-Name header is %s",
                      headers->name ? "malformed" : "missing");
    const char *text = jsonrpc_plain_text(wanted);
    if (!text || strcmp(name, text) != 0)
        return refuse(problem, MCP_HEADER_MISMATCH, "the Mcp-Name header differs from params.%s", member);
    return 0;
}

int mcp_check_modern(const struct jsonrpc_message *message, const struct mcp_headers *headers,
                     struct mcp_problem *problem)
{
    if (check_envelope(message, problem) < 0)
        return -1;
    const char *version = json_get_text(envelope(message), MCP_META_VERSION);
    // A request that says two things is none for a revision that is not spoken.
    bool is_contradictory = is_modern(headers->version) && strcmp(headers->version, version) != 0;
    if (!is_contradictory && check_revision(message, problem) < 0)
        return -1;
    if (headers->is_version_doubled || headers->is_method_doubled)
        return refuse_doubled(problem, headers->is_version_doubled ? "MCP-Protocol-Version" : "Mcp-Method");
    if (!headers->version || strcmp(headers->version, version) != 0)
        return refuse(problem, MCP_HEADER_MISMATCH, "the MCP-Protocol-Version header %s params._meta",
                      headers->version ? "differs from" : "is missing beside");
    if (!headers->method || strcmp(headers->method, message->method) != 0)
        return refuse(problem, MCP_HEADER_MISMATCH, "the Mcp-Method header %s",
                      headers->method ? "differs from the method" : "is missing");
    return check_name_header(message, headers, problem);
}

// ---- batches ----------------------------------------------------------------------------------------------
int mcp_check_batch(const struct jsonrpc_text *text, const struct mcp_headers *headers,
                    struct mcp_problem *problem)
{
    size_t count = json_array_size(text->value);
    if (!count)
        return refuse(problem, JSONRPC_INVALID_REQUEST, "a batch must not be empty");
    if (count > MCP_BATCH_MAX)
        return refuse(problem, JSONRPC_INVALID_REQUEST, "a batch holds at most %d messages", MCP_BATCH_MAX);
    if (headers->is_version_doubled)
        return refuse_doubled(problem, "MCP-Protocol-Version");
    const struct mcp_revision *revision =
        headers->version ? mcp_revision_find(headers->version) : &revisions[0];
    if (!revision || !revision->has_batches)
        return refuse(problem, JSONRPC_INVALID_REQUEST,
                      "batches are not part of protocol revision %.32s: send one message a request",
                      headers->version);
    for (size_t i = 0; i < count; i++) {
        struct jsonrpc_message message;
        jsonrpc_classify(json_array_get(text->value, i), &text->raws[i], &message);
        if (message.method && strcmp(message.method, "initialize") == 0)
            return refuse(problem, JSONRPC_INVALID_REQUEST, "initialize must not be part of a batch");
        if (json_object_get(envelope(&message), MCP_META_VERSION))
            return refuse(problem, JSONRPC_INVALID_REQUEST, "batches are not part of protocol revision %s",
                          MCP_MODERN_REVISION);
    }
    return 0;
}
