// The MCP endpoint that asks who somebody is, over real sockets: static tokens, access tokens, keys that change.
#include "api/auth/auth.h"
#include "api/auth/keys.h"
#include "api/auth/token.h"
#include "api/mcp/mcp.h"
#include "api/tools/tools.h"
#include "controller/base/fs.h"
#include "controller/base/memory.h"
#include "tests/support/http_client.h"
#include "tests/support/signer.h"
#include "tests/support/support.h"
#include <arpa/inet.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
#define START_S 1790000000LL
#define ISSUER "https://login.example"
#define RESOURCE "https://box.example/mcp"
#define CLAIMS "{\"iss\":\"" ISSUER "\",\"aud\":\"" RESOURCE "\",\"exp\":1790003600,\"sub\":\"ann\",\"scope\":\"tools:read\"}"
#define PING "{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"ping\"}"
#define CALL(tool) "{\"jsonrpc\":\"2.0\",\"id\":\"é\",\"method\":\"tools/call\",\"params\":{\"name\":\"" tool "\"}}"
#define ALL_SCOPES "tools:read tools:write sandboxes:manage"
#define METADATA_URL "https://box.example/.well-known/oauth-protected-resource/mcp"

static struct {
    char *dir;
    struct clock *clock;
    struct loop *loop;
    struct store *store;
    struct config config;
    struct world world;
    struct mcp_server *server;
    int port;
} f;

static int set_up(void **state)
{
    (void)state;
    struct error err = ERROR_INIT;
    memset(&f, 0, sizeof(f));
    f.dir = support_make_dir();
    f.clock = clock_new_fake((struct wall_time){START_S * 1000});
    assert_ok(loop_start(f.clock, &f.loop, &err));
    assert_ok(store_open(&(struct store_options){.state_dir = f.dir, .clock = f.clock, .disk_floor_bytes = 1, .reserve_bytes = 4096}, &f.store, &err));
    f.config = (struct config){.host = "127.0.0.1", .public_url = "", .oauth_issuer = "", .oauth_jwks = ""};
    f.world = (struct world){.config = &f.config, .clock = f.clock, .loop = f.loop, .store = f.store};
    return 0;
}

static void stop(void)
{
    mcp_server_stop(f.server);
    auth_stop(f.world.auth);
    f.server = NULL;
    f.world.auth = NULL;
}

static int tear_down(void **state)
{
    (void)state;
    stop();
    store_close(f.store);
    loop_stop(f.loop);
    clock_free(f.clock);
    support_remove_dir(f.dir);
    return 0;
}

static int try_serve(struct error *err)
{
    const struct auth_options options = {.config = &f.config, .clock = f.clock, .loop = f.loop, .store = f.store};
    if (auth_start(&options, &f.world.auth, err) < 0 || mcp_server_start(&f.world, &f.server, err) < 0)
        return -1;
    f.port = mcp_server_port(f.server);
    return 0;
}

static void serve(unsigned modes, const char *jwks)
{
    struct error err = ERROR_INIT;
    f.config.auth_modes = modes;
    if (modes & AUTH_OAUTH) {
        f.config.public_url = RESOURCE;
        f.config.oauth_issuer = ISSUER;
        f.config.oauth_jwks = (char *)jwks;
    }
    assert_ok(try_serve(&err));
}

// ---- requests -----------------------------------------------------------------------------------------------------
static struct http_answer ask(const char *authorization, const char *body)
{
    CLEANUP_FREE char *header = authorization ? mem_format("Authorization: %s\r\n", authorization) : mem_strdup("");
    struct http_answer answer;
    http_client_post(f.port, "/mcp", header, body, &answer);
    return answer;
}

static void assert_answer(const char *authorization, const char *body, int status, const char *challenge)
{
    struct http_answer answer = ask(authorization, body);
    CLEANUP_FREE char *given = http_answer_header(&answer, "WWW-Authenticate");
    if (answer.status != status || (challenge ? !given || strcmp(given, challenge) != 0 : given != NULL))
        fail_msg("%.80s: status %d, challenge %s: %s", authorization, answer.status, given ? given : "none", answer.body);
    http_answer_clear(&answer);
}

static char *bearer(const char *token)
{
    return mem_format("Bearer %s", token);
}

