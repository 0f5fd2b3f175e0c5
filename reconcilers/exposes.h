// What a direct mount would expose, for the person who decides: named findings, bounded.
#pragma once
#include "controller/base/error.h"
#include <jansson.h>

#define EXPOSES_MAX_ENTRIES 20000 // directory entries looked at
#define EXPOSES_MAX_FINDINGS 50

// [{path, what}] for the directory at path: repository metadata, environment files, keys, sockets, devices, programs
// that other tools run by themselves. Refuses (ERROR_REFUSED) a tree with a listening socket or a device in it. New reference.
int exposes_scan(const char *path, json_t **ret, struct error *err);
