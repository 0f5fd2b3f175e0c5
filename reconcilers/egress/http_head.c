#include "controller/base/cleanup.h"
#include "controller/base/utf8.h"
#include "reconcilers/egress/http.h"
#include <string.h>
#include <strings.h>

static bool is_token_char(unsigned char c)
{
    if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9'))
        return true;
    return c && strchr("!#$%&'*+-.^_`|~", c);
}

static bool is_token(struct http_text text)
{
    for (size_t i = 0; i < text.len; i++)
        if (!is_token_char((unsigned char)text.at[i]))
            return false;
    return text.len > 0;
}

bool http_text_is(struct http_text text, const char *word)
{
    return text.len == strlen(word) && strncasecmp(text.at, word, text.len) == 0;
}

ssize_t http_head_end(const char *bytes, size_t len, size_t *scanned, const char **ret_problem)
{
    for (size_t i = *scanned; i < len && i < HTTP_MAX_HEAD_BYTES; i++) {
        if (bytes[i] != '\n')
            continue;
        if (i == 0 || bytes[i - 1] != '\r') {
            *ret_problem = "a line ends without a carriage return";
            return -1;
        }
        if (i == 1) {
            *ret_problem = "the first line is empty";
            return -1;
        }
        if (i >= 3 && bytes[i - 2] == '\n')
            return (ssize_t)i + 1;
    }
    *scanned = len;
    if (len < HTTP_MAX_HEAD_BYTES)
        return 0;
    *ret_problem = "the head is larger than 16 KiB";
    return -1;
}

static int bad(struct http_head *head, const char *problem)
{
    head->problem = problem;
    return -1;
}

// Takes the line at *at without its CRLF and moves behind it.
static struct http_text take_line(const char **at, const char *end)
{
    const char *newline = memchr(*at, '\n', (size_t)(end - *at)); // http_head_end saw to it
    struct http_text line = {*at, (size_t)(newline - *at) - 1};
    *at = newline + 1;
    return line;
}

static struct http_text trim(struct http_text text)
{
    while (text.len && (text.at[0] == ' ' || text.at[0] == '\t'))
        text.at++, text.len--;
    while (text.len && (text.at[text.len - 1] == ' ' || text.at[text.len - 1] == '\t'))
        text.len--;
    return text;
}

static bool is_value(struct http_text text)
{
    for (size_t i = 0; i < text.len; i++) {
        unsigned char c = (unsigned char)text.at[i];
        if ((c < 0x20 && c != '\t') || c == 0x7f)
            return false;
    }
    return utf8_is_valid(text.at, text.len);
}

static int take_length(struct http_head *head, struct http_text value)
{
    if (head->has_length)
        return bad(head, "Content-Length stands there twice");
    if (value.len == 0 || value.len > 18)
        return bad(head, "Content-Length is not a number of at most 18 digits");
    for (size_t i = 0; i < value.len; i++) {
        if (value.at[i] < '0' || value.at[i] > '9')
            return bad(head, "Content-Length is not a number of at most 18 digits");
        head->length = head->length * 10 + (uint64_t)(value.at[i] - '0');
    }
    head->has_length = true;
    return 0;
}

static int take_coding(struct http_head *head, struct http_text value)
{
    if (head->is_chunked)
        return bad(head, "Transfer-Encoding stands there twice");
    if (!http_text_is(value, "chunked"))
        return bad(head, "the only transfer encoding supported is chunked");
    head->is_chunked = true;
    return 0;
}

static int take_host(struct http_head *head, struct http_text value)
{
    (void)value;
    if (head->has_host)
        return bad(head, "Host stands there twice");
    head->has_host = true;
    return 0;
}

// Takes the next element of a comma-separated list; false at its end.
static bool next_element(struct http_text *list, struct http_text *ret)
{
    if (!list->len)
        return false;
    const char *comma = memchr(list->at, ',', list->len);
    size_t len = comma ? (size_t)(comma - list->at) : list->len;
    *ret = trim((struct http_text){list->at, len});
    list->at += comma ? len + 1 : len;
    list->len -= comma ? len + 1 : len;
    return true;
}

// Fields that decide about framing and routing must survive: a Connection header that names one is an attack.
static const char *const unremovable[] = {"content-length", "transfer-encoding", "host"};

static int take_connection(struct http_head *head, struct http_text value)
{
    struct http_text element;
    while (next_element(&value, &element)) {
        if (element.len && !is_token(element))
            return bad(head, "Connection is not a list of words");
        for (size_t i = 0; i < ARRAY_LEN(unremovable); i++)
            if (http_text_is(element, unremovable[i]))
                return bad(head, "Connection names a field that must be forwarded");
        head->says_close |= http_text_is(element, "close");
        head->says_keep_alive |= http_text_is(element, "keep-alive");
        head->is_upgrade |= http_text_is(element, "upgrade");
    }
    return 0;
}

static const struct known {
    const char *name;
    int (*take)(struct http_head *head, struct http_text value);
} known_fields[] = {
    {"content-length", take_length}, {"transfer-encoding", take_coding},      {"host", take_host},
    {"connection", take_connection}, {"proxy-connection", take_connection},
};

