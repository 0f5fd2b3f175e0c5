// URLs in settings: absolute, http or https, without user, query and fragment, and of characters that may stand in a quoted
// header value.
#pragma once
#include "controller/base/error.h"

#define CONFIG_URL_MAX 1024

struct config_url {
    bool is_https;
    char *host; // lower case; an IPv6 address in brackets
    char *path; // "" or from its slash on
};
void config_url_clear(struct config_url *url);
int config_url_parse(const char *text, struct config_url *ret, struct error *err);
// "127.…", "localhost", "[::1]": what is sent there does not leave the machine.
bool config_host_is_loopback(const char *host);
