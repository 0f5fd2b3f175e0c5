#include "api/client/watch.h"
#include "controller/base/memory.h"
#include "controller/base/time.h"
#include <errno.h>
#include <poll.h>
#include <string.h>

#define INITIAL_QUERY "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"
#define INITIAL_END "k8s.io/initial-events-end"
#define EMPTY_ROUNDS_MAX 5 // watches in a row that end without a word

struct following {
    const struct watch_ask *ask;
    struct answer_stream *stream; // NULL: to be opened
    char *since;                // the newest resourceVersion that was seen; NULL: the state is asked for
    bool is_synced;             // the state has been told; until then its versions say nothing about order
    size_t scanned;             // bytes of the body without a line's end
    int empty_rounds;
};
struct follower {
    const struct rest *rest;
    struct following each[WATCH_MAX_ASKS];
    size_t count;
    watch_fn *fn;
    void *arg;
};

static void follower_clear(struct follower *follower)
{
    for (size_t i = 0; i < follower->count; i++) {
        answer_stream_free(&follower->each[i].stream);
        free(follower->each[i].since);
    }
}

// ---- opening ------------------------------------------------------------------------------------------------------------
static char *path_of(const struct following *following)
{
    const char *path = following->ask->path, *mark = strchr(path, '?') ? "&" : "?";
    if (!following->since)
        return mem_format("%s%swatch=true&" INITIAL_QUERY, path, mark);
    return mem_format("%s%swatch=true&allowWatchBookmarks=true&resourceVersion=%s", path, mark, following->since);
}

// A refusal is an answer with an end.
static int take_refusal(struct answer_stream *stream, struct error *err)
{
    int64_t deadline_ms = boot_time_now().ms + REST_TIMEOUT_MS;
    for (int r = 1; r > 0;) {
        struct pollfd at = {.fd = answer_stream_fd(stream), .events = POLLIN};
        if (poll(&at, 1, 1000) > 0 && (r = answer_stream_read(stream, err)) < 0)
            return -1;
        if (boot_time_now().ms > deadline_ms)
            return error_set(err, ERROR_TIMEOUT, "see what it does: chat2shell status", "the daemon did not answer in time");
    }
    struct buffer *body = answer_stream_body(stream);
    CLEANUP_JSON json_t *status = NULL;
    json_parse(buffer_text(body), body->len, &status, NULL);
    return rest_status_to_error(answer_stream_status(stream), status, err);
}

static int restart(struct follower *follower, struct following *following, struct error *err)
{
    free(following->since);
    following->since = NULL;
    following->is_synced = false;
    answer_stream_free(&following->stream);
    return follower->fn(follower->arg, (size_t)(following - follower->each), WATCH_RESTART, NULL, err);
}

static int open_one(struct follower *follower, struct following *following, struct error *err)
{
    CLEANUP_FREE char *path = path_of(following);
    const char *headers[] = {following->ask->accept ? following->ask->accept : "Accept: application/json", NULL};
    const struct http_ask ask = {.method = "GET", .path = path, .headers = headers, .timeout_ms = REST_TIMEOUT_MS};
    struct error local = ERROR_INIT;
    following->scanned = 0;
    if (answer_stream_open(&(struct http_target){.socket_path = follower->rest->socket_path}, &ask, &following->stream, &local) < 0)
        return local.code != ERROR_UNAVAILABLE ? error_copy(err, &local)
                                               : error_set(err, ERROR_UNREACHABLE, "start it: chat2shell serve", "the daemon does not answer: it is stopping");
    if (answer_stream_status(following->stream) < 300)
        return 0;
    take_refusal(following->stream, &local);
    if (local.code == ERROR_EXPIRED && following->since)
        return restart(follower, following, err);
    return error_copy(err, &local);
}

// ---- events -------------------------------------------------------------------------------------------------------------
static const struct {
    const char *word;
    enum watch_type type;
} types[] = {{"ADDED", WATCH_ADDED}, {"MODIFIED", WATCH_MODIFIED}, {"DELETED", WATCH_DELETED}, {"BOOKMARK", WATCH_SYNCED}};

static int take_error(struct follower *follower, struct following *following, const json_t *status, struct error *err)
{
    struct error local = ERROR_INIT;
    rest_status_to_error((int)json_get_int(status, "code", 500), status, &local);
    return local.code == ERROR_EXPIRED ? restart(follower, following, err) : error_copy(err, &local);
}

// The end of the state is marked at the bookmark's object, which in a Table stands in its one row, if any.
static bool is_initial_end(const json_t *object)
{
    const json_t *row = json_array_get(json_object_get(object, "rows"), 0);
    const json_t *of = row ? json_object_get(row, "object") : object;
    return json_object_get(json_object_get(json_object_get(of, "metadata"), "annotations"), INITIAL_END) != NULL;
}

static void remember(struct following *following, const json_t *object)
{
    const char *version = json_get_text(json_object_get(object, "metadata"), "resourceVersion");
    if (version && *version && strspn(version, "0123456789") == strlen(version))
        mem_replace(&following->since, version);
}

