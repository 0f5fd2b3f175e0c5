// A shared library that is loaded when it is first needed and then stays for the life of the process.
//
//     static int load(struct error *err) { … library_open … library_find … }
//     static struct library library = LIBRARY_INIT(load);
//     return library_is_loaded(&library, err) ? &functions : NULL;
#pragma once
#include "controller/base/error.h"
#include <pthread.h>
#include <stdbool.h>

struct library {
    pthread_mutex_t lock; // guards is_loaded, and what `load` fills
    int (*load)(struct error *err);
    bool is_loaded;
};
#define LIBRARY_INIT(fn) {.lock = PTHREAD_MUTEX_INITIALIZER, .load = fn}

// Any thread. What failed is tried again by the next one who asks.
bool library_is_loaded(struct library *library, struct error *err);
// For `load`. NULL: ERROR_UNSUPPORTED with the hint; what: "libcurl".
void *library_open(const char *file, const char *what, const char *hint, struct error *err);
void *library_find(void *handle, const char *function, const char *what, const char *hint, struct error *err);
