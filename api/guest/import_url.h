// Which URLs import_file may fetch from. The reading is stricter than any client's: what two readers could
// understand differently is refused.
#pragma once
#include "controller/base/cleanup.h"
#include "controller/base/error.h"
#include <stdbool.h>
#include <stddef.h>

struct import_policy {
    const char *more_hosts; // comma-separated, beside the built-in list; NULL: none
    bool allows_loopback;   // and then http too: for tests
};
struct import_policy import_policy_read(void); // from CODEXPRO_IMPORT_ALLOWED_HOSTS and …_ALLOW_LOOPBACK

struct import_url {
    char *text; // owned, as are the others
    char *host; // lower case; an IPv6 address without its brackets
    unsigned port;
    bool is_https;
    bool is_address; // the host is one, and the policy lets it pass
};

int import_url_check(const char *text, size_t len, const struct import_policy *policy, struct import_url *ret,
                     struct error *err);
void import_url_free(struct import_url *url);
#define CLEANUP_IMPORT_URL CLEANUP(import_url_free)
