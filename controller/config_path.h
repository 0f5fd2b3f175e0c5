// Paths in the configuration: a home directory for `~`, clean absolute text, and what lies in what.
#pragma once
#include "controller/base/error.h"
#include <stdbool.h>

// $HOME, else the password database's. The caller's. ERROR_INVALID if there is none.
int config_path_home(char **ret, struct error *err);
// "~" and "~/x" expanded, then absolute and clean: no empty, "." or ".." component, no trailing slash,
// no control characters, at most CONFIG_PATH_MAX bytes. The caller's. The error's message begins after the
// variable's name.
#define CONFIG_PATH_MAX 3072
int config_path_clean(const char *text, char **ret, struct error *err);
// The path with symlinks resolved as far as it exists. The caller's; never NULL.
char *config_path_resolve(const char *path);
// The same for the directories above the last component, which stays as it is (a link there is refused when it is used).
char *config_path_resolve_parent(const char *path);
// Is one the other, or does one lie in the other? As written, and with symlinks resolved.
bool config_path_overlaps(const char *a, const char *b);
