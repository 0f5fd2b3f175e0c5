// What status and doctor say about the tunnel: the same words in both.
#include "controller/tunnel.h"
#include "api/operator/internal.h"
#include "controller/base/buffer.h"
#include "controller/base/memory.h"

#define SLOW_START_MS 30000 // a new tunnel takes that long on the other side

struct question {
    struct call *call;
    void (*done)(struct call *call, json_t *tunnel);
};

static char *word_state(const struct tunnel_status *status)
{
    const char *word = tunnel_state_word(status->state);
    if (status->state == TUNNEL_ENDED)
        return mem_format("%s (%s; restarting in %lld s)", word, status->reason, (long long)(status->restart_in_ms + 999) / 1000);
    if (status->state == TUNNEL_STARTING && status->for_ms > SLOW_START_MS)
        return mem_format("%s (for %lld s, and it has told no health address yet)", word, (long long)(status->for_ms / 1000));
    return status->reason ? mem_format("%s (%s)", word, status->reason) : mem_strdup(word);
}

static json_t *status_to_words(const struct tunnel_status *status)
{
    CLEANUP(buffer_free) struct buffer message = BUFFER_INIT(4096);
    CLEANUP_FREE char *state = word_state(status);
    buffer_append_text(&message, state);
    if (status->pid)
        buffer_format(&message, ", process %d", (int)status->pid);
    if (status->starts > 1)
        buffer_format(&message, ", started %lld times", (long long)status->starts);
    if (status->not_confined)
        buffer_format(&message, ", not confined: %s", status->not_confined);
    json_t *json = json_pack("{s:s, s:o, s:I, s:b}", "state", tunnel_state_word(status->state), "message", json_from_text(buffer_text(&message)),
                             "starts", (json_int_t)status->starts, "isConfined", status->not_confined == NULL);
    if (status->reason)
        json_object_set_new(json, "reason", json_from_text(status->reason));
    if (status->pid)
        json_object_set_new(json, "pid", json_integer(status->pid));
    if (status->exit_code >= 0)
        json_object_set_new(json, "lastExitCode", json_integer(status->exit_code));
    if (status->state == TUNNEL_ENDED)
        json_object_set_new(json, "restartInMs", json_integer(status->restart_in_ms));
    return json;
}

static void on_status(void *arg, const struct tunnel_status *status)
{
    struct question *question = arg;
    CLEANUP_JSON json_t *json = status_to_words(status);
    question->done(question->call, json);
    free(question);
}

static void ask(void *arg)
{
    struct question *question = arg;
    if (question->call->server->tunnel) {
        tunnel_ask(question->call->server->tunnel, on_status, question);
        return;
    }
    bool is_wanted = question->call->world->config->is_tunnel_enabled;
    CLEANUP_JSON json_t *json = json_pack("{s:s, s:s}", "state", "off", "message",
                                          is_wanted ? "off (the daemon is starting or stopping)" : "off (CHAT2SHELL_ENABLE_TUNNEL=0)");
    question->done(question->call, json);
    free(question);
}

void operator_ask_tunnel(struct call *call, void (*done)(struct call *call, json_t *tunnel))
{
    struct question *question = mem_alloc(sizeof(*question));
    *question = (struct question){call, done};
    loop_post(call->world->loop, ask, question);
}