static int take_field(struct http_head *head, struct http_text line)
{
    if (head->field_count == HTTP_MAX_FIELDS)
        return bad(head, "there are more than 100 header fields");
    if (line.at[0] == ' ' || line.at[0] == '\t')
        return bad(head, "a header line begins with a blank (folding is not allowed)");
    const char *colon = memchr(line.at, ':', line.len);
    if (!colon)
        return bad(head, "a header line has no colon");
    struct http_text name = {line.at, (size_t)(colon - line.at)};
    struct http_text value = trim((struct http_text){colon + 1, line.len - name.len - 1});
    if (!is_token(name))
        return bad(head, "a header name holds a character that is not allowed there");
    if (!is_value(value))
        return bad(head, "a header value holds control characters or is not UTF-8");
    head->fields[head->field_count++] = (struct http_field){name, value};
    for (size_t i = 0; i < ARRAY_LEN(known_fields); i++)
        if (http_text_is(name, known_fields[i].name))
            return known_fields[i].take(head, value);
    return 0;
}

static int take_fields(struct http_head *head, const char *at, const char *end)
{
    while (at < end - 2)
        if (take_field(head, take_line(&at, end)) < 0)
            return -1;
    if (head->is_chunked && head->has_length)
        return bad(head, "Content-Length and Transfer-Encoding are both there");
    if (head->is_chunked && head->minor_version == 0)
        return bad(head, "HTTP/1.0 has no Transfer-Encoding");
    return 0;
}

static int take_version(struct http_head *head, struct http_text version)
{
    if (version.len != 8 || memcmp(version.at, "HTTP/1.", 7) != 0 || (version.at[7] != '0' && version.at[7] != '1'))
        return bad(head, "the version is neither HTTP/1.0 nor HTTP/1.1");
    head->minor_version = version.at[7] - '0';
    return 0;
}

static int take_request_line(struct http_head *head, struct http_text line)
{
    const char *first = memchr(line.at, ' ', line.len);
    const char *last = first ? memrchr(line.at, ' ', line.len) : NULL;
    if (!first || first == last)
        return bad(head, "the request line is not METHOD TARGET VERSION with one blank between");
    head->method = (struct http_text){line.at, (size_t)(first - line.at)};
    head->target = (struct http_text){first + 1, (size_t)(last - first) - 1};
    if (!is_token(head->method) || head->method.len > 32)
        return bad(head, "the method is not a word of at most 32 characters");
    for (size_t i = 0; i < head->target.len; i++)
        if (head->target.at[i] <= 0x20 || head->target.at[i] >= 0x7f || head->target.at[i] == '#')
            return bad(head, "the request target holds a blank, a fragment or characters that are not ASCII");
    if (head->target.len == 0)
        return bad(head, "the request target is empty");
    return take_version(head, (struct http_text){last + 1, (size_t)(line.at + line.len - last) - 1});
}

int http_parse_request(const char *bytes, size_t size, struct http_head *ret)
{
    memset(ret, 0, sizeof(*ret));
    const char *at = bytes, *end = bytes + size;
    if (take_request_line(ret, take_line(&at, end)) < 0 || take_fields(ret, at, end) < 0)
        return -1;
    if (!ret->has_host && ret->minor_version == 1)
        return bad(ret, "Host is missing");
    return 0;
}

static int take_status_line(struct http_head *head, struct http_text line)
{
    if (line.len < 12 || line.at[8] != ' ' || (line.len > 12 && line.at[12] != ' '))
        return bad(head, "the status line is not VERSION STATUS REASON");
    if (take_version(head, (struct http_text){line.at, 8}) < 0)
        return -1;
    for (int i = 9; i < 12; i++) {
        if (line.at[i] < '0' || line.at[i] > '9')
            return bad(head, "the status is not a number");
        head->status = head->status * 10 + (line.at[i] - '0');
    }
    if (head->status < 100 || head->status > 599)
        return bad(head, "the status is not from 100 to 599");
    if (line.len > 13)
        head->reason = (struct http_text){line.at + 13, line.len - 13};
    return is_value(head->reason) ? 0 : bad(head, "the reason holds control characters or is not UTF-8");
}

int http_parse_response(const char *bytes, size_t size, struct http_head *ret)
{
    memset(ret, 0, sizeof(*ret));
    const char *at = bytes, *end = bytes + size;
    if (take_status_line(ret, take_line(&at, end)) < 0)
        return -1;
    return take_fields(ret, at, end);
}

static const char *const hop_by_hop[] = {
    "connection", "keep-alive", "proxy-connection", "proxy-authenticate", "proxy-authorization",
    "te",         "trailer",    "upgrade",          "http2-settings",
};

static bool is_named_by_connection(const struct http_head *head, struct http_text name)
{
    for (size_t i = 0; i < head->field_count; i++) {
        const struct http_field *field = &head->fields[i];
        if (!http_text_is(field->name, "connection") && !http_text_is(field->name, "proxy-connection"))
            continue;
        struct http_text list = field->value, element;
        while (next_element(&list, &element))
            if (element.len == name.len && strncasecmp(element.at, name.at, name.len) == 0)
                return true;
    }
    return false;
}

bool http_field_is_hop_by_hop(const struct http_head *head, const struct http_field *field)
{
    for (size_t i = 0; i < ARRAY_LEN(hop_by_hop); i++)
        if (http_text_is(field->name, hop_by_hop[i]))
            return true;
    return is_named_by_connection(head, field->name);
}
