#include "api/auth/internal.h"
#include "api/auth/jwt.h"
#include "api/auth/token.h"
#include "controller/base/memory.h"
#include "controller/config_url.h"
#include "controller/log.h"
#include <string.h>
#include <strings.h>

#define SCHEME "Bearer"
#define HINT_STATIC "send Authorization: Bearer and a token of chat2shell token create"
#define HINT_OAUTH "send Authorization: Bearer and an access token for this resource"

bool auth_is_on(const struct auth *auth)
{
    return auth && auth->config->auth_modes != 0;
}

struct token_set *auth_tokens(struct auth *auth)
{
    return auth->tokens;
}

// ---- refusals -------------------------------------------------------------------------------------------------
static bool refuse(struct http_refusal *refusal, int status, const char *header, const char *value)
{
    refusal->status = status;
    refusal->headers[0] = (struct http_header){header, value};
    return false;
}

static const char *hint(const struct auth *auth)
{
    static const char *const hints[] = {
        [AUTH_TOKEN] = HINT_STATIC, [AUTH_OAUTH] = HINT_OAUTH, [AUTH_TOKEN | AUTH_OAUTH] = HINT_OAUTH ", or a token of chat2shell token create"};
    return hints[auth->config->auth_modes];
}

static bool refuse_nobody(const struct auth *auth, struct http_refusal *refusal)
{
    error_set(&refusal->error, ERROR_REFUSED, hint(auth), "this endpoint asks for a bearer token, and none came with the request");
    return refuse(refusal, 401, "WWW-Authenticate", auth->challenge);
}

// refusal->error says why.
static bool refuse_token(const struct auth *auth, struct http_refusal *refusal)
{
    return refuse(refusal, 401, "WWW-Authenticate", auth->challenge_invalid);
}

static bool refuse_for_now(struct http_refusal *refusal)
{
    error_set(&refusal->error, ERROR_UNAVAILABLE, "try again in a moment", "the keys that this access token needs are being fetched");
    return refuse(refusal, 503, "Retry-After", "2");
}

// ---- the two kinds of tokens ----------------------------------------------------------------------------------
static bool check_static(const struct auth *auth, const char *token, struct caller *caller, struct http_refusal *refusal)
{
    switch (token_set_check(auth->tokens, token, clock_wall(auth->clock), caller)) {
    case TOKEN_GOOD:
        return true;
    case TOKEN_EXPIRED:
        error_set(&refusal->error, ERROR_REFUSED, "have another one made: chat2shell token create", "the token has expired");
        break;
    case TOKEN_UNKNOWN:
        error_set(&refusal->error, ERROR_REFUSED, hint(auth), "the token is none of this endpoint's, or it was revoked");
        break;
    }
    return refuse_token(auth, refusal);
}

static bool check_oauth(const struct auth *auth, const char *token, size_t len, struct caller *caller, struct http_refusal *refusal)
{
    CLEANUP(jwt_clear) struct jwt jwt = {0};
    const struct jwk *key = NULL;
    struct jwk_set *set = NULL;
    if (jwt_read(token, len, &jwt, &refusal->error) < 0)
        return refuse_token(auth, refusal);
    enum key_answer answer = key_source_find(auth->keys, jwt.key_id, jwt.algorithm, &set, &key);
    if (answer == KEYS_PENDING)
        return refuse_for_now(refusal);
    const struct jwt_rules rules = {auth->config->oauth_issuer, auth->config->public_url};
    bool is_good = false;
    if (answer == KEYS_NONE)
        error_set(&refusal->error, ERROR_REFUSED, "get a fresh access token for this resource from its authorization server",
                  "the access token is signed with a key that the authorization server does not publish");
    else
        is_good = jwt_check(&jwt, key, &rules, clock_wall(auth->clock), caller, &refusal->error) == 0;
    jwk_set_unref(set);
    return is_good || refuse_token(auth, refusal);
}

