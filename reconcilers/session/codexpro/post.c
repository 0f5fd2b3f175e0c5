#include "reconcilers/session/codexpro/codexpro.h"
#include "controller/base/memory.h"
#include <stdlib.h>
#include <string.h>

#define HINT_AGAIN "look at what the call left behind before repeating it; if it keeps failing, destroy the sandbox and create a new one"
#define HINT_LATER "call again later"

static void post_free(struct post *post)
{
    struct codexpro *codexpro = post->codexpro;
    LIST_REMOVE(post, link);
    codexpro->post_count--;
    codexpro->out_bytes -= post->body_len;
    loop_cancel(TAKE_PTR(post->wait));
    http_abandon(post->exchange);
    mcp_answer_free(&post->answer);
    free(post->body);
    free(post);
}

// ---- ends ----------------------------------------------------------------------------------------------------------

// The post is freed; its answer's memory lives until the callback has run.
static void end(struct post *post, const struct error *err)
{
    struct codexpro *codexpro = post->codexpro;
    int64_t rpc_id = post->rpc_id;
    rpc_answer_fn fn = post->fn;
    void *arg = post->arg;
    CLEANUP_JSON json_t *root = TAKE_PTR(post->answer.message.root);
    json_t *result = err ? NULL : post->answer.message.result;
    post_free(post);
    if (rpc_id)
        rpc_settle(&codexpro->base, rpc_id, result, err);
    else if (fn)
        fn(arg, result, err);
}

