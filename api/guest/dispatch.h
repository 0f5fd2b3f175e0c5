// From a line of input to a request, a notification or an error answer.
#pragma once
#include "api/guest/guest.h"

void dispatch_line(struct guest *guest, const char *text, size_t len);
