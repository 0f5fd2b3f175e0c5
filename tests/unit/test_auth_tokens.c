// Static tokens: their form, what of them is kept, and the set that requests are checked against.
#include "api/auth/token.h"
#include "api/auth/tokens.h"
#include "api/client/token.h"
#include "controller/base/fs.h"
#include "controller/base/memory.h"
#include "tests/support/store_fixture.h"
#include <string.h>

#define TEST(name) cmocka_unit_test(name)
#define STORE_TEST(name) cmocka_unit_test_setup_teardown(name, store_fixture_setup, store_fixture_teardown)

// ---- form -------------------------------------------------------------------------------------------------------
static void a_token_is_random_and_well_formed(void **state)
{
    (void)state;
    char a[TOKEN_LEN + 1], b[TOKEN_LEN + 1];
    for (int i = 0; i < 1000; i++) {
        token_make(a);
        token_make(b);
        assert_true(token_is_formed(a));
        assert_int_equal(strlen(a), TOKEN_LEN);
        assert_int_equal(strncmp(a, "c2s_", 4), 0);
        assert_string_not_equal(a, b);
    }
}

static void every_typing_error_is_seen_without_asking_anybody(void **state)
{
    (void)state;
    char token[TOKEN_LEN + 2];
    token_make(token);
    for (size_t i = 0; i < TOKEN_LEN; i++) {
        char kept = token[i];
        token[i] = kept == 'a' ? 'b' : 'a';
        assert_false(token_is_formed(token));
        token[i] = kept;
    }
    token[TOKEN_LEN] = 'a';
    token[TOKEN_LEN + 1] = '\0';
    assert_false(token_is_formed(token));
    token[TOKEN_LEN - 1] = '\0';
    assert_false(token_is_formed(token));
    static const char *const others[] = {"", "c2s_", "C2S_", "github_pat_1", "c2s_ABCDEFGHIJKLMNOPQRSTUVWXYZ234567ABCDEFGHIJKLMNOPQRSTUVWXYZ2"};
    for (size_t i = 0; i < ARRAY_LEN(others); i++)
        assert_false(token_is_formed(others[i]));
}

