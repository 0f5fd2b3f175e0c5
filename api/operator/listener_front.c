#include "api/operator/listener_front.h"
#include "controller/base/cleanup.h"
#include "controller/base/time.h"
#include "controller/log.h"
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define SCHEME "Bearer "
#define OWN_PATHS "/chat2shell/"
#define SAY_EVERY_MS 60000

static bool refuse(struct http_refusal *refusal, int status, const char *hint, const char *message)
{
    refusal->status = status;
    return error_set(&refusal->error, status == 404 ? ERROR_NOT_FOUND : ERROR_REFUSED, hint, "%s", message) == 0;
}

static bool check_origin(struct http_request *request, struct http_refusal *refusal)
{
    CLEANUP_FREE char *host = http_request_header(request, "Host");
    if (!host || (!http_host_is(host, "127.0.0.1") && !http_host_is(host, "localhost")))
        return refuse(refusal, 403, "connect to 127.0.0.1 or localhost by that name", "the Host header does not name this machine");
    if (http_request_has_header(request, "Origin"))
        return refuse(refusal, 403, "web pages cannot use this server", "requests with an Origin are refused");
    return true;
}

// ---- the token ------------------------------------------------------------------------------------------------------------
// A log that somebody fills with guesses tells nothing: once a minute.
static void say_refused(void)
{
    static _Atomic int64_t next_ms;
    int64_t now = boot_time_now().ms, due = atomic_load(&next_ms);
    if (now >= due && atomic_compare_exchange_strong(&next_ms, &due, now + SAY_EVERY_MS))
        log_warning("Kubernetes listener: refused a request without a good token (said once a minute)");
}

static bool is_good(const char *header, const unsigned char *digest)
{
    unsigned char given[TOKEN_DIGEST_BYTES];
    size_t scheme = sizeof(SCHEME) - 1;
    if (!header || !digest || strncasecmp(header, SCHEME, scheme) != 0)
        return false;
    const char *token = header + scheme + strspn(header + scheme, " ");
    if (!token_is_formed(token))
        return false;
    token_digest(token, TOKEN_LEN, given);
    return token_digest_is_equal(given, digest);
}

static bool check_token(struct http_request *request, const unsigned char *digest, struct http_refusal *refusal)
{
    CLEANUP_SECRET char *header = http_request_header(request, "Authorization");
    if (http_request_count_header(request, "Authorization") == 1 && is_good(header, digest))
        return true;
    say_refused();
    refusal->headers[0] = (struct http_header){"WWW-Authenticate", "Bearer realm=\"chat2shell\""};
    return refuse(refusal, 401, "use the kubeconfig of: chat2shell kubeconfig", header ? "the token is not the one of this listener, or no longer" : "Unauthorized");
}

bool listener_check_front(struct http_request *request, const unsigned char *digest, struct http_refusal *refusal)
{
    if (!check_origin(request, refusal) || !check_token(request, digest, refusal))
        return false;
    if (strncmp(http_request_path(request), OWN_PATHS, sizeof(OWN_PATHS) - 1) == 0)
        return refuse(refusal, 404, "use the chat2shell command on this machine", "chat2shell's own paths are served on the operator's socket only");
    return true;
}
