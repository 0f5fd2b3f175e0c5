// Connections that leave HTTP (101): from then on they are a byte stream of the handler's, which the library only closes.
// The library aborts if it is stopped before it has them all back, so they are counted from the answer on.
#include "api/http/internal.h"
#include "controller/base/cleanup.h"
#include "controller/base/memory.h"
#include <stdlib.h>
#include <string.h>
#include <strings.h>

struct http_upgrade { // fixed once `started` was told; before that the library's thread writes it
    struct http_request *request;
    struct http_upgrade_options options;
    struct MHD_UpgradeResponseHandle *handle; // NULL: there never was a stream
    int fd;
    char *early;
    size_t early_len;
    void (*on_stop)(void *arg);      // loop thread
    void *stop_arg;
    bool is_counted;                  // server->lock
    bool is_told;                     // loop thread
    struct http_upgrade *next, *prev; // loop thread: in server->upgrades, from `started` to the close
};

void http_upgrade_free(struct http_upgrade *upgrade)
{
    if (upgrade)
        free(upgrade->early);
    free(upgrade);
}

// "Upgrade, keep-alive": a list of words.
static bool has_word(const char *list, const char *word)
{
    size_t word_len = strlen(word);
    for (const char *at = list; at && *at;) {
        at += strspn(at, " \t,");
        size_t len = strcspn(at, " \t,");
        if (len == word_len && strncasecmp(at, word, len) == 0)
            return true;
        at += len;
    }
    return false;
}

bool http_request_wants_upgrade(const struct http_request *request, const char *protocol)
{
    CLEANUP_FREE char *connection = http_request_header(request, "Connection");
    CLEANUP_FREE char *upgrade = http_request_header(request, "Upgrade");
    return has_word(connection, "Upgrade") && has_word(upgrade, protocol);
}

// ---- on the loop thread ---------------------------------------------------------------------------------------------
static void tell(struct http_upgrade *upgrade)
{
    struct http_server *server = upgrade->request->server;
    pthread_mutex_lock(&server->lock);
    bool is_stopping = server->is_stopping;
    pthread_mutex_unlock(&server->lock);
    if (upgrade->handle && !is_stopping) {
        upgrade->next = server->upgrades;
        if (upgrade->next)
            upgrade->next->prev = upgrade;
        server->upgrades = upgrade;
        upgrade->options.started(upgrade->options.arg, upgrade, upgrade->fd, upgrade->early, upgrade->early_len);
        return;
    }
    if (upgrade->handle)
        MHD_upgrade_action(upgrade->handle, MHD_UPGRADE_ACTION_CLOSE);
    upgrade->options.started(upgrade->options.arg, NULL, -1, NULL, 0);
    http_request_unref(upgrade->request); // the handler's
}

static void run_tell(void *arg)
{
    struct http_upgrade *upgrade = arg;
    struct http_request *request = upgrade->request;
    bool is_first = !upgrade->is_told;
    upgrade->is_told = true;
    if (is_first)
        tell(upgrade);
    http_request_unref(request);
}

// Several threads may find out that there is something to tell; the first one is heard.
static void post_tell(struct http_upgrade *upgrade)
{
    http_request_ref(upgrade->request);
    loop_post(upgrade->request->server->options.loop, run_tell, upgrade);
}

void http_upgrade_on_stop(struct http_upgrade *upgrade, void (*fn)(void *arg), void *arg)
{
    upgrade->on_stop = fn;
    upgrade->stop_arg = arg;
}

void http_upgrade_close(struct http_upgrade *upgrade)
{
    struct http_server *server = upgrade->request->server;
    if (upgrade->prev)
        upgrade->prev->next = upgrade->next;
    else
        server->upgrades = upgrade->next;
    if (upgrade->next)
        upgrade->next->prev = upgrade->prev;
    MHD_upgrade_action(upgrade->handle, MHD_UPGRADE_ACTION_CLOSE);
    http_request_unref(upgrade->request);
}

void http_upgrades_stop(struct http_server *server)
{
    while (server->upgrades) {
        struct http_upgrade *upgrade = server->upgrades;
        upgrade->on_stop(upgrade->stop_arg);
        if (server->upgrades == upgrade)
            abort(); // it has to be closed: http.h
    }
}

// ---- on the library's thread ----------------------------------------------------------------------------------------
static void on_upgraded(void *arg, struct MHD_Connection *mhd, void *state, const char *early, size_t early_len, MHD_socket fd,
                        struct MHD_UpgradeResponseHandle *handle)
{
    (void)mhd;
    (void)state;
    struct http_upgrade *upgrade = arg;
    struct http_request *request = upgrade->request;
    http_request_unwatch(request); // the descriptor is the handler's to watch now
    http_connection_enter(request->server, request->connection, HTTP_WORKING, DEADLINE_NONE);
    upgrade->handle = handle;
    upgrade->fd = fd;
    upgrade->early_len = early_len;
    if (early_len) {
        upgrade->early = mem_alloc(early_len);
        memcpy(upgrade->early, early, early_len);
    }
    post_tell(upgrade);
}

// ---- counting -------------------------------------------------------------------------------------------------------
static bool count(struct http_upgrade *upgrade)
{
    struct http_server *server = upgrade->request->server;
    pthread_mutex_lock(&server->lock);
    upgrade->is_counted = !server->is_stopping;
    server->upgrade_count += upgrade->is_counted;
    pthread_mutex_unlock(&server->lock);
    return upgrade->is_counted;
}

static void discount(struct http_upgrade *upgrade)
{
    struct http_server *server = upgrade->request->server;
    pthread_mutex_lock(&server->lock);
    if (upgrade->is_counted && --server->upgrade_count == 0)
        pthread_cond_broadcast(&server->drained);
    upgrade->is_counted = false;
    pthread_mutex_unlock(&server->lock);
}

void http_upgrade_completed(struct http_request *request)
{
    pthread_mutex_lock(&request->lock);
    struct http_upgrade *upgrade = request->upgrade;
    pthread_mutex_unlock(&request->lock);
    if (!upgrade)
        return;
    if (!upgrade->handle)
        post_tell(upgrade);
    discount(upgrade);
}

// ---- the answer -----------------------------------------------------------------------------------------------------
static struct MHD_Response *make_response(struct http_upgrade *upgrade)
{
    struct MHD_Response *response = MHD_create_response_for_upgrade(on_upgraded, upgrade);
    if (!response)
        abort(); // out of memory
    MHD_add_response_header(response, MHD_HTTP_HEADER_UPGRADE, upgrade->options.protocol);
    return response;
}

void http_upgrade(struct http_request *request, const struct http_upgrade_options *options)
{
    struct http_upgrade *upgrade = mem_alloc(sizeof(*upgrade));
    *upgrade = (struct http_upgrade){.request = request, .options = *options, .fd = -1};
    pthread_mutex_lock(&request->lock);
    request->upgrade = upgrade; // freed with the request, of which this keeps the handler's reference
    pthread_mutex_unlock(&request->lock);
    if (!count(upgrade)) {
        http_request_answer(request, 503, true, http_stopping_reply(request->server));
        post_tell(upgrade);
    } else if (!http_request_answer(request, MHD_HTTP_SWITCHING_PROTOCOLS, false, make_response(upgrade))) {
        discount(upgrade);
        post_tell(upgrade);
    }
}
