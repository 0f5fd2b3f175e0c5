#include "api/guest/environment.h"
#include "controller/base/cleanup.h"
#include "controller/base/memory.h"
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

extern char **environ;

// Name, and what it is where the guest has none; "" takes it only from the guest.
static const struct {
    const char *name, *fallback;
    int is_fixed;
} variables[] = {
    {"PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", 0},
    {"SHELL", "/bin/bash", 0},
    {"TMPDIR", "/tmp", 0},
    {"LANG", "", 0},
    {"TERM", "dumb", 1},
    {"NO_COLOR", "1", 1},
    {"CI", "1", 1},
};

void environment_set(struct environment *environment, const char *name, const char *value)
{
    size_t len = strlen(name);
    char *text = mem_format("%s=%s", name, value);
    for (size_t i = 0; i < environment->count; i++) {
        if (strncmp(environment->vars[i], name, len) == 0 && environment->vars[i][len] == '=') {
            free(environment->vars[i]);
            environment->vars[i] = text;
            return;
        }
    }
    environment->vars = mem_realloc_array(environment->vars, environment->count + 2, sizeof(char *));
    environment->vars[environment->count++] = text;
    environment->vars[environment->count] = NULL;
}

void environment_unset(struct environment *environment, const char *name)
{
    size_t len = strlen(name);
    for (size_t i = 0; i < environment->count; i++) {
        if (strncmp(environment->vars[i], name, len) != 0 || environment->vars[i][len] != '=')
            continue;
        free(environment->vars[i]);
        environment->vars[i] = environment->vars[--environment->count];
        environment->vars[environment->count] = NULL;
        return;
    }
}

const char *environment_get(const struct environment *environment, const char *name)
{
    size_t len = strlen(name);
    for (size_t i = 0; i < environment->count; i++)
        if (strncmp(environment->vars[i], name, len) == 0 && environment->vars[i][len] == '=')
            return environment->vars[i] + len + 1;
    return NULL;
}

// The egress proxy is told to programs by variables of either case; which ones is the driver's business.
static void copy_proxy_variables(struct environment *environment)
{
    for (char **at = environ; *at; at++) {
        const char *equals = strchr(*at, '=');
        if (!equals || equals - *at < 6 || strncasecmp(equals - 6, "_proxy", 6) != 0)
            continue;
        CLEANUP_FREE char *name = mem_strndup(*at, (size_t)(equals - *at));
        environment_set(environment, name, equals + 1);
    }
}

// /etc/passwd directly: a static program must not load name service modules.
static void set_identity(struct environment *environment)
{
    const char *home = getenv("HOME"), *user = getenv("USER");
    FILE *file = fopen("/etc/passwd", "re");
    for (struct passwd *entry; file && (!home || !user) && (entry = fgetpwent(file));) {
        if (entry->pw_uid != getuid())
            continue;
        environment_set(environment, "HOME", home && *home ? home : entry->pw_dir);
        environment_set(environment, "USER", user && *user ? user : entry->pw_name);
        break;
    }
    if (file)
        fclose(file);
    if (!environment_get(environment, "HOME"))
        environment_set(environment, "HOME", home && *home ? home : "/");
    if (!environment_get(environment, "USER"))
        environment_set(environment, "USER", user && *user ? user : "root");
}

void environment_init(struct environment *environment)
{
    *environment = (struct environment){0};
    for (size_t i = 0; i < ARRAY_LEN(variables); i++) {
        const char *own = variables[i].is_fixed ? NULL : getenv(variables[i].name);
        const char *value = own && *own ? own : variables[i].fallback;
        if (*value)
            environment_set(environment, variables[i].name, value);
    }
    set_identity(environment);
    copy_proxy_variables(environment);
    environment->home = environment_get(environment, "HOME");
}

void environment_copy(const struct environment *from, struct environment *to)
{
    *to = (struct environment){.vars = mem_realloc_array(NULL, from->count + 1, sizeof(char *)),
                               .count = from->count};
    for (size_t i = 0; i < from->count; i++)
        to->vars[i] = mem_strdup(from->vars[i]);
    to->vars[to->count] = NULL;
    to->home = environment_get(to, "HOME");
}

void environment_free(struct environment *environment)
{
    for (size_t i = 0; i < environment->count; i++)
        free(environment->vars[i]);
    free(environment->vars);
    *environment = (struct environment){0};
}
