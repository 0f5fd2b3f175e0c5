#include "reconcilers/egress/name.h"
#include "controller/base/cleanup.h"
#include "controller/base/memory.h"
#include "reconcilers/egress/address.h"
#include <ctype.h>
#include <stdio.h>
#include <string.h>

static bool is_label_char(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
}

static bool is_number_label(const char *label, size_t len)
{
    if (len > 1 && label[0] == '0' && label[1] == 'x')
        return strspn(label + 2, "0123456789abcdef") >= len - 2;
    return strspn(label, "0123456789") >= len;
}

// Copies one lower-case label and returns its canonical length, 0 if it is not one.
static size_t put_label(char *to, const char *label, size_t len)
{
    if (len == 0 || len > 63)
        return 0;
    for (size_t i = 0; i < len; i++) {
        to[i] = (char)(label[i] >= 'A' && label[i] <= 'Z' ? label[i] + 32 : label[i]);
        if (!is_label_char(to[i]))
            return 0;
    }
    if (len > 5 && memcmp(to, "xn--", 4) == 0 && to[len - 1] == '-') { // Punycode of plain ASCII
        len -= 5;
        memmove(to, to + 4, len);
    }
    return len;
}

bool name_normalize(const char *text, size_t len, char ret[NAME_SIZE])
{
    char name[NAME_SIZE];
    size_t used = 0, last = 0;
    if (len && text[len - 1] == '.')
        len--;
    if (len == 0 || len >= NAME_SIZE)
        return false;
    for (size_t at = 0; at <= len;) {
        const char *dot = memchr(text + at, '.', len - at);
        size_t label_len = dot ? (size_t)(dot - (text + at)) : len - at;
        if (used)
            name[used++] = '.';
        size_t put = put_label(name + used, text + at, label_len);
        if (!put)
            return false;
        last = used;
        used += put;
        at += label_len + 1;
    }
    name[used] = '\0';
    if (is_number_label(name + last, used - last))
        return false;
    memcpy(ret, name, used + 1);
    return true;
}

int name_list_add(struct name_list *list, const char *text, struct error *err)
{
    char name[NAME_SIZE];
    if (!name_normalize(text, strlen(text), name))
        return error_set(err, ERROR_USAGE, "write it in ASCII, for example example.com or xn--bcher-kva.example",
                         "--deny %s is not a host name", text);
    if (list->count == NAME_MAX_DENIED)
        return error_set(err, ERROR_USAGE, NULL, "more than %d names are denied", NAME_MAX_DENIED);
    list->names[list->count++] = mem_strdup(name);
    return 0;
}

const char *name_list_match(const struct name_list *list, const char *name)
{
    size_t len = strlen(name);
    for (size_t i = 0; i < list->count; i++) {
        size_t denied = strlen(list->names[i]);
        if (len < denied || strcmp(name + len - denied, list->names[i]) != 0)
            continue;
        if (len == denied || name[len - denied - 1] == '.')
            return list->names[i];
    }
    return NULL;
}

void name_list_free(struct name_list *list)
{
    for (size_t i = 0; i < list->count; i++)
        free(list->names[i]);
    list->count = 0;
}

static int parse_port(const char *text, size_t len, uint16_t *ret)
{
    unsigned long port = 0;
    if (len == 0 || len > 5)
        return -1;
    for (size_t i = 0; i < len; i++) {
        if (text[i] < '0' || text[i] > '9')
            return -1;
        port = port * 10 + (unsigned long)(text[i] - '0');
    }
    if (port == 0 || port > 65535)
        return -1;
    *ret = (uint16_t)port;
    return 0;
}

// Splits host and port; the host of "[v6]" comes without brackets.
static int split(const char *text, size_t len, size_t *host_at, size_t *host_len, size_t *port_at)
{
    if (len && text[0] == '[') {
        const char *end = memchr(text, ']', len);
        if (!end)
            return -1;
        *host_at = 1;
        *host_len = (size_t)(end - text) - 1;
        *port_at = *host_len + 2;
    } else {
        const char *colon = memchr(text, ':', len);
        *host_at = 0;
        *host_len = *port_at = colon ? (size_t)(colon - text) : len;
    }
    return *port_at == len || text[*port_at] == ':' ? 0 : -1;
}

static int parse_host(const char *text, size_t len, bool is_bracketed, struct endpoint *ret)
{
    char host[NAME_SIZE];
    struct address address;
    if (len == 0 || len >= sizeof(host) || memchr(text, '\0', len))
        return -1;
    memcpy(host, text, len);
    host[len] = '\0';
    ret->is_address = address_parse(host, &address);
    if (ret->is_address != is_bracketed && (is_bracketed || address.family == AF_INET6))
        return -1; // brackets are for IPv6 and IPv6 needs them
    if (is_bracketed && address.family != AF_INET6)
        return -1;
    if (!ret->is_address)
        return name_normalize(text, len, ret->host) ? 0 : -1;
    address = address_normalize(&address);
    address_format(&address, ret->host);
    return 0;
}

int endpoint_parse(const char *text, size_t len, uint16_t default_port, struct endpoint *ret, const char **ret_problem)
{
    size_t host_at, host_len, port_at;
    struct endpoint endpoint = {.port = default_port};
    if (split(text, len, &host_at, &host_len, &port_at) < 0 ||
        parse_host(text + host_at, host_len, host_at == 1, &endpoint) < 0) {
        *ret_problem = "the host must be an ASCII host name (xn-- for others), a dotted IPv4 address or an IPv6 "
                       "address in brackets, without user name";
        return -1;
    }
    if (port_at < len ? parse_port(text + port_at + 1, len - port_at - 1, &endpoint.port) < 0 : !default_port) {
        *ret_problem = "the port must be a number from 1 to 65535";
        return -1;
    }
    *ret = endpoint;
    return 0;
}

void endpoint_format(const struct endpoint *endpoint, char text[ENDPOINT_TEXT_SIZE])
{
    bool is_v6 = endpoint->is_address && strchr(endpoint->host, ':');
    snprintf(text, ENDPOINT_TEXT_SIZE, is_v6 ? "[%s]:%u" : "%s:%u", endpoint->host, endpoint->port);
}
