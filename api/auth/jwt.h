// OAuth access tokens that are JWTs (RFC 9068), read as RFC 8725 advises: the algorithms are a closed list, the token's type is
// looked at, the audience must be this resource, and nothing of the claims is read before the signature was found good.
//
//     CLEANUP(jwt_clear) struct jwt jwt = {0};
//     if (jwt_read(text, len, &jwt, err) < 0) return -1;
//     … a key for jwt.key_id and jwt.algorithm …
//     if (jwt_check(&jwt, key, &rules, now, &caller, err) < 0) return -1;
#pragma once
#include "api/auth/caller.h"
#include "api/auth/jwk.h"
#include "controller/base/time.h"

#define JWT_LEEWAY_MS 60000 // clocks differ by that much

struct jwt { // borrows from the text it was read from
    enum jwk_algorithm algorithm;
    char *key_id; // NULL: the token names none
    const char *text, *payload;
    size_t signed_len, payload_len; // signed: header and payload with their dot, from `text` on
    unsigned char *signature;
    size_t signature_len;
};
void jwt_clear(struct jwt *jwt);
// The form and the header. ERROR_REFUSED, in words that may be said to anybody.
int jwt_read(const char *text, size_t len, struct jwt *ret, struct error *err);

struct jwt_rules {
    const char *issuer, *audience;
};
// Signature, then claims: iss, aud, exp (needed), nbf, iat, sub (needed), scope or scp.
int jwt_check(const struct jwt *jwt, const struct jwk *key, const struct jwt_rules *rules, struct wall_time now, struct caller *ret,
              struct error *err);
// "mcp:oauth:" and the subject; what is not harmless in it is written %XX, one that is too long as its SHA-256. Different
// subjects have different principals.
void jwt_principal(const char *subject, size_t len, char ret[CALLER_PRINCIPAL_SIZE]);
