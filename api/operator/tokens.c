// Static tokens of the MCP endpoint: made, listed, revoked. A token is said once, in the answer to its making.
#include "api/auth/auth.h"
#include "api/auth/token.h"
#include "api/operator/internal.h"
#include "controller/base/memory.h"
#include <stdio.h>
#include <string.h>

#define LIFE_MIN_MS 1000LL
#define LIFE_MAX_MS (10 * 366 * 24 * 3600 * 1000LL)

struct token_request {
    struct call *call;
    struct store_token row;
    char text[TOKEN_LEN + 1]; // of a new one; secret
};

static struct token_set *tokens_of(struct call *call)
{
    if (call->world->auth)
        return auth_tokens(call->world->auth);
    operator_fail_as(call, 503, ERROR_UNAVAILABLE, "try again in a moment", "the daemon is starting or stopping");
    return NULL;
}

static void free_request(struct token_request *request)
{
    explicit_bzero(request->text, sizeof(request->text));
    free(request);
}

// ---- rendering --------------------------------------------------------------------------------------------------
static json_t *time_or_null(struct wall_time time)
{
    char text[WALL_TIME_TEXT_SIZE];
    if (!time.ms)
        return json_null();
    wall_time_format(time, text);
    return json_string(text);
}

static json_t *words_of(const char *scopes)
{
    json_t *list = json_array();
    unsigned bits = auth_scopes_parse(scopes, strlen(scopes), NULL);
    for (unsigned scope = 1; scope < SCOPE_ALL; scope <<= 1)
        if (bits & scope)
            json_array_append_new(list, json_string(auth_scope_word(scope)));
    return list;
}

static json_t *token_to_json(const struct store_token *row, struct wall_time now)
{
    return json_pack("{s:s, s:o, s:o, s:s, s:o, s:o, s:b}", "name", row->name, "scopes", words_of(row->scopes), "createdAt",
                     time_or_null(row->created_at), "createdBy", row->created_by, "expiresAt", time_or_null(row->expires_at), "lastUsedAt",
                     time_or_null(row->used_at), "isExpired", row->expires_at.ms && row->expires_at.ms <= now.ms);
}

// ---- list -------------------------------------------------------------------------------------------------------
void tokens_list(struct call *call)
{
    struct token_set *set = tokens_of(call);
    if (!set)
        return;
    CLEANUP_FREE struct store_token *rows = NULL;
    size_t count;
    token_set_list(set, &rows, &count);
    json_t *items = json_array();
    for (size_t i = 0; i < count; i++)
        json_array_append_new(items, token_to_json(&rows[i], clock_wall(call->world->clock)));
    operator_answer(call, 200, json_pack("{s:o}", "items", items));
}

// ---- create -----------------------------------------------------------------------------------------------------
static int read_scopes(const json_t *body, struct store_token *row, struct error *err)
{
    const json_t *list = json_object_get(body, "scopes");
    unsigned scopes = list ? SCOPE_NONE : SCOPE_ALL;
    for (size_t i = 0; i < json_array_size(list); i++) {
        const char *word = json_string_value(json_array_get(list, i));
        size_t unknown = 1;
        unsigned scope = word ? auth_scopes_parse(word, strlen(word), &unknown) : SCOPE_NONE;
        if (unknown || !scope)
            return error_set(err, ERROR_INVALID, "scopes are tools:read, tools:write and sandboxes:manage", "'%.64s' is no scope", word ? word : "that");
        scopes |= scope;
    }
    if (!scopes)
        return error_set(err, ERROR_INVALID, "leave scopes out for all of them", "scopes must be a list of at least one scope");
    auth_scopes_format(scopes, row->scopes);
    return 0;
}

static int read_life(const json_t *body, struct wall_time now, struct store_token *row, struct error *err)
{
    const json_t *life = json_object_get(body, "expiresInMs");
    if (!life || json_is_null(life))
        return 0;
    json_int_t ms = json_is_integer(life) ? json_integer_value(life) : 0;
    if (ms < LIFE_MIN_MS || ms > LIFE_MAX_MS)
        return error_set(err, ERROR_INVALID, "leave it out for a token that does not expire", "the life of a token (expiresInMs) is from a second to ten years");
    row->expires_at.ms = now.ms + ms;
    return 0;
}

static int read_request(struct call *call, struct store_token *row, struct error *err)
{
    const char *name = json_get_text(call->body, "name");
    if (!name || strlen(name) > STORE_TOKEN_NAME_MAX)
        return error_set(err, ERROR_INVALID, "choose a name like laptop or tunnel", "name must be a text of at most %d characters", STORE_TOKEN_NAME_MAX);
    if (record_check_name(name, err) < 0 || read_scopes(call->body, row, err) < 0 ||
        read_life(call->body, clock_wall(call->world->clock), row, err) < 0)
        return -1;
    snprintf(row->name, sizeof(row->name), "%s", name);
    snprintf(row->created_by, sizeof(row->created_by), "%s", call->principal);
    return 0;
}

static int add(struct store_tx *tx, void *arg, struct error *err)
{
    struct token_request *request = arg;
    return tx_add_token(tx, &request->row, err);
}

static void added(void *arg, int result, const struct error *err) // store thread
{
    struct token_request *request = arg;
    struct call *call = request->call;
    if (result < 0) {
        operator_fail(call, err);
    } else {
        token_set_add(auth_tokens(call->world->auth), &request->row);
        json_t *body = token_to_json(&request->row, clock_wall(call->world->clock));
        json_set_text(body, "token", request->text);
        json_object_set_new(body, "isAskedFor", json_boolean(call->world->config->auth_modes & AUTH_TOKEN));
        operator_answer(call, 201, body);
    }
    free_request(request);
}

void tokens_create(struct call *call)
{
    struct token_request *request = mem_alloc(sizeof(*request));
    unsigned char digest[TOKEN_DIGEST_BYTES];
    struct error err = ERROR_INIT;
    request->call = call;
    if (!tokens_of(call)) {
        free_request(request);
        return;
    }
    if (read_request(call, &request->row, &err) < 0) {
        operator_fail(call, &err);
        free_request(request);
        return;
    }
    token_make(request->text);
    token_digest(request->text, TOKEN_LEN, digest);
    token_digest_format(digest, request->row.digest);
    store_submit(call->world->store, add, added, request);
}

// ---- revoke -----------------------------------------------------------------------------------------------------
static int drop(struct store_tx *tx, void *arg, struct error *err)
{
    struct call *call = arg;
    return tx_remove_token(tx, call->match.name, err);
}

static void dropped(void *arg, int result, const struct error *err) // store thread
{
    struct call *call = arg;
    if (result < 0) {
        operator_fail(call, err);
        return;
    }
    token_set_remove(auth_tokens(call->world->auth), call->match.name);
    operator_answer(call, 200, json_pack("{s:o, s:s}", "name", json_from_text(call->match.name), "status", "revoked"));
}

void tokens_revoke(struct call *call)
{
    if (tokens_of(call))
        store_submit(call->world->store, drop, dropped, call);
}
