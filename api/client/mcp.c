#include "api/client/mcp.h"
#include "api/client/token.h"
#include "controller/base/memory.h"
#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

void mcp_client_clear(struct mcp_client *client)
{
    free(client->host);
    free(client->path);
    free(client->revision);
    cleanup_secret(&client->authorization);
    *client = (struct mcp_client){0};
}

static int refuse_url(const char *url, struct error *err)
{
    return error_set(err, ERROR_INVALID, "give a URL like http://127.0.0.1:18788/mcp", "'%.200s' is not an MCP URL on an address of this machine", url);
}

static int parse_port(const char *text, size_t len, int *ret)
{
    int port = 0;
    for (size_t i = 0; i < len; i++) {
        if (text[i] < '0' || text[i] > '9' || port > 65535)
            return -1;
        port = port * 10 + (text[i] - '0');
    }
    *ret = port;
    return len && port > 0 && port <= 65535 ? 0 : -1;
}

// An address of this machine's is one that a socket here can have.
static bool is_own_address(const char *host)
{
    struct sockaddr_in address = {.sin_family = AF_INET};
    if (inet_pton(AF_INET, host, &address.sin_addr) != 1)
        return false;
    if (ntohl(address.sin_addr.s_addr) >> 24 == 127)
        return true;
    CLEANUP_CLOSE int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    return address.sin_addr.s_addr != htonl(INADDR_ANY) && fd >= 0 && bind(fd, (struct sockaddr *)&address, sizeof(address)) == 0;
}

int mcp_client_parse_url(const char *url, struct mcp_client *ret, struct error *err)
{
    static const char scheme[] = "http://";
    if (strncmp(url, scheme, sizeof(scheme) - 1) != 0 || strpbrk(url, " \r\n\t"))
        return refuse_url(url, err);
    const char *host = url + sizeof(scheme) - 1;
    size_t host_len = strcspn(host, ":/");
    const char *path = strchr(host, '/');
    CLEANUP_FREE char *name = mem_strndup(host, host_len);
    int port = 80;
    size_t port_len = host[host_len] == ':' ? (path ? (size_t)(path - host) : strlen(host)) - host_len - 1 : 0;
    if (host[host_len] == ':' && parse_port(host + host_len + 1, port_len, &port) < 0)
        return refuse_url(url, err);
    if (strcmp(name, "localhost") == 0)
        mem_replace(&name, "127.0.0.1");
    if (!is_own_address(name))
        return refuse_url(url, err);
    ret->host = TAKE_PTR(name);
    ret->port = port;
    ret->path = mem_strdup(path ? path : "/mcp");
    return 0;
}

// ---- messages -------------------------------------------------------------------------------------------------------
static int post(const struct mcp_client *client, const json_t *message, struct http_answered *ret, struct error *err)
{
    CLEANUP_FREE char *body = json_to_text(message);
    CLEANUP_FREE char *revision = client->revision ? mem_format("MCP-Protocol-Version: %s", client->revision) : NULL;
    const char *headers[] = {"Accept: application/json, text/event-stream", revision ? revision : client->authorization, revision ? client->authorization : NULL, NULL};
    struct http_target target = {.host = client->host, .port = client->port};
    struct http_ask ask = {.method = "POST", .path = client->path, .content_type = "application/json", .headers = headers, .body = body,
                           .body_len = strlen(body), .timeout_ms = MCP_CLIENT_TIMEOUT_MS};
    return http_exchange(&target, &ask, ret, err);
}

static int take_error(int status, const json_t *answer, struct error *err)
{
    const char *message = json_get_text(json_object_get(answer, "error"), "message");
    enum error_code code = status == 413 ? ERROR_TOO_LARGE : status == 429 ? ERROR_LIMIT : status == 503 ? ERROR_UNAVAILABLE : ERROR_INVALID;
    if (status == 401 || (status == 403 && message && strstr(message, "lacks the scope")))
        return error_set(err, ERROR_REFUSED, MCP_CLIENT_TOKEN_HINT,
                         "%s", message ? message : "the MCP endpoint refuses this caller");
    if (message)
        return error_set(err, code, NULL, "%s", message);
    return error_set(err, status >= 500 ? ERROR_UNAVAILABLE : code, "is this chat2shell's MCP endpoint?", "the MCP endpoint answered with HTTP status %d", status);
}

int mcp_client_call(struct mcp_client *client, const char *method, const json_t *params, json_t **ret, struct error *err)
{
    CLEANUP(http_answered_clear) struct http_answered answer = {0};
    CLEANUP_JSON json_t *message = json_pack("{s:s, s:i, s:s}", "jsonrpc", "2.0", "id", ++client->next_id, "method", method);
    if (params)
        json_object_set(message, "params", (json_t *)params);
    if (post(client, message, &answer, err) < 0)
        return -1;
    CLEANUP_JSON json_t *json = NULL;
    struct error ignored = ERROR_INIT;
    if (json_parse_with_nul(answer.body, answer.body_len, &json, &ignored) < 0 || !json_is_object(json))
        return take_error(answer.status, NULL, err);
    json_t *result = json_object_get(json, "result");
    if (!result)
        return take_error(answer.status, json, err);
    *ret = json_incref(result);
    return 0;
}

static int notify_initialized(struct mcp_client *client, struct error *err)
{
    CLEANUP(http_answered_clear) struct http_answered answer = {0};
    CLEANUP_JSON json_t *message = json_pack("{s:s, s:s}", "jsonrpc", "2.0", "method", "notifications/initialized");
    if (post(client, message, &answer, err) < 0)
        return -1;
    return answer.status < 300 ? 0 : take_error(answer.status, NULL, err);
}

static int initialize(struct mcp_client *client, struct error *err)
{
    CLEANUP_JSON json_t *result = NULL;
    CLEANUP_JSON json_t *params = json_pack("{s:s, s:{}, s:{s:s, s:s}}", "protocolVersion", MCP_CLIENT_REVISION, "capabilities", "clientInfo", "name",
                                            "chat2shell", "version", CHAT2SHELL_VERSION);
    if (mcp_client_call(client, "initialize", params, &result, err) < 0)
        return -1;
    const char *revision = json_get_text(result, "protocolVersion");
    if (!revision || strlen(revision) > 32)
        return error_set(err, ERROR_INTERNAL, "is this chat2shell's MCP endpoint?", "the endpoint does not say which MCP revision it speaks");
    client->revision = mem_strdup(revision);
    return notify_initialized(client, err);
}

int mcp_client_open(const char *url, const char *authorization, struct mcp_client *ret, struct error *err)
{
    CLEANUP(mcp_client_clear) struct mcp_client client = {0};
    client.authorization = mem_strdup_or_null(authorization);
    if (mcp_client_parse_url(url, &client, err) < 0 || initialize(&client, err) < 0)
        return -1;
    *ret = client;
    client = (struct mcp_client){0};
    return 0;
}
