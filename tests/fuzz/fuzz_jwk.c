// A key set as a file or an authorization server gives it, into OpenSSL; then a signature checked with each key of it.
#include "api/auth/jwk.h"
#include "tests/fuzz/fuzz.h"

static const struct jwk *first_key(const struct jwk_set *set, enum jwk_algorithm *ret_algorithm)
{
    static const enum jwk_algorithm algorithms[] = {JWK_RS256, JWK_PS256, JWK_ES256, JWK_EDDSA};
    const struct jwk *key = NULL;
    for (size_t i = 0; !key && i < sizeof(algorithms) / sizeof(algorithms[0]); i++)
        key = jwk_set_find(set, NULL, *ret_algorithm = algorithms[i]);
    return key;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    static const unsigned char signature[64] = {1};
    struct jwk_set *set = NULL;
    struct error err = ERROR_INIT;
    if (jwk_set_parse((const char *)bytes, len, &set, &err) < 0) {
        fuzz_expect(!set && err.message[0], "a refusal is a sentence");
        return 0;
    }
    fuzz_expect(jwk_set_count(set) > 0 && jwk_set_count(set) <= JWK_SET_MAX, "a set has keys, and not too many");
    enum jwk_algorithm algorithm;
    const struct jwk *key = first_key(set, &algorithm);
    if (key)
        fuzz_expect(!jwk_verify(key, algorithm, bytes, len, signature, sizeof(signature)), "a made-up signature is not good");
    jwk_set_unref(set);
    return 0;
}