// ---- the header -----------------------------------------------------------------------------------------------
// RFC 6750: the scheme, one blank or more, then the token's own characters.
static const char *find_token(const char *header)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~+/";
    size_t scheme = sizeof(SCHEME) - 1;
    if (strncasecmp(header, SCHEME, scheme) != 0 || header[scheme] != ' ')
        return NULL;
    const char *token = header + scheme + strspn(header + scheme, " ");
    size_t len = strspn(token, plain);
    return len && !token[len + strspn(token + len, "=")] ? token : NULL;
}

static bool check_token(const struct auth *auth, const char *token, struct caller *caller, struct http_refusal *refusal)
{
    size_t len = strlen(token);
    unsigned modes = auth->config->auth_modes;
    bool is_static = strncmp(token, TOKEN_PREFIX, sizeof(TOKEN_PREFIX) - 1) == 0;
    if (len <= AUTH_TOKEN_MAX_BYTES && modes & AUTH_TOKEN && (is_static || !(modes & AUTH_OAUTH)))
        return check_static(auth, token, caller, refusal);
    if (is_static && !(modes & AUTH_TOKEN)) {
        error_set(&refusal->error, ERROR_REFUSED, HINT_OAUTH, "tokens of chat2shell token create are not taken here");
        return refuse_token(auth, refusal);
    }
    if (len <= AUTH_TOKEN_MAX_BYTES && modes & AUTH_OAUTH)
        return check_oauth(auth, token, len, caller, refusal);
    error_set(&refusal->error, ERROR_TOO_LARGE, hint(auth), "the token is longer than %d bytes", AUTH_TOKEN_MAX_BYTES);
    return refuse_token(auth, refusal);
}

bool auth_check(struct auth *auth, struct http_request *request, struct http_refusal *refusal)
{
    if (!auth_is_on(auth))
        return true;
    CLEANUP_SECRET char *header = http_request_header(request, "Authorization");
    const char *token = header ? find_token(header) : NULL;
    if (!token)
        return refuse_nobody(auth, refusal);
    struct caller *caller = mem_alloc(sizeof(*caller));
    bool is_known = check_token(auth, token, caller, refusal);
    if (is_known)
        http_request_keep(request, caller, free);
    else
        free(caller);
    return is_known;
}

bool auth_is_still_good(struct auth *auth, const struct caller *caller)
{
    return !caller->token_id || token_set_has(auth->tokens, caller->token_id);
}

// ---- life -----------------------------------------------------------------------------------------------------
static void say_what_is_odd(const struct auth *auth)
{
    const struct config *config = auth->config;
    if (config->auth_modes == AUTH_TOKEN && !token_set_count(auth->tokens))
        log_warning("the MCP endpoint asks for a token and there is none yet; make one: chat2shell token create NAME");
    if (config->auth_modes && strncmp(config->public_url, "https:", 6) != 0 && !config_host_is_loopback(config->host))
        log_warning("the MCP endpoint on %s speaks plain HTTP: whoever listens on the way can take tokens and use them; put a proxy that ends TLS "
                    "in front of it and name it in CHAT2SHELL_PUBLIC_URL",
                    config->host);
}

int auth_start(const struct auth_options *options, struct auth **ret, struct error *err)
{
    struct auth *auth = mem_alloc(sizeof(*auth));
    auth->config = options->config;
    auth->clock = options->clock;
    auth_make_texts(auth);
    if (token_set_load(options->store, options->loop, &auth->tokens, err) < 0 ||
        (options->config->auth_modes & AUTH_OAUTH && key_source_start(options->config->oauth_jwks, options->clock, &auth->keys, err) < 0))
        return auth_stop(auth), -1;
    say_what_is_odd(auth);
    *ret = auth;
    return 0;
}

void auth_stop(struct auth *auth)
{
    if (!auth)
        return;
    key_source_stop(auth->keys);
    token_set_free(auth->tokens);
    auth_free_texts(auth);
    free(auth);
}
