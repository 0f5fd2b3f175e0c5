// Access tokens and the keys that they are checked with: what is taken, and every way in which one is refused. Keys and
// signatures are real ones.
#include "api/auth/base64url.h"
#include "api/auth/jwt.h"
#include "api/auth/token.h"
#include "controller/base/json.h"
#include "controller/base/memory.h"
#include "tests/support/signer.h"
#include "tests/support/support.h"
#include <openssl/hmac.h>
#include <openssl/pem.h>
#include <string.h>

#define TEST(name) cmocka_unit_test(name)
#define NOW_S 1796000000LL
#define GOOD "\"iss\":\"https://login.example\",\"aud\":\"https://box.example/mcp\",\"exp\":1796000600,\"sub\":\"ann\""
#define GOOD_CLAIMS "{" GOOD ",\"scope\":\"tools:read\"}"

static const struct jwt_rules rules = {"https://login.example", "https://box.example/mcp"};
static struct signer signers[4]; // one of each algorithm
static struct jwk_set *set;

static int make_keys(void **state)
{
    (void)state;
    static const char *const algorithms[] = {"RS256", "PS256", "ES256", "EdDSA"};
    struct error err = ERROR_INIT;
    for (size_t i = 0; i < ARRAY_LEN(signers); i++)
        signers[i] = signer_make(algorithms[i], algorithms[i], 0);
    CLEANUP_FREE char *text = signer_set(signers, ARRAY_LEN(signers));
    assert_ok(jwk_set_parse(text, strlen(text), &set, &err));
    assert_int_equal(jwk_set_count(set), 4);
    return 0;
}

static int drop_keys(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(signers); i++)
        signer_clear(&signers[i]);
    jwk_set_unref(set);
    return 0;
}

// As auth.c does it; -1 with the reason.
static int check(const char *token, struct caller *ret, struct error *err)
{
    CLEANUP(jwt_clear) struct jwt jwt = {0};
    if (jwt_read(token, strlen(token), &jwt, err) < 0)
        return -1;
    const struct jwk *key = jwk_set_find(set, jwt.key_id, jwt.algorithm);
    if (!key)
        return error_set(err, ERROR_REFUSED, "-", "no key");
    return jwt_check(&jwt, key, &rules, (struct wall_time){NOW_S * 1000}, ret, err);
}

static void assert_refused(const char *what, const char *token, const char *why)
{
    struct error err = ERROR_INIT;
    struct caller caller = {.principal = "untouched"};
    if (check(token, &caller, &err) == 0)
        fail_msg("%s was taken", what);
    if (!strstr(err.message, why))
        fail_msg("%s: '%s' does not say '%s'", what, err.message, why);
    assert_string_equal(caller.principal, "untouched");
}

// ---- taken ------------------------------------------------------------------------------------------------------
static void a_good_token_of_each_algorithm_is_taken(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(signers); i++)
        for (int round = 0; round < 40; round++) { // ECDSA's numbers have leading zeros now and then
            struct error err = ERROR_INIT;
            struct caller caller;
            CLEANUP_FREE char *token = signer_token(&signers[i], GOOD_CLAIMS);
            assert_ok(check(token, &caller, &err));
            assert_string_equal(caller.principal, "mcp:oauth:ann");
            assert_int_equal(caller.scopes, SCOPE_TOOLS_READ);
        }
}

static void claims_are_read_in_each_of_their_legal_forms(void **state)
{
    (void)state;
    static const struct {
        const char *claims;
        unsigned scopes;
    } rows[] = {
        {"{" GOOD "}", SCOPE_NONE},
        {"{" GOOD ",\"scope\":\"tools:write  openid sandboxes:manage\"}", SCOPE_TOOLS_WRITE | SCOPE_SANDBOXES_MANAGE},
        {"{" GOOD ",\"scp\":[\"tools:read\",\"email\",7]}", SCOPE_TOOLS_READ},
        {"{" GOOD ",\"scp\":\"tools:read\"}", SCOPE_TOOLS_READ},
        {"{" GOOD ",\"scope\":[\"tools:read\"]}", SCOPE_NONE},
        {"{" GOOD ",\"scope\":\"\",\"scp\":[\"tools:read\"]}", SCOPE_NONE},
        {"{" GOOD ",\"scope\":\"tools:readx xtools:read tools\"}", SCOPE_NONE},
        {"{\"iss\":\"https://login.example\",\"aud\":[\"x\",\"https://box.example/mcp\"],\"exp\":1796000600.5,\"sub\":\"a\",\"nbf\":1796000059,\"iat\":1796000059}", SCOPE_NONE},
        {"{\"iss\":\"https://login.example\",\"aud\":\"https://box.example/mcp\",\"exp\":1795999941,\"sub\":\"a\"}", SCOPE_NONE}, // a minute's leeway
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct error err = ERROR_INIT;
        struct caller caller = {0};
        CLEANUP_FREE char *token = signer_token(&signers[3], rows[i].claims);
        if (check(token, &caller, &err) < 0)
            fail_msg("%s: %s", rows[i].claims, err.message);
        assert_int_equal(caller.scopes, rows[i].scopes);
    }
}

