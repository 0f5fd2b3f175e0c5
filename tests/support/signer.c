#include "tests/support/signer.h"
#include "controller/base/buffer.h"
#include "controller/base/json.h"
#include "controller/base/memory.h"
#include "tests/support/support.h"
#include <openssl/core_names.h>
#include <openssl/ec.h>
#include <openssl/rsa.h>
#include <string.h>

struct signer signer_make(const char *algorithm, const char *id, int bits)
{
    struct signer signer = {.algorithm = algorithm, .id = id};
    if (strcmp(algorithm, "ES256") == 0)
        signer.key = EVP_EC_gen("P-256");
    else if (strcmp(algorithm, "EdDSA") == 0)
        signer.key = EVP_PKEY_Q_keygen(NULL, NULL, "ED25519");
    else
        signer.key = EVP_RSA_gen((unsigned)(bits ? bits : 2048));
    assert_non_null(signer.key);
    return signer;
}

void signer_clear(struct signer *signer)
{
    EVP_PKEY_free(signer->key);
    signer->key = NULL;
}

char *signer_encode(const void *bytes, size_t len)
{
    CLEANUP_JSON json_t *padded = json_encode_base64(bytes, len);
    char *text = mem_strdup(json_string_value(padded));
    for (char *at = text; *at; at++)
        *at = (char)(*at == '+' ? '-' : *at == '/' ? '_' : *at);
    text[strcspn(text, "=")] = '\0';
    return text;
}

// ---- public keys ------------------------------------------------------------------------------------------------
static void put_number(json_t *jwk, const char *name, const struct signer *signer, const char *parameter, size_t fixed_len)
{
    BIGNUM *number = NULL;
    unsigned char bytes[1100];
    assert_int_equal(EVP_PKEY_get_bn_param(signer->key, parameter, &number), 1);
    int len = fixed_len ? BN_bn2binpad(number, bytes, (int)fixed_len) : BN_bn2bin(number, bytes);
    BN_free(number);
    CLEANUP_FREE char *text = signer_encode(bytes, (size_t)len);
    json_set_text(jwk, name, text);
}

char *signer_jwk(const struct signer *signer)
{
    CLEANUP_JSON json_t *jwk = json_pack("{s:s, s:s, s:s}", "kid", signer->id, "alg", signer->algorithm, "use", "sig");
    if (strcmp(signer->algorithm, "ES256") == 0) {
        json_set_text(jwk, "kty", "EC");
        json_set_text(jwk, "crv", "P-256");
        put_number(jwk, "x", signer, OSSL_PKEY_PARAM_EC_PUB_X, 32);
        put_number(jwk, "y", signer, OSSL_PKEY_PARAM_EC_PUB_Y, 32);
    } else if (strcmp(signer->algorithm, "EdDSA") == 0) {
        unsigned char bytes[32];
        size_t len = sizeof(bytes);
        assert_int_equal(EVP_PKEY_get_raw_public_key(signer->key, bytes, &len), 1);
        CLEANUP_FREE char *text = signer_encode(bytes, len);
        json_set_text(jwk, "kty", "OKP");
        json_set_text(jwk, "crv", "Ed25519");
        json_set_text(jwk, "x", text);
    } else {
        json_set_text(jwk, "kty", "RSA");
        put_number(jwk, "n", signer, OSSL_PKEY_PARAM_RSA_N, 0);
        put_number(jwk, "e", signer, OSSL_PKEY_PARAM_RSA_E, 0);
    }
    return json_to_text(jwk);
}

char *signer_set(const struct signer *signers, size_t count)
{
    CLEANUP(buffer_free) struct buffer text = BUFFER_INIT(1 << 20);
    buffer_append_text(&text, "{\"keys\":[");
    for (size_t i = 0; i < count; i++) {
        CLEANUP_FREE char *jwk = signer_jwk(&signers[i]);
        buffer_format(&text, "%s%s", i ? "," : "", jwk);
    }
    buffer_append_text(&text, "]}");
    return buffer_take_string(&text);
}

// ---- signatures -------------------------------------------------------------------------------------------------
// The DER sequence of ECDSA as JWS has it.
static size_t to_raw(unsigned char *signature, size_t len)
{
    const unsigned char *at = signature;
    ECDSA_SIG *pair = d2i_ECDSA_SIG(NULL, &at, (long)len);
    assert_non_null(pair);
    unsigned char raw[64];
    BN_bn2binpad(ECDSA_SIG_get0_r(pair), raw, 32);
    BN_bn2binpad(ECDSA_SIG_get0_s(pair), raw + 32, 32);
    ECDSA_SIG_free(pair);
    memcpy(signature, raw, sizeof(raw));
    return sizeof(raw);
}

char *signer_sign(const struct signer *signer, const char *header, const char *claims)
{
    CLEANUP_FREE char *first = signer_encode(header, strlen(header)), *second = signer_encode(claims, strlen(claims));
    CLEANUP_FREE char *text = mem_format("%s.%s", first, second);
    unsigned char signature[1100];
    size_t len = sizeof(signature);
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    EVP_PKEY_CTX *details = NULL;
    bool is_eddsa = strcmp(signer->algorithm, "EdDSA") == 0;
    assert_int_equal(EVP_DigestSignInit(context, &details, is_eddsa ? NULL : EVP_sha256(), NULL, signer->key), 1);
    if (strcmp(signer->algorithm, "PS256") == 0) {
        EVP_PKEY_CTX_set_rsa_padding(details, RSA_PKCS1_PSS_PADDING);
        EVP_PKEY_CTX_set_rsa_pss_saltlen(details, RSA_PSS_SALTLEN_DIGEST);
    }
    assert_int_equal(EVP_DigestSign(context, signature, &len, (const unsigned char *)text, strlen(text)), 1);
    EVP_MD_CTX_free(context);
    if (strcmp(signer->algorithm, "ES256") == 0)
        len = to_raw(signature, len);
    CLEANUP_FREE char *third = signer_encode(signature, len);
    return mem_format("%s.%s", text, third);
}

char *signer_token(const struct signer *signer, const char *claims)
{
    CLEANUP_FREE char *header = mem_format("{\"alg\":\"%s\",\"typ\":\"at+jwt\",\"kid\":\"%s\"}", signer->algorithm, signer->id);
    return signer_sign(signer, header, claims);
}
