#include "api/mcp/front.h"
#include "controller/base/cleanup.h"
#include <stdlib.h>
#include <string.h>
#include <strings.h>

bool mcp_host_is_ours(const char *host, const struct mcp_front *front)
{
    static const char *const names[] = {"localhost", "127.0.0.1", "[::1]"};
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        if (http_host_is(host, names[i]))
            return true;
    for (size_t i = 0; i < ARRAY_LEN(front->own_hosts); i++)
        if (front->own_hosts[i] && http_host_is(host, front->own_hosts[i]))
            return true;
    return false;
}

bool mcp_origin_is_ours(const char *origin, const struct mcp_front *front)
{
    static const char *const schemes[] = {"http://", "https://"};
    for (size_t i = 0; i < ARRAY_LEN(schemes); i++) {
        size_t len = strlen(schemes[i]);
        if (strncasecmp(origin, schemes[i], len) == 0)
            return mcp_host_is_ours(origin + len, front);
    }
    return false;
}

static const char *skip_blanks(const char *text)
{
    return text + strspn(text, " \t");
}

static bool is_media_type(const char *text, size_t len, const char *type)
{
    while (len && (text[len - 1] == ' ' || text[len - 1] == '\t'))
        len--;
    return strlen(type) == len && strncasecmp(text, type, len) == 0;
}

bool mcp_media_type_is_json(const char *content_type)
{
    const char *at = skip_blanks(content_type);
    return is_media_type(at, strcspn(at, ";"), "application/json");
}

// "q=0", "q=0.0", …: said not to be acceptable.
static bool is_excluded(const char *parameters, size_t len)
{
    for (size_t i = 0; i + 2 < len; i++) {
        if ((parameters[i] | 0x20) != 'q' || parameters[i + 1] != '=' ||
            (i && !strchr("; \t", parameters[i - 1])))
            continue;
        const char *value = parameters + i + 2;
        size_t digits = strspn(value, "0.");
        return digits > 0 && (i + 2 + digits >= len || strchr(";, \t", value[digits]));
    }
    return false;
}

// Whether the list names this range: 1 yes, 0 excluded by q=0, -1 not named.
static int find_range(const char *accept, const char *range)
{
    for (const char *at = accept; at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL) {
        at = skip_blanks(at);
        size_t len = strcspn(at, ","), type_len = strcspn(at, ";,");
        if (is_media_type(at, type_len, range))
            return !is_excluded(at + type_len, len - type_len);
    }
    return -1;
}

enum mcp_answer_form mcp_accept_form(const char *accept)
{
    static const char *const ranges[] = {"application/json", "application/*",
                                         "*/*"}; // the most exact one decides
    if (!accept || !*skip_blanks(accept))
        return MCP_FORM_JSON;
    int found = -1;
    for (size_t i = 0; i < ARRAY_LEN(ranges) && found < 0; i++)
        found = find_range(accept, ranges[i]);
    if (found > 0)
        return MCP_FORM_JSON;
    return find_range(accept, "text/event-stream") > 0 ? MCP_FORM_EVENT : MCP_FORM_NONE;
}

enum mcp_answer_form mcp_request_form(const struct http_request *request)
{
    CLEANUP_FREE char *accept = http_request_header(request, "Accept");
    bool is_one = http_request_count_header(request, "Accept") <= 1; // several lines: lenient
    return is_one ? mcp_accept_form(accept) : MCP_FORM_JSON;
}

bool mcp_accept_takes_events(const char *accept)
{
    int named = accept ? find_range(accept, "text/event-stream") : -1;
    return named >= 0 ? named > 0 : accept && find_range(accept, "text/*") > 0;
}

bool mcp_request_takes_events(const struct http_request *request)
{
    CLEANUP_FREE char *accept = http_request_header(request, "Accept");
    return mcp_accept_takes_events(accept);
}

static bool refuse(struct http_refusal *refusal, int status, enum error_code code, const char *hint,
                   const char *message)
{
    refusal->status = status;
    error_set(&refusal->error, code, hint, "%s", message);
    return false;
}

static bool check_origin(struct http_request *request, const struct mcp_front *front, struct http_refusal *refusal)
{
    CLEANUP_FREE char *host = http_request_header(request, "Host");
    CLEANUP_FREE char *origin = http_request_header(request, "Origin");
    if (!host || !mcp_host_is_ours(host, front))
        return refuse(refusal, 403, ERROR_REFUSED, "connect to 127.0.0.1 or localhost by that name, or name the host in CHAT2SHELL_PUBLIC_URL",
                      "the Host header does not name this machine");
    if (origin && !mcp_origin_is_ours(origin, front))
        return refuse(refusal, 403, ERROR_REFUSED, "web pages cannot use this server",
                      "requests from this Origin are refused");
    return true;
}

static bool check_route(struct http_request *request, const struct mcp_front *front, struct http_refusal *refusal)
{
    static const struct {
        const char *path, *method, *allow;
    } routes[] = {{MCP_PATH, "POST", "POST"}, {"/healthz", "GET", "GET, HEAD"}, {NULL, "GET", "GET, HEAD"}};
    const char *path = http_request_path(request), *method = http_request_method(request);
    bool has_metadata = auth_metadata(front->auth, path) != NULL; // NULL in the table
    for (size_t i = 0; i < ARRAY_LEN(routes); i++) {
        if (routes[i].path ? strcmp(path, routes[i].path) != 0 : !has_metadata)
            continue;
        if (strcmp(method, routes[i].method) == 0 ||
            (strcmp(method, "HEAD") == 0 && strstr(routes[i].allow, "HEAD")))
            return true;
        refusal->headers[0] = (struct http_header){"Allow", routes[i].allow};
        return refuse(refusal, 405, ERROR_UNSUPPORTED, "use the method that the Allow header names",
                      "this path does not take that method");
    }
    return refuse(refusal, 404, ERROR_NOT_FOUND, "the MCP endpoint is " MCP_PATH, "nothing is at this path");
}

bool mcp_check_front(struct http_request *request, const struct mcp_front *front, struct http_refusal *refusal)
{
    if (!check_origin(request, front, refusal) || !check_route(request, front, refusal))
        return false;
    if (strcmp(http_request_path(request), MCP_PATH) != 0)
        return true;
    if (!auth_check(front->auth, request, refusal))
        return false;
    CLEANUP_FREE char *type = http_request_header(request, "Content-Type");
    if (!type || !mcp_media_type_is_json(type))
        return refuse(refusal, 415, ERROR_INVALID, "send Content-Type: application/json",
                      "the request body must be JSON");
    if (http_request_has_header(request, "Content-Encoding"))
        return refuse(refusal, 415, ERROR_INVALID, "send the body as it is",
                      "coded request bodies are not understood");
    if (mcp_request_form(request) == MCP_FORM_NONE)
        return refuse(refusal, 406, ERROR_INVALID, "accept application/json",
                      "answers are JSON, which the Accept header excludes");
    return true;
}
