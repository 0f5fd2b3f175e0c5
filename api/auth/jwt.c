#include "api/auth/jwt.h"
#include "api/auth/base64url.h"
#include "api/auth/token.h"
#include "controller/base/memory.h"
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#define SUBJECT_MAX_BYTES 1024
#define PRINCIPAL_PREFIX "mcp:oauth:"

static int refuse(struct error *err, const char *why)
{
    return error_set(err, ERROR_REFUSED, "get a fresh access token for this resource from its authorization server", "the access token %s", why);
}

void jwt_clear(struct jwt *jwt)
{
    free(jwt->key_id);
    free(jwt->signature);
    *jwt = (struct jwt){0};
}

// ---- form and header ------------------------------------------------------------------------------------------
// A part decoded: bytes, NUL behind them. The caller's.
static int decode(const char *text, size_t len, unsigned char **ret, size_t *ret_len)
{
    CLEANUP_FREE unsigned char *bytes = mem_alloc(BASE64URL_DECODED_MAX(len) + 1);
    if (base64url_decode(text, len, bytes, ret_len) < 0)
        return -1;
    *ret = TAKE_PTR(bytes);
    return 0;
}

static int decode_object(const char *text, size_t len, json_t **ret)
{
    CLEANUP_FREE unsigned char *bytes = NULL;
    CLEANUP_JSON json_t *value = NULL;
    size_t bytes_len;
    if (decode(text, len, &bytes, &bytes_len) < 0 || json_parse((char *)bytes, bytes_len, &value, NULL) < 0 || !json_is_object(value))
        return -1;
    *ret = TAKE_PTR(value);
    return 0;
}

// An identity token, a logout token and the like are signed by the same keys and are no access tokens.
static bool is_access_type(const json_t *type)
{
    static const char *const types[] = {"at+jwt", "application/at+jwt", "JWT"};
    for (size_t i = 0; json_is_string(type) && i < ARRAY_LEN(types); i++)
        if (strcasecmp(types[i], json_string_value(type)) == 0)
            return true;
    return false;
}

static int read_header(const char *text, size_t len, struct jwt *ret, struct error *err)
{
    CLEANUP_JSON json_t *header = NULL;
    if (decode_object(text, len, &header) < 0)
        return refuse(err, "is no JWT");
    const char *algorithm = json_get_text(header, "alg");
    const json_t *key_id = json_object_get(header, "kid");
    ret->algorithm = algorithm ? jwk_algorithm_find(algorithm) : JWK_NO_ALGORITHM;
    if (ret->algorithm == JWK_NO_ALGORITHM)
        return refuse(err, "is not signed with RS256, PS256, ES256 or EdDSA");
    if (!is_access_type(json_object_get(header, "typ")))
        return refuse(err, "is not of the type at+jwt or JWT");
    if (json_object_get(header, "crit") || json_object_get(header, "b64"))
        return refuse(err, "has extensions that are not understood here");
    if (key_id && (!json_is_string(key_id) || json_string_length(key_id) > JWK_ID_MAX))
        return refuse(err, "has a malformed kid");
    ret->key_id = mem_strdup_or_null(json_string_value(key_id));
    return 0;
}

int jwt_read(const char *text, size_t len, struct jwt *ret, struct error *err)
{
    CLEANUP(jwt_clear) struct jwt jwt = {.text = text};
    const char *first = memchr(text, '.', len);
    const char *second = first ? memchr(first + 1, '.', len - (size_t)(first + 1 - text)) : NULL;
    if (!second)
        return refuse(err, "is no JWT");
    jwt.payload = first + 1;
    jwt.payload_len = (size_t)(second - jwt.payload);
    jwt.signed_len = (size_t)(second - text);
    size_t signature_len = len - jwt.signed_len - 1;
    if (!jwt.payload_len || !signature_len || decode(second + 1, signature_len, &jwt.signature, &jwt.signature_len) < 0)
        return refuse(err, "is no JWT");
    if (read_header(text, (size_t)(first - text), &jwt, err) < 0)
        return -1;
    *ret = jwt;
    jwt = (struct jwt){0};
    return 0;
}

// ---- claims -----------------------------------------------------------------------------------------------------
// A NumericDate as milliseconds. Beyond what a calendar can hold it is malformed.
static int read_time(const json_t *claims, const char *name, bool *ret_is_there, int64_t *ret_ms)
{
    const json_t *claim = json_object_get(claims, name);
    *ret_is_there = claim != NULL;
    double seconds = json_number_value(claim);
    if (claim && (!json_is_number(claim) || !isfinite(seconds) || seconds < 0 || seconds > 253402300799.0))
        return -1;
    *ret_ms = (int64_t)(seconds * 1000);
    return 0;
}

