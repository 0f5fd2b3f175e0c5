#include "cli/command.h"
#include "cli/terminal.h"
#include "controller/base/memory.h"
#include <string.h>

const struct config *invocation_config(struct invocation *in, struct error *err)
{
    if (!in->is_configured && config_load(&in->config, err) < 0)
        return NULL;
    in->is_configured = true;
    return &in->config;
}

const struct rest *invocation_rest(struct invocation *in, struct error *err)
{
    const struct config *config = invocation_config(in, err);
    if (!config)
        return NULL;
    if (!in->rest_client.socket_path) {
        rest_init(&in->rest_client, config->state_dir);
        in->rest_client.warn = terminal_warn;
    }
    return &in->rest_client;
}

static const char *connectable(const char *host)
{
    return strcmp(host, "0.0.0.0") == 0 ? "127.0.0.1" : host; // every address of this machine
}

char *invocation_mcp_url(struct invocation *in, struct error *err)
{
    const struct config *config = invocation_config(in, err);
    if (!config)
        return NULL;
    if (config->port)
        return mem_format("http://%s:%d/mcp", connectable(config->host), config->port);
    const struct rest *rest = invocation_rest(in, err);
    CLEANUP_JSON json_t *status = NULL;
    if (!rest || rest_get(rest, REST_OWN "/status", &status, err) < 0)
        return NULL;
    const json_t *mcp = json_object_get(status, "mcp");
    const char *host = json_get_text(mcp, "host");
    int port = (int)json_get_int(mcp, "port", 0);
    if (!port) { // the operator's socket answers before the endpoint listens
        error_set(err, ERROR_UNREACHABLE, "try again in a moment; chat2shell status shows its address", "the daemon's MCP endpoint does not listen yet");
        return NULL;
    }
    return mem_format("http://%s:%d/mcp", connectable(host ? host : config->host), port);
}
