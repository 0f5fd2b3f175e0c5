// Fetches an attachment with the sandbox's own curl. Redirects are followed here, one curl run each, so that
// every URL meets every check.
//
// Addresses: without a proxy the host is resolved once (getent), every address must be public, and curl is
// told to connect to just those. With a proxy in the sandbox's variables the name goes to the proxy as it is:
// the sandbox may have no way to resolve it, and an address checked here would not be the one that the proxy
// dials. Checking addresses is then the proxy's part, which the egress proxy does (it dials what it checked).
#pragma once
#include "api/guest/guest.h"
#include "controller/base/buffer.h"
#include <stdatomic.h>

#define IMPORT_MAX_BYTES 5000000
#define IMPORT_MAX_REDIRECTS 5

struct import_answer {
    struct buffer bytes; // owned
    char *mime_type;     // of the answer's header, without parameters; owned; NULL: none
};
void import_answer_free(struct import_answer *answer);
#define CLEANUP_IMPORT_ANSWER CLEANUP(import_answer_free)

int import_fetch(struct guest *guest, const char *url, size_t url_len, const atomic_bool *is_cancelled,
                 struct import_answer *ret, struct error *err);
