// Who may use the MCP endpoint. Off by default on loopback; everywhere else a request shows a bearer token in its
// Authorization header (never in the URL): a static one (tokens.h) or an OAuth access token, a JWT that is checked against
// the authorization server's keys (jwt.h, keys.h). The answers are those of RFC 6750 and RFC 9728: 401 with WWW-Authenticate
// for who is not known, 403 for who may not (exchanges say that, because it carries the request's id).
//
// A request is judged when its head is there, before its body is read: who is not known cannot make the daemon hold bodies.
// Judging never blocks. Where the keys that a token needs are just being fetched, the answer is 503 with Retry-After, so that
// nobody throws a good token away.
//
//     if (!auth_check(world->auth, request, refusal)) return false;      // check_head
//     const struct caller *caller = http_request_kept(request);           // handle: NULL where nobody is asked
#pragma once
#include "api/auth/caller.h"
#include "api/auth/tokens.h"
#include "api/http/http.h"
#include "controller/config.h"

struct auth; // thread-safe
struct auth_options {
    const struct config *config; // must outlive it, as the next three
    struct clock *clock;
    struct loop *loop;
    struct store *store;
};
// Reads the tokens and a file of keys; a URL of keys is begun to be fetched. What cannot work is an error here.
int auth_start(const struct auth_options *options, struct auth **ret, struct error *err);
// After the listeners, before the store and the loop end. Waits for a fetch (which is bounded). NULL allowed.
void auth_stop(struct auth *auth);
bool auth_is_on(const struct auth *auth); // NULL: nobody is asked

// HTTP thread, in check_head. True: go on; the caller is kept with the request where one was asked for. False: *refusal.
bool auth_check(struct auth *auth, struct http_request *request, struct http_refusal *refusal);
// Later: whether the caller's token was revoked since. True for every caller without one.
bool auth_is_still_good(struct auth *auth, const struct caller *caller);
const char *auth_challenge_invalid(const struct auth *auth); // lives as long as auth
// The value of WWW-Authenticate for a caller who lacks one scope. Lives as long as auth.
const char *auth_challenge_scope(const struct auth *auth, enum auth_scope scope);
// The protected-resource metadata, where this path has them: JSON, lives as long as auth. NULL: nothing is there.
const char *auth_metadata(const struct auth *auth, const char *path);

struct token_set *auth_tokens(struct auth *auth); // also while they are not asked for
