#include "api/http/head.h"
#include "api/http/http.h"
#include "controller/base/cleanup.h"
#include <string.h>
#include <strings.h>

static bool is_token_char(unsigned char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           (c && strchr("!#$%&'*+-.^_`|~", c));
}

static bool is_token(const char *text, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if (!is_token_char((unsigned char)text[i]))
            return false;
    return len > 0;
}

static bool is_named(const struct http_field *field, const char *name)
{
    return strlen(name) == field->name_len && strncasecmp(field->name, name, field->name_len) == 0;
}

const struct http_field *http_head_find(const struct http_head *head, const char *name)
{
    for (size_t i = 0; i < head->field_count; i++)
        if (is_named(&head->fields[i], name))
            return &head->fields[i];
    return NULL;
}

// Fields of which a second one would make two readers see two requests. Those of one protocol only (Mcp-…)
// are its own affair: it answers their doubling under the request's id, which is not known yet here.
static bool is_single(const struct http_field *field)
{
    static const char *const names[] = {"Host",          "Content-Length",   "Transfer-Encoding",
                                        "Content-Type",  "Content-Encoding", "Origin",
                                        "Authorization", "Expect",           "Upgrade"};
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        if (is_named(field, names[i]))
            return true;
    return false;
}

static int refuse(int *ret_status, int status, struct error *err, const char *what, const char *detail,
                  size_t detail_len)
{
    *ret_status = status;
    return error_set(err, ERROR_INVALID, "send a request head as HTTP/1.1 defines it", "%s%s%.*s", what,
                     detail_len ? ": " : "", (int)(detail_len > 64 ? 64 : detail_len), detail);
}

static int check_value(const struct http_field *field, int *ret_status, struct error *err)
{
    for (size_t i = 0; i < field->value_len; i++) {
        unsigned char c = (unsigned char)field->value[i];
        if ((c < 0x20 && c != '\t') || c == 0x7F)
            return refuse(ret_status, 400, err, "a control character in the header", field->name,
                          field->name_len);
    }
    return 0;
}

static int check_field(const struct http_head *head, size_t at, int *ret_status, struct error *err)
{
    const struct http_field *field = &head->fields[at];
    if (!is_token(field->name, field->name_len))
        return refuse(ret_status, 400, err, "a header name holds a character that names cannot have", "", 0);
    if (check_value(field, ret_status, err) < 0)
        return -1;
    if (!is_single(field))
        return 0;
    for (size_t i = 0; i < at; i++)
        if (head->fields[i].name_len == field->name_len &&
            strncasecmp(head->fields[i].name, field->name, field->name_len) == 0)
            return refuse(ret_status, 400, err, "this header may be there once only", field->name,
                          field->name_len);
    return 0;
}

static int check_framing(const struct http_head *head, int *ret_status, struct error *err)
{
    const struct http_field *length = http_head_find(head, "Content-Length");
    const struct http_field *coding = http_head_find(head, "Transfer-Encoding");
    if (length && coding)
        return refuse(ret_status, 400, err, "Content-Length together with Transfer-Encoding", "", 0);
    if (coding && (coding->value_len != 7 || strncasecmp(coding->value, "chunked", 7) != 0))
        return refuse(ret_status, 501, err, "the only transfer coding understood is chunked", "", 0);
    if (coding && strcmp(head->version, "HTTP/1.1") != 0)
        return refuse(ret_status, 400, err, "Transfer-Encoding in a request older than HTTP/1.1", "", 0);
    if (!length)
        return 0;
    bool is_number = length->value_len > 0 && length->value_len <= 18;
    for (size_t i = 0; is_number && i < length->value_len; i++)
        is_number = length->value[i] >= '0' && length->value[i] <= '9';
    return is_number ? 0 : refuse(ret_status, 400, err, "Content-Length is not a number", "", 0);
}

static bool is_escape_of_control(const char *at)
{
    static const char hex[] = "0123456789abcdefABCDEF";
    if (!at[1] || !at[2] || !strchr(hex, at[1]) || !strchr(hex, at[2]))
        return true; // not an escape at all: refused alike
    return at[1] == '0' || at[1] == '1' || (at[1] == '7' && (at[2] | 0x20) == 'f');
}

static int check_target(const char *target, int *ret_status, struct error *err)
{
    if (target[0] != '/')
        return refuse(ret_status, 400, err, "the request target must be a path", "", 0);
    for (const char *at = target; *at; at++) {
        unsigned char c = (unsigned char)*at;
        if (c <= 0x20 || c >= 0x7F || strchr("\"<>\\^`{|}#", c) || (c == '%' && is_escape_of_control(at)))
            return refuse(ret_status, 400, err,
                          "the request target holds a character that targets cannot have", "", 0);
    }
    return 0;
}

int http_head_check(const struct http_head *head, int *ret_status, struct error *err)
{
    static const char *const methods[] = {"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"};
    bool is_known = false;
    for (size_t i = 0; i < ARRAY_LEN(methods); i++)
        is_known |= strcmp(head->method, methods[i]) == 0;
    if (!is_known)
        return refuse(ret_status, 501, err, "the request method is not known", "", 0);
    if (strcmp(head->version, "HTTP/1.1") != 0 && strcmp(head->version, "HTTP/1.0") != 0)
        return refuse(ret_status, 505, err, "the HTTP version must be 1.1 or 1.0", "", 0);
    if (check_target(head->target, ret_status, err) < 0)
        return -1;
    if (head->has_too_many)
        return refuse(ret_status, 431, err, "more than 100 headers", "", 0);
    for (size_t i = 0; i < head->field_count; i++)
        if (check_field(head, i, ret_status, err) < 0)
            return -1;
    const struct http_field *host = http_head_find(head, "Host");
    if (!host || !host->value_len)
        return refuse(ret_status, 400, err, "the Host header is missing", "", 0);
    return check_framing(head, ret_status, err);
}

bool http_host_is(const char *host, const char *name)
{
    size_t len = strlen(name);
    if (strncasecmp(host, name, len) != 0)
        return false;
    const char *port = host + len;
    size_t digits = port[0] == ':' ? strspn(port + 1, "0123456789") : 0;
    return !port[0] || (digits > 0 && digits <= 5 && !port[1 + digits]);
}
