// FNV-1a, for tables whose keys nobody outside chooses.
#pragma once
#include <stdint.h>

static inline uint64_t hash_text(const char *text)
{
    uint64_t hash = 14695981039346656037u;
    for (; *text; text++)
        hash = (hash ^ (unsigned char)*text) * 1099511628211u;
    return hash ^ hash >> 32;
}
