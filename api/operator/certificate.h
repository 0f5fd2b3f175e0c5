// The certificate of the TLS listener: self-signed, ECDSA P-256, for 127.0.0.1 and localhost, and its own authority, so that a
// kubeconfig which holds it trusts this listener and nothing else. By GnuTLS, which serves it and is in the process anyway.
// Any thread.
#pragma once
#include "controller/base/error.h"
#include "controller/base/time.h"
#include <stddef.h>

#define CERTIFICATE_LIFE_DAYS 3650
#define CERTIFICATE_RENEW_DAYS 90 // one that ends sooner counts as ended
#define CERTIFICATE_PEM_MAX (16 * 1024)

// A new key and its certificate, both as PEM in one text, which is a secret: the caller wipes and frees it.
int certificate_make(struct wall_time now, char **ret_pem, struct error *err);
// Whether such a text can be served: it parses, key and certificate belong together, it is for 127.0.0.1 and does not end soon.
// *ret_public: the certificate alone, as PEM; the caller's.
int certificate_check(const char *pem, struct wall_time now, char **ret_public, struct error *err);
