// Globs of absolute paths. A glob is compared with a whole path, component by component:
//
//     ?    one character, never a slash
//     *    any characters of one component, or none, never a slash
//     **   as a whole component: any number of components, or none; at the end at least one, so that /a/** is what is
//          below /a, not /a itself
//
// Everything else is itself: a leading dot, case, every byte. [ ] { } and \ mean something in other globs and nothing here:
// they are refused, and ? stands for them. The work is at most the product of both lengths: no glob makes it explode.
#pragma once
#include <stdbool.h>
#include <stddef.h>

#define PATH_GLOB_MAX_BYTES 1024

// NULL, or what is wrong as a piece of a sentence ("must be an absolute path").
const char *path_glob_check(const char *glob);
// glob: one that path_glob_check takes. path: absolute and clean, without a slash at its end.
bool path_glob_matches(const char *glob, const char *path);
// Length of the beginning that every match has as its own first components: "/home/me/src" of "/home/me/src/*/lib", the whole
// of a glob without wildcards. 0: the first component is none.
size_t path_glob_fixed_len(const char *glob);
