#include "reconcilers/drivers/bubblewrap/channel.h"
#include "controller/base/cleanup.h"
#include "controller/base/fs.h"
#include "controller/base/json.h"
#include "controller/base/memory.h"
#include "controller/base/socket.h"
#include <errno.h>
#include <string.h>
#include <sys/epoll.h>

struct pending {
    struct channel *channel;
    json_int_t seq; // 0 = free
    struct loop_timer *timer;
    channel_answer_fn answer;
    void *arg;
};

struct channel {
    struct loop *loop;
    int fd;
    const char *peer;
    struct loop_source *source;
    struct channel_events events;
    json_int_t last_seq;
    struct pending pending[CHANNEL_MAX_PENDING];
    size_t message_max_bytes;
    char *bytes;
};

static void settle(struct pending *pending, struct channel_message *message, const struct error *err)
{
    channel_answer_fn answer = pending->answer;
    void *arg = pending->arg;
    loop_cancel(TAKE_PTR(pending->timer));
    pending->seq = 0;
    answer(arg, message, err);
}

static void on_deadline(void *arg)
{
    struct pending *pending = arg;
    struct error err = ERROR_INIT;
    pending->timer = NULL; // it frees itself
    error_set(&err, ERROR_TIMEOUT, NULL, "%s did not answer in time", pending->channel->peer);
    settle(pending, NULL, &err);
}

static struct pending *find_pending(struct channel *channel, json_int_t seq)
{
    for (size_t i = 0; i < CHANNEL_MAX_PENDING; i++)
        if (channel->pending[i].seq == seq)
            return &channel->pending[i];
    return NULL;
}

static void take_answer(struct channel *channel, struct channel_message *message)
{
    json_int_t seq = json_get_int(message->object, "seq", 0);
    struct pending *pending = seq > 0 ? find_pending(channel, seq) : NULL;
    if (pending == NULL) // its deadline passed
        return;
    if (json_get_bool(message->object, "ok", false)) {
        settle(pending, message, NULL);
        return;
    }
    struct error err = ERROR_INIT;
    const char *sentence = json_get_text(message->object, "error");
    error_set(&err, ERROR_UNAVAILABLE, NULL, "%s", sentence ? sentence : "it was refused without a reason");
    settle(pending, NULL, &err);
}

static void dispatch(struct channel *channel, ssize_t len, struct channel_message *message)
{
    CLEANUP_JSON json_t *object = NULL;
    if (json_parse(channel->bytes, (size_t)len, &object, NULL) < 0 || !json_is_object(object))
        return; // not ours to understand: the deadline of whoever waits speaks for it
    message->object = object;
    if (json_object_get(object, "ok"))
        take_answer(channel, message);
    else if (channel->events.on_event)
        channel->events.on_event(channel->events.arg, message);
}

static void end(struct channel *channel)
{
    loop_unwatch(TAKE_PTR(channel->source));
    if (channel->events.on_end)
        channel->events.on_end(channel->events.arg);
}

static void on_readable(void *arg, uint32_t events)
{
    struct channel *channel = arg;
    (void)events;
    struct channel_message message = {.fds = {-1, -1, -1, -1}, .fd_count = CHANNEL_MAX_FDS};
    ssize_t len = socket_receive_fds(channel->fd, channel->bytes, channel->message_max_bytes, message.fds, &message.fd_count);
    if (len < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (len <= 0) {
        end(channel);
        return;
    }
    dispatch(channel, len, &message);
    for (size_t i = 0; i < message.fd_count; i++)
        if (message.fds[i] >= 0)
            close(message.fds[i]);
}

struct channel *channel_new(struct loop *loop, int fd, size_t message_max_bytes, const char *peer, const struct channel_events *events)
{
    struct channel *channel = mem_alloc(sizeof(*channel));
    channel->loop = loop;
    channel->fd = fd;
    channel->peer = peer;
    channel->events = *events;
    channel->message_max_bytes = message_max_bytes;
    channel->bytes = mem_alloc(message_max_bytes);
    fs_set_nonblocking(fd, true);
    channel->source = loop_watch(loop, fd, EPOLLIN, on_readable, channel);
    return channel;
}

void channel_free(struct channel *channel)
{
    if (channel == NULL)
        return;
    struct error err = ERROR_INIT;
    error_set(&err, ERROR_UNAVAILABLE, NULL, "%s ended", channel->peer);
    loop_unwatch(TAKE_PTR(channel->source));
    for (size_t i = 0; i < CHANNEL_MAX_PENDING; i++)
        if (channel->pending[i].seq)
            settle(&channel->pending[i], NULL, &err);
    close(channel->fd);
    free(channel->bytes);
    free(channel);
}

void channel_call(struct channel *channel, json_t *request, int fd, int64_t deadline_ms, channel_answer_fn answer, void *arg)
{
    struct pending *pending = find_pending(channel, 0);
    struct error err = ERROR_INIT;
    json_object_set_new(request, "v", json_integer(1));
    json_object_set_new(request, "seq", json_integer(++channel->last_seq));
    CLEANUP_FREE char *text = json_to_text(request);
    json_decref(request);
    if (pending == NULL) {
        error_set(&err, ERROR_LIMIT, "try again later", "%d requests to %s are under way", CHANNEL_MAX_PENDING, channel->peer);
        answer(arg, NULL, &err);
        return;
    }
    if (socket_send_fds(channel->fd, text, strlen(text), &fd, fd >= 0 ? 1 : 0) < 0) {
        error_errno(&err, errno, NULL, "cannot ask %s", channel->peer);
        answer(arg, NULL, &err);
        return;
    }
    *pending = (struct pending){.channel = channel, .seq = channel->last_seq, .answer = answer, .arg = arg};
    pending->timer = loop_after(channel->loop, deadline_ms, on_deadline, pending);
}
