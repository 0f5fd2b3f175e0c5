#include "api/auth/jwk.h"
#include "api/auth/base64url.h"
#include "api/auth/crypto_library.h"
#include "controller/base/memory.h"
#include <assert.h>
#include <openssl/core_names.h>
#include <stdatomic.h>
#include <string.h>

#define RSA_BYTES_MIN (2048 / 8)
#define RSA_BYTES_MAX (8192 / 8)
#define RSA_EXPONENT_BYTES_MAX 8
#define P256_BYTES 32
#define ED25519_BYTES 32

enum jwk_kind { JWK_RSA, JWK_P256, JWK_ED25519 };
struct jwk {
    char *id;                     // NULL: it has none
    enum jwk_kind kind;
    enum jwk_algorithm algorithm; // the only one that it is for; JWK_NO_ALGORITHM: any of its kind
    EVP_PKEY *key;
};
struct jwk_set {
    _Atomic int refs;
    const struct crypto_library *crypto;
    size_t count;
    struct jwk keys[JWK_SET_MAX];
};

static const struct {
    enum jwk_algorithm algorithm;
    const char *name;
    enum jwk_kind kind;
} algorithms[] = {
    {JWK_RS256, "RS256", JWK_RSA},
    {JWK_PS256, "PS256", JWK_RSA},
    {JWK_ES256, "ES256", JWK_P256},
    {JWK_EDDSA, "EdDSA", JWK_ED25519},
};

enum jwk_algorithm jwk_algorithm_find(const char *name)
{
    for (size_t i = 0; i < ARRAY_LEN(algorithms); i++)
        if (strcmp(algorithms[i].name, name) == 0)
            return algorithms[i].algorithm;
    return JWK_NO_ALGORITHM;
}

// ---- reading one key ------------------------------------------------------------------------------------------
struct bytes { // of one member
    unsigned char data[RSA_BYTES_MAX + 4];
    size_t len;
};

static int read_bytes(const json_t *object, const char *name, size_t max, struct bytes *ret)
{
    const json_t *member = json_object_get(object, name);
    size_t len = json_string_length(member);
    if (!json_is_string(member) || !len || BASE64URL_DECODED_MAX(len) > sizeof(ret->data) ||
        base64url_decode(json_string_value(member), len, ret->data, &ret->len) < 0)
        return -1;
    return ret->len <= max ? 0 : -1;
}

static void drop_leading_zeros(struct bytes *number)
{
    size_t zeros = 0;
    while (zeros < number->len && !number->data[zeros])
        zeros++;
    number->len -= zeros;
    memmove(number->data, number->data + zeros, number->len);
}

// OpenSSL takes integers as the machine has them.
static void to_machine_order(struct bytes *number)
{
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    for (size_t i = 0; i < number->len / 2; i++) {
        unsigned char kept = number->data[i];
        number->data[i] = number->data[number->len - 1 - i];
        number->data[number->len - 1 - i] = kept;
    }
#endif
}

static EVP_PKEY *make_key(const struct crypto_library *crypto, const char *type, OSSL_PARAM *parameters)
{
    EVP_PKEY *key = NULL;
    EVP_PKEY_CTX *context = crypto->EVP_PKEY_CTX_new_from_name(NULL, type, NULL);
    if (context && crypto->EVP_PKEY_fromdata_init(context) == 1)
        crypto->EVP_PKEY_fromdata(context, &key, EVP_PKEY_PUBLIC_KEY, parameters);
    crypto->EVP_PKEY_CTX_free(context);
    crypto->ERR_clear_error();
    return key;
}

static EVP_PKEY *read_rsa(const struct crypto_library *crypto, const json_t *jwk)
{
    struct bytes modulus, exponent;
    if (read_bytes(jwk, "n", RSA_BYTES_MAX, &modulus) < 0 || read_bytes(jwk, "e", RSA_BYTES_MAX, &exponent) < 0)
        return NULL;
    drop_leading_zeros(&modulus);
    drop_leading_zeros(&exponent);
    // The first byte's highest bit: 2048 bits, not just 256 bytes. An even number is no modulus and no exponent; 1 signs nothing.
    if (modulus.len < RSA_BYTES_MIN || (modulus.len == RSA_BYTES_MIN && modulus.data[0] < 0x80) || !(modulus.data[modulus.len - 1] & 1) ||
        !exponent.len || exponent.len > RSA_EXPONENT_BYTES_MAX || !(exponent.data[exponent.len - 1] & 1) ||
        (exponent.len == 1 && exponent.data[0] == 1))
        return NULL;
    to_machine_order(&modulus);
    to_machine_order(&exponent);
    OSSL_PARAM parameters[] = {
        {OSSL_PKEY_PARAM_RSA_N, OSSL_PARAM_UNSIGNED_INTEGER, modulus.data, modulus.len, OSSL_PARAM_UNMODIFIED},
        {OSSL_PKEY_PARAM_RSA_E, OSSL_PARAM_UNSIGNED_INTEGER, exponent.data, exponent.len, OSSL_PARAM_UNMODIFIED},
        {0},
    };
    return make_key(crypto, "RSA", parameters);
}

