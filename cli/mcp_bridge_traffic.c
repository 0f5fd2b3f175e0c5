#include "cli/mcp_bridge_internal.h"
#include "controller/base/json.h"
#include "controller/base/memory.h"
#include "controller/base/utf8.h"
#include <stdio.h>
#include <string.h>

#define INTERNAL_ERROR (-32603)
#define INVALID_REQUEST (-32600)

// ---- answers ----------------------------------------------------------------------------------------------------------
static void put_line(struct mcp_bridge *bridge, const char *text, size_t len)
{
    mcp_output_put(&bridge->output, (struct mcp_span){text, len});
    bridge->end = (struct boot_time){boot_time_now().ms + END_QUIET_MS};
}

static char *word_error(const struct error *err)
{
    if (!err->hint[0])
        return mem_strdup(err->message);
    bool is_lower = err->hint[0] >= 'a' && err->hint[0] <= 'z';
    return mem_format("%s. %c%s", err->message, is_lower ? err->hint[0] - 32 : err->hint[0], err->hint + 1);
}

void mcp_bridge_tell(const char *format, const char *text)
{
    CLEANUP_FREE char *line = mem_format(format, text);
    CLEANUP_FREE char *printable = utf8_to_printable(line, strlen(line), false);
    fprintf(stderr, "%s\n", printable);
}

// A message that could not be handed over: its requests get an error each, a batch's in one array.
static void answer_error(struct mcp_bridge *bridge, const struct mcp_message *message, int code, const char *sentence)
{
    if (message->kind == MCP_MESSAGE_NOTIFICATION) {
        mcp_bridge_tell("a notification was lost: %s", sentence);
        return;
    }
    bool is_array = message->kind == MCP_MESSAGE_BATCH && message->id_count;
    CLEANUP(buffer_free) struct buffer line = BUFFER_INIT(2 * MCP_LINE_MAX_BYTES + MCP_BATCH_IDS_MAX * 4096);
    for (size_t i = 0; i == 0 || i < message->id_count; i++) {
        CLEANUP_FREE char *one = mcp_error_line(message->id_count ? message->ids[i] : NULL, code, sentence);
        buffer_append_text(&line, i ? "," : is_array ? "[" : "");
        buffer_append_text(&line, one);
    }
    buffer_append_text(&line, is_array ? "]" : "");
    put_line(bridge, line.data, line.len);
}

static void answer_failure(struct mcp_bridge *bridge, const struct mcp_message *message, const struct error *err)
{
    CLEANUP_FREE char *sentence = word_error(err);
    answer_error(bridge, message, INTERNAL_ERROR, sentence);
}

// ---- the daemon's answers -----------------------------------------------------------------------------------------------
static void note_revision(struct mcp_bridge *bridge, const struct mcp_flight *flight, struct mcp_span answer)
{
    struct mcp_span result, version;
    if (!flight->message.method || strcmp(flight->message.method, "initialize") != 0 || !mcp_span_member(answer, "result", &result) ||
        !mcp_span_member(result, "protocolVersion", &version) || version.len < 3 || version.len > 64)
        return;
    free(bridge->negotiated);
    bridge->negotiated = mem_strndup(version.text + 1, version.len - 2);
}

// A request's answer is known by its id; a batch's are what it gets.
static bool is_own_answer(const struct mcp_flight *flight, struct mcp_span answer)
{
    struct mcp_span found, method;
    if (flight->message.kind == MCP_MESSAGE_BATCH && answer.len && answer.text[0] == '[')
        return true;
    if (!mcp_span_member(answer, "id", &found) || mcp_span_member(answer, "method", &method))
        return false;
    CLEANUP_FREE char *id = mem_strndup(found.text, found.len);
    return flight->message.kind == MCP_MESSAGE_BATCH || (flight->message.id_count && mcp_ids_are_same(id, flight->message.ids[0]));
}

static void take_event(void *arg, struct mcp_flight *flight, struct mcp_span data)
{
    struct mcp_bridge *bridge = arg;
    bool is_over = flight->is_answered && flight->message.kind != MCP_MESSAGE_BATCH;
    if (flight->is_cancelled || is_over)
        return;
    if (is_own_answer(flight, data)) {
        flight->is_answered = true;
        note_revision(bridge, flight, data);
    }
    put_line(bridge, data.text, data.len);
}

