#include "api/operator/certificate.h"
#include "api/operator/gnutls_library.h"
#include "controller/base/cleanup.h"
#include "controller/base/memory.h"
#include "controller/base/random.h"
#include <string.h>

#define DAY_S (24 * 3600LL)
#define EARLY_S 3600 // a clock that is set back a little does not make it invalid
#define SERIAL_BYTES 16
#define KEY_ID_BYTES 20
#define PART_MAX (CERTIFICATE_PEM_MAX / 2)

static const unsigned char loopback[4] = {127, 0, 0, 1};

// A key and its certificate while they are worked on.
struct pair {
    const struct gnutls_library *tls;
    gnutls_x509_privkey_t key;
    gnutls_x509_crt_t certificate;
};

static void clear_pair(struct pair *pair)
{
    if (pair->key)
        pair->tls->gnutls_x509_privkey_deinit(pair->key);
    if (pair->certificate)
        pair->tls->gnutls_x509_crt_deinit(pair->certificate);
}

static int fail(const struct pair *pair, int code, struct error *err, const char *what)
{
    return error_set(err, ERROR_INTERNAL, NULL, "%s: %s", what, pair->tls->gnutls_strerror(code));
}

static int init_pair(struct pair *pair, struct error *err)
{
    pair->tls = gnutls_library_get(err);
    if (!pair->tls)
        return -1;
    int r = pair->tls->gnutls_x509_privkey_init(&pair->key);
    r = r < 0 ? r : pair->tls->gnutls_x509_crt_init(&pair->certificate);
    return r < 0 ? fail(pair, r, err, "cannot begin a certificate") : 0;
}

static int export_certificate(const struct pair *pair, char **ret)
{
    char text[PART_MAX];
    size_t len = sizeof(text);
    int r = pair->tls->gnutls_x509_crt_export(pair->certificate, GNUTLS_X509_FMT_PEM, text, &len);
    if (r >= 0)
        *ret = mem_strndup(text, len);
    return r;
}

// ---- making -----------------------------------------------------------------------------------------------------------
static int set_identity(const struct pair *pair)
{
    const struct gnutls_library *tls = pair->tls;
    unsigned char serial[SERIAL_BYTES], id[KEY_ID_BYTES];
    size_t id_len = sizeof(id);
    random_bytes(serial, sizeof(serial));
    serial[0] &= 0x7f; // positive
    int r = tls->gnutls_x509_crt_set_version(pair->certificate, 3);
    r = r < 0 ? r : tls->gnutls_x509_crt_set_serial(pair->certificate, serial, sizeof(serial));
    r = r < 0 ? r : tls->gnutls_x509_crt_set_dn_by_oid(pair->certificate, GNUTLS_OID_X520_COMMON_NAME, 0, "chat2shell", sizeof("chat2shell") - 1);
    r = r < 0 ? r : tls->gnutls_x509_crt_set_key(pair->certificate, pair->key);
    r = r < 0 ? r : tls->gnutls_x509_crt_get_key_id(pair->certificate, GNUTLS_KEYID_USE_SHA1, id, &id_len);
    r = r < 0 ? r : tls->gnutls_x509_crt_set_subject_key_id(pair->certificate, id, id_len);
    return r < 0 ? r : tls->gnutls_x509_crt_set_authority_key_id(pair->certificate, id, id_len);
}

static int set_names(const struct pair *pair)
{
    const struct gnutls_library *tls = pair->tls;
    int r = tls->gnutls_x509_crt_set_subject_alt_name(pair->certificate, GNUTLS_SAN_IPADDRESS, loopback, sizeof(loopback), GNUTLS_FSAN_SET);
    return r < 0 ? r
                 : tls->gnutls_x509_crt_set_subject_alt_name(pair->certificate, GNUTLS_SAN_DNSNAME, "localhost", sizeof("localhost") - 1, GNUTLS_FSAN_APPEND);
}

static int set_purpose(const struct pair *pair, struct wall_time now)
{
    const struct gnutls_library *tls = pair->tls;
    time_t from = (time_t)(now.ms / 1000);
    int r = tls->gnutls_x509_crt_set_activation_time(pair->certificate, from - EARLY_S);
    r = r < 0 ? r : tls->gnutls_x509_crt_set_expiration_time(pair->certificate, from + CERTIFICATE_LIFE_DAYS * DAY_S);
    r = r < 0 ? r : tls->gnutls_x509_crt_set_basic_constraints(pair->certificate, 1, 0);
    r = r < 0 ? r : tls->gnutls_x509_crt_set_key_usage(pair->certificate, GNUTLS_KEY_DIGITAL_SIGNATURE | GNUTLS_KEY_KEY_CERT_SIGN);
    return r < 0 ? r : tls->gnutls_x509_crt_set_key_purpose_oid(pair->certificate, GNUTLS_KP_TLS_WWW_SERVER, 0);
}

