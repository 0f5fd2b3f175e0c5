// JSON Web Keys for checking signatures, and the checking itself, by OpenSSL (loaded when the first key is read).
//
// Taken are RSA keys of 2048 to 8192 bits, points on P-256, and Ed25519; whatever else a set holds (keys for encryption, other
// curves, symmetric ones) is skipped. A symmetric key is never a key here, so no token can be signed with something public.
#pragma once
#include "controller/base/error.h"
#include "controller/base/json.h"
#include <stdbool.h>
#include <stddef.h>

enum jwk_algorithm { JWK_NO_ALGORITHM, JWK_RS256, JWK_PS256, JWK_ES256, JWK_EDDSA };
enum jwk_algorithm jwk_algorithm_find(const char *name); // JWK_NO_ALGORITHM for every other, "none" and HS256 too

#define JWK_SET_MAX 64
#define JWK_ID_MAX 256

struct jwk;
struct jwk_set; // immutable, counted
// ERROR_INVALID: no key set, or none of its keys is usable. ERROR_UNSUPPORTED: OpenSSL is not there.
int jwk_set_parse(const char *bytes, size_t len, struct jwk_set **ret, struct error *err);
struct jwk_set *jwk_set_ref(struct jwk_set *set);
void jwk_set_unref(struct jwk_set *set); // NULL allowed
size_t jwk_set_count(const struct jwk_set *set);
// The key of this id that fits the algorithm. id NULL: the only one that fits. NULL if there is none.
const struct jwk *jwk_set_find(const struct jwk_set *set, const char *id, enum jwk_algorithm algorithm);
// signature: as JWS has it (ES256: r and s, 32 bytes each).
bool jwk_verify(const struct jwk *key, enum jwk_algorithm algorithm, const void *text, size_t text_len, const void *signature,
                size_t signature_len);
