#include "api/guest/blocked.h"
#include "controller/base/cleanup.h"
#include <stddef.h>
#include <string.h>

#define ANYWHERE(name) name, name "/**", "**/" name "/**"

const char *const blocked_globs[] = {
    ".git",
    ".git/**",
    "**/.git/**",
    "node_modules",
    "node_modules/**",
    "**/node_modules/**",
    ".env",
    ".env/**",
    ".env.*",
    ".env.*/**",
    "**/.env",
    "**/.env/**",
    "**/.env.*",
    "**/.env.*/**",
    "**/*.pem",
    "**/*.key",
    "**/id_rsa",
    "**/id_rsa.*",
    "**/id_ed25519",
    "**/id_ed25519.*",
    "**/.ssh/**",
    ANYWHERE("dist"),
    ANYWHERE("build"),
    ANYWHERE(".next"),
    ANYWHERE("coverage"),
    ANYWHERE(".cache"),
    NULL,
};

// What the globs come to, each being tried on the whole path and on its last part.
static const char *const part_names[] = {".git",  "node_modules", ".env",     "dist",
                                         "build", ".next",        "coverage", ".cache"};
static const char *const last_names[] = {"id_rsa", "id_ed25519"};
static const char *const last_prefixes[] = {"id_rsa.", "id_ed25519."};
static const char *const last_suffixes[] = {".pem", ".key"};

static bool is_one_of(const char *const *names, size_t count, const char *part, size_t len)
{
    for (size_t i = 0; i < count; i++)
        if (strlen(names[i]) == len && memcmp(names[i], part, len) == 0)
            return true;
    return false;
}

static bool is_blocked_part(const char *part, size_t len)
{
    return is_one_of(part_names, ARRAY_LEN(part_names), part, len) ||
           (len >= 5 && memcmp(part, ".env.", 5) == 0);
}

static bool is_blocked_last(const char *part, size_t len)
{
    if (is_one_of(last_names, ARRAY_LEN(last_names), part, len))
        return true;
    for (size_t i = 0; i < ARRAY_LEN(last_prefixes); i++)
        if (strncmp(part, last_prefixes[i], strlen(last_prefixes[i])) == 0)
            return true;
    for (size_t i = 0; i < ARRAY_LEN(last_suffixes); i++)
        if (len >= 4 && memcmp(part + len - 4, last_suffixes[i], 4) == 0)
            return true;
    return false;
}

bool blocked_name(const char *name)
{
    size_t len = strlen(name);
    return is_blocked_part(name, len) || is_blocked_last(name, len);
}

bool blocked_path(const char *path)
{
    for (const char *part = path;;) {
        size_t len = strcspn(part, "/");
        if (is_blocked_part(part, len))
            return true;
        if (!part[len])
            return is_blocked_last(part, len);
        if (len == 4 && memcmp(part, ".ssh", 4) == 0)
            return true; // below it; the directory entry itself is not
        part += len + 1;
    }
}