// An answer without the request's id: refused before anybody looked for one. The client gets it with the id.
static void answer_refusal(struct mcp_bridge *bridge, const struct mcp_flight *flight, struct mcp_span body)
{
    CLEANUP_JSON json_t *answer = NULL;
    json_parse(body.text, body.len, &answer, NULL);
    const json_t *error = json_object_get(answer, "error");
    const char *message = json_get_text(error, "message");
    int status = flight->reader.status;
    if (status == 401)
        mcp_client_clear(&bridge->endpoint); // with the next message the token is read again
    const char *hint = status == 401 ? "; " MCP_CLIENT_TOKEN_HINT : "";
    CLEANUP_FREE char *sentence = message ? mem_format("%s%s", message, hint)
                                          : mem_format("the endpoint answered with HTTP status %d and no MCP message%s", status, hint);
    answer_error(bridge, &flight->message, (int)json_get_int(error, "code", INTERNAL_ERROR), sentence);
}

static void take_body(struct mcp_bridge *bridge, struct mcp_flight *flight)
{
    struct mcp_span body = mcp_span_trim((struct mcp_span){buffer_text(&flight->reader.body), flight->reader.body.len});
    bool is_json = body.len && (body.text[0] == '{' || body.text[0] == '['), is_refused = flight->reader.status >= 300;
    bool is_for_client[] = {
        [MCP_MESSAGE_REQUEST] = is_own_answer(flight, body),
        [MCP_MESSAGE_NOTIFICATION] = false,
        [MCP_MESSAGE_BATCH] = is_json,
        [MCP_MESSAGE_OTHER] = is_json,
    };
    if (is_for_client[flight->message.kind]) {
        note_revision(bridge, flight, body);
        put_line(bridge, body.text, body.len);
    } else if (flight->message.id_count || is_refused) {
        answer_refusal(bridge, flight, body);
    }
}

static void finish(struct mcp_bridge *bridge, struct mcp_flight *flight)
{
    struct error error = ERROR_INIT;
    if (flight->is_cancelled || flight->is_answered)
        return;
    if (!mcp_flight_is_stream(flight)) {
        take_body(bridge, flight);
    } else if (flight->message.id_count) {
        error_set(&error, ERROR_UNAVAILABLE, "ask again", "the daemon ended the stream before the answer");
        answer_failure(bridge, &flight->message, &error);
    }
}

// ---- flights --------------------------------------------------------------------------------------------------------------
// Closes it; the memory goes at the next sweep, because a walk over all of them may be under way.
static void end_flight(struct mcp_bridge *bridge, struct mcp_flight *flight)
{
    flight->is_over = true;
    bridge->flight_count--;
    bridge->open_count -= flight->fd >= 0;
}

// The one request under way with that id; NULL if there is none, or it could be several.
static struct mcp_flight *find_request(const struct mcp_bridge *bridge, const char *id)
{
    struct mcp_flight *found = NULL;
    for (struct mcp_flight *flight = bridge->flights; flight; flight = flight->next) {
        if (flight->message.kind != MCP_MESSAGE_REQUEST || flight->is_over || flight->is_cancelled || !mcp_ids_are_same(flight->message.ids[0], id))
            continue;
        if (found)
            return NULL;
        found = flight;
    }
    return found;
}

static void end_cancelled(struct mcp_bridge *bridge, const char *id)
{
    for (struct mcp_flight *flight = bridge->flights; flight; flight = flight->next)
        if (!flight->is_over && flight->is_cancelled && flight->message.id_count && mcp_ids_are_same(flight->message.ids[0], id))
            end_flight(bridge, flight);
}

// The answer is whole, or will not come.
static void land(struct mcp_bridge *bridge, struct mcp_flight *flight, int result, const struct error *err)
{
    CLEANUP_FREE char *cancels = TAKE_PTR(flight->message.cancels);
    if (result >= 0)
        finish(bridge, flight);
    else if (!flight->is_cancelled && !flight->is_answered)
        answer_failure(bridge, &flight->message, err);
    if (result < 0 && err->code == ERROR_UNREACHABLE)
        mcp_client_clear(&bridge->endpoint); // it may come back at another port
    end_flight(bridge, flight);
    if (cancels)
        end_cancelled(bridge, cancels);
}

void mcp_bridge_step_flight(struct mcp_bridge *bridge, struct mcp_flight *flight, short revents)
{
    struct error error = ERROR_INIT;
    int result = revents ? mcp_flight_step(flight, &error) : 0;
    if (result >= 0 && mcp_flight_is_stream(flight) && mcp_flight_each_event(flight, take_event, bridge, &error) < 0)
        result = -1;
    if (result == 0 && boot_time_now().ms >= flight->deadline.ms)
        result = error_set(&error, ERROR_TIMEOUT, "see what it does: chat2shell status", "the daemon did not answer in time");
    if (result != 0)
        land(bridge, flight, result, &error);
}

static void free_ended(struct mcp_bridge *bridge)
{
    for (struct mcp_flight **at = &bridge->flights; *at;) {
        struct mcp_flight *flight = *at;
        if (!flight->is_over) {
            at = &flight->next;
            continue;
        }
        *at = flight->next;
        mcp_flight_free(flight);
    }
}