static void a_digest_is_sha_256_and_comes_back_from_its_text(void **state)
{
    (void)state;
    unsigned char digest[TOKEN_DIGEST_BYTES], again[TOKEN_DIGEST_BYTES];
    char text[TOKEN_DIGEST_HEX_SIZE];
    token_digest("abc", 3, digest);
    token_digest_format(digest, text);
    assert_string_equal(text, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    assert_int_equal(token_digest_parse(text, again), 0);
    assert_true(token_digest_is_equal(digest, again));
    for (size_t i = 0; i < TOKEN_DIGEST_BYTES; i++) {
        again[i] ^= 1;
        assert_false(token_digest_is_equal(digest, again));
        again[i] ^= 1;
    }
    assert_int_equal(token_digest_parse("ba", again), -1);
    text[5] = 'G';
    assert_int_equal(token_digest_parse(text, again), -1);
}

static void scopes_are_words_and_back(void **state)
{
    (void)state;
    char text[AUTH_SCOPES_TEXT_SIZE];
    for (unsigned scopes = 0; scopes <= SCOPE_ALL; scopes++) {
        size_t unknown = 9;
        auth_scopes_format(scopes, text);
        assert_int_equal(auth_scopes_parse(text, strlen(text), &unknown), scopes);
        assert_int_equal(unknown, 0);
    }
    size_t unknown;
    assert_int_equal(auth_scopes_parse(" tools:read  nothing\ttools:write ", 33, &unknown), SCOPE_TOOLS_READ);
    assert_int_equal(unknown, 1);
}

// ---- the store and the set --------------------------------------------------------------------------------------
struct set_fixture {
    struct store_fixture *store;
    struct loop *loop;
    struct token_set *set;
};

static struct set_fixture open_set(struct store_fixture *store)
{
    struct error err = ERROR_INIT;
    struct set_fixture fixture = {.store = store};
    assert_ok(loop_start(store->clock, &fixture.loop, &err));
    assert_ok(token_set_load(store->store, fixture.loop, &fixture.set, &err));
    return fixture;
}

static void close_set(struct set_fixture *fixture)
{
    token_set_free(fixture->set);
    loop_stop(fixture->loop);
}

static int add_in_tx(struct store_tx *tx, void *arg, struct error *err)
{
    return tx_add_token(tx, arg, err);
}

static int add(struct set_fixture *fixture, const char *name, const char *scopes, int64_t expires_ms, char token[TOKEN_LEN + 1], struct error *err)
{
    struct store_token row = {.created_by = "operator:uid=0", .expires_at = {expires_ms}};
    unsigned char digest[TOKEN_DIGEST_BYTES];
    token_make(token);
    token_digest(token, TOKEN_LEN, digest);
    token_digest_format(digest, row.digest);
    snprintf(row.name, sizeof(row.name), "%s", name);
    snprintf(row.scopes, sizeof(row.scopes), "%s", scopes);
    if (store_transact(fixture->store->store, add_in_tx, &row, err) < 0)
        return -1;
    token_set_add(fixture->set, &row);
    return 0;
}

static int remove_in_tx(struct store_tx *tx, void *arg, struct error *err)
{
    return tx_remove_token(tx, arg, err);
}

static void a_token_is_known_until_it_is_revoked_across_restarts(void **state)
{
    struct error err = ERROR_INIT;
    struct set_fixture fixture = open_set(*state);
    char token[TOKEN_LEN + 1], other[TOKEN_LEN + 1];
    struct caller caller = {0};
    assert_ok(add(&fixture, "laptop", "tools:read tools:write", 0, token, &err));
    assert_ok(add(&fixture, "viewer", "tools:read", 0, other, &err));
    for (int restart = 0; restart < 2; restart++) {
        assert_int_equal(token_set_check(fixture.set, token, clock_wall(fixture.store->clock), &caller), TOKEN_GOOD);
        assert_string_equal(caller.principal, "mcp:token:laptop");
        assert_int_equal(caller.scopes, SCOPE_TOOLS_READ | SCOPE_TOOLS_WRITE);
        close_set(&fixture);
        store_fixture_reopen(fixture.store);
        fixture = open_set(fixture.store);
    }
    assert_ok(store_transact(fixture.store->store, remove_in_tx, "laptop", &err));
    token_set_remove(fixture.set, "laptop");
    assert_int_equal(token_set_check(fixture.set, token, clock_wall(fixture.store->clock), &caller), TOKEN_UNKNOWN);
    assert_int_equal(token_set_check(fixture.set, other, clock_wall(fixture.store->clock), &caller), TOKEN_GOOD);
    assert_error(store_transact(fixture.store->store, remove_in_tx, "laptop", &err), ERROR_NOT_FOUND);
    close_set(&fixture);
}

static void a_token_ends_at_its_expiry(void **state)
{
    struct error err = ERROR_INIT;
    struct set_fixture fixture = open_set(*state);
    char token[TOKEN_LEN + 1];
    struct caller caller = {.principal = "untouched"};
    assert_ok(add(&fixture, "short", "tools:read", STORE_FIXTURE_START_MS + 60000, token, &err));
    struct wall_time before = {STORE_FIXTURE_START_MS + 59999}, at = {STORE_FIXTURE_START_MS + 60000};
    assert_int_equal(token_set_check(fixture.set, token, at, &caller), TOKEN_EXPIRED);
    assert_string_equal(caller.principal, "untouched");
    assert_int_equal(token_set_check(fixture.set, token, before, &caller), TOKEN_GOOD);
    close_set(&fixture);
}

static void names_are_taken_once_and_their_number_is_bounded(void **state)
{
    struct error err = ERROR_INIT;
    struct set_fixture fixture = open_set(*state);
    char token[TOKEN_LEN + 1], name[32];
    for (int i = 0; i < STORE_TOKENS_MAX; i++) {
        snprintf(name, sizeof(name), "token-%d", i);
        assert_ok(add(&fixture, name, "tools:read", 0, token, &err));
    }
    assert_error(add(&fixture, "one-more", "tools:read", 0, token, &err), ERROR_LIMIT);
    assert_error(add(&fixture, "token-7", "tools:read", 0, token, &err), ERROR_EXISTS);
    assert_int_equal(token_set_count(fixture.set), STORE_TOKENS_MAX);
    close_set(&fixture);
}

static void no_byte_of_a_token_is_in_the_store(void **state)
{
    struct error err = ERROR_INIT;
    struct set_fixture fixture = open_set(*state);
    char token[TOKEN_LEN + 1];
    struct caller caller;
    assert_ok(add(&fixture, "laptop", "tools:read", 0, token, &err));
    token_set_check(fixture.set, token, clock_wall(fixture.store->clock), &caller);
    close_set(&fixture);
    store_fixture_reopen(fixture.store); // everything is in the file
    static const char *const names[] = {STORE_DATABASE_NAME, STORE_DATABASE_NAME "-wal"};
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        CLEANUP_FREE char *path = mem_format("%s/%s", fixture.store->state_dir, names[i]);
        CLEANUP(buffer_free) struct buffer bytes = BUFFER_INIT(16 << 20);
        if (fs_read_file(path, &bytes, NULL) == 0 && bytes.len)
            assert_null(memmem(bytes.data, bytes.len, token + 4, 16));
    }
}

static int64_t used_at(struct store *store)
{
    struct error err = ERROR_INIT;
    CLEANUP_FREE struct store_token *rows = NULL;
    size_t count;
    assert_ok(store_list_tokens(store, &rows, &count, &err));
    assert_int_equal(count, 1);
    return rows[0].used_at.ms;
}