static void types_are_compared_without_case_and_a_key_need_not_be_named_where_one_fits(void **state)
{
    (void)state;
    static const char *const headers[] = {
        "{\"alg\":\"ES256\",\"typ\":\"AT+JWT\"}", "{\"alg\":\"ES256\",\"typ\":\"JWT\",\"kid\":\"ES256\"}", "{\"alg\":\"ES256\",\"typ\":\"application/at+jwt\",\"x5t\":\"a\"}"};
    for (size_t i = 0; i < ARRAY_LEN(headers); i++) {
        struct error err = ERROR_INIT;
        struct caller caller;
        CLEANUP_FREE char *token = signer_sign(&signers[2], headers[i], GOOD_CLAIMS);
        assert_ok(check(token, &caller, &err));
    }
}

// ---- refused: the header ----------------------------------------------------------------------------------------
static void headers_that_ask_for_another_check_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *header, *why;
    } rows[] = {
        {"{\"alg\":\"none\",\"typ\":\"JWT\",\"kid\":\"RS256\"}", "not signed with"},
        {"{\"alg\":\"None\",\"typ\":\"JWT\",\"kid\":\"RS256\"}", "not signed with"},
        {"{\"alg\":\"\",\"typ\":\"JWT\",\"kid\":\"RS256\"}", "not signed with"},
        {"{\"alg\":null,\"typ\":\"JWT\",\"kid\":\"RS256\"}", "not signed with"},
        {"{\"typ\":\"JWT\",\"kid\":\"RS256\"}", "not signed with"},
        {"{\"alg\":\"HS256\",\"typ\":\"JWT\",\"kid\":\"RS256\"}", "not signed with"},
        {"{\"alg\":\"RS384\",\"typ\":\"JWT\",\"kid\":\"RS256\"}", "not signed with"},
        {"{\"alg\":\"rs256\",\"typ\":\"JWT\",\"kid\":\"RS256\"}", "not signed with"},
        {"{\"alg\":\"RS256\\u0000\",\"typ\":\"JWT\",\"kid\":\"RS256\"}", "no JWT"},
        {"{\"alg\":\"RS256\",\"kid\":\"RS256\"}", "not of the type"},
        {"{\"alg\":\"RS256\",\"typ\":\"dpop+jwt\",\"kid\":\"RS256\"}", "not of the type"},
        {"{\"alg\":\"RS256\",\"typ\":\"logout+jwt\",\"kid\":\"RS256\"}", "not of the type"},
        {"{\"alg\":\"RS256\",\"typ\":7,\"kid\":\"RS256\"}", "not of the type"},
        {"{\"alg\":\"RS256\",\"typ\":\"JWT\",\"crit\":[\"exp\"],\"kid\":\"RS256\"}", "extensions"},
        {"{\"alg\":\"RS256\",\"typ\":\"JWT\",\"b64\":false,\"kid\":\"RS256\"}", "extensions"},
        {"{\"alg\":\"RS256\",\"typ\":\"JWT\",\"kid\":7}", "malformed kid"},
        {"{\"alg\":\"RS256\",\"typ\":\"JWT\",\"kid\":\"other\"}", "no key"},
        {"{\"alg\":\"RS256\",\"typ\":\"JWT\",\"kid\":\"ES256\"}", "no key"},  // a key of another kind
        {"{\"alg\":\"PS256\",\"typ\":\"JWT\",\"kid\":\"RS256\"}", "no key"},  // the key is for RS256 only
        {"{\"alg\":\"EdDSA\",\"typ\":\"JWT\",\"kid\":\"EdDSA\"}", "not signed by"}, // signed with the RSA key
        {"{\"alg\":\"RS256\",\"alg\":\"RS256\",\"typ\":\"JWT\",\"kid\":\"RS256\"}", "no JWT"}, // doubled members
        {"[\"RS256\"]", "no JWT"},
        {"7", "no JWT"},
        {"", "no JWT"},
        {"{\"alg\":\"RS256\",\"typ\":\"JWT\",\"kid\":\"RS256\"} x", "no JWT"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        CLEANUP_FREE char *token = signer_sign(&signers[0], rows[i].header, GOOD_CLAIMS);
        assert_refused(rows[i].header, token, rows[i].why);
    }
}