static void assert_token(const char *token, int status)
{
    CLEANUP_FREE char *authorization = bearer(token);
    struct http_answer answer = ask(authorization, PING);
    if (answer.status != status)
        fail_msg("status %d, not %d: %s", answer.status, status, answer.body);
    http_answer_clear(&answer);
}

// ---- static tokens ------------------------------------------------------------------------------------------------
static int add_in_tx(struct store_tx *tx, void *arg, struct error *err)
{
    return tx_add_token(tx, arg, err);
}

static char *make_token(const char *name, const char *scopes, int64_t life_ms)
{
    struct error err = ERROR_INIT;
    struct store_token row = {.created_by = "operator:uid=0", .expires_at = {life_ms ? clock_wall(f.clock).ms + life_ms : 0}};
    unsigned char digest[TOKEN_DIGEST_BYTES];
    char token[TOKEN_LEN + 1];
    token_make(token);
    token_digest(token, TOKEN_LEN, digest);
    token_digest_format(digest, row.digest);
    snprintf(row.name, sizeof(row.name), "%s", name);
    snprintf(row.scopes, sizeof(row.scopes), "%s", scopes);
    assert_ok(store_transact(f.store, add_in_tx, &row, &err));
    token_set_add(auth_tokens(f.world.auth), &row);
    return mem_strdup(token);
}

static void without_a_token_a_static_endpoint_answers_401_and_names_no_server(void **state)
{
    (void)state;
    serve(AUTH_TOKEN, NULL);
    static const char *const nothing[] = {NULL, "", "Bearer", "Bearer ", "Basic YTpi", "Token c2s_a", "Bearer a b", "Bearerx", "Bearer \xc3\xa9", "Bearer a=b"};
    for (size_t i = 0; i < ARRAY_LEN(nothing); i++)
        assert_answer(nothing[i], PING, 401, "Bearer");
    static const char *const wrong[] = {"Bearer c2s_a", "bearer x", "BEARER   eyJhbGciOiJub25lIn0.e30.", "Bearer ===="};
    for (size_t i = 0; i < 3; i++)
        assert_answer(wrong[i], PING, 401, "Bearer error=\"invalid_token\"");
    assert_answer(wrong[3], PING, 401, "Bearer");
    struct http_answer answer = ask(NULL, PING);
    json_t *message = http_answer_json(&answer);
    assert_string_equal(json_string_value(json_object_get(message, "jsonrpc")), "2.0");
    assert_true(json_string_length(json_object_get(json_object_get(message, "error"), "message")) > 20);
    json_decref(message);
    http_answer_clear(&answer);
}

static void a_token_is_taken_from_the_header_only(void **state)
{
    (void)state;
    serve(AUTH_TOKEN, NULL);
    CLEANUP_FREE char *token = make_token("laptop", ALL_SCOPES, 0), *path = mem_format("/mcp?access_token=%s", token);
    struct http_answer answer;
    http_client_post(f.port, path, "", PING, &answer);
    assert_int_equal(answer.status, 401);
    http_answer_clear(&answer);
    CLEANUP_FREE char *twice = mem_format("Authorization: Bearer %s\r\nAuthorization: Bearer %s\r\n", token, token);
    http_client_post(f.port, "/mcp", twice, PING, &answer);
    assert_int_equal(answer.status, 400); // two readers might take either
    http_answer_clear(&answer);
    assert_token(token, 200);
    CLEANUP_FREE char *cut = mem_strndup(token, TOKEN_LEN - 1), *grown = mem_format("%sa", token);
    assert_token(cut, 401);
    assert_token(grown, 401);
}