static void fail(struct post *post, enum error_code code, const char *hint, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
static void fail(struct post *post, enum error_code code, const char *hint, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    CLEANUP_FREE char *message = mem_vformat(format, args);
    va_end(args);
    struct error err = ERROR_INIT;
    error_set(&err, code, hint, "%s", message);
    end(post, &err);
}

// The call fails; what it was does not make the server broken, but a server that keeps doing it is.
static void fail_garbled(struct post *post, const char *fault)
{
    struct codexpro *codexpro = post->codexpro;
    fail(post, ERROR_UNAVAILABLE, HINT_AGAIN, "the tool server broke the protocol with %s", fault);
    rpc_strike(&codexpro->base, fault);
}

static void fail_unanswered(struct post *post, const struct http_answer *answer)
{
    struct codexpro *codexpro = post->codexpro;
    fail(post, answer->is_late ? ERROR_TIMEOUT : ERROR_UNAVAILABLE, HINT_AGAIN, "the tool server gave no answer: %s", answer->failure);
    health_suspect(&codexpro->base);
}

static void fail_status(struct post *post, const struct http_answer *answer)
{
    static const struct {
        int status;
        enum error_code code;
        const char *hint, *words;
    } table[] = {
        {404, ERROR_UNAVAILABLE, HINT_AGAIN, "it forgets its sessions"},
        {413, ERROR_TOO_LARGE, "send it in smaller pieces", "the call is larger than it takes"},
        {429, ERROR_LIMIT, HINT_LATER, "it gets too many requests"},
        {503, ERROR_UNAVAILABLE, HINT_LATER, "it is overloaded"},
    };
    struct error said = ERROR_INIT;
    bool has_said = mcp_answer_refusal(&post->answer, &said);
    const char *words = has_said ? said.message : "it did not say why";
    for (size_t i = 0; i < ARRAY_LEN(table); i++)
        if (table[i].status == answer->status) {
            fail(post, table[i].code, table[i].hint, "the tool server refused the call (HTTP %d): %s", answer->status, table[i].words);
            return;
        }
    fail(post, has_said ? said.code : ERROR_UNAVAILABLE, HINT_AGAIN, "the tool server refused the call (HTTP %d): %s", answer->status, words);
}

// ---- answers -------------------------------------------------------------------------------------------------------

static void take_answer(struct post *post, const struct http_answer *answer)
{
    struct codexpro *codexpro = post->codexpro;
    struct error err = ERROR_INIT;
    mcp_answer_end(&post->answer, answer);
    if (post->kind == POST_HELLO)
        memcpy(post->session_id, answer->session_id, sizeof(post->session_id));
    if (post->answer.fault && !post->answer.message.root) {
        fail_garbled(post, post->answer.fault);
    } else if (post->answer.over) {
        fail(post, ERROR_TOO_LARGE, "ask for less at once", "the tool server's answer is refused: %s", post->answer.over);
    } else if (post->answer.message.error) {
        rpc_message_error(post->answer.message.error, &err);
        end(post, &err);
    } else {
        if (post->kind == POST_HELLO)
            mem_replace(&codexpro->session_id, *post->session_id ? post->session_id : NULL);
        end(post, NULL);
    }
}

static void transmit(struct post *post);

static void on_waited(void *arg)
{
    struct post *post = arg;
    post->wait = NULL;
    if (!post->codexpro->is_greeting || post->kind == POST_HELLO)
        transmit(post); // else posts_go sends it
}

static void wait_rate(struct post *post, const struct http_answer *answer)
{
    int64_t wait_s = answer->retry_after_s < 0 ? 1 : answer->retry_after_s, max_s = CODEXPRO_RATE_WAIT_MAX_MS / 1000;
    if (wait_s > max_s || ++post->rate_waits > CODEXPRO_RATE_WAITS_MAX)
        fail_status(post, answer);
    else
        post->wait = loop_after(post->codexpro->loop, wait_s ? wait_s * 1000 : CODEXPRO_RETRY_MIN_MS, on_waited, post);
}

// CodexPro does not know the session: it has not executed anything.
static void take_forgotten(struct post *post, const struct http_answer *answer)
{
    struct codexpro *codexpro = post->codexpro;
    if (post->is_repeated || post->kind != POST_CALL) {
        fail_status(post, answer);
        return;
    }
    post->is_repeated = true;
    if (post->generation == codexpro->generation && !codexpro->is_greeting)
        handshake_again(codexpro); // this post waits for it
    else if (!codexpro->is_greeting)
        transmit(post); // another call has noticed before
}

static void on_done(void *arg, const struct http_answer *answer)
{
    struct post *post = arg;
    post->exchange = NULL;
    if (answer->status == 401)
        rpc_break(&post->codexpro->base, CODEXPRO_REFUSED);
    else if (answer->failure)
        fail_unanswered(post, answer);
    else if (answer->status == 404)
        take_forgotten(post, answer);
    else if (answer->status == 429)
        wait_rate(post, answer);
    else if (post->kind == POST_NOTICE)
        end(post, NULL);
    else if (answer->status == 200)
        take_answer(post, answer);
    else
        fail_status(post, answer);
}

static bool on_body(void *arg, const struct http_answer *head, const char *bytes, size_t len)
{
    struct post *post = arg;
    health_note_heard(&post->codexpro->base);
    return mcp_answer_feed(&post->answer, head, bytes, len);
}

// ---- sending -------------------------------------------------------------------------------------------------------

static void transmit(struct post *post)
{
    static const struct http_events events = {on_body, on_done};
    struct codexpro *codexpro = post->codexpro;
    int64_t left_ms = post->deadline.ms - clock_boot(loop_clock(codexpro->loop)).ms;
    const struct http_request request = {.method = "POST",
                                         .path = "/mcp",
                                         .session_id = post->kind == POST_HELLO ? NULL : codexpro->session_id,
                                         .body = post->body,
                                         .body_len = post->body_len,
                                         .deadline_ms = left_ms > 0 ? left_ms : 0};
    post->generation = codexpro->generation;
    mcp_answer_free(&post->answer);
    mcp_answer_init(&post->answer, post->id, &codexpro->held_bytes);
    post->exchange = http_send(codexpro->http, &request, &events, post);
}

static int check_room(const struct codexpro *codexpro, size_t len, struct error *err)
{
    if (len > GUEST_MESSAGE_MAX_BYTES)
        return error_set(err, ERROR_TOO_LARGE, "send it in smaller pieces", "the message is over the tool server's limit of 24 MiB");
    if (codexpro->out_bytes + len > CODEXPRO_BACKLOG_BYTES || codexpro->post_count >= CODEXPRO_POSTS_MAX)
        return error_set(err, ERROR_LIMIT, "wait for calls in progress, then try again", "too much is on its way to the tool server");
    return 0;
}

int64_t post_send(struct codexpro *codexpro, const struct post *wanted, const char *method, json_t *params, int64_t deadline_ms,
                  struct error *err)
{
    int64_t id = codexpro->last_post_id + 1;
    CLEANUP_JSON json_t *message = rpc_message_request(wanted->kind == POST_NOTICE ? 0 : id, method, params);
    CLEANUP_FREE char *body = json_dumps(message, JSON_COMPACT);
    size_t len = body ? strlen(body) : 0;
    if (check_room(codexpro, len, err) < 0)
        return -1;
    struct post *post = mem_alloc(sizeof(*post));
    *post = *wanted;
    post->codexpro = codexpro;
    post->id = codexpro->last_post_id = id;
    post->body = TAKE_PTR(body);
    post->body_len = len;
    post->deadline.ms = clock_boot(loop_clock(codexpro->loop)).ms + deadline_ms;
    LIST_INSERT_HEAD(&codexpro->posts, post, link);
    codexpro->post_count++;
    codexpro->out_bytes += len;
    if (!codexpro->is_greeting || post->kind == POST_HELLO)
        transmit(post);
    return id;
}

static bool waits_for_session(const struct post *post)
{
    return !post->exchange && !post->wait && post->kind != POST_HELLO;
}

void posts_go(struct codexpro *codexpro)
{
    struct post *post;
    LIST_FOREACH(post, &codexpro->posts, link)
        if (waits_for_session(post))
            transmit(post);
}

void posts_fail_waiting(struct codexpro *codexpro, const struct error *err)
{
    struct post *post = LIST_FIRST(&codexpro->posts);
    while (post) { // from the start after each: its callback may have changed the list
        bool is_waiting = waits_for_session(post);
        struct post *next = LIST_NEXT(post, link);
        if (is_waiting)
            end(post, err);
        post = is_waiting ? LIST_FIRST(&codexpro->posts) : next;
    }
}

static struct post *find(struct codexpro *codexpro, int64_t id, int64_t rpc_id)
{
    struct post *post;
    LIST_FOREACH(post, &codexpro->posts, link)
        if (post->id == id || (rpc_id && post->rpc_id == rpc_id))
            return post;
    return NULL;
}

void post_drop(struct codexpro *codexpro, int64_t id)
{
    struct post *post = find(codexpro, id, 0);
    if (post)
        post_free(post);
}

void post_drop_rpc(struct codexpro *codexpro, int64_t rpc_id)
{
    struct post *post = find(codexpro, 0, rpc_id);
    if (post)
        post_free(post);
}

void posts_drop_all(struct codexpro *codexpro)
{
    while (!LIST_EMPTY(&codexpro->posts))
        post_free(LIST_FIRST(&codexpro->posts));
}