// The classic: the public key, which everybody has, used as a symmetric secret.
static void a_token_that_is_signed_with_the_public_key_as_a_secret_is_refused(void **state)
{
    (void)state;
    BIO *memory = BIO_new(BIO_s_mem());
    PEM_write_bio_PUBKEY(memory, signers[0].key);
    char *pem = NULL;
    long pem_len = BIO_get_mem_data(memory, &pem);
    static const char *const names[] = {"HS256", "RS256"};
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        CLEANUP_FREE char *header = mem_format("{\"alg\":\"%s\",\"typ\":\"JWT\",\"kid\":\"RS256\"}", names[i]);
        CLEANUP_FREE char *first = signer_encode(header, strlen(header)), *second = signer_encode(GOOD_CLAIMS, strlen(GOOD_CLAIMS));
        CLEANUP_FREE char *text = mem_format("%s.%s", first, second);
        unsigned char mac[32];
        unsigned mac_len;
        HMAC(EVP_sha256(), pem, (int)pem_len, (unsigned char *)text, strlen(text), mac, &mac_len);
        CLEANUP_FREE char *third = signer_encode(mac, mac_len), *token = mem_format("%s.%s", text, third);
        assert_refused(names[i], token, "not signed");
    }
    BIO_free(memory);
}

// ---- refused: the form ------------------------------------------------------------------------------------------
static void every_changed_byte_of_a_token_makes_it_worthless(void **state)
{
    (void)state;
    for (size_t s = 0; s < ARRAY_LEN(signers); s++) {
        CLEANUP_FREE char *token = signer_token(&signers[s], GOOD_CLAIMS);
        size_t len = strlen(token);
        for (size_t i = 0; i < len; i += 1 + (s < 2) * 6) {
            char kept = token[i];
            token[i] = kept == 'A' ? 'B' : 'A';
            struct error err = ERROR_INIT;
            struct caller caller;
            if (check(token, &caller, &err) == 0)
                fail_msg("%s: byte %zu of %zu does not matter", signers[s].algorithm, i, len);
            token[i] = kept;
        }
    }
}

static void cut_and_grown_tokens_are_refused(void **state)
{
    (void)state;
    for (size_t s = 0; s < ARRAY_LEN(signers); s++) {
        CLEANUP_FREE char *token = signer_token(&signers[s], GOOD_CLAIMS);
        static const char *const tails[] = {"A", "AAAA", "=", ".", ".AAAA", " ", "\n"};
        for (size_t i = 0; i < ARRAY_LEN(tails); i++) {
            CLEANUP_FREE char *grown = mem_format("%s%s", token, tails[i]);
            assert_refused(tails[i], grown, "the access token");
        }
        for (size_t len = strlen(token); len-- > 0;) {
            token[len] = '\0';
            assert_refused("a cut token", token, "the access token");
        }
    }
    static const char *const malformed[] = {"", ".", "..", "a", "a.b", "a.b.", ".b.c", "a..c", "a.b.c.d", "????", "eyJ9.eyJ9.", "\xff.\xff.\xff"};
    for (size_t i = 0; i < ARRAY_LEN(malformed); i++)
        assert_refused(malformed[i], malformed[i], "no JWT");
}

