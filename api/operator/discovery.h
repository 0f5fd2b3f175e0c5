// What this API consists of, for discovery and OpenAPI alike. Static tables; any thread.
#pragma once
#include "controller/base/json.h"

struct api_resource {
    const char *plural, *singular, *short_name, *kind;
    bool is_namespaced, is_in_all;
    const char *const *verbs; // NULL at the end
};
struct api_group {
    const char *name, *version; // name "" = core
    const struct api_resource *resources;
    size_t count;
};
const struct api_group *discovery_groups(size_t *ret_count);
char *api_group_version(const struct api_group *group); // "v1", "chat2shell.dev/v1"; the caller's
