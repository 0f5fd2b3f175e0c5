#include "controller/config_url.h"
#include "controller/base/cleanup.h"
#include "controller/base/memory.h"
#include <arpa/inet.h>
#include <ctype.h>
#include <string.h>

void config_url_clear(struct config_url *url)
{
    free(url->host);
    free(url->path);
    *url = (struct config_url){0};
}

bool config_host_is_loopback(const char *host)
{
    struct in_addr address;
    return strcmp(host, "localhost") == 0 || strcmp(host, "::1") == 0 || strcmp(host, "[::1]") == 0 ||
           (inet_pton(AF_INET, host, &address) == 1 && ntohl(address.s_addr) >> 24 == 127);
}

static int refuse(struct error *err, const char *text, const char *why)
{
    return error_set(err, ERROR_INVALID, "give a URL like https://box.example/mcp", "'%.200s' %s", text, why);
}

static bool is_host(const char *host, size_t len)
{
    struct in6_addr address;
    if (len > 2 && host[0] == '[' && host[len - 1] == ']') {
        CLEANUP_FREE char *inside = mem_strndup(host + 1, len - 2);
        return inet_pton(AF_INET6, inside, &address) == 1;
    }
    return len > 0 && len <= 253 && strspn(host, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-") == len;
}

static bool is_port(const char *text, size_t len)
{
    return len > 1 && len <= 6 && strspn(text + 1, "0123456789") == len - 1;
}

int config_url_parse(const char *text, struct config_url *ret, struct error *err)
{
    bool is_https = strncmp(text, "https://", 8) == 0;
    if (!is_https && strncmp(text, "http://", 7) != 0)
        return refuse(err, text, "does not begin with https:// (or http://)");
    for (const char *at = text; *at; at++)
        if (*at <= ' ' || *at >= 0x7f || strchr("\"\\<>^`{|}", *at) || at - text >= CONFIG_URL_MAX)
            return refuse(err, text, "is too long or has characters that a URL must not have");
    if (strpbrk(text, "@?#"))
        return refuse(err, text, "must have no user, query or fragment");
    const char *host = text + (is_https ? 8 : 7);
    size_t host_len = host[0] == '[' ? strcspn(host, "]/") + (host[strcspn(host, "]/")] == ']') : strcspn(host, ":/");
    size_t port_len = strcspn(host + host_len, "/");
    if (!is_host(host, host_len) || (port_len && (host[host_len] != ':' || !is_port(host + host_len, port_len))))
        return refuse(err, text, "does not name a host");
    *ret = (struct config_url){is_https, mem_strndup(host, host_len), mem_strdup(host + host_len + port_len)};
    for (char *at = ret->host; *at; at++)
        *at = (char)tolower((unsigned char)*at);
    return 0;
}
