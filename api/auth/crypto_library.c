#include "api/auth/crypto_library.h"
#include "controller/library.h"

#define NAME "OpenSSL 3"
#define HINT_INSTALL "install the package libssl3, or use CHAT2SHELL_AUTH=token"

static struct crypto_library functions;

static int load(struct error *err)
{
    void *handle = library_open("libcrypto.so.3", NAME, HINT_INSTALL, err);
    if (!handle)
        return -1;
#define X(name)                                                                                                                       \
    if (!(functions.name = (__typeof__(functions.name))library_find(handle, #name, NAME, HINT_INSTALL, err)))                         \
        return -1;
    CRYPTO_LIBRARY_FUNCTIONS(X)
#undef X
    return 0;
}

const struct crypto_library *crypto_library_get(struct error *err)
{
    static struct library library = LIBRARY_INIT(load);
    return library_is_loaded(&library, err) ? &functions : NULL;
}
