// What commands get as environment: a short fixed list, whatever the guest itself was started with.
#pragma once
#include <stddef.h>

struct environment {
    char **vars; // NULL-terminated, owned
    size_t count;
    const char *home; // points into vars
};

void environment_init(struct environment *environment);
void environment_free(struct environment *environment);
void environment_set(struct environment *environment, const char *name, const char *value);
void environment_unset(struct environment *environment, const char *name);
void environment_copy(const struct environment *from, struct environment *to);
const char *environment_get(const struct environment *environment, const char *name); // NULL if absent
