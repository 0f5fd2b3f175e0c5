// Making objects: POST, and apply of what is not there.
#pragma once
#include "api/operator/internal.h"

// Takes the call, in its handler. name NULL: the body's, or one derived from the uid.
void create_start(struct call *call, const char *name);
