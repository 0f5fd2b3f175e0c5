#include "api/guest/import_url.h"
#include "api/guest/import_address.h"
#include "api/guest/tool.h"
#include "controller/base/memory.h"
#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define MAX_URL_BYTES 8192
#define MAX_HOST_BYTES 253

static const char *const hosts[] = {"chatgpt.com",   "openai.com",         "cdn.openai.com",
                                    "oaistatic.com", "oaiusercontent.com", "files.oaiusercontent.com"};
// Names of the machine itself or of its neighbours, whatever else is approved.
static const char *const blocked_hosts[] = {"localhost", "local", "internal", "home.arpa", "localdomain"};

struct import_policy import_policy_read(void)
{
    const char *loopback = getenv("CODEXPRO_IMPORT_ALLOW_LOOPBACK");
    return (struct import_policy){.more_hosts = getenv("CODEXPRO_IMPORT_ALLOWED_HOSTS"),
                                  .allows_loopback = loopback && strcmp(loopback, "1") == 0};
}

void import_url_free(struct import_url *url)
{
    free(url->text);
    free(url->host);
    *url = (struct import_url){0};
}

static int fail_invalid(struct error *err)
{
    return guest_tool_fail_type(err, "Invalid URL");
}

static bool is_plain(const char *text, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if (text[i] <= ' ' || text[i] > '~' || strchr("\\\"<>^`{|}", text[i]))
            return false;
    return len && len <= MAX_URL_BYTES;
}

// Ids of attachments as a chat knows them, which only the chat itself can turn into a URL.
static bool is_reference(const char *text)
{
    static const char *const prefixes[] = {"sediment:", "file-service:", "file-", "file_", "attachment:"};
    for (size_t i = 0; i < ARRAY_LEN(prefixes); i++)
        if (strncasecmp(text, prefixes[i], strlen(prefixes[i])) == 0)
            return true;
    return false;
}

static int check_scheme(const char *text, const struct import_policy *policy, struct import_url *url,
                        const char **ret_rest, struct error *err)
{
    if (is_reference(text))
        return guest_tool_fail(err, "give the https download_url of the attachment",
                               "Unsupported attachment reference: %.100s", text);
    const char *colon = strstr(text, "://");
    if (!colon || colon == text)
        return fail_invalid(err);
    size_t len = (size_t)(colon - text);
    url->is_https = len == 5 && strncasecmp(text, "https", 5) == 0;
    if (!url->is_https && !(policy->allows_loopback && len == 4 && strncasecmp(text, "http", 4) == 0))
        return guest_tool_fail(err, NULL, "Attachment URL must use HTTPS: %.100s", text);
    *ret_rest = colon + 3;
    return 0;
}

// host[:port] or [v6][:port] of `len` bytes.
static int split_authority(const char *text, size_t len, struct import_url *url, struct error *err)
{
    const char *end = text + len, *host = text, *stop = memchr(text, ':', len), *port = NULL;
    if (len && *text == '[') {
        host = text + 1;
        stop = memchr(text, ']', len);
        port = stop ? stop + 1 : NULL;
    } else {
        stop = stop ? stop : end;
        port = stop;
    }
    if (!port || stop == host || stop - host > MAX_HOST_BYTES || (port < end && *port != ':'))
        return fail_invalid(err);
    url->port = url->is_https ? 443 : 80;
    if (port < end) {
        size_t digits = strspn(++port, "0123456789");
        unsigned long number = strtoul(port, NULL, 10);
        if (digits != (size_t)(end - port) || !digits || digits > 5 || number < 1 || number > 65535)
            return fail_invalid(err);
        url->port = (unsigned)number;
    }
    url->host = mem_strndup(host, (size_t)(stop - host));
    for (char *c = url->host; *c; c++)
        *c = (char)tolower((unsigned char)*c);
    return 0;
}

static bool is_below(const char *host, const char *domain, size_t domain_len)
{
    size_t len = strlen(host);
    return len >= domain_len && memcmp(host + len - domain_len, domain, domain_len) == 0 &&
           (len == domain_len || host[len - domain_len - 1] == '.');
}

static bool is_approved(const char *host, const struct import_policy *policy)
{
    for (size_t i = 0; i < ARRAY_LEN(hosts); i++)
        if (is_below(host, hosts[i], strlen(hosts[i])))
            return true;
    for (const char *at = policy->more_hosts; at && *at;) {
        at += strspn(at, ", ");
        size_t len = strcspn(at, ", ");
        if (len && is_below(host, at, len))
            return true;
        at += len;
    }
    return false;
}

static bool is_blocked_host(const char *host)
{
    for (size_t i = 0; i < ARRAY_LEN(blocked_hosts); i++)
        if (is_below(host, blocked_hosts[i], strlen(blocked_hosts[i])))
            return true;
    return false;
}

static int check_address_host(const struct import_policy *policy, enum import_address verdict,
                              struct import_url *url, struct error *err)
{
    url->is_address = verdict == IMPORT_ADDRESS_LOOPBACK && policy->allows_loopback;
    if (url->is_address)
        return 0;
    if (verdict != IMPORT_ADDRESS_PUBLIC)
        return guest_tool_fail(err, NULL, "Attachment URL has a blocked address: %s", url->host);
    return guest_tool_fail(err, NULL, "Attachment host is not an approved one: %s", url->host);
}

static int check_host(const struct import_policy *policy, struct import_url *url, struct error *err)
{
    enum import_address verdict;
    if (import_address_judge(url->host, &verdict))
        return check_address_host(policy, verdict, url, err);
    if (strspn(url->host, "abcdefghijklmnopqrstuvwxyz0123456789.-") != strlen(url->host) ||
        url->host[0] == '.' || url->host[0] == '-' || strstr(url->host, ".."))
        return fail_invalid(err);
    if (is_blocked_host(url->host) && !(policy->allows_loopback && strcmp(url->host, "localhost") == 0))
        return guest_tool_fail(err, NULL, "Attachment URL has a blocked host: %s", url->host);
    if (!is_approved(url->host, policy) && !(policy->allows_loopback && strcmp(url->host, "localhost") == 0))
        return guest_tool_fail(err,
                               "only attachments of the chat can be imported; use curl in bash for others",
                               "Attachment host is not an approved one: %s", url->host);
    return 0;
}

int import_url_check(const char *text, size_t len, const struct import_policy *policy, struct import_url *ret,
                     struct error *err)
{
    CLEANUP_IMPORT_URL struct import_url url = {0};
    const char *rest = text;
    if (!is_plain(text, len))
        return fail_invalid(err);
    if (check_scheme(text, policy, &url, &rest, err) < 0)
        return -1;
    // Up to the first slash, queries and fragments included: some readers end the host later than others.
    if (memchr(rest, '@', strcspn(rest, "/")))
        return guest_tool_fail(err, NULL, "Attachment URL must not include credentials.");
    if (split_authority(rest, strcspn(rest, "/?#"), &url, err) < 0 || check_host(policy, &url, err) < 0)
        return -1;
    url.text = mem_strdup(text);
    *ret = url;
    url = (struct import_url){0};
    return 0;
}
