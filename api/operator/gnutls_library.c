#include "api/operator/gnutls_library.h"
#include "controller/library.h"

#define NAME "GnuTLS"
#define HINT_INSTALL "install the package libgnutls30"

static struct gnutls_library functions;

static int load(struct error *err)
{
    void *handle = library_open("libgnutls.so.30", NAME, HINT_INSTALL, err);
    if (!handle)
        return -1;
#define X(name)                                                                                               \
    if (!(functions.name = (__typeof__(functions.name))library_find(handle, #name, NAME, HINT_INSTALL, err))) \
        return -1;
    GNUTLS_LIBRARY_FUNCTIONS(X)
#undef X
    return 0;
}

const struct gnutls_library *gnutls_library_get(struct error *err)
{
    static struct library library = LIBRARY_INIT(load);
    return library_is_loaded(&library, err) ? &functions : NULL;
}