static int locate(struct mcp_bridge *bridge, struct http_target *ret, struct error *err)
{
    if (!bridge->endpoint.host && bridge->options->locate(bridge->options->arg, &bridge->endpoint, err) < 0)
        return -1;
    *ret = (struct http_target){.host = bridge->endpoint.host, .port = bridge->endpoint.port};
    return 0;
}

static void begin(struct mcp_bridge *bridge, struct mcp_flight *flight)
{
    struct error error = ERROR_INIT;
    struct http_target target;
    bool is_open = locate(bridge, &target, &error) == 0 && mcp_flight_open(flight, &target, &error) == 0;
    bridge->open_count += flight->fd >= 0;
    if (!is_open)
        land(bridge, flight, -1, &error);
}

void mcp_bridge_sweep(struct mcp_bridge *bridge)
{
    free_ended(bridge);
    for (struct mcp_flight *flight = bridge->flights; flight && bridge->open_count < OPEN_MAX; flight = flight->next)
        if (flight->fd < 0 && !flight->is_over)
            begin(bridge, flight);
    free_ended(bridge);
}

// ---- lines ------------------------------------------------------------------------------------------------------------------
static int launch(struct mcp_bridge *bridge, struct mcp_span line, struct mcp_message *message, struct error *err)
{
    CLEANUP(buffer_free) struct buffer headers = BUFFER_INIT(16 * 1024);
    struct http_target target;
    if (locate(bridge, &target, err) < 0)
        return -1;
    mcp_message_put_headers(message, bridge->negotiated, &headers);
    if (bridge->endpoint.authorization)
        buffer_format(&headers, "%s\r\n", bridge->endpoint.authorization);
    struct mcp_flight *flight = NULL;
    if (mcp_flight_new(&target, bridge->endpoint.path, &headers, line, message, &flight, err) < 0)
        return -1;
    struct mcp_flight **tail = &bridge->flights;
    while (*tail)
        tail = &(*tail)->next;
    *tail = flight;
    bridge->flight_count++;
    // A cancellation must not wait for what it cancels.
    size_t most = flight->message.kind == MCP_MESSAGE_NOTIFICATION ? OPEN_MAX + URGENT_MAX : OPEN_MAX;
    if (bridge->open_count < most)
        begin(bridge, flight);
    return 0;
}

// False: there is nothing to tell the daemon. In revisions without handshake a closed stream is the cancellation; in the
// others the daemon is told first, and then the stream is closed.
static bool cancel(struct mcp_bridge *bridge, const struct mcp_message *message)
{
    struct mcp_flight *flight = find_request(bridge, message->cancels);
    if (!flight || strcmp(flight->message.method, "initialize") == 0)
        return false;
    flight->is_cancelled = true;
    if (!flight->message.version && mcp_flight_is_sent(flight))
        return true;
    end_flight(bridge, flight);
    return false;
}

static void take_message(struct mcp_bridge *bridge, struct mcp_span line)
{
    struct error error = ERROR_INIT;
    CLEANUP(mcp_message_clear) struct mcp_message message;
    mcp_message_read(line.text, line.len, &message);
    if (message.cancels && !cancel(bridge, &message))
        return;
    if (launch(bridge, line, &message, &error) == 0)
        return;
    if (message.cancels)
        end_cancelled(bridge, message.cancels);
    answer_failure(bridge, &message, &error);
}

static void refuse_long(struct mcp_bridge *bridge, struct mcp_span id)
{
    CLEANUP_FREE char *text = id.text ? mem_strndup(id.text, id.len) : NULL;
    CLEANUP_FREE char *sentence = mem_format("the line is longer than %u bytes, which is the most: send it in parts", MCP_LINE_MAX_BYTES);
    CLEANUP_FREE char *line = mcp_error_line(text, INVALID_REQUEST, sentence);
    put_line(bridge, line, strlen(line));
}

static size_t unsent_bytes(const struct mcp_bridge *bridge)
{
    size_t bytes = 0;
    for (const struct mcp_flight *flight = bridge->flights; flight; flight = flight->next)
        bytes += flight->out.len;
    return bytes;
}

static bool may_take_lines(const struct mcp_bridge *bridge)
{
    return mcp_output_waiting(&bridge->output) < MCP_OUTPUT_HIGH_BYTES && bridge->flight_count < FLIGHTS_MAX &&
           unsent_bytes(bridge) < UNSENT_MAX_BYTES;
}

// True: there may be more lines already.
bool mcp_bridge_take_lines(struct mcp_bridge *bridge)
{
    struct mcp_input_line line;
    while (may_take_lines(bridge)) {
        if (!mcp_input_next(&bridge->input, &line))
            return false;
        if (line.is_too_long)
            refuse_long(bridge, line.id);
        else
            take_message(bridge, line.text);
    }
    return true;
}