static int take_event(struct follower *follower, struct following *following, const json_t *event, struct error *err)
{
    const char *word = json_get_text(event, "type");
    json_t *object = json_object_get(event, "object");
    size_t index = (size_t)(following - follower->each), i = 0;
    if (word && strcmp(word, "ERROR") == 0)
        return take_error(follower, following, object, err);
    while (i < ARRAY_LEN(types) && (!word || strcmp(types[i].word, word) != 0))
        i++;
    if (i == ARRAY_LEN(types))
        return error_set(err, ERROR_INTERNAL, "is the daemon of another version?", "the daemon's watch told something unknown");
    bool is_end = types[i].type == WATCH_SYNCED && !following->is_synced && is_initial_end(object);
    following->is_synced |= is_end;
    if (following->is_synced)
        remember(following, object);
    if (types[i].type == WATCH_SYNCED)
        return is_end ? follower->fn(follower->arg, index, WATCH_SYNCED, NULL, err) : 0;
    return follower->fn(follower->arg, index, types[i].type, object, err);
}

// All whole lines that are there.
static int take_lines(struct follower *follower, struct following *following, struct error *err)
{
    while (following->stream) {
        struct buffer *body = answer_stream_body(following->stream);
        const char *end = body->len > following->scanned ? memchr(body->data + following->scanned, '\n', body->len - following->scanned) : NULL;
        if (!end) {
            following->scanned = body->len;
            return 0;
        }
        CLEANUP_JSON json_t *event = NULL;
        struct error local = ERROR_INIT;
        if (json_parse_with_nul(body->data, (size_t)(end - body->data), &event, &local) < 0)
            return error_set(err, ERROR_INTERNAL, "is the daemon of another version?", "the daemon's watch is not JSON: %s", local.message);
        buffer_consume(body, (size_t)(end - body->data) + 1);
        following->scanned = 0;
        following->empty_rounds = 0;
        int r = take_event(follower, following, event, err);
        if (r)
            return r;
    }
    return 0;
}

static int read_one(struct follower *follower, struct following *following, struct error *err)
{
    struct error local = ERROR_INIT;
    int more = answer_stream_read(following->stream, &local);
    if (more < 0 && local.code != ERROR_UNAVAILABLE)
        return error_copy(err, &local);
    more = more > 0; // cut off in the middle is an end too: what comes next says whether the daemon is gone
    int r = take_lines(follower, following, err);
    if (r || more || !following->stream)
        return r;
    if (++following->empty_rounds > EMPTY_ROUNDS_MAX)
        return error_set(err, ERROR_UNAVAILABLE, "look at the daemon's log", "the daemon ends every watch at once");
    if (!following->is_synced)
        return restart(follower, following, err);
    answer_stream_free(&following->stream); // its time was over: again, from here on
    return 0;
}

// ---- the loop -----------------------------------------------------------------------------------------------------------
static int open_all(struct follower *follower, struct error *err)
{
    for (size_t i = 0; i < follower->count; i++) {
        struct following *following = &follower->each[i];
        while (!following->stream) {
            int r = open_one(follower, following, err);
            if (r)
                return r;
        }
        int r = take_lines(follower, following, err); // what came together with the head
        if (r)
            return r;
    }
    return 0;
}

static bool is_open(const struct follower *follower)
{
    bool is_all = true;
    for (size_t i = 0; i < follower->count; i++)
        is_all &= follower->each[i].stream != NULL;
    return is_all;
}

static int wait_some(const struct follower *follower, int64_t deadline_ms, int leave_fd, struct pollfd *fds, struct error *err)
{
    int64_t left = deadline_ms - boot_time_now().ms;
    for (size_t i = 0; i < follower->count; i++)
        fds[i] = (struct pollfd){.fd = follower->each[i].stream ? answer_stream_fd(follower->each[i].stream) : -1, .events = POLLIN};
    fds[follower->count] = (struct pollfd){.fd = leave_fd};
    if (left <= 0)
        return 0;
    if (poll(fds, (nfds_t)follower->count + 1, left > 60000 ? 60000 : (int)left) < 0 && errno != EINTR)
        return error_errno(err, errno, NULL, "cannot wait for the daemon");
    return fds[follower->count].revents ? 0 : 1;
}

static int follow(struct follower *follower, int64_t deadline_ms, int leave_fd, struct error *err)
{
    struct pollfd fds[WATCH_MAX_ASKS + 1];
    for (;;) {
        int r = open_all(follower, err);
        if (r)
            return r;
        if (!is_open(follower))
            continue;
        if ((r = wait_some(follower, deadline_ms, leave_fd, fds, err)) <= 0)
            return r;
        for (size_t i = 0; i < follower->count; i++)
            if (fds[i].revents && follower->each[i].stream && (r = read_one(follower, &follower->each[i], err)) != 0)
                return r;
    }
}

int watch_follow(const struct rest *rest, const struct watch_ask *asks, size_t count, int64_t deadline_ms, int leave_fd, watch_fn *fn, void *arg,
                 struct error *err)
{
    CLEANUP(follower_clear) struct follower follower = {.rest = rest, .fn = fn, .arg = arg};
    if (count > WATCH_MAX_ASKS)
        return error_set(err, ERROR_USAGE, "name fewer", "more than %d things cannot be watched at once", WATCH_MAX_ASKS);
    for (; follower.count < count; follower.count++)
        follower.each[follower.count] = (struct following){.ask = &asks[follower.count], .since = mem_strdup_or_null(asks[follower.count].since),
                                                                .is_synced = asks[follower.count].since != NULL};
    return follow(&follower, deadline_ms, leave_fd, err);
}
