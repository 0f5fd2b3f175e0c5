// The methods of the protocol, by name (controller/base/guest_protocol.h says what each does).
#pragma once
#include "api/guest/request.h"

struct method {
    const char *name;
    void (*start)(struct request *request); // answers now or later
};
const struct method *method_find(const char *name);