static void an_es256_signature_in_der_is_not_what_jws_has(void **state)
{
    (void)state;
    CLEANUP_FREE char *header = mem_strdup("{\"alg\":\"ES256\",\"typ\":\"JWT\",\"kid\":\"ES256\"}");
    CLEANUP_FREE char *first = signer_encode(header, strlen(header)), *second = signer_encode(GOOD_CLAIMS, strlen(GOOD_CLAIMS));
    CLEANUP_FREE char *text = mem_format("%s.%s", first, second);
    unsigned char der[128];
    size_t len = sizeof(der);
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    assert_int_equal(EVP_DigestSignInit(context, NULL, EVP_sha256(), NULL, signers[2].key), 1);
    assert_int_equal(EVP_DigestSign(context, der, &len, (unsigned char *)text, strlen(text)), 1);
    EVP_MD_CTX_free(context);
    CLEANUP_FREE char *third = signer_encode(der, len), *token = mem_format("%s.%s", text, third);
    assert_refused("DER", token, "not signed by");
    unsigned char zeros[64] = {0};
    CLEANUP_FREE char *nothing = signer_encode(zeros, sizeof(zeros)), *psychic = mem_format("%s.%s", text, nothing);
    assert_refused("zeros as a signature", psychic, "not signed by");
}

