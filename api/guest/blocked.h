// Paths that the file tools do not touch: version control internals, dependencies, build output and keys.
// A safety net for a model's attention, not a security boundary: bash inside the sandbox is not held to it.
#pragma once
#include <stdbool.h>

extern const char *const blocked_globs[]; // NULL-terminated, as server_config shows them
bool blocked_path(const char *path);      // relative, clean
bool blocked_name(const char *name);      // one part, wherever it stands
