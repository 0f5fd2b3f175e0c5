// An authorization server's keys in tests: made by OpenSSL, their public halves as JWKs, and tokens signed with them, well or
// as wrong as a test likes.
#pragma once
#include <openssl/evp.h>
#include <stddef.h>

struct signer {
    EVP_PKEY *key;
    const char *algorithm; // RS256, PS256, ES256, EdDSA
    const char *id;
};
// bits: of RSA; 0 = 2048. Both texts are borrowed.
struct signer signer_make(const char *algorithm, const char *id, int bits);
void signer_clear(struct signer *signer);
char *signer_jwk(const struct signer *signer); // JSON object; the caller's, as all of these
char *signer_set(const struct signer *signers, size_t count); // {"keys": […]}
// header and claims: JSON texts, encoded as they are.
char *signer_sign(const struct signer *signer, const char *header, const char *claims);
char *signer_token(const struct signer *signer, const char *claims); // with the header that it should have
char *signer_encode(const void *bytes, size_t len); // base64url
