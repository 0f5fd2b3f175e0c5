#include "api/guest/import_fetch.h"
#include "api/guest/command.h"
#include "api/guest/import_address.h"
#include "api/guest/import_url.h"
#include "api/guest/tool.h"
#include "controller/base/memory.h"
#include "controller/base/time.h"
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define TOTAL_MS 300000 // all hops together
#define RESOLVE_MS 30000
#define MAX_RESOLVED_BYTES 16384
#define MAX_ADDRESSES 32

// What curl says about its run, behind its own words on stderr. None of the values can hold a newline.
#define REPORT "%{stderr}\n@http %{http_code}\n@type %{content_type}\n@next %{redirect_url}\n"

enum curl_exit {
    CURL_OK = 0,
    CURL_NO_PROXY_HOST = 5,
    CURL_NO_HOST = 6,
    CURL_TIMEOUT = 28,
    CURL_TOO_LARGE = 63
};

struct fetch {
    struct guest *guest;
    struct import_policy policy;
    const atomic_bool *is_cancelled;
    int64_t deadline_ms;
};

struct report {
    int status;
    char *type, *next; // owned; NULL: none
};

void import_answer_free(struct import_answer *answer)
{
    buffer_free(&answer->bytes);
    free(answer->mime_type);
    answer->mime_type = NULL;
}

static void free_report(struct report *report)
{
    free(report->type);
    free(report->next);
    *report = (struct report){0};
}

// --- the way there

static const char *first_variable(const struct environment *environment, const char *const *names)
{
    const char *value = NULL;
    for (; !value && *names; names++) {
        value = environment_get(environment, *names);
        if (value && !*value)
            value = NULL;
    }
    return value;
}

static bool is_without_proxy(const struct environment *environment, const char *host)
{
    static const char *const names[] = {"no_proxy", "NO_PROXY", NULL};
    const char *at = first_variable(environment, names);
    size_t host_len = strlen(host);
    while (at && *at) {
        at += strspn(at, ", ");
        size_t len = strcspn(at, ", ");
        const char *name = at;
        at += len;
        if (len == 1 && *name == '*')
            return true;
        if (len > 1 && *name == '.')
            name++, len--;
        if (len && len <= host_len && strncasecmp(host + host_len - len, name, len) == 0 &&
            (len == host_len || host[host_len - len - 1] == '.'))
            return true;
    }
    return false;
}

// NULL: go there directly.
static const char *proxy_for(const struct fetch *fetch, const struct import_url *url)
{
    static const char *const https[] = {"https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY", NULL};
    static const char *const http[] = {"http_proxy", "all_proxy", "ALL_PROXY", NULL};
    const struct environment *environment = &fetch->guest->environment;
    if (is_without_proxy(environment, url->host))
        return NULL;
    return first_variable(environment, url->is_https ? https : http);
}

static int add_address(const struct fetch *fetch, const struct import_url *url, const char *address,
                       struct buffer *pin, int *count, struct error *err)
{
    enum import_address verdict;
    if (!import_address_judge(address, &verdict))
        return guest_tool_fail(err, NULL, "Attachment host could not be resolved: %s has no usable address",
                               url->host);
    if (verdict != IMPORT_ADDRESS_PUBLIC &&
        !(verdict == IMPORT_ADDRESS_LOOPBACK && fetch->policy.allows_loopback))
        return guest_tool_fail(err, NULL, "Attachment host resolves to a blocked address: %s (%s)", url->host,
                               address);
    bool is_v6 = strchr(address, ':');
    buffer_format(pin, "%s%s%s%s", *count ? "," : "", is_v6 ? "[" : "", address, is_v6 ? "]" : "");
    ++*count;
    return 0;
}

