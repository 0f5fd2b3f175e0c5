// The head of a request as the HTTP library shows it: method, target, version and header lines, one a line of the input; then
// what the MCP front reads out of its values. Whatever comes: a refusal with its status and a sentence, or a head whose
// framing two readers cannot see differently; and no host is ours that is not on the list.
#include "api/http/head.h"
#include "api/mcp/front.h"
#include "controller/base/cleanup.h"
#include "controller/base/memory.h"
#include "tests/fuzz/fuzz.h"
#include <string.h>
#include <strings.h>

static const struct mcp_front front = {.own_hosts = {"box.example", "10.0.0.7"}};

// The next line, without its end; NULL behind the last. A NUL byte ends what is seen of a line.
static char *take_line(char **at)
{
    return strsep(at, "\n");
}

static void add_field(struct http_head *head, char *line)
{
    if (head->field_count == HTTP_FIELDS_MAX) {
        head->has_too_many = true;
        return;
    }
    size_t name_len = strcspn(line, ":");
    char *value = line + name_len + (line[name_len] == ':');
    value += strspn(value, " \t");
    head->fields[head->field_count++] = (struct http_field){.name = line, .name_len = name_len, .value = value, .value_len = strlen(value)};
}

static size_t count(const struct http_head *head, const char *name)
{
    size_t found = 0;
    for (size_t i = 0; i < head->field_count; i++)
        found += strlen(name) == head->fields[i].name_len && strncasecmp(head->fields[i].name, name, strlen(name)) == 0;
    return found;
}

static void check_accepted(const struct http_head *head)
{
    const struct http_field *length = http_head_find(head, "content-length");
    fuzz_expect(count(head, "Host") == 1, "an accepted head has one Host");
    fuzz_expect(count(head, "Content-Length") + count(head, "Transfer-Encoding") <= 1, "the length of a body is told once");
    fuzz_expect(!length || strspn(length->value, "0123456789") == strlen(length->value), "a length is digits only");
    fuzz_expect(head->target[0] == '/' && !strpbrk(head->target, " \t\r\"<>#"), "an accepted target is a path");
    for (size_t i = 0; i < head->field_count; i++)
        fuzz_expect(!strpbrk(head->fields[i].value, "\r\x7f\x01") && strcspn(head->fields[i].name, " \t\r():") == head->fields[i].name_len,
                    "an accepted header has no control characters, and a name none that names cannot have");
}

// The oracle's own way of saying it: one of the names, and at most a port behind it.
static bool is_on_the_list(const char *host)
{
    static const char *const names[] = {"localhost", "127.0.0.1", "[::1]", "box.example", "10.0.0.7"};
    size_t port = strcspn(host, ":"), len = host[0] == '[' ? strcspn(host, "]") + 1 : port;
    if (len > strlen(host) || (host[len] && (host[len] != ':' || !host[len + 1] || strspn(host + len + 1, "0123456789") != strlen(host + len + 1) || strlen(host + len) > 6)))
        return false;
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        if (strlen(names[i]) == len && strncasecmp(names[i], host, len) == 0)
            return true;
    return false;
}

static void check_values(const char *value)
{
    fuzz_expect(mcp_host_is_ours(value, &front) == is_on_the_list(value), "a host is ours exactly when it is on the list");
    const char *host = strncasecmp(value, "http://", 7) == 0 ? value + 7 : strncasecmp(value, "https://", 8) == 0 ? value + 8 : NULL;
    fuzz_expect(mcp_origin_is_ours(value, &front) == (host && is_on_the_list(host)), "an origin is ours exactly when its host is");
    fuzz_expect(!mcp_media_type_is_json(value) || strcasestr(value, "application/json"), "only application/json is JSON");
    fuzz_expect(mcp_accept_form(value) != MCP_FORM_EVENT || strcasestr(value, "text/event-stream"), "events are for who names them");
    fuzz_expect(!mcp_accept_takes_events(value) || strcasestr(value, "text/"), "a stream is for who takes one");
    if (!strchr(value, ';') && strcasestr(value, "*/*") == value && strlen(value) == 3)
        fuzz_expect(mcp_accept_form(value) == MCP_FORM_JSON, "anything is JSON too");
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    CLEANUP_FREE char *text = mem_strndup((const char *)bytes, len);
    struct error err = ERROR_INIT;
    char *at = text, *line, *method = take_line(&at), *target = take_line(&at), *version = take_line(&at);
    struct http_head head = {.method = method, .target = target ? target : "/mcp", .version = version ? version : "HTTP/1.1"};
    int status = 0;
    while ((line = take_line(&at)))
        add_field(&head, line);
    if (http_head_check(&head, &status, &err) == 0) {
        fuzz_expect(status == 0, "an accepted head leaves the status alone");
        check_accepted(&head);
    } else {
        fuzz_expect((status == 400 || status == 431 || status == 501 || status == 505) && err.message[0], "a refusal has a status and a sentence");
    }
    for (size_t i = 0; i < head.field_count; i++)
        check_values(head.fields[i].value);
    return 0;
}
