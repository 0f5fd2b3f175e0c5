// Git bundles of a private clone's branches, made inside the sandbox by its own git and streamed out through the tool
// server's exec. Host-side git never runs in a tree that a sandbox can write.
#pragma once
#include "reconcilers/reconcilers.h"

#define BUNDLE_MAX_BYTES (2LL * 1024 * 1024 * 1024)
#define BUNDLE_DEADLINE_MS (10 * 60 * 1000)

// To DATA_ROOT/bundles/NAME-UID.bundle (0600), at expiry, on the closed lane. done on any thread; path is NULL when the
// repository has no commit to save.
typedef void (*bundle_done_fn)(void *arg, int result, const char *path, const struct error *err);
void bundle_save(struct world *world, const char *sandbox_uid, const char *sandbox_name, bundle_done_fn done, void *arg);
// argv of the bundle, NULL-terminated; its stdout is the bundle.
extern const char *const bundle_argv[];
