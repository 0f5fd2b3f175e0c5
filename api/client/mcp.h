// A client of our own MCP endpoint, as any MCP client would use it: initialize, then requests, over HTTP on loopback.
#pragma once
#include "api/client/http.h"
#include "controller/base/json.h"

#define MCP_CLIENT_REVISION "2025-11-25"
#define MCP_CLIENT_TIMEOUT_MS (10 * 60 * 1000) // a tool call may wait long
#define MCP_CLIENT_TOKEN_HINT \
    "put a token with the right scopes into a file (chat2shell token create NAME --output-file FILE) and name it in CHAT2SHELL_MCP_TOKEN_FILE"

struct mcp_client {
    char *host, *path;
    int port;
    char *revision; // negotiated
    char *authorization; // the header line of client_read_authorization, or NULL; secret
    int next_id;
};
// url: "http://127.0.0.1:18788/mcp". An IPv4 address of this machine, or localhost: what is sent there stays on it, the token too.
// Opens with initialize and notifications/initialized. authorization: of client_read_authorization; NULL = none.
int mcp_client_open(const char *url, const char *authorization, struct mcp_client *ret, struct error *err);
void mcp_client_clear(struct mcp_client *client);
// *ret: the JSON-RPC result, a new reference. A JSON-RPC error becomes err.
int mcp_client_call(struct mcp_client *client, const char *method, const json_t *params, json_t **ret, struct error *err);
int mcp_client_parse_url(const char *url, struct mcp_client *ret, struct error *err); // fills host, port, path
