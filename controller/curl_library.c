#include "controller/curl_library.h"
#include "controller/library.h"

#define NAME "libcurl"
#define HINT_INSTALL "install the package libcurl4, or do without what needs it: sessions of the kind codexpro, and a URL in CHAT2SHELL_OAUTH_JWKS"

static struct curl_library functions;

static int load(struct error *err)
{
    void *handle = library_open("libcurl.so.4", NAME, HINT_INSTALL, err);
    if (!handle)
        return -1;
#define X(name)                                                                                                                       \
    if (!(functions.name = (__typeof__(functions.name))library_find(handle, "curl_" #name, NAME, HINT_INSTALL, err)))                 \
        return -1;
    CURL_LIBRARY_FUNCTIONS(X)
#undef X
    CURLcode code = functions.global_init(CURL_GLOBAL_DEFAULT);
    if (code != CURLE_OK)
        return error_set(err, ERROR_UNSUPPORTED, HINT_INSTALL, "libcurl does not start: %s", functions.easy_strerror(code));
    return 0;
}

const struct curl_library *curl_library_get(struct error *err)
{
    static struct library library = LIBRARY_INIT(load);
    return library_is_loaded(&library, err) ? &functions : NULL;
}