static void who_it_is_is_asked_after_the_path_and_before_the_media_type(void **state)
{
    (void)state;
    serve(AUTH_TOKEN, NULL);
    CLEANUP_FREE char *token = make_token("laptop", ALL_SCOPES, 0);
    static const struct {
        const char *head;
        int without, with;
    } rows[] = {
        {"POST /mcp HTTP/1.1\r\nHost: evil.example\r\nContent-Type: application/json\r\nContent-Length: 0\r\n", 403, 403},
        {"GET /mcp HTTP/1.1\r\nHost: localhost\r\n", 405, 405},
        {"GET /nothing HTTP/1.1\r\nHost: localhost\r\n", 404, 404},
        {"GET /.well-known/oauth-protected-resource HTTP/1.1\r\nHost: localhost\r\n", 404, 404},
        {"GET /healthz HTTP/1.1\r\nHost: localhost\r\n", 200, 200},
        {"POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: text/plain\r\nContent-Length: 0\r\n", 401, 415},
        {"POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nAccept: text/html\r\nContent-Length: 0\r\n", 401, 406},
        {"POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 0\r\n", 401, 400},
        {"POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nExpect: 100-continue\r\nContent-Length: 9000000\r\n", 401, 100},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        for (int has = 0; has < 2; has++) {
            CLEANUP_FREE char *text = has ? mem_format("%sAuthorization: Bearer %s\r\n\r\n", rows[i].head, token) : mem_format("%s\r\n", rows[i].head);
            struct http_answer answer;
            if (has && rows[i].with == 100)
                continue; // it may send: that is all
            http_client_raw(f.port, text, strlen(text), &answer);
            if (answer.status != (has ? rows[i].with : rows[i].without))
                fail_msg("%s token: %d for %s", has ? "with" : "without", answer.status, rows[i].head);
            http_answer_clear(&answer);
        }
}

static void each_tool_asks_for_its_scope_and_says_which_one_is_missing(void **state)
{
    (void)state;
    serve(AUTH_TOKEN, NULL);
    static const char *const words[] = {"tools:read", "tools:write", "sandboxes:manage"};
    CLEANUP_FREE char *tokens[3] = {NULL};
    for (size_t s = 0; s < 3; s++) {
        CLEANUP_FREE char *name = mem_format("only-%zu", s);
        tokens[s] = make_token(name, words[s], 0);
    }
    for (size_t i = 0; i < tool_count; i++)
        for (size_t s = 0; s < 3; s++) {
            if (tools[i].scope == 1u << s)
                continue;
            CLEANUP_FREE char *authorization = bearer(tokens[s]);
            CLEANUP_FREE char *fixed = mem_format("{\"jsonrpc\":\"2.0\",\"id\":-12,\"method\":\"tools/call\",\"params\":{\"name\":\"%s\"}}", tools[i].name);
            CLEANUP_FREE char *challenge = mem_format("Bearer error=\"insufficient_scope\", scope=\"%s\"", auth_scope_word(tools[i].scope));
            assert_answer(authorization, fixed, 403, challenge);
        }
    for (size_t s = 0; s < 3; s++)
        free(tokens[s]), tokens[s] = NULL;
}

static void a_refused_call_carries_the_requests_id(void **state)
{
    (void)state;
    serve(AUTH_TOKEN, NULL);
    CLEANUP_FREE char *token = make_token("viewer", "tools:read", 0), *authorization = bearer(token);
    struct http_answer answer = ask(authorization, CALL("bash"));
    json_t *message = http_answer_json(&answer);
    assert_int_equal(answer.status, 403);
    assert_string_equal(json_string_value(json_object_get(message, "id")), "é");
    assert_non_null(strstr(json_string_value(json_object_get(json_object_get(message, "error"), "message")), "tools:write"));
    json_decref(message);
    http_answer_clear(&answer);
    assert_answer(authorization, CALL("sandbox_list"), 200, NULL);
    assert_answer(authorization, CALL("no_such_tool"), 200, NULL); // -32602: it is no tool of any scope
    assert_answer(authorization, PING, 200, NULL);
    assert_answer(authorization, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\"}", 200, NULL);
    answer = ask(authorization, "[" PING "," CALL("bash") "]"); // a batch is answered as a whole
    assert_int_equal(answer.status, 200);
    assert_non_null(strstr(answer.body, "lacks the scope tools:write"));
    http_answer_clear(&answer);
}

static void a_token_ends_by_expiry_and_by_revocation_on_open_connections_too(void **state)
{
    (void)state;
    serve(AUTH_TOKEN, NULL);
    CLEANUP_FREE char *token = make_token("short", ALL_SCOPES, 60000), *other = make_token("long", ALL_SCOPES, 0);
    CLEANUP_FREE char *header = mem_format("Authorization: Bearer %s\r\n", other), *text = http_client_post_text("/mcp", header, PING);
    int fd = http_client_connect(f.port);
    struct http_answer answer;
    http_client_send_text(fd, text);
    http_client_read(fd, &answer, SUPPORT_PATIENCE_MS);
    assert_int_equal(answer.status, 200);
    http_answer_clear(&answer);
    assert_token(token, 200);
    clock_advance(f.clock, 60000);
    assert_token(token, 401);
    token_set_remove(auth_tokens(f.world.auth), "long");
    http_client_send_text(fd, text); // the same connection
    http_client_read(fd, &answer, SUPPORT_PATIENCE_MS);
    assert_int_equal(answer.status, 401);
    http_answer_clear(&answer);
    close(fd);
}

static void a_token_that_is_revoked_while_a_body_comes_in_does_nothing(void **state)
{
    (void)state;
    serve(AUTH_TOKEN, NULL);
    CLEANUP_FREE char *token = make_token("laptop", ALL_SCOPES, 0), *header = mem_format("Authorization: Bearer %s\r\n", token);
    CLEANUP_FREE char *text = http_client_post_text("/mcp", header, PING);
    int fd = http_client_connect(f.port);
    size_t head_len = strlen(text) - strlen(PING);
    http_client_send(fd, text, head_len);
    assert_token(token, 200); // the server goes on meanwhile, with the head of the first one read or about to be
    poll(NULL, 0, 50);
    token_set_remove(auth_tokens(f.world.auth), "laptop");
    http_client_send(fd, text + head_len, strlen(PING));
    struct http_answer answer;
    http_client_read(fd, &answer, SUPPORT_PATIENCE_MS);
    CLEANUP_FREE char *challenge = http_answer_header(&answer, "WWW-Authenticate");
    assert_int_equal(answer.status, 401);
    assert_string_equal(challenge, "Bearer error=\"invalid_token\"");
    http_answer_clear(&answer);
    close(fd);
}

// ---- addresses ------------------------------------------------------------------------------------------------------
static void another_address_needs_authentication(void **state)
{
    (void)state;
    struct error err = ERROR_INIT;
    f.config.host = "0.0.0.0";
    assert_error(try_serve(&err), ERROR_REFUSED);
    stop();
    f.config.auth_modes = AUTH_TOKEN;
    f.config.public_url = "https://Box.example:8443/mcp";
    assert_ok(try_serve(&err));
    CLEANUP_FREE char *token = make_token("laptop", ALL_SCOPES, 0);
    assert_token(token, 200);
    static const struct {
        const char *fields;
        int status;
    } rows[] = {
        {"Host: box.example", 200},
        {"Host: BOX.example:8443", 200},
        {"Host: box.example:1\r\nOrigin: https://box.example", 200},
        {"Host: box.example\r\nOrigin: https://evil.example", 403},
        {"Host: box.example.evil.example", 403},
        {"Host: evil.example\r\nX-Forwarded-Host: box.example\r\nForwarded: host=box.example", 403},
        {"Host: 0.0.0.0", 403},
        {"Host: localhost\r\nOrigin: http://0.0.0.0", 403},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        CLEANUP_FREE char *text = mem_format("POST /mcp HTTP/1.1\r\n%s\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\nContent-Length: %zu\r\n\r\n" PING,
                                             rows[i].fields, token, strlen(PING));
        struct http_answer answer;
        http_client_raw(f.port, text, strlen(text), &answer);
        if (answer.status != rows[i].status)
            fail_msg("%s: %d", rows[i].fields, answer.status);
        http_answer_clear(&answer);
    }
}

static void a_server_that_should_ask_and_has_nobody_to_do_it_does_not_start(void **state)
{
    (void)state;
    struct error err = ERROR_INIT;
    f.config.auth_modes = AUTH_TOKEN;
    assert_error(mcp_server_start(&f.world, &f.server, &err), ERROR_INTERNAL);
}

// ---- OAuth: keys in a file ------------------------------------------------------------------------------------------
static char *put_keys(const struct signer *signers, size_t count)
{
    struct error err = ERROR_INIT;
    CLEANUP_FREE char *text = signer_set(signers, count);
    CLEANUP_CLOSE int dir = open(f.dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_ok(fs_replace_file(dir, "keys.json", text, strlen(text), 0644, &err));
    return mem_format("%s/keys.json", f.dir);
}

// Until the answer has this status: what the keys' thread reads is there a moment later. Moves the fake clock by a second each time.
static void wait_for_status(const char *token, int status)
{
    CLEANUP_FREE char *authorization = bearer(token);
    int seen = 0;
    for (int i = 0; i < SUPPORT_PATIENCE_MS / 10 && seen != status; i++) {
        struct http_answer answer = ask(authorization, PING);
        seen = answer.status;
        http_answer_clear(&answer);
        if (seen == status)
            return;
        assert_true(seen == 503 || seen == 401 || seen == 200);
        clock_advance(f.clock, 1000);
        poll(NULL, 0, 10);
    }
    fail_msg("status %d stays", seen);
}

static void access_tokens_are_checked_against_a_file_and_the_server_says_where_to_get_them(void **state)
{
    (void)state;
    struct signer signer = signer_make("ES256", "k1", 0);
    CLEANUP_FREE char *path = put_keys(&signer, 1), *token = signer_token(&signer, CLAIMS), *authorization = bearer(token);
    serve(AUTH_OAUTH, path);
    assert_answer(NULL, PING, 401, "Bearer resource_metadata=\"" METADATA_URL "\", scope=\"" ALL_SCOPES "\"");
    assert_answer("Bearer x.y.z", PING, 401, "Bearer resource_metadata=\"" METADATA_URL "\", error=\"invalid_token\", scope=\"" ALL_SCOPES "\"");
    assert_answer(authorization, PING, 200, NULL);
    assert_answer(authorization, CALL("sandbox_list"), 200, NULL);
    assert_answer(authorization, CALL("bash"), 403, "Bearer resource_metadata=\"" METADATA_URL "\", error=\"insufficient_scope\", scope=\"tools:write\"");
    CLEANUP_FREE char *expired = signer_token(&signer, "{\"iss\":\"" ISSUER "\",\"aud\":\"" RESOURCE "\",\"exp\":1,\"sub\":\"ann\"}");
    assert_token(expired, 401);
    signer_clear(&signer);
}

static void assert_told(const char *authorization, const char *words)
{
    struct http_answer answer = ask(authorization, PING);
    assert_int_equal(answer.status, 401);
    if (!strstr(answer.body, words))
        fail_msg("'%s' is not in %s", words, answer.body);
    http_answer_clear(&answer);
}

static void static_and_access_tokens_go_side_by_side_only_where_both_are_asked_for(void **state)
{
    (void)state;
    struct signer signer = signer_make("EdDSA", "k1", 0);
    CLEANUP_FREE char *path = put_keys(&signer, 1), *token = signer_token(&signer, CLAIMS);
    serve(AUTH_TOKEN | AUTH_OAUTH, path);
    CLEANUP_FREE char *fixed = make_token("laptop", ALL_SCOPES, 0);
    assert_token(fixed, 200);
    assert_token(token, 200);
    assert_told(NULL, "an access token for this resource, or a token of chat2shell token create");
    stop();
    serve(AUTH_OAUTH, path);
    CLEANUP_FREE char *shown = bearer(fixed);
    assert_told(shown, "tokens of chat2shell token create are not taken here: send Authorization: Bearer and an access token");
    assert_token(token, 200);
    stop();
    serve(AUTH_TOKEN, NULL);
    assert_token(fixed, 200);
    assert_token(token, 401);
    signer_clear(&signer);
}

static void the_metadata_are_where_rfc_9728_looks_for_them_and_need_no_token(void **state)
{
    (void)state;
    struct signer signer = signer_make("ES256", "k1", 0);
    CLEANUP_FREE char *path = put_keys(&signer, 1);
    serve(AUTH_OAUTH, path);
    static const char *const paths[] = {"/.well-known/oauth-protected-resource", "/.well-known/oauth-protected-resource/mcp"};
    for (size_t i = 0; i < ARRAY_LEN(paths); i++) {
        CLEANUP_FREE char *text = mem_format("GET %s HTTP/1.1\r\nHost: box.example\r\n\r\n", paths[i]);
        struct http_answer answer;
        http_client_raw(f.port, text, strlen(text), &answer);
        assert_int_equal(answer.status, 200);
        json_t *document = http_answer_json(&answer);
        assert_string_equal(json_string_value(json_object_get(document, "resource")), RESOURCE);
        assert_string_equal(json_string_value(json_array_get(json_object_get(document, "authorization_servers"), 0)), ISSUER);
        assert_int_equal(json_array_size(json_object_get(document, "scopes_supported")), 3);
        assert_string_equal(json_string_value(json_array_get(json_object_get(document, "bearer_methods_supported"), 0)), "header");
        json_decref(document);
        http_answer_clear(&answer);
    }
    static const char other[] = "GET /.well-known/oauth-protected-resource/mcp/x HTTP/1.1\r\nHost: localhost\r\n\r\n";
    static const char posted[] = "POST /.well-known/oauth-protected-resource HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n";
    struct http_answer answer;
    http_client_raw(f.port, other, strlen(other), &answer);
    assert_int_equal(answer.status, 404);
    http_answer_clear(&answer);
    http_client_raw(f.port, posted, strlen(posted), &answer);
    assert_int_equal(answer.status, 405);
    http_answer_clear(&answer);
    signer_clear(&signer);
}

static void a_file_of_keys_is_read_again_when_it_changes_and_a_broken_one_changes_nothing(void **state)
{
    (void)state;
    struct error err = ERROR_INIT;
    struct signer old = signer_make("ES256", "k1", 0), new = signer_make("RS256", "k2", 0);
    CLEANUP_FREE char *path = put_keys(&old, 1), *first = signer_token(&old, CLAIMS), *second = signer_token(&new, CLAIMS);
    serve(AUTH_OAUTH, path);
    assert_token(first, 200);
    assert_token(second, 401);
    CLEANUP_CLOSE int dir = open(f.dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_ok(fs_replace_file(dir, "keys.json", "{\"keys\":", 8, 0644, &err));
    for (int i = 0; i < 5; i++) {
        clock_advance(f.clock, 1000);
        assert_token(first, 200);
    }
    CLEANUP_FREE char *again = put_keys(&new, 1);
    clock_advance(f.clock, 1000);
    wait_for_status(second, 200);
    assert_token(first, 401);
    signer_clear(&old);
    signer_clear(&new);
}

static void a_file_of_keys_that_cannot_be_trusted_or_read_keeps_the_server_from_starting(void **state)
{
    (void)state;
    struct error err = ERROR_INIT;
    struct signer signer = signer_make("ES256", "k1", 0);
    CLEANUP_FREE char *path = put_keys(&signer, 1);
    f.config.auth_modes = AUTH_OAUTH;
    f.config.public_url = RESOURCE;
    f.config.oauth_issuer = ISSUER;
    f.config.oauth_jwks = path;
    assert_int_equal(chmod(path, 0666), 0);
    assert_error(try_serve(&err), ERROR_REFUSED);
    assert_int_equal(chmod(path, 0644), 0);
    f.config.oauth_jwks = "/nonexistent/keys.json";
    assert_error(try_serve(&err), ERROR_NOT_FOUND);
    assert_non_null(strstr(err.hint, "CHAT2SHELL_OAUTH_JWKS"));
    f.config.oauth_jwks = f.dir;
    assert_error(try_serve(&err), ERROR_INVALID);
    f.config.oauth_jwks = "/etc/passwd"; // a trusted file, and no key set
    assert_true(try_serve(&err) < 0);
    assert_non_null(strstr(err.message, "/etc/passwd"));
    assert_non_null(strstr(err.hint, "CHAT2SHELL_OAUTH_JWKS"));
    signer_clear(&signer);
}

// ---- OAuth: keys at a URL -------------------------------------------------------------------------------------------
static struct { // a server of keys, as slow and as wrong as a test likes
    int fd, port;
    pthread_t thread;
    pthread_mutex_t lock; // guards body
    char *body;
    atomic_int hits, status;
    atomic_bool is_silent, is_stopping;
} site;

static void answer_keys(int fd)
{
    char request[4096], buffer[256];
    ssize_t n = read(fd, request, sizeof(request)); // a GET comes in one piece here
    atomic_fetch_add(&site.hits, 1);
    for (int i = 0; n > 0 && i < SUPPORT_PATIENCE_MS / 10 && atomic_load(&site.is_silent) && !atomic_load(&site.is_stopping); i++)
        poll(NULL, 0, 10);
    pthread_mutex_lock(&site.lock);
    int len = snprintf(buffer, sizeof(buffer), "HTTP/1.1 %d X\r\nContent-Length: %zu\r\nLocation: http://127.0.0.1:1/\r\nConnection: close\r\n\r\n",
                       atomic_load(&site.status), strlen(site.body));
    struct error ignored = ERROR_INIT;
    fs_write_all(fd, buffer, (size_t)len, &ignored);
    fs_write_all(fd, site.body, strlen(site.body), &ignored);
    pthread_mutex_unlock(&site.lock);
}

static void *run_site(void *arg)
{
    (void)arg;
    while (!atomic_load(&site.is_stopping)) {
        struct pollfd at = {.fd = site.fd, .events = POLLIN};
        if (poll(&at, 1, 20) <= 0)
            continue;
        int fd = accept4(site.fd, NULL, NULL, SOCK_CLOEXEC);
        if (fd >= 0)
            answer_keys(fd), close(fd);
    }
    return NULL;
}

static void set_site(int status, const struct signer *signers, size_t count)
{
    pthread_mutex_lock(&site.lock);
    free(site.body);
    site.body = signers ? signer_set(signers, count) : mem_strdup("{}");
    pthread_mutex_unlock(&site.lock);
    atomic_store(&site.status, status);
}

static char *start_site(void)
{
    struct error err = ERROR_INIT;
    memset(&site, 0, sizeof(site));
    pthread_mutex_init(&site.lock, NULL);
    set_site(200, NULL, 0);
    site.fd = http_listen_tcp("127.0.0.1", 0, &err);
    assert_true(site.fd >= 0);
    site.port = http_listen_port(site.fd);
    assert_int_equal(pthread_create(&site.thread, NULL, run_site, NULL), 0);
    return mem_format("http://127.0.0.1:%d/keys", site.port);
}

static void stop_site(void)
{
    atomic_store(&site.is_stopping, true);
    pthread_join(site.thread, NULL);
    close(site.fd);
    free(site.body);
}

static void keys_at_a_url_are_fetched_again_for_an_unknown_key_once_a_minute(void **state)
{
    (void)state;
    struct signer old = signer_make("ES256", "k1", 0), new = signer_make("PS256", "k2", 0), stranger = signer_make("ES256", "k3", 0);
    CLEANUP_FREE char *url = start_site(), *first = signer_token(&old, CLAIMS), *second = signer_token(&new, CLAIMS),
                      *third = signer_token(&stranger, CLAIMS);
    set_site(200, &old, 1);
    serve(AUTH_OAUTH, url);
    wait_for_status(first, 200);
    int hits = atomic_load(&site.hits);
    for (int i = 0; i < 50; i++)
        assert_token(third, 401); // known not to be there, and asked a moment ago
    assert_int_equal(atomic_load(&site.hits), hits);
    const struct signer both[] = {old, new};
    set_site(200, both, 2);
    clock_advance(f.clock, KEYS_REFETCH_MIN_MS);
    wait_for_status(second, 200);
    assert_int_equal(atomic_load(&site.hits), hits + 1);
    assert_token(first, 200);
    assert_token(third, 401);
    stop();
    stop_site();
    signer_clear(&old);
    signer_clear(&new);
    signer_clear(&stranger);
}

static void a_fetch_that_fails_leaves_the_keys_and_a_slow_one_holds_nobody(void **state)
{
    (void)state;
    struct signer old = signer_make("ES256", "k1", 0), new = signer_make("ES256", "k2", 0);
    CLEANUP_FREE char *url = start_site(), *first = signer_token(&old, CLAIMS), *second = signer_token(&new, CLAIMS), *authorization = bearer(second);
    set_site(200, &old, 1);
    serve(AUTH_OAUTH, url);
    wait_for_status(first, 200);
    static const int bad[] = {500, 302, 404, 200}; // the last one: no key set
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        int hits = atomic_load(&site.hits);
        set_site(bad[i], NULL, 0);
        clock_advance(f.clock, KEYS_REFETCH_MIN_MS);
        struct http_answer answer = ask(authorization, PING);
        assert_true(answer.status == 503 || answer.status == 401);
        http_answer_clear(&answer);
        wait_for_status(second, 401);
        assert_true(atomic_load(&site.hits) > hits);
        assert_token(first, 200);
    }
    atomic_store(&site.is_silent, true);
    clock_advance(f.clock, KEYS_REFETCH_MIN_MS);
    struct http_answer answer = ask(authorization, PING);
    CLEANUP_FREE char *retry = http_answer_header(&answer, "Retry-After");
    assert_int_equal(answer.status, 503);
    assert_string_equal(retry, "2");
    http_answer_clear(&answer);
    assert_token(first, 200); // meanwhile
    set_site(200, &new, 1);
    atomic_store(&site.is_silent, false);
    wait_for_status(second, 200);
    assert_token(first, 401); // it is published no more
    stop();
    stop_site();
    signer_clear(&old);
    signer_clear(&new);
}

static void while_no_key_was_ever_fetched_nobody_is_told_that_a_token_is_bad(void **state)
{
    (void)state;
    struct signer signer = signer_make("EdDSA", "k1", 0);
    CLEANUP_FREE char *url = start_site(), *token = signer_token(&signer, CLAIMS);
    set_site(500, NULL, 0);
    serve(AUTH_OAUTH, url);
    for (int i = 0; i < 20; i++)
        assert_token(token, 503);
    assert_token("x.y.z", 401); // that one is, whatever the keys
    set_site(200, &signer, 1);
    wait_for_status(token, 200);
    stop();
    stop_site();
    signer_clear(&signer);
}

static void huge_tokens_are_refused_before_anything_is_made_of_them(void **state)
{
    (void)state;
    struct signer signer = signer_make("EdDSA", "k1", 0);
    CLEANUP_FREE char *path = put_keys(&signer, 1), *filler = mem_alloc(9001);
    memset(filler, 'a', 6300);
    CLEANUP_FREE char *claims = mem_format("{\"iss\":\"" ISSUER "\",\"aud\":\"" RESOURCE "\",\"exp\":1790003600,\"sub\":\"ann\",\"x\":\"%s\"}", filler);
    CLEANUP_FREE char *token = signer_token(&signer, claims), *fits = NULL;
    serve(AUTH_TOKEN | AUTH_OAUTH, path);
    assert_token(token, 401);
    memset(filler, 'a', 9000);
    assert_token(filler, 401);
    filler[5000] = '\0';
    free(claims);
    claims = mem_format("{\"iss\":\"" ISSUER "\",\"aud\":\"" RESOURCE "\",\"exp\":1790003600,\"sub\":\"ann\",\"x\":\"%s\"}", filler);
    fits = signer_token(&signer, claims);
    assert_token(fits, 200);
    signer_clear(&signer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(without_a_token_a_static_endpoint_answers_401_and_names_no_server),
        TEST(a_token_is_taken_from_the_header_only),
        TEST(who_it_is_is_asked_after_the_path_and_before_the_media_type),
        TEST(each_tool_asks_for_its_scope_and_says_which_one_is_missing),
        TEST(a_refused_call_carries_the_requests_id),
        TEST(a_token_ends_by_expiry_and_by_revocation_on_open_connections_too),
        TEST(a_token_that_is_revoked_while_a_body_comes_in_does_nothing),
        TEST(another_address_needs_authentication),
        TEST(a_server_that_should_ask_and_has_nobody_to_do_it_does_not_start),
        TEST(access_tokens_are_checked_against_a_file_and_the_server_says_where_to_get_them),
        TEST(static_and_access_tokens_go_side_by_side_only_where_both_are_asked_for),
        TEST(the_metadata_are_where_rfc_9728_looks_for_them_and_need_no_token),
        TEST(a_file_of_keys_is_read_again_when_it_changes_and_a_broken_one_changes_nothing),
        TEST(a_file_of_keys_that_cannot_be_trusted_or_read_keeps_the_server_from_starting),
        TEST(keys_at_a_url_are_fetched_again_for_an_unknown_key_once_a_minute),
        TEST(a_fetch_that_fails_leaves_the_keys_and_a_slow_one_holds_nobody),
        TEST(while_no_key_was_ever_fetched_nobody_is_told_that_a_token_is_bad),
        TEST(huge_tokens_are_refused_before_anything_is_made_of_them),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
