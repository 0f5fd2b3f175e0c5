// libcurl, loaded when it is first needed: by a CodexPro session (plain HTTP to loopback), or by OAuth to fetch the
// authorization server's keys (HTTPS). Its thirty libraries (Kerberos, LDAP, SSH and more) would nearly double the resident
// memory of a controller that needs neither, and the start time of every command.
#pragma once
#include "controller/base/error.h"
#include <curl/curl.h>

#define CURL_LIBRARY_FUNCTIONS(X)                                                                                                     \
    X(global_init)                                                                                                                    \
    X(easy_init)                                                                                                                      \
    X(easy_perform)                                                                                                                   \
    X(easy_setopt)                                                                                                                    \
    X(easy_getinfo)                                                                                                                   \
    X(easy_cleanup)                                                                                                                   \
    X(easy_strerror)                                                                                                                  \
    X(multi_init)                                                                                                                     \
    X(multi_setopt)                                                                                                                   \
    X(multi_add_handle)                                                                                                               \
    X(multi_remove_handle)                                                                                                            \
    X(multi_socket_action)                                                                                                            \
    X(multi_assign)                                                                                                                   \
    X(multi_info_read)                                                                                                                \
    X(multi_cleanup)                                                                                                                  \
    X(slist_append)                                                                                                                   \
    X(slist_free_all)

struct curl_library {
#define X(name) __typeof__(curl_##name) *name;
    CURL_LIBRARY_FUNCTIONS(X)
#undef X
};
// Any thread. The library stays for the life of the process. NULL: ERROR_UNSUPPORTED, with the package that is missing.
const struct curl_library *curl_library_get(struct error *err);
