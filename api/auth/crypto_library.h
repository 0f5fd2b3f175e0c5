// OpenSSL's libcrypto, loaded when the first key of an authorization server is read: it would add more than half to the
// resident memory of an idle daemon that needs no OAuth, and to the start of every command.
#pragma once
#include "controller/base/error.h"
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/rsa.h>

#define CRYPTO_LIBRARY_FUNCTIONS(X)                                                                                                   \
    X(EVP_PKEY_CTX_new_from_name)                                                                                                     \
    X(EVP_PKEY_CTX_free)                                                                                                              \
    X(EVP_PKEY_fromdata_init)                                                                                                         \
    X(EVP_PKEY_fromdata)                                                                                                              \
    X(EVP_PKEY_new_raw_public_key)                                                                                                    \
    X(EVP_PKEY_free)                                                                                                                  \
    X(EVP_PKEY_CTX_set_rsa_padding)                                                                                                   \
    X(EVP_PKEY_CTX_set_rsa_pss_saltlen)                                                                                               \
    X(EVP_MD_CTX_new)                                                                                                                 \
    X(EVP_MD_CTX_free)                                                                                                                \
    X(EVP_sha256)                                                                                                                     \
    X(EVP_DigestVerifyInit)                                                                                                           \
    X(EVP_DigestVerify)                                                                                                               \
    X(ERR_clear_error)

struct crypto_library {
#define X(name) __typeof__(name) *name;
    CRYPTO_LIBRARY_FUNCTIONS(X)
#undef X
};
// Any thread. The library stays for the life of the process. NULL: ERROR_UNSUPPORTED, with the package that is missing.
const struct crypto_library *crypto_library_get(struct error *err);
