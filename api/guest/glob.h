// File name patterns: * and ? within one part, [classes], ** over parts, \ escapes. Work is bounded: a
// pattern that would need more steps than that does not match.
#pragma once
#include <stdbool.h>
#include <stddef.h>

bool glob_match(const char *pattern, const char *path);

// The glob argument of search: "*.c" matches names at any depth, "src/*.c" paths from the root, "{a,b}"
// either, and a leading "!" turns the meaning round.
#define GLOB_MAX_ALTERNATIVES 64
struct glob {
    char *patterns[GLOB_MAX_ALTERNATIVES];
    size_t count;
    bool is_negated;
};
// False if braces give more alternatives than that.
bool glob_compile(const char *text, struct glob *ret);
bool glob_accepts(const struct glob *glob, const char *path);
void glob_free(struct glob *glob);
