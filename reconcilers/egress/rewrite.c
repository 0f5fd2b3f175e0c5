#include "reconcilers/egress/rewrite.h"
#include "controller/base/cleanup.h"
#include <stdio.h>
#include <string.h>
#include <strings.h>

static bool starts_with(struct http_text text, const char *prefix)
{
    return text.len >= strlen(prefix) && strncasecmp(text.at, prefix, strlen(prefix)) == 0;
}

int rewrite_split_target(struct http_text target, struct endpoint *ret, struct http_text *ret_path,
                         const char **ret_problem)
{
    if (!starts_with(target, "http://")) {
        *ret_problem = starts_with(target, "https://") || starts_with(target, "wss://")
                           ? "for https use CONNECT: set the client's https_proxy variable"
                           : "this is an HTTP proxy: requests name the whole address (http://host/path) or use CONNECT";
        return -1;
    }
    const char *authority = target.at + 7;
    size_t left = target.len - 7, len = 0;
    while (len < left && authority[len] != '/' && authority[len] != '?')
        len++;
    if (endpoint_parse(authority, len, 80, ret, ret_problem) < 0)
        return -1;
    *ret_path = (struct http_text){authority + len, left - len};
    return 0;
}

static void put(struct buffer *to, struct http_text text)
{
    buffer_append(to, text.at, text.len);
}

static void put_fields(struct buffer *to, const struct http_head *head, bool with_host)
{
    for (size_t i = 0; i < head->field_count; i++) {
        const struct http_field *field = &head->fields[i];
        if (http_field_is_hop_by_hop(head, field) || (!with_host && http_text_is(field->name, "host")))
            continue;
        put(to, field->name);
        buffer_append_text(to, ": ");
        put(to, field->value);
        buffer_append_text(to, "\r\n");
    }
}

static void put_path(struct buffer *to, const struct http_head *head, struct http_text path)
{
    if (!path.len && http_text_is(head->method, "OPTIONS"))
        buffer_append_text(to, "*"); // RFC 9112 3.2.4
    else if (!path.len || path.at[0] == '?')
        buffer_append_text(to, "/");
    put(to, path);
}

void rewrite_request(const struct http_head *head, const struct endpoint *to, struct http_text path,
                     struct buffer *to_head)
{
    char host[ENDPOINT_TEXT_SIZE];
    endpoint_format(to, host);
    if (to->port == 80)
        *strrchr(host, ':') = '\0';
    put(to_head, head->method);
    buffer_append_text(to_head, " ");
    put_path(to_head, head, path);
    buffer_format(to_head, " HTTP/1.%d\r\nHost: %s\r\n", head->minor_version, host);
    put_fields(to_head, head, false);
    buffer_format(to_head, "Via: 1.%d chat2shell\r\nConnection: close\r\n\r\n", head->minor_version);
}

void rewrite_response(const struct http_head *head, bool is_kept_alive, struct buffer *to_head)
{
    buffer_format(to_head, "HTTP/1.1 %d ", head->status);
    put(to_head, head->reason);
    buffer_append_text(to_head, "\r\n");
    put_fields(to_head, head, true);
    buffer_format(to_head, "Via: 1.%d chat2shell\r\n", head->minor_version);
    if (head->status >= 200)
        buffer_append_text(to_head, is_kept_alive ? "Connection: keep-alive\r\n" : "Connection: close\r\n");
    buffer_append_text(to_head, "\r\n");
}

static const struct {
    int status;
    const char *reason;
} reasons[] = {
    {400, "Bad Request"}, {403, "Forbidden"},           {408, "Request Timeout"},
    {502, "Bad Gateway"}, {503, "Service Unavailable"}, {504, "Gateway Timeout"},
};

static const char *reason_of(int status)
{
    for (size_t i = 0; i < ARRAY_LEN(reasons); i++)
        if (reasons[i].status == status)
            return reasons[i].reason;
    return "Error";
}

void rewrite_refusal(int status, const char *word, const char *text, bool has_body, struct buffer *to_answer)
{
    buffer_format(to_answer, "HTTP/1.1 %d %s\r\n", status, reason_of(status));
    buffer_format(to_answer, "Content-Type: text/plain; charset=utf-8\r\nContent-Length: %zu\r\n", strlen(text) + 1);
    if (word)
        buffer_format(to_answer, "X-Chat2shell-Denied: %s\r\n", word);
    buffer_append_text(to_answer, "Cache-Control: no-store\r\nConnection: close\r\n\r\n");
    if (has_body)
        buffer_format(to_answer, "%s\n", text);
}
