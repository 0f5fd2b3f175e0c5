#include "api/mcp/jsonrpc_text.h"
#include "controller/base/memory.h"
#include "controller/base/utf8.h"
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static bool is_integer_text(const char *text, size_t len)
{
    size_t at = text[0] == '-';
    return len > at && strspn(text + at, "0123456789") == len - at;
}

// What is wrong with a part as an id; NULL if nothing. text: the slice, NUL-terminated.
static const char *judge_id(const struct jsonrpc_slice *slice, const char *text)
{
    if (slice->times > 1)
        return "id must be there once";
    if (slice->is_unfit)
        return "id must not hold half of a surrogate pair";
    if (text[0] == '"')
        return slice->len <= JSONRPC_ID_STRING_MAX_BYTES
                   ? NULL
                   : "id must be a string of at most 64 KiB of JSON text";
    if (!is_integer_text(text, slice->len))
        return "id must be a string or an integer";
    return slice->len <= JSONRPC_NUMBER_MAX_CHARACTERS ? NULL
                                                       : "id must be an integer of at most 1024 characters";
}

static char *take_part(const struct jsonrpc_scan *scan, const struct jsonrpc_slice *slice,
                       const char **ret_problem)
{
    if (!slice->len)
        return NULL;
    CLEANUP_FREE char *text = mem_strndup(scan->bytes + slice->at, slice->len);
    const char *problem = judge_id(slice, text);
    if (ret_problem)
        *ret_problem = problem;
    return problem ? NULL : TAKE_PTR(text);
}

static void take_raw(const struct jsonrpc_scan *scan, const struct jsonrpc_found *found,
                     struct jsonrpc_raw *ret)
{
    ret->id = take_part(scan, &found->parts[JSONRPC_PART_ID], &ret->id_problem);
    ret->request_id = take_part(scan, &found->parts[JSONRPC_PART_REQUEST_ID], NULL);
    ret->progress_token = take_part(scan, &found->parts[JSONRPC_PART_PROGRESS_TOKEN], NULL);
}

static void raw_clear(struct jsonrpc_raw *raw)
{
    free(raw->id);
    free(raw->request_id);
    free(raw->progress_token);
}

void jsonrpc_text_clear(struct jsonrpc_text *text)
{
    json_decref(text->value);
    for (size_t i = 0; i < text->raw_count; i++)
        raw_clear(&text->raws[i]);
    free(text->raws);
    *text = (struct jsonrpc_text){0};
}

static void take_raws(const struct jsonrpc_scan *scan, struct jsonrpc_text *ret)
{
    size_t count = scan->message_count < JSONRPC_MESSAGES_MAX ? scan->message_count : JSONRPC_MESSAGES_MAX;
    ret->raw_count = count;
    ret->raws = mem_alloc((count ? count : 1) * sizeof(ret->raws[0]));
    for (size_t i = 0; i < count; i++)
        take_raw(scan, &scan->messages[i], &ret->raws[i]);
}

// ---- refusals ---------------------------------------------------------------------------------------------
static int refuse(struct jsonrpc_refusal *refusal, int code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static int refuse(struct jsonrpc_refusal *refusal, int code, const char *format, ...)
{
    *refusal = (struct jsonrpc_refusal){.code = code};
    va_list args;
    va_start(args, format);
    vsnprintf(refusal->message, sizeof(refusal->message), format, args);
    va_end(args);
    refusal->message[utf8_cut(refusal->message, strlen(refusal->message))] = '\0';
    return -1;
}

static int refuse_no_json(const struct jsonrpc_scan *scan, struct jsonrpc_refusal *refusal)
{
    size_t line = 1, column = 1;
    for (size_t i = 0; i < scan->at; i++) {
        column = scan->bytes[i] == '\n' ? 1 : column + 1;
        line += scan->bytes[i] == '\n';
    }
    if (!scan->len)
        return refuse(refusal, JSONRPC_PARSE_ERROR, "the body is empty: send one JSON-RPC message");
    return refuse(refusal, JSONRPC_PARSE_ERROR,
                  "the body is not JSON in UTF-8: it %s at line %zu, byte %zu of it",
                  scan->at >= scan->len ? "ends too early" : "goes wrong", line, column);
}

// The text is JSON but is not taken: an answer of a single message still names it.
static int refuse_limit(const struct jsonrpc_scan *scan, const char *sentence,
                        struct jsonrpc_refusal *refusal)
{
    refuse(refusal, JSONRPC_INVALID_REQUEST, "%s", sentence);
    if (!scan->is_batch)
        refusal->id_text = take_part(scan, &scan->messages[0].parts[JSONRPC_PART_ID], NULL);
    return -1;
}

// ---- reading ----------------------------------------------------------------------------------------------
static int read_scanned(const struct jsonrpc_scan *scan, struct jsonrpc_text *ret,
                        struct jsonrpc_refusal *refusal)
{
    struct error error = ERROR_INIT;
    json_t *value;
    if (scan->limit)
        return refuse_limit(scan, scan->limit, refusal);
    if (json_parse_with_nul(scan->patched ? scan->patched : scan->bytes, scan->len, &value, &error) < 0)
        return refuse_limit(scan, error.message, refusal); // a key that is there twice
    ret->value = value;
    take_raws(scan, ret);
    return 0;
}

int jsonrpc_text_read(const char *bytes, size_t len, struct jsonrpc_text *ret,
                      struct jsonrpc_refusal *refusal)
{
    CLEANUP(jsonrpc_scan_clear) struct jsonrpc_scan scan;
    if (!jsonrpc_scan(&scan, bytes, len))
        return refuse_no_json(&scan, refusal);
    return read_scanned(&scan, ret, refusal);
}

char *jsonrpc_request_id(const char *bytes, size_t len)
{
    CLEANUP(jsonrpc_text_clear) struct jsonrpc_text text = {0};
    struct jsonrpc_refusal refusal;
    struct jsonrpc_message message;
    if (jsonrpc_text_read(bytes, len, &text, &refusal) < 0)
        return refusal.id_text;
    if (json_is_array(text.value))
        return NULL;
    jsonrpc_classify(text.value, &text.raws[0], &message);
    return message.id_text && message.kind != JSONRPC_RESPONSE ? mem_strdup(message.id_text) : NULL;
}
