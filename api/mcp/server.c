#include "api/mcp/mcp.h"
#include "api/mcp/exchange.h"
#include "controller/base/memory.h"
#include "controller/config_url.h"
#include <string.h>

#define HTTP_THREADS 2

void mcp_server_unref(struct mcp_server *server)
{
    if (atomic_fetch_sub(&server->refs, 1) != 1)
        return;
    catalogue_free(&server->catalogue);
    in_flight_free(&server->in_flight);
    mcp_callers_clear(&server->callers);
    tool_gate_clear(&server->gate);
    mcp_ready_clear(&server->ready);
    free(server->public_host);
    free(server->challenge_invalid);
    free(server);
}

static bool check_head(void *arg, struct http_request *request, struct http_refusal *refusal)
{
    const struct mcp_server *server = arg;
    return mcp_check_front(request, &server->front, refusal);
}

// Also who is refused before the message was looked at learns which request it was: proxies drop answers without its id.
static char *error_body(void *arg, int status, const struct error *err, const char *body, size_t len)
{
    (void)arg;
    CLEANUP_FREE char *message = mem_format("%s%s%s", err->message, err->hint[0] ? ": " : "", err->hint);
    CLEANUP_FREE char *id = body ? jsonrpc_request_id(body, len) : NULL;
    return jsonrpc_error_text(id, status >= 500 ? JSONRPC_INTERNAL_ERROR : JSONRPC_INVALID_REQUEST, message,
                              NULL, NULL);
}

static void answer_json(struct http_request *request, char *body)
{
    http_respond(request, &(struct http_reply){.status = 200, .content_type = "application/json"}, body,
                 strlen(body));
}

// Who was not asked who they are need not know the version.
static void answer_health(const struct mcp_server *server, struct http_request *request)
{
    answer_json(request, auth_is_on(server->front.auth)
                             ? mem_strdup("{\"ok\":true,\"name\":\"chat2shell\"}")
                             : mem_strdup("{\"ok\":true,\"name\":\"chat2shell\",\"version\":\"" CHAT2SHELL_VERSION "\"}"));
}

static void handle(void *arg, struct http_request *request)
{
    struct mcp_server *server = arg;
    const char *path = http_request_path(request), *metadata = auth_metadata(server->front.auth, path);
    if (strcmp(path, MCP_PATH) == 0)
        mcp_exchange_start(server, request);
    else if (metadata)
        answer_json(request, mem_strdup(metadata));
    else
        answer_health(server, request); // check_head lets nothing else through
}

static int set_front(struct mcp_server *server, struct error *err)
{
    const struct config *config = server->world->config;
    server->front.auth = server->world->auth;
    if (config->auth_modes && !auth_is_on(server->front.auth))
        return error_set(err, ERROR_INTERNAL, NULL, "callers are to be asked who they are, and nothing is there to do it");
    if (!config->auth_modes && !config_host_is_loopback(config->host))
        return error_set(err, ERROR_REFUSED, "set CHAT2SHELL_AUTH, or CHAT2SHELL_HOST to 127.0.0.1",
                         "%s is not a loopback address, and this listener asks nobody who they are", config->host);
    if (server->front.auth)
        server->challenge_invalid = mem_strdup(auth_challenge_invalid(server->front.auth));
    struct config_url url = {0};
    if (config->public_url && config->public_url[0] && config_url_parse(config->public_url, &url, err) < 0)
        return -1;
    server->public_host = url.host;
    free(url.path);
    // 0.0.0.0 is an address to listen on, not one to connect to: no honest client names it.
    server->front.own_hosts[0] = strcmp(config->host, "0.0.0.0") == 0 ? NULL : config->host;
    server->front.own_hosts[1] = server->public_host;
    return 0;
}

static int listen_and_start(struct mcp_server *server, struct error *err)
{
    const struct config *config = server->world->config;
    if (set_front(server, err) < 0)
        return -1;
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
    if (http_server_start(&options, &server->http, err) < 0)
        return -1;
    if (server->front.auth)
        token_set_on_removed(auth_tokens(server->front.auth), mcp_callers_revoked, server);
    return 0;
}

int mcp_server_start(struct world *world, struct mcp_server **ret, struct error *err)
{
    struct mcp_server *server = mem_alloc(sizeof(*server));
    server->world = world;
    server->refs = 1;
    in_flight_init(&server->in_flight);
    mcp_callers_init(&server->callers);
    tool_gate_init(&server->gate);
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
    if (server->front.auth)
        token_set_on_removed(auth_tokens(server->front.auth), NULL, NULL);
    http_server_stop(server->http);
    mcp_server_unref(server);
}

int mcp_server_port(const struct mcp_server *server)
{
    return server->port;
}
