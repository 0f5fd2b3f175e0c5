#include "controller/library.h"
#include <dlfcn.h>

bool library_is_loaded(struct library *library, struct error *err)
{
    pthread_mutex_lock(&library->lock);
    if (!library->is_loaded)
        library->is_loaded = library->load(err) == 0;
    bool is = library->is_loaded;
    pthread_mutex_unlock(&library->lock);
    return is;
}

void *library_open(const char *file, const char *what, const char *hint, struct error *err)
{
    void *handle = dlopen(file, RTLD_NOW | RTLD_LOCAL);
    if (!handle)
        error_set(err, ERROR_UNSUPPORTED, hint, "%s is needed and cannot be loaded: %s", what, dlerror());
    return handle;
}

void *library_find(void *handle, const char *function, const char *what, const char *hint, struct error *err)
{
    void *found = dlsym(handle, function);
    if (!found)
        error_set(err, ERROR_UNSUPPORTED, hint, "this %s has no function %s", what, function);
    return found;
}
