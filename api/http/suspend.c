// Waiting requests: their connection is suspended and holds no thread. The library does not notice a client
// that hangs up meanwhile, so the loop watches the socket. Exactly one party clears is_suspended and resumes:
// the answer, the hang-up or the server's stop.
#include "api/http/internal.h"
#include <assert.h>
#include <sys/epoll.h>

static bool enter_list(struct http_request *request)
{
    struct http_server *server = request->server;
    pthread_mutex_lock(&server->lock);
    bool is_open = !server->is_stopping;
    if (is_open) {
        request->next = server->suspended;
        if (request->next)
            request->next->prev = request;
        server->suspended = request;
        request->is_listed = true;
        server->suspended_count++;
    }
    pthread_mutex_unlock(&server->lock);
    return is_open;
}

static void leave_list(struct http_request *request)
{
    struct http_server *server = request->server;
    pthread_mutex_lock(&server->lock);
    assert(request->is_listed);
    if (request->prev)
        request->prev->next = request->next;
    else
        server->suspended = request->next;
    if (request->next)
        request->next->prev = request->prev;
    request->next = request->prev = NULL;
    request->is_listed = false;
    pthread_mutex_unlock(&server->lock);
}

static void watched(void *arg, uint32_t events)
{
    (void)events;
    struct http_request *request = arg;
    pthread_mutex_lock(&request->lock);
    struct loop_source *watch = request->watch;
    request->watch = NULL;
    if (watch)
        loop_unwatch(watch); // under the lock: an answer of the same instant may end the request, and its socket, once it has it
    pthread_mutex_unlock(&request->lock);
    if (!watch)
        return; // its owner is taking the watch away right now
    http_request_end_wait(request, 0, NULL);
    http_request_unref(request);
}

bool http_request_suspend(struct http_request *request)
{
    assert(!request->is_suspended);
    if (!enter_list(request))
        return false;
    request->is_suspended = true;
    MHD_suspend_connection(request->mhd);
    if (request->watch || !request->connection)
        return true;
    http_request_ref(request);
    request->watch =
        loop_watch(request->server->options.loop, request->connection->fd, EPOLLRDHUP, watched, request);
    if (!request->watch)
        http_request_unref(request);
    return true;
}

bool http_request_claim_resume(struct http_request *request)
{
    bool is_ours = request->is_suspended;
    request->is_suspended = false;
    return is_ours;
}

void http_request_resume(struct http_request *request)
{
    struct http_server *server = request->server;
    http_server_ref(server); // once resumed, the request may end at any moment
    leave_list(request);
    MHD_resume_connection(request->mhd);
    pthread_mutex_lock(&server->lock);
    if (--server->suspended_count == 0)
        pthread_cond_broadcast(&server->drained);
    pthread_mutex_unlock(&server->lock);
    http_server_unref(server);
}

void http_request_unwatch(struct http_request *request)
{
    pthread_mutex_lock(&request->lock);
    struct loop_source *watch = request->watch;
    request->watch = NULL;
    pthread_mutex_unlock(&request->lock);
    if (!watch)
        return;
    loop_unwatch(watch);
    http_request_unref(request);
}

static void tell_gone(void *arg)
{
    struct http_request *request = arg;
    pthread_mutex_lock(&request->lock);
    http_gone_fn gone = request->on_gone;
    void *gone_arg = request->gone_arg;
    request->on_gone = NULL;
    pthread_mutex_unlock(&request->lock);
    if (gone)
        gone(gone_arg);
    http_request_unref(request);
}

void http_request_end_wait(struct http_request *request, int status, struct MHD_Response *response)
{
    struct loop *loop = request->server->options.loop;
    pthread_mutex_lock(&request->lock);
    bool is_answer = !request->is_answered && response;
    if (is_answer) {
        request->is_answered = request->must_close = true;
        request->status = status;
        request->response = response;
    }
    request->is_gone = true;
    bool must_resume = http_request_claim_resume(request), must_tell = request->on_gone != NULL;
    pthread_mutex_unlock(&request->lock);
    if (response && !is_answer)
        MHD_destroy_response(response);
    if (must_tell) {
        http_request_ref(request);
        if (loop_is_current(loop))
            tell_gone(request);
        else
            loop_post(loop, tell_gone, request);
    }
    if (must_resume)
        http_request_resume(request);
}
