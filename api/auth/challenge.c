// What the endpoint says about its authentication: the values of WWW-Authenticate (RFC 6750, RFC 9728) and the metadata
// document of the protected resource.
#include "api/auth/internal.h"
#include "controller/base/buffer.h"
#include "controller/base/json.h"
#include "controller/base/memory.h"
#include "controller/config_url.h"
#include <string.h>

// Where the metadata of the resource are, by RFC 9728: its path behind the well-known one.
static char *metadata_url(const struct config *config, const struct config_url *url)
{
    size_t origin_len = strlen(config->public_url) - strlen(url->path);
    return mem_format("%.*s" AUTH_METADATA_PATH "%s", (int)origin_len, config->public_url, strcmp(url->path, "/") == 0 ? "" : url->path);
}

static char *make_metadata(const struct config *config)
{
    json_t *scopes = json_array();
    for (unsigned scope = 1; scope < SCOPE_ALL; scope <<= 1)
        json_array_append_new(scopes, json_string(auth_scope_word(scope)));
    CLEANUP_JSON json_t *document =
        json_pack("{s:s, s:[s], s:o, s:[s], s:s}", "resource", config->public_url, "authorization_servers", config->oauth_issuer,
                  "scopes_supported", scopes, "bearer_methods_supported", "header", "resource_name", "chat2shell");
    return json_to_text(document);
}

// A challenge of parameters: without OAuth it names none, so that no client begins to look for an authorization server.
static char *make_challenge(const char *metadata, const char *error, const char *scope)
{
    CLEANUP(buffer_free) struct buffer text = BUFFER_INIT(4096);
    const struct {
        const char *name, *value;
    } parameters[] = {{"resource_metadata", metadata}, {"error", error}, {"scope", scope}};
    buffer_append_text(&text, "Bearer");
    for (size_t i = 0, count = 0; i < ARRAY_LEN(parameters); i++)
        if (parameters[i].value)
            buffer_format(&text, "%s %s=\"%s\"", count++ ? "," : "", parameters[i].name, parameters[i].value);
    return buffer_take_string(&text);
}

void auth_make_texts(struct auth *auth)
{
    CLEANUP(config_url_clear) struct config_url url = {0};
    CLEANUP_FREE char *metadata = NULL;
    char all[AUTH_SCOPES_TEXT_SIZE];
    auth_scopes_format(SCOPE_ALL, all);
    bool has_oauth = auth->config->auth_modes & AUTH_OAUTH && config_url_parse(auth->config->public_url, &url, NULL) == 0;
    if (has_oauth) {
        metadata = metadata_url(auth->config, &url);
        auth->metadata = make_metadata(auth->config);
        auth->metadata_suffix = mem_strdup(strcmp(url.path, "/") == 0 ? "" : url.path);
    }
    auth->challenge = make_challenge(metadata, NULL, has_oauth ? all : NULL);
    auth->challenge_invalid = make_challenge(metadata, "invalid_token", has_oauth ? all : NULL);
    for (unsigned scope = 1; scope < SCOPE_ALL; scope <<= 1)
        auth->challenge_scope[scope] = make_challenge(metadata, "insufficient_scope", auth_scope_word(scope));
}

void auth_free_texts(struct auth *auth)
{
    free(auth->challenge);
    free(auth->challenge_invalid);
    for (size_t i = 0; i < ARRAY_LEN(auth->challenge_scope); i++)
        free(auth->challenge_scope[i]);
    free(auth->metadata);
    free(auth->metadata_suffix);
}

const char *auth_challenge_scope(const struct auth *auth, enum auth_scope scope)
{
    const char *text = auth->challenge_scope[scope];
    return text ? text : auth->challenge;
}

const char *auth_challenge_invalid(const struct auth *auth)
{
    return auth->challenge_invalid;
}

const char *auth_metadata(const struct auth *auth, const char *path)
{
    size_t len = strlen(AUTH_METADATA_PATH);
    if (!auth || !auth->metadata || strncmp(path, AUTH_METADATA_PATH, len) != 0)
        return NULL;
    const char *suffix = path + len;
    bool is_there = !*suffix || strcmp(suffix, "/mcp") == 0 || strcmp(suffix, auth->metadata_suffix) == 0;
    return is_there ? auth->metadata : NULL;
}