static int check_times(const json_t *claims, struct wall_time now, struct error *err)
{
    bool has_expiry, has_begin, has_birth;
    int64_t expiry, begin, birth;
    if (read_time(claims, "exp", &has_expiry, &expiry) < 0 || read_time(claims, "nbf", &has_begin, &begin) < 0 ||
        read_time(claims, "iat", &has_birth, &birth) < 0)
        return refuse(err, "has a malformed time");
    if (!has_expiry)
        return refuse(err, "does not say when it expires");
    if (expiry + JWT_LEEWAY_MS <= now.ms)
        return refuse(err, "has expired");
    if (has_begin && begin - JWT_LEEWAY_MS > now.ms)
        return refuse(err, "is not valid yet");
    if (has_birth && birth - JWT_LEEWAY_MS > now.ms)
        return refuse(err, "was issued in the future");
    return 0;
}

static bool is_text(const json_t *value, const char *text)
{
    return json_is_string(value) && json_string_length(value) == strlen(text) && strcmp(json_string_value(value), text) == 0;
}

static bool is_for(const json_t *audience, const char *resource)
{
    for (size_t i = 0; i < json_array_size(audience); i++)
        if (is_text(json_array_get(audience, i), resource))
            return true;
    return is_text(audience, resource);
}

static unsigned read_scopes(const json_t *claims)
{
    const json_t *scope = json_object_get(claims, "scope"), *list = json_object_get(claims, "scp");
    unsigned scopes = SCOPE_NONE;
    if (scope)
        return json_is_string(scope) ? auth_scopes_parse(json_string_value(scope), json_string_length(scope), NULL) : SCOPE_NONE;
    if (json_is_string(list))
        return auth_scopes_parse(json_string_value(list), json_string_length(list), NULL);
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *word = json_array_get(list, i);
        if (json_is_string(word))
            scopes |= auth_scopes_parse(json_string_value(word), json_string_length(word), NULL);
    }
    return scopes;
}

static bool is_harmless(unsigned char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || (c && strchr("-._~@|:+", c));
}

void jwt_principal(const char *subject, size_t len, char ret[CALLER_PRINCIPAL_SIZE])
{
    size_t at = sizeof(PRINCIPAL_PREFIX) - 1;
    memcpy(ret, PRINCIPAL_PREFIX, at + 1);
    for (size_t i = 0; i < len && at + 4 <= CALLER_PRINCIPAL_SIZE; i++) {
        unsigned char c = (unsigned char)subject[i];
        int n = snprintf(ret + at, CALLER_PRINCIPAL_SIZE - at, is_harmless(c) ? "%c" : "%%%02X", c);
        at += (size_t)n;
        if (i + 1 == len)
            return;
    }
    unsigned char digest[TOKEN_DIGEST_BYTES]; // too long
    char hex[TOKEN_DIGEST_HEX_SIZE];
    token_digest(subject, len, digest);
    token_digest_format(digest, hex);
    snprintf(ret, CALLER_PRINCIPAL_SIZE, PRINCIPAL_PREFIX "%%sha256=%s", hex); // no subject is written like this
}

static int check_claims(const json_t *claims, const struct jwt_rules *rules, struct wall_time now, struct caller *ret, struct error *err)
{
    const json_t *subject = json_object_get(claims, "sub");
    if (!is_text(json_object_get(claims, "iss"), rules->issuer))
        return refuse(err, "is from another issuer");
    if (!is_for(json_object_get(claims, "aud"), rules->audience))
        return refuse(err, "is for another audience than this resource");
    if (check_times(claims, now, err) < 0)
        return -1;
    if (json_object_get(claims, "cnf"))
        return refuse(err, "is bound to a key of its holder, which a bearer cannot show");
    if (!json_is_string(subject) || !json_string_length(subject) || json_string_length(subject) > SUBJECT_MAX_BYTES)
        return refuse(err, "does not say whom it stands for");
    jwt_principal(json_string_value(subject), json_string_length(subject), ret->principal);
    ret->scopes = read_scopes(claims);
    return 0;
}

int jwt_check(const struct jwt *jwt, const struct jwk *key, const struct jwt_rules *rules, struct wall_time now, struct caller *ret,
              struct error *err)
{
    CLEANUP_JSON json_t *claims = NULL;
    struct caller caller = {0};
    if (!jwk_verify(key, jwt->algorithm, jwt->text, jwt->signed_len, jwt->signature, jwt->signature_len))
        return refuse(err, "is not signed by the authorization server");
    if (decode_object(jwt->payload, jwt->payload_len, &claims) < 0)
        return refuse(err, "has no claims that can be read");
    if (check_claims(claims, rules, now, &caller, err) < 0)
        return -1;
    *ret = caller;
    return 0;
}