static void nothing(void *arg)
{
    (void)arg;
}

static int no_change(struct store_tx *tx, void *arg, struct error *err)
{
    (void)tx, (void)arg, (void)err;
    return 0;
}

static void uses_are_written_once_a_minute_and_at_the_end(void **state)
{
    struct error err = ERROR_INIT;
    struct set_fixture fixture = open_set(*state);
    struct clock *clock = fixture.store->clock;
    char token[TOKEN_LEN + 1];
    struct caller caller;
    assert_ok(add(&fixture, "laptop", "tools:read", 0, token, &err));
    for (int i = 0; i < 1000; i++)
        token_set_check(fixture.set, token, clock_wall(clock), &caller);
    assert_int_equal(used_at(fixture.store->store), 0);
    clock_advance(clock, TOKEN_USE_FLUSH_MS);
    loop_call(fixture.loop, nothing, NULL); // the timer has run
    assert_ok(store_transact(fixture.store->store, no_change, NULL, &err)); // what it submitted was done before this
    assert_int_equal(used_at(fixture.store->store), STORE_FIXTURE_START_MS);
    int64_t later = clock_wall(clock).ms;
    token_set_check(fixture.set, token, clock_wall(clock), &caller);
    assert_int_equal(used_at(fixture.store->store), STORE_FIXTURE_START_MS);
    close_set(&fixture);
    assert_int_equal(used_at(fixture.store->store), later);
}

// ---- the client's side --------------------------------------------------------------------------------------------
static char *put_file(const char *dir, const char *text, size_t len, mode_t mode)
{
    char *path = mem_format("%s/token", dir);
    struct error err = ERROR_INIT;
    unlink(path);
    CLEANUP_CLOSE int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    assert_ok(fs_write_all(fd, text, len, &err));
    assert_int_equal(fchmod(fd, mode), 0);
    return path;
}

static void a_token_is_read_from_a_private_file_in_both_of_its_spellings(void **state)
{
    (void)state;
    char *dir = support_make_dir();
    static const struct {
        const char *text, *header; // NULL: refused
        mode_t mode;
    } rows[] = {
        {"c2s_abc", "Authorization: Bearer c2s_abc", 0600}, {"Bearer c2s_abc", "Authorization: Bearer c2s_abc", 0400},
        {"bearer  c2s_abc\r\n", "Authorization: Bearer c2s_abc", 0600}, {"eyJ.eyJ.a-b_==\n", "Authorization: Bearer eyJ.eyJ.a-b_==", 0600},
        {"c2s_abc", NULL, 0640}, {"c2s_abc", NULL, 0604}, {"", NULL, 0600}, {"\n", NULL, 0600}, {"Bearer ", NULL, 0600},
        {"a\nX-Evil: 1", NULL, 0600}, {"a b", NULL, 0600}, {"Basic YTpi", NULL, 0600}, {"a=b", NULL, 0600}, {"\xc3\xa9", NULL, 0600},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct error err = ERROR_INIT;
        CLEANUP_FREE char *path = put_file(dir, rows[i].text, strlen(rows[i].text), rows[i].mode);
        CLEANUP_SECRET char *header = NULL;
        int r = client_read_authorization(path, &header, &err);
        assert_int_equal(r, rows[i].header ? 0 : -1);
        if (rows[i].header)
            assert_string_equal(header, rows[i].header);
        else
            assert_true(err.message[0] && err.hint[0]);
    }
    struct error err = ERROR_INIT;
    char *header = (char *)"x";
    CLEANUP_FREE char *path = put_file(dir, "c2s_\0abc", 8, 0600), *absent = mem_format("%s/absent", dir);
    assert_int_equal(client_read_authorization(path, &header, &err), -1);
    assert_error(client_read_authorization(absent, &header, &err), ERROR_NOT_FOUND);
    assert_error(client_read_authorization(dir, &header, &err), ERROR_INVALID);
    assert_ok(client_read_authorization("", &header, &err));
    assert_null(header);
    support_remove_dir(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_token_is_random_and_well_formed),
        TEST(every_typing_error_is_seen_without_asking_anybody),
        TEST(a_digest_is_sha_256_and_comes_back_from_its_text),
        TEST(scopes_are_words_and_back),
        STORE_TEST(a_token_is_known_until_it_is_revoked_across_restarts),
        STORE_TEST(a_token_ends_at_its_expiry),
        STORE_TEST(names_are_taken_once_and_their_number_is_bounded),
        STORE_TEST(no_byte_of_a_token_is_in_the_store),
        STORE_TEST(uses_are_written_once_a_minute_and_at_the_end),
        TEST(a_token_is_read_from_a_private_file_in_both_of_its_spellings),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
