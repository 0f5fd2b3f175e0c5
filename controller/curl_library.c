#include "controller/curl_library.h"
#include "controller/base/cleanup.h"
#include <dlfcn.h>
#include <pthread.h>

#define LIBRARY "libcurl.so.4"
#define HINT_INSTALL "install the package libcurl4, or do without what needs it: sessions of the kind codexpro, and a URL in CHAT2SHELL_OAUTH_JWKS"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER; // guards the two below
static struct curl_library library;
static bool is_loaded;

static int load(struct error *err)
{
    void *handle = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
    if (!handle)
        return error_set(err, ERROR_UNSUPPORTED, HINT_INSTALL, "libcurl is needed and cannot be loaded: %s", dlerror());
#define X(name)                                                                                                                       \
    if (!(library.name = (__typeof__(library.name))dlsym(handle, "curl_" #name)))                                                     \
        return error_set(err, ERROR_UNSUPPORTED, HINT_INSTALL, "this libcurl has no function curl_%s", #name);
    CURL_LIBRARY_FUNCTIONS(X)
#undef X
    CURLcode code = library.global_init(CURL_GLOBAL_DEFAULT);
    if (code != CURLE_OK)
        return error_set(err, ERROR_UNSUPPORTED, HINT_INSTALL, "libcurl does not start: %s", library.easy_strerror(code));
    return 0;
}

const struct curl_library *curl_library_get(struct error *err)
{
    pthread_mutex_lock(&mutex);
    if (!is_loaded)
        is_loaded = load(err) == 0;
    bool is = is_loaded;
    pthread_mutex_unlock(&mutex);
    return is ? &library : NULL;
}