// "ADDRESS TYPE [NAME]", a line for each address and socket type.
static int read_addresses(const struct fetch *fetch, const struct import_url *url, const char *text,
                          struct buffer *pin, struct error *err)
{
    char last[64] = "";
    int count = 0;
    for (const char *line = text; *line && count < MAX_ADDRESSES;) {
        size_t len = strcspn(line, " \t\n");
        CLEANUP_FREE char *address = mem_strndup(line, len);
        if (len && strcmp(address, last) != 0 && add_address(fetch, url, address, pin, &count, err) < 0)
            return -1;
        snprintf(last, sizeof(last), "%s", address);
        line += strcspn(line, "\n");
        line += *line == '\n';
    }
    return count ? 0 : guest_tool_fail(err, NULL, "Attachment host could not be resolved: %s", url->host);
}

// The value of --resolve: host and port with the only addresses that curl may use for them.
static int resolve(const struct fetch *fetch, const struct import_url *url, struct buffer *pin,
                   struct error *err)
{
    const char *const argv[] = {"getent", "ahosts", url->host, NULL};
    CLEANUP(command_result_free) struct command_result result = {0};
    struct command_spec spec = {.argv = argv,
                                .max_bytes = MAX_RESOLVED_BYTES,
                                .cwd_fd = fetch->guest->workspace.root_fd,
                                .stdin_fd = -1,
                                .time_limit_ms = RESOLVE_MS,
                                .is_cancelled = fetch->is_cancelled};
    if (command_run_spec(fetch->guest, &spec, &result, err) < 0)
        return -1;
    if (result.is_missing)
        return guest_tool_fail(err, "install it (libc-bin), or set a proxy", "%s", result.errors.data);
    if (result.exit_code != 0)
        return guest_tool_fail(err, NULL, "Attachment host could not be resolved: %s", url->host);
    buffer_format(pin, "%s:%u:", url->host, url->port);
    return read_addresses(fetch, url, result.out.data, pin, err);
}

// --- one run of curl

static char *value_after(const char *text, const char *key)
{
    const char *at = text ? strstr(text, key) : NULL;
    if (!at)
        return NULL;
    at += strlen(key);
    size_t len = strcspn(at, "\n");
    return len ? mem_strndup(at, len) : NULL;
}

static void read_report(const char *errors, struct report *ret)
{
    const char *start = NULL;
    for (const char *at = errors; (at = strstr(at, "\n@http ")); at++)
        start = at;
    CLEANUP_FREE char *status = value_after(start, "\n@http ");
    ret->status = status ? atoi(status) : 0;
    ret->type = value_after(start, "\n@type ");
    ret->next = value_after(start, "\n@next ");
}

static int fail_run(const struct command_result *result, struct error *err)
{
    const char *words = strstr(result->errors.data, "curl: ");
    int len = words ? (int)strcspn(words, "\n") : 0;
    if (result->is_cut || result->exit_code == CURL_TOO_LARGE)
        return guest_tool_fail(err, NULL, "Attachment exceeded import size limit of %d bytes.",
                               IMPORT_MAX_BYTES);
    if (result->exit_code == CURL_NO_HOST || result->exit_code == CURL_NO_PROXY_HOST)
        return guest_tool_fail(err, NULL, "Attachment host could not be resolved: %.*s", len,
                               words ? words : "");
    if (result->exit_code == CURL_TIMEOUT)
        return guest_tool_fail(err, "try again", "Attachment download timed out: %.*s", len,
                               words ? words : "");
    return guest_tool_fail(err, NULL, "Attachment download failed: %.*s", len ? len : 40,
                           words ? words : "curl ended without a word");
}

