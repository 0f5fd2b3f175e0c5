// What a request to the MCP listener must look like before its body is read: who it is for (Host), from where (Origin),
// which path and method, and which media types. Pure functions over header values, and the check the HTTP front calls.
#pragma once
#include "api/http/http.h"

#define MCP_PATH "/mcp"

// "localhost", "127.0.0.1", "[::1]" or own_host (NULL allowed), each with or without a port.
bool mcp_host_is_ours(const char *host, const char *own_host);
// An http or https origin whose host is ours.
bool mcp_origin_is_ours(const char *origin, const char *own_host);
bool mcp_media_type_is_json(const char *content_type); // parameters and case ignored
// NULL (absent) and anything that does not exclude JSON. Event streams alone are not made, so they exclude it.
bool mcp_accept_allows_json(const char *accept);
// The ladder up to the body. own_host: the configured address.
bool mcp_check_front(struct http_request *request, const char *own_host, struct http_refusal *refusal);