static bool is_curve(const json_t *jwk, const char *name)
{
    const char *curve = json_get_text(jwk, "crv");
    return curve && strcmp(curve, name) == 0;
}

static EVP_PKEY *read_p256(const struct crypto_library *crypto, const json_t *jwk)
{
    struct bytes x, y;
    unsigned char point[1 + 2 * P256_BYTES] = {4}; // not compressed
    char group[] = "prime256v1";
    if (!is_curve(jwk, "P-256") || read_bytes(jwk, "x", P256_BYTES, &x) < 0 || read_bytes(jwk, "y", P256_BYTES, &y) < 0 ||
        x.len != P256_BYTES || y.len != P256_BYTES)
        return NULL;
    memcpy(point + 1, x.data, P256_BYTES);
    memcpy(point + 1 + P256_BYTES, y.data, P256_BYTES);
    OSSL_PARAM parameters[] = {
        {OSSL_PKEY_PARAM_GROUP_NAME, OSSL_PARAM_UTF8_STRING, group, sizeof(group) - 1, OSSL_PARAM_UNMODIFIED},
        {OSSL_PKEY_PARAM_PUB_KEY, OSSL_PARAM_OCTET_STRING, point, sizeof(point), OSSL_PARAM_UNMODIFIED},
        {0},
    };
    return make_key(crypto, "EC", parameters); // refuses a point that is not on the curve
}

static EVP_PKEY *read_ed25519(const struct crypto_library *crypto, const json_t *jwk)
{
    struct bytes x;
    if (!is_curve(jwk, "Ed25519") || read_bytes(jwk, "x", ED25519_BYTES, &x) < 0 || x.len != ED25519_BYTES)
        return NULL;
    EVP_PKEY *key = crypto->EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, NULL, x.data, x.len);
    crypto->ERR_clear_error();
    return key;
}

static const struct {
    const char *type;
    enum jwk_kind kind;
    EVP_PKEY *(*read)(const struct crypto_library *crypto, const json_t *jwk);
} types[] = {{"RSA", JWK_RSA, read_rsa}, {"EC", JWK_P256, read_p256}, {"OKP", JWK_ED25519, read_ed25519}};

// Whether the set's owner means it for checking signatures.
static bool is_for_verifying(const json_t *jwk)
{
    const json_t *use = json_object_get(jwk, "use"), *operations = json_object_get(jwk, "key_ops");
    if (use && (!json_is_string(use) || strcmp(json_string_value(use), "sig") != 0))
        return false;
    bool has_verify = !operations;
    for (size_t i = 0; i < json_array_size(operations); i++) {
        const char *word = json_string_value(json_array_get(operations, i));
        has_verify |= word && strcmp(word, "verify") == 0;
    }
    return has_verify;
}

static bool has_known_algorithm(const json_t *jwk, enum jwk_kind kind, enum jwk_algorithm *ret)
{
    const json_t *word = json_object_get(jwk, "alg");
    *ret = JWK_NO_ALGORITHM;
    if (!word)
        return true;
    for (size_t i = 0; json_is_string(word) && i < ARRAY_LEN(algorithms); i++)
        if (algorithms[i].kind == kind && strcmp(algorithms[i].name, json_string_value(word)) == 0)
            *ret = algorithms[i].algorithm;
    return *ret != JWK_NO_ALGORITHM;
}

static bool read_key(const struct crypto_library *crypto, const json_t *json, struct jwk *ret)
{
    const char *type = json_get_text(json, "kty");
    const json_t *id = json_object_get(json, "kid");
    struct jwk jwk = {0};
    size_t i = 0;
    while (type && i < ARRAY_LEN(types) && strcmp(types[i].type, type) != 0)
        i++;
    if (!type || i == ARRAY_LEN(types) || !is_for_verifying(json) || !has_known_algorithm(json, types[i].kind, &jwk.algorithm))
        return false;
    if (id && (!json_is_string(id) || json_string_length(id) > JWK_ID_MAX))
        return false;
    jwk.kind = types[i].kind;
    jwk.key = types[i].read(crypto, json);
    if (!jwk.key)
        return false;
    jwk.id = mem_strdup_or_null(json_string_value(id));
    *ret = jwk;
    return true;
}

// ---- a set ------------------------------------------------------------------------------------------------------
struct jwk_set *jwk_set_ref(struct jwk_set *set)
{
    atomic_fetch_add(&set->refs, 1);
    return set;
}

void jwk_set_unref(struct jwk_set *set)
{
    if (!set || atomic_fetch_sub(&set->refs, 1) != 1)
        return;
    for (size_t i = 0; i < set->count; i++) {
        free(set->keys[i].id);
        set->crypto->EVP_PKEY_free(set->keys[i].key);
    }
    free(set);
}

size_t jwk_set_count(const struct jwk_set *set)
{
    return set->count;
}