static int run_curl(const struct fetch *fetch, const struct import_url *url, struct command_result *result,
                    struct error *err)
{
    CLEANUP(buffer_free) struct buffer pin = BUFFER_INIT(MAX_RESOLVED_BYTES);
    char max_bytes[16], max_time[16];
    int64_t left_ms = fetch->deadline_ms - boot_time_now().ms;
    const char *proxy = proxy_for(fetch, url);
    if (left_ms < 1000)
        return guest_tool_fail(err, "try again", "Attachment download timed out.");
    if (!proxy && !url->is_address && resolve(fetch, url, &pin, err) < 0)
        return -1;
    snprintf(max_bytes, sizeof(max_bytes), "%d", IMPORT_MAX_BYTES);
    snprintf(max_time, sizeof(max_time), "%d", (int)(left_ms / 1000));
    const char *argv[] = {"curl",
                          "-q",
                          "--silent",
                          "--show-error",
                          "--globoff",
                          "--path-as-is",
                          "--proto",
                          url->is_https ? "=https" : "=http",
                          "--max-redirs",
                          "0",
                          "--max-filesize",
                          max_bytes,
                          "--max-time",
                          max_time,
                          "--connect-timeout",
                          "30",
                          "--speed-limit",
                          "1",
                          "--speed-time",
                          "60",
                          "--user-agent",
                          "chat2shell",
                          "--write-out",
                          REPORT,
                          "--noproxy",
                          proxy ? "" : "*",
                          proxy     ? "--proxy"
                          : pin.len ? "--resolve"
                                    : "--proto-default",
                          proxy     ? proxy
                          : pin.len ? pin.data
                                    : "https",
                          "--url",
                          url->text,
                          NULL};
    struct command_spec spec = {.argv = argv,
                                .max_bytes = IMPORT_MAX_BYTES,
                                .is_ended_when_full = true,
                                .cwd_fd = fetch->guest->workspace.root_fd,
                                .stdin_fd = -1,
                                .time_limit_ms = (int)left_ms + 5000,
                                .is_cancelled = fetch->is_cancelled};
    if (command_run_spec(fetch->guest, &spec, result, err) < 0)
        return -1;
    return result->is_missing ? guest_tool_fail(err, "install curl", "%s", result->errors.data) : 0;
}

static bool is_redirect(int status)
{
    return status == 301 || status == 302 || status == 303 || status == 307 || status == 308;
}

static void take_answer(struct command_result *result, const struct report *report, struct import_answer *ret)
{
    *ret = (struct import_answer){.bytes = result->out};
    result->out = (struct buffer){0};
    if (!report->type)
        return;
    size_t len = strcspn(report->type, ";");
    while (len && isspace((unsigned char)report->type[len - 1]))
        len--;
    ret->mime_type = mem_strndup(report->type, len);
}

// 0: the answer is there; 1: *ret_next (the caller's) is where it is instead.
static int hop(const struct fetch *fetch, const char *text, size_t len, struct import_answer *ret,
               char **ret_next, struct error *err)
{
    CLEANUP_IMPORT_URL struct import_url url = {0};
    CLEANUP(command_result_free) struct command_result result = {0};
    CLEANUP(free_report) struct report report = {0};
    if (import_url_check(text, len, &fetch->policy, &url, err) < 0 || run_curl(fetch, &url, &result, err) < 0)
        return -1;
    read_report(result.errors.data, &report);
    if (result.exit_code != CURL_OK || result.is_cut)
        return fail_run(&result, err);
    if (is_redirect(report.status) && report.next) {
        *ret_next = TAKE_PTR(report.next);
        return 1;
    }
    if (report.status < 200 || report.status > 299)
        return guest_tool_fail(err, NULL, "Attachment download failed with HTTP %d.", report.status);
    take_answer(&result, &report, ret);
    return 0;
}

int import_fetch(struct guest *guest, const char *url, size_t url_len, const atomic_bool *is_cancelled,
                 struct import_answer *ret, struct error *err)
{
    struct fetch fetch = {.guest = guest,
                          .policy = import_policy_read(),
                          .is_cancelled = is_cancelled,
                          .deadline_ms = boot_time_now().ms + TOTAL_MS};
    CLEANUP_FREE char *at = mem_strndup(url, url_len);
    if (strlen(at) != url_len)
        return guest_tool_fail_type(err, "Invalid URL");
    for (int hops = 0; hops <= IMPORT_MAX_REDIRECTS; hops++) {
        char *next = NULL;
        int result = hop(&fetch, at, strlen(at), ret, &next, err);
        if (result <= 0)
            return result;
        free(at);
        at = next;
    }
    return guest_tool_fail(err, NULL, "Attachment download went over the redirect limit of %d.",
                           IMPORT_MAX_REDIRECTS);
}