// ---- refused: the claims ----------------------------------------------------------------------------------------
static void claims_that_do_not_fit_are_refused_each_with_its_reason(void **state)
{
    (void)state;
#define ISS "\"iss\":\"https://login.example\","
#define AUD "\"aud\":\"https://box.example/mcp\","
#define EXP "\"exp\":1796000600,"
#define SUB "\"sub\":\"ann\""
    static const struct {
        const char *claims, *why;
    } rows[] = {
        {"{" AUD EXP SUB "}", "another issuer"},
        {"{\"iss\":\"https://login.example/\"," AUD EXP SUB "}", "another issuer"},
        {"{\"iss\":\"https://LOGIN.example\"," AUD EXP SUB "}", "another issuer"},
        {"{\"iss\":[\"https://login.example\"]," AUD EXP SUB "}", "another issuer"},
        {"{" ISS EXP SUB "}", "another audience"},
        {"{" ISS "\"aud\":\"https://box.example\"," EXP SUB "}", "another audience"},
        {"{" ISS "\"aud\":\"https://box.example/mcp/\"," EXP SUB "}", "another audience"},
        {"{" ISS "\"aud\":[\"a\",[\"https://box.example/mcp\"]]," EXP SUB "}", "another audience"},
        {"{" ISS "\"aud\":[]," EXP SUB "}", "another audience"},
        {"{" ISS "\"aud\":{\"0\":\"https://box.example/mcp\"}," EXP SUB "}", "another audience"},
        {"{" ISS AUD SUB "}", "when it expires"},
        {"{" ISS AUD "\"exp\":null," SUB "}", "malformed time"},
        {"{" ISS AUD "\"exp\":\"1796000600\"," SUB "}", "malformed time"},
        {"{" ISS AUD "\"exp\":-1," SUB "}", "malformed time"},
        {"{" ISS AUD "\"exp\":1e300," SUB "}", "malformed time"},
        {"{" ISS AUD "\"exp\":99999999999999," SUB "}", "malformed time"},
        {"{" ISS AUD "\"exp\":99999999999999999999999999," SUB "}", "no claims"},
        {"{" ISS AUD "\"exp\":1795999940," SUB "}", "has expired"},
        {"{" ISS AUD "\"exp\":0," SUB "}", "has expired"},
        {"{" ISS AUD EXP "\"nbf\":1796000061," SUB "}", "not valid yet"},
        {"{" ISS AUD EXP "\"nbf\":\"x\"," SUB "}", "malformed time"},
        {"{" ISS AUD EXP "\"iat\":1796000061," SUB "}", "in the future"},
        {"{" ISS AUD EXP "\"cnf\":{\"jkt\":\"abc\"}," SUB "}", "bound to a key"},
        {"{" ISS AUD "\"exp\":1796000600}", "whom it stands for"},
        {"{" ISS AUD EXP "\"sub\":\"\"}", "whom it stands for"},
        {"{" ISS AUD EXP "\"sub\":7}", "whom it stands for"},
        {"{" ISS ISS AUD EXP SUB "}", "no claims"}, // doubled members
        {"{" ISS AUD EXP SUB ",\"aud\":\"x\"}", "no claims"},
        {"[]", "no claims"},
        {"null", "no claims"},
        {"{", "no claims"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        for (size_t s = 0; s < ARRAY_LEN(signers); s += 3) {
            CLEANUP_FREE char *token = signer_token(&signers[s], rows[i].claims);
            assert_refused(rows[i].claims, token, rows[i].why);
        }
}

static void claims_are_not_read_before_the_signature_is_good(void **state)
{
    (void)state;
    struct signer stranger = signer_make("ES256", "ES256", 0);
    CLEANUP_FREE char *token = signer_token(&stranger, "{\"exp\":0}");
    assert_refused("a stranger's", token, "not signed by");
    signer_clear(&stranger);
}

static void different_subjects_have_different_harmless_principals(void **state)
{
    (void)state;
    CLEANUP_FREE char *long_one = mem_alloc(1001), *other = mem_alloc(1001);
    memset(long_one, 'x', 1000);
    memset(other, 'x', 1000);
    other[999] = 'y';
    const struct {
        const char *subject;
        size_t len;
        const char *principal; // NULL: only its form
    } rows[] = {
        {"ann", 3, "mcp:oauth:ann"},
        {"auth0|5f7c8e", 12, "mcp:oauth:auth0|5f7c8e"},
        {"a b\n", 4, "mcp:oauth:a%20b%0A"},
        {"a%20b", 5, "mcp:oauth:a%2520b"},
        {"\xc3\xa9", 2, "mcp:oauth:%C3%A9"},
        {"../../x", 7, "mcp:oauth:..%2F..%2Fx"},
        {long_one, 1000, NULL},
        {other, 1000, NULL},
    };
    char principals[ARRAY_LEN(rows)][CALLER_PRINCIPAL_SIZE];
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        jwt_principal(rows[i].subject, rows[i].len, principals[i]);
        if (rows[i].principal)
            assert_string_equal(principals[i], rows[i].principal);
        assert_true(strlen(principals[i]) < CALLER_PRINCIPAL_SIZE);
        for (size_t j = 0; j < i; j++)
            assert_string_not_equal(principals[i], principals[j]);
    }
}

// ---- key sets ---------------------------------------------------------------------------------------------------
static void assert_unusable(const char *text)
{
    struct error err = ERROR_INIT;
    struct jwk_set *ret = NULL;
    if (jwk_set_parse(text, strlen(text), &ret, &err) == 0)
        fail_msg("taken: %.200s", text);
    assert_true(err.message[0]);
}

// One member of a good key replaced.
static char *spoiled(const struct signer *signer, const char *member, const char *value)
{
    CLEANUP_FREE char *text = signer_jwk(signer);
    CLEANUP_JSON json_t *jwk = NULL, *keys = NULL, *replacement = NULL;
    json_parse(text, strlen(text), &jwk, NULL);
    if (value && json_parse(value, strlen(value), &replacement, NULL) == 0)
        json_object_set(jwk, member, replacement);
    else
        json_object_del(jwk, member);
    keys = json_pack("{s:[O]}", "keys", jwk);
    return json_to_text(keys);
}

static void keys_that_are_not_what_they_say_are_skipped(void **state)
{
    (void)state;
    static const struct {
        int signer;
        const char *member, *value;
    } rows[] = {
        {0, "kty", "\"oct\""}, {0, "kty", NULL},        {0, "use", "\"enc\""},       {0, "key_ops", "[\"sign\"]"}, {0, "alg", "\"HS256\""},
        {0, "alg", "\"ES256\""}, {0, "alg", "7"},       {0, "n", "\"AQAB\""},         {0, "n", NULL},               {0, "n", "\"====\""},
        {0, "n", "7"},         {0, "e", "\"AQ\""},      {0, "e", "\"Ag\""},           {0, "e", "\"\""},             {0, "e", "\"AQABAQABAQABAQAB\""},
        {0, "kid", "7"},       {2, "crv", "\"P-384\""}, {2, "crv", "\"secp256k1\""},  {2, "x", "\"AQAB\""},         {2, "y", NULL},
        {2, "y", "\"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAE\""}, // not on the curve
        {3, "crv", "\"Ed448\""}, {3, "crv", "\"X25519\""}, {3, "x", "\"AQAB\""},     
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        CLEANUP_FREE char *text = spoiled(&signers[rows[i].signer], rows[i].member, rows[i].value);
        assert_unusable(text);
    }
    static const char *const texts[] = {"", "{}", "[]", "{\"keys\":[]}", "{\"keys\":{}}", "{\"keys\":[7,null,\"x\",[]]}", "{\"keys\":[],\"keys\":[]}"};
    for (size_t i = 0; i < ARRAY_LEN(texts); i++)
        assert_unusable(texts[i]);
}

static void rsa_keys_have_a_size_between_bounds(void **state)
{
    (void)state;
    static const int bits[] = {1024, 2047};
    for (size_t i = 0; i < ARRAY_LEN(bits); i++) {
        struct signer small = signer_make("RS256", "small", bits[i]);
        CLEANUP_FREE char *text = signer_set(&small, 1);
        assert_unusable(text);
        signer_clear(&small);
    }
    unsigned char huge[1026];
    memset(huge, 0xff, sizeof(huge));
    CLEANUP_FREE char *n = signer_encode(huge, sizeof(huge)), *quoted = mem_format("\"%s\"", n), *text = spoiled(&signers[0], "n", quoted);
    assert_unusable(text);
}

static void a_key_of_no_algorithm_serves_those_of_its_kind_and_ambiguity_finds_none(void **state)
{
    (void)state;
    struct error err = ERROR_INIT;
    struct jwk_set *loose = NULL;
    CLEANUP_FREE char *text = spoiled(&signers[0], "alg", NULL);
    assert_ok(jwk_set_parse(text, strlen(text), &loose, &err));
    assert_non_null(jwk_set_find(loose, "RS256", JWK_PS256));
    assert_non_null(jwk_set_find(loose, NULL, JWK_RS256));
    assert_null(jwk_set_find(loose, NULL, JWK_ES256));
    assert_null(jwk_set_find(loose, "rs256", JWK_RS256));
    jwk_set_unref(loose);
    struct signer twins[] = {signer_make("ES256", "a", 0), signer_make("ES256", "b", 0)};
    CLEANUP_FREE char *both = signer_set(twins, 2);
    assert_ok(jwk_set_parse(both, strlen(both), &loose, &err));
    assert_null(jwk_set_find(loose, NULL, JWK_ES256));
    assert_non_null(jwk_set_find(loose, "b", JWK_ES256));
    jwk_set_unref(loose);
    signer_clear(&twins[0]);
    signer_clear(&twins[1]);
}

// ---- base64url --------------------------------------------------------------------------------------------------
static void base64url_has_one_spelling_for_a_value(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int len; // -1: malformed
    } rows[] = {{"", 0},    {"AA", 1},  {"AAA", 2},  {"AAAA", 3}, {"_-8", 2}, {"A", -1},   {"AAAAA", -1}, {"AB", -1},  {"AAB", -1},
                {"AA==", -1}, {"A+A", -1}, {"A/A", -1}, {"A A", -1}, {"AA\n", -1}, {"\xc3\xa9", -1}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        unsigned char bytes[16];
        size_t len = 0;
        int r = base64url_decode(rows[i].text, strlen(rows[i].text), bytes, &len);
        if (r != (rows[i].len < 0 ? -1 : 0) || (r == 0 && (int)len != rows[i].len))
            fail_msg("'%s': %d, %zu bytes", rows[i].text, r, len);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_good_token_of_each_algorithm_is_taken),
        TEST(claims_are_read_in_each_of_their_legal_forms),
        TEST(types_are_compared_without_case_and_a_key_need_not_be_named_where_one_fits),
        TEST(headers_that_ask_for_another_check_are_refused),
        TEST(a_token_that_is_signed_with_the_public_key_as_a_secret_is_refused),
        TEST(every_changed_byte_of_a_token_makes_it_worthless),
        TEST(cut_and_grown_tokens_are_refused),
        TEST(an_es256_signature_in_der_is_not_what_jws_has),
        TEST(claims_that_do_not_fit_are_refused_each_with_its_reason),
        TEST(claims_are_not_read_before_the_signature_is_good),
        TEST(different_subjects_have_different_harmless_principals),
        TEST(keys_that_are_not_what_they_say_are_skipped),
        TEST(rsa_keys_have_a_size_between_bounds),
        TEST(a_key_of_no_algorithm_serves_those_of_its_kind_and_ambiguity_finds_none),
        TEST(base64url_has_one_spelling_for_a_value),
    };
    return cmocka_run_group_tests(tests, make_keys, drop_keys);
}
