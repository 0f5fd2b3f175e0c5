// What the files of api/auth share. Not for others.
#pragma once
#include "api/auth/auth.h"
#include "api/auth/keys.h"

#define AUTH_TOKEN_MAX_BYTES 8192 // of one bearer token
#define AUTH_METADATA_PATH "/.well-known/oauth-protected-resource"

struct auth {
    const struct config *config;
    struct clock *clock;
    struct token_set *tokens;
    struct key_source *keys; // NULL: no OAuth
    // Values of WWW-Authenticate, and what is served: made once.
    char *challenge, *challenge_invalid, *challenge_scope[SCOPE_ALL + 1];
    char *metadata, *metadata_suffix; // suffix: the path of the resource, "" if it has none
};
// ---- challenge.c
void auth_make_texts(struct auth *auth);
void auth_free_texts(struct auth *auth);
