#include "api/auth/crypto_library.h"
#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>

#define LIBRARY "libcrypto.so.3"
#define HINT_INSTALL "install the package libssl3, or use CHAT2SHELL_AUTH=token"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER; // guards the two below
static struct crypto_library library;
static bool is_loaded;

static int load(struct error *err)
{
    void *handle = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
    if (!handle)
        return error_set(err, ERROR_UNSUPPORTED, HINT_INSTALL, "OAuth needs OpenSSL 3, which cannot be loaded: %s", dlerror());
#define X(name)                                                                                                                       \
    if (!(library.name = (__typeof__(library.name))dlsym(handle, #name)))                                                             \
        return error_set(err, ERROR_UNSUPPORTED, HINT_INSTALL, "this OpenSSL has no function %s", #name);
    CRYPTO_LIBRARY_FUNCTIONS(X)
#undef X
    return 0;
}

const struct crypto_library *crypto_library_get(struct error *err)
{
    pthread_mutex_lock(&mutex);
    if (!is_loaded)
        is_loaded = load(err) == 0;
    bool is = is_loaded;
    pthread_mutex_unlock(&mutex);
    return is ? &library : NULL;
}