int jwk_set_parse(const char *bytes, size_t len, struct jwk_set **ret, struct error *err)
{
    const struct crypto_library *crypto = crypto_library_get(err);
    CLEANUP_JSON json_t *document = NULL;
    if (!crypto || json_parse(bytes, len, &document, err) < 0)
        return -1;
    const json_t *keys = json_object_get(document, "keys");
    if (!json_is_array(keys))
        return error_set(err, ERROR_INVALID, "it begins like {\"keys\": [", "this is no key set");
    if (json_array_size(keys) > JWK_SET_MAX)
        return error_set(err, ERROR_TOO_LARGE, NULL, "the key set has more than %d keys", JWK_SET_MAX);
    struct jwk_set *set = mem_alloc(sizeof(*set));
    set->refs = 1;
    set->crypto = crypto;
    for (size_t i = 0; i < json_array_size(keys); i++)
        set->count += read_key(crypto, json_array_get(keys, i), &set->keys[set->count]);
    if (!set->count) {
        jwk_set_unref(set);
        return error_set(err, ERROR_INVALID, "it must hold an RSA key of 2048 to 8192 bits, one on P-256, or an Ed25519 key, for signatures",
                         "none of the %zu keys of the set can be used", json_array_size(keys));
    }
    *ret = set;
    return 0;
}

static bool fits(const struct jwk *key, enum jwk_algorithm algorithm)
{
    for (size_t i = 0; i < ARRAY_LEN(algorithms); i++)
        if (algorithms[i].algorithm == algorithm)
            return algorithms[i].kind == key->kind && (key->algorithm == JWK_NO_ALGORITHM || key->algorithm == algorithm);
    return false;
}

const struct jwk *jwk_set_find(const struct jwk_set *set, const char *id, enum jwk_algorithm algorithm)
{
    const struct jwk *found = NULL;
    for (size_t i = 0; i < set->count; i++) {
        const struct jwk *key = &set->keys[i];
        if (!fits(key, algorithm) || (id && (!key->id || strcmp(key->id, id) != 0)))
            continue;
        if (found)
            return id ? found : NULL; // several, and the token does not say which
        found = key;
    }
    return found;
}

// ---- signatures -------------------------------------------------------------------------------------------------
// One number of an ECDSA signature as DER's INTEGER: no zeros in front but the one that keeps it positive.
static size_t put_integer(unsigned char *to, const unsigned char *number)
{
    size_t skip = 0;
    while (skip < P256_BYTES - 1 && !number[skip])
        skip++;
    bool is_padded = number[skip] & 0x80;
    size_t len = P256_BYTES - skip;
    to[0] = 2;
    to[1] = (unsigned char)(len + is_padded);
    to[2] = 0;
    memcpy(to + 2 + is_padded, number + skip, len);
    return 2 + is_padded + len;
}

// JWS has r and s side by side, OpenSSL wants them as a DER sequence.
static size_t to_der(const unsigned char signature[2 * P256_BYTES], unsigned char der[2 + 2 * (3 + P256_BYTES)])
{
    size_t len = put_integer(der + 2, signature);
    len += put_integer(der + 2 + len, signature + P256_BYTES);
    der[0] = 0x30;
    der[1] = (unsigned char)len;
    return 2 + len;
}

static bool begin(const struct crypto_library *crypto, EVP_MD_CTX *context, const struct jwk *key, enum jwk_algorithm algorithm)
{
    EVP_PKEY_CTX *details = NULL; // the context's
    const EVP_MD *digest = algorithm == JWK_EDDSA ? NULL : crypto->EVP_sha256();
    if (crypto->EVP_DigestVerifyInit(context, &details, digest, NULL, key->key) != 1)
        return false;
    if (algorithm == JWK_RS256)
        return crypto->EVP_PKEY_CTX_set_rsa_padding(details, RSA_PKCS1_PADDING) > 0;
    if (algorithm == JWK_PS256)
        return crypto->EVP_PKEY_CTX_set_rsa_padding(details, RSA_PKCS1_PSS_PADDING) > 0 &&
               crypto->EVP_PKEY_CTX_set_rsa_pss_saltlen(details, RSA_PSS_SALTLEN_DIGEST) > 0;
    return true;
}

bool jwk_verify(const struct jwk *key, enum jwk_algorithm algorithm, const void *text, size_t text_len, const void *signature,
                size_t signature_len)
{
    const struct crypto_library *crypto = crypto_library_get(NULL);
    unsigned char der[2 + 2 * (3 + P256_BYTES)];
    assert(crypto); // it made the key
    if (!fits(key, algorithm) || (algorithm == JWK_ES256 && signature_len != 2 * P256_BYTES))
        return false;
    if (algorithm == JWK_ES256) {
        signature_len = to_der(signature, der);
        signature = der;
    }
    EVP_MD_CTX *context = crypto->EVP_MD_CTX_new();
    bool is_good = context && begin(crypto, context, key, algorithm) &&
                   crypto->EVP_DigestVerify(context, signature, signature_len, text, text_len) == 1;
    crypto->EVP_MD_CTX_free(context);
    crypto->ERR_clear_error();
    return is_good;
}
