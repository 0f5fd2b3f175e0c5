// Is an address one that an import may connect to: public, and not the sandbox's own surroundings?
#pragma once
#include <stdbool.h>

enum import_address { IMPORT_ADDRESS_PUBLIC, IMPORT_ADDRESS_LOOPBACK, IMPORT_ADDRESS_BLOCKED };

// text is an IPv4 or IPv6 address without brackets. False: it is no address.
bool import_address_judge(const char *text, enum import_address *ret);
