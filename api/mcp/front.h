// What a request to the MCP listener must look like before its body is read: who it is for (Host), from where
// (Origin), which path and method, and which media types. Pure functions over header values, and the check
// the HTTP front calls. What is refused here is answered under the request's id where its body came in whole and is small
// (HTTP_REFUSED_BODY_MAX_BYTES); of the message nothing else counts.
#pragma once
#include "api/auth/auth.h"

#define MCP_PATH "/mcp"

struct mcp_front {
    const char *own_hosts[2]; // as the configuration has them; NULL = none
    struct auth *auth;        // NULL: nobody is asked
};
// "localhost", "127.0.0.1", "[::1]" or one of own_hosts, each with or without a port.
bool mcp_host_is_ours(const char *host, const struct mcp_front *front);
// An http or https origin whose host is ours.
bool mcp_origin_is_ours(const char *origin, const struct mcp_front *front);
bool mcp_media_type_is_json(const char *content_type); // parameters and case ignored
// How an answer may come. NULL (absent) and anything that does not exclude JSON is JSON; a client that takes
// event streams only gets its answer as the one event of a stream.
enum mcp_answer_form { MCP_FORM_JSON, MCP_FORM_EVENT, MCP_FORM_NONE };
enum mcp_answer_form mcp_accept_form(const char *accept);
enum mcp_answer_form mcp_request_form(const struct http_request *request);
// Whether an answer may also come as a stream of events: only who names it knows what to do with one.
bool mcp_accept_takes_events(const char *accept); // NULL: absent
bool mcp_request_takes_events(const struct http_request *request);
// The ladder up to the body: Host and Origin, path and method, who it is, media types.
bool mcp_check_front(struct http_request *request, const struct mcp_front *front, struct http_refusal *refusal);
