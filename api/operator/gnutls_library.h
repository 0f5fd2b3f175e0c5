// GnuTLS, which libmicrohttpd brings into the daemon: its own functions are looked up when the first certificate is made or read,
// so that commands do not load it.
#pragma once
#include "controller/base/error.h"
#include <gnutls/x509.h>

#define GNUTLS_LIBRARY_FUNCTIONS(X)             \
    X(gnutls_strerror)                          \
    X(gnutls_x509_privkey_init)                 \
    X(gnutls_x509_privkey_deinit)               \
    X(gnutls_x509_privkey_generate)             \
    X(gnutls_x509_privkey_import2)              \
    X(gnutls_x509_privkey_export_pkcs8)         \
    X(gnutls_x509_privkey_get_key_id)           \
    X(gnutls_x509_crt_init)                     \
    X(gnutls_x509_crt_deinit)                   \
    X(gnutls_x509_crt_import)                   \
    X(gnutls_x509_crt_export)                   \
    X(gnutls_x509_crt_set_version)              \
    X(gnutls_x509_crt_set_serial)               \
    X(gnutls_x509_crt_set_dn_by_oid)            \
    X(gnutls_x509_crt_set_key)                  \
    X(gnutls_x509_crt_get_key_id)               \
    X(gnutls_x509_crt_set_subject_key_id)       \
    X(gnutls_x509_crt_set_authority_key_id)     \
    X(gnutls_x509_crt_set_activation_time)      \
    X(gnutls_x509_crt_get_activation_time)      \
    X(gnutls_x509_crt_set_expiration_time)      \
    X(gnutls_x509_crt_get_expiration_time)      \
    X(gnutls_x509_crt_set_subject_alt_name)     \
    X(gnutls_x509_crt_set_basic_constraints)    \
    X(gnutls_x509_crt_set_key_usage)            \
    X(gnutls_x509_crt_set_key_purpose_oid)      \
    X(gnutls_x509_crt_sign2)                    \
    X(gnutls_x509_crt_check_ip)

struct gnutls_library {
#define X(name) __typeof__(name) *name;
    GNUTLS_LIBRARY_FUNCTIONS(X)
#undef X
};
// Any thread. The library stays for the life of the process. NULL: ERROR_UNSUPPORTED, with the package that is missing.
const struct gnutls_library *gnutls_library_get(struct error *err);
