#include "api/mcp/mcp.h"
#include "api/mcp/exchange.h"
#include "api/mcp/front.h"
#include "controller/base/memory.h"
#include <string.h>

#define HTTP_THREADS 2

void mcp_server_unref(struct mcp_server *server)
{
    if (atomic_fetch_sub(&server->refs, 1) != 1)
        return;
    catalogue_free(&server->catalogue);
    in_flight_free(&server->in_flight);
    list_cache_clear(&server->gate.lists);
    mcp_ready_clear(&server->ready);
    free(server);
}

static bool check_head(void *arg, struct http_request *request, struct http_refusal *refusal)
{
    const struct mcp_server *server = arg;
    return mcp_check_front(request, server->world->config->host, refusal);
}

static char *error_body(void *arg, int status, const struct error *err)
{
    (void)arg;
    CLEANUP_FREE char *message = mem_format("%s%s%s", err->message, err->hint[0] ? ": " : "", err->hint);
    return jsonrpc_error_text(NULL, status >= 500 ? JSONRPC_INTERNAL_ERROR : JSONRPC_INVALID_REQUEST, message,
                              NULL, NULL);
}

static void answer_health(struct http_request *request)
{
    char *body = mem_format("{\"ok\":true,\"name\":\"chat2shell\",\"version\":\"%s\"}", CHAT2SHELL_VERSION);
    http_respond(request, &(struct http_reply){.status = 200, .content_type = "application/json"}, body,
                 strlen(body));
}

static void handle(void *arg, struct http_request *request)
{
    if (strcmp(http_request_path(request), MCP_PATH) == 0)
        mcp_exchange_start(arg, request);
    else
        answer_health(request); // check_head lets nothing else through
}

static bool is_loopback(const char *host)
{
    return strncmp(host, "127.", 4) == 0 || strcmp(host, "::1") == 0;
}

static int listen_and_start(struct mcp_server *server, struct error *err)
{
    const struct config *config = server->world->config;
    if (!is_loopback(config->host))
        return error_set(err, ERROR_REFUSED, "set CHAT2SHELL_HOST to 127.0.0.1",
                         "%s is not a loopback address, and this listener asks nobody who they are",
                         config->host);
    if (config->auth_modes)
        return error_set(err, ERROR_UNSUPPORTED, "set CHAT2SHELL_AUTH=none",
                         "this version cannot ask who a caller is");
    int fd = http_listen_tcp(config->host, config->port, err);
    if (fd < 0)
        return -1;
    server->port = http_listen_port(fd);
    const struct http_server_options options = {
        .loop = server->world->loop,
        .listen_fd = fd,
        .thread_count = HTTP_THREADS,
        .check_head = check_head,
        .handle = handle,
        .error_body = error_body,
        .arg = server,
    };
    return http_server_start(&options, &server->http, err);
}

int mcp_server_start(struct world *world, struct mcp_server **ret, struct error *err)
{
    struct mcp_server *server = mem_alloc(sizeof(*server));
    server->world = world;
    server->refs = 1;
    in_flight_init(&server->in_flight);
    list_cache_init(&server->gate.lists);
    if (catalogue_load(&server->catalogue, err) < 0) {
        mcp_server_unref(server);
        return -1;
    }
    mcp_ready_make(&server->catalogue, &server->ready);
    if (listen_and_start(server, err) < 0) {
        mcp_server_unref(server);
        return -1;
    }
    *ret = server;
    return 0;
}

void mcp_server_stop(struct mcp_server *server)
{
    if (!server)
        return;
    http_server_stop(server->http);
    mcp_server_unref(server);
}

int mcp_server_port(const struct mcp_server *server)
{
    return server->port;
}