static int export_both(const struct pair *pair, char **ret)
{
    char secret[PART_MAX];
    size_t len = sizeof(secret);
    CLEANUP_FREE char *open = NULL;
    int r = pair->tls->gnutls_x509_privkey_export_pkcs8(pair->key, GNUTLS_X509_FMT_PEM, NULL, GNUTLS_PKCS_PLAIN, secret, &len);
    r = r < 0 ? r : export_certificate(pair, &open);
    if (r >= 0)
        *ret = mem_format("%.*s%s", (int)len, secret, open);
    explicit_bzero(secret, sizeof(secret));
    return r;
}

int certificate_make(struct wall_time now, char **ret_pem, struct error *err)
{
    CLEANUP(clear_pair) struct pair pair = {0};
    if (init_pair(&pair, err) < 0)
        return -1;
    int r = pair.tls->gnutls_x509_privkey_generate(pair.key, GNUTLS_PK_ECDSA, GNUTLS_CURVE_TO_BITS(GNUTLS_ECC_CURVE_SECP256R1), 0);
    r = r < 0 ? r : set_identity(&pair);
    r = r < 0 ? r : set_names(&pair);
    r = r < 0 ? r : set_purpose(&pair, now);
    r = r < 0 ? r : pair.tls->gnutls_x509_crt_sign2(pair.certificate, pair.certificate, pair.key, GNUTLS_DIG_SHA256, 0);
    r = r < 0 ? r : export_both(&pair, ret_pem);
    return r < 0 ? fail(&pair, r, err, "cannot make a certificate") : 0;
}

// ---- checking ---------------------------------------------------------------------------------------------------------
static int check_belonging(const struct pair *pair, struct error *err)
{
    unsigned char of_certificate[64], of_key[64];
    size_t certificate_len = sizeof(of_certificate), key_len = sizeof(of_key);
    int r = pair->tls->gnutls_x509_crt_get_key_id(pair->certificate, GNUTLS_KEYID_USE_SHA256, of_certificate, &certificate_len);
    r = r < 0 ? r : pair->tls->gnutls_x509_privkey_get_key_id(pair->key, GNUTLS_KEYID_USE_SHA256, of_key, &key_len);
    if (r < 0)
        return fail(pair, r, err, "the certificate cannot be read");
    if (certificate_len != key_len || memcmp(of_certificate, of_key, key_len) != 0)
        return error_set(err, ERROR_CORRUPT, NULL, "the certificate is not of the key beside it");
    return 0;
}

static int check_use(const struct pair *pair, struct wall_time now, struct error *err)
{
    int64_t from = pair->tls->gnutls_x509_crt_get_activation_time(pair->certificate);
    int64_t to = pair->tls->gnutls_x509_crt_get_expiration_time(pair->certificate), now_s = now.ms / 1000;
    if (!pair->tls->gnutls_x509_crt_check_ip(pair->certificate, loopback, sizeof(loopback), 0))
        return error_set(err, ERROR_CORRUPT, NULL, "the certificate is not for 127.0.0.1");
    if (from > now_s || to < now_s + CERTIFICATE_RENEW_DAYS * DAY_S)
        return error_set(err, ERROR_EXPIRED, NULL, "the certificate is not valid yet, or not for another %d days", CERTIFICATE_RENEW_DAYS);
    return 0;
}

int certificate_check(const char *pem, struct wall_time now, char **ret_public, struct error *err)
{
    CLEANUP(clear_pair) struct pair pair = {0};
    const gnutls_datum_t text = {(unsigned char *)pem, (unsigned)strlen(pem)};
    if (init_pair(&pair, err) < 0)
        return -1;
    int r = pair.tls->gnutls_x509_crt_import(pair.certificate, &text, GNUTLS_X509_FMT_PEM);
    r = r < 0 ? r : pair.tls->gnutls_x509_privkey_import2(pair.key, &text, GNUTLS_X509_FMT_PEM, NULL, 0);
    if (r < 0)
        return fail(&pair, r, err, "the certificate cannot be read");
    if (check_belonging(&pair, err) < 0 || check_use(&pair, now, err) < 0)
        return -1;
    r = export_certificate(&pair, ret_public);
    return r < 0 ? fail(&pair, r, err, "the certificate cannot be read") : 0;
}
