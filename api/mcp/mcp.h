// The MCP listener: TCP, /mcp (JSON-RPC over HTTP POST, no sessions, JSON answers) and /healthz. The
// untrusted caller's door: the closed tool list of api/tools is all that is behind it.
#pragma once
#include "reconcilers/reconcilers.h"

struct mcp_server;
// Listens on world->config->host and port, and asks callers who they are where world->auth is on. Without that the host must
// be a loopback address (ERROR_REFUSED otherwise: whoever reaches this listener may use the sandboxes). world must outlive the
// server and every store and lane callback.
int mcp_server_start(struct world *world, struct mcp_server **ret, struct error *err);
// Ends the listener and the waits of its callers; work that they asked for goes on. Before loop, lanes and
// store end.
void mcp_server_stop(struct mcp_server *server); // NULL allowed
int mcp_server_port(const struct mcp_server *server);
