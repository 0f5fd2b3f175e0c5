// The first bytes of a client in a CONNECT tunnel: is it TLS, and which server name does it ask for? Strict: what
// is TLS-shaped and not exactly one well-formed ClientHello is refused, because a more tolerant server
// behind us could read another name from it.
#pragma once
#include "reconcilers/egress/name.h"
#include <stdbool.h>
#include <stddef.h>

#define HELLO_MAX_BYTES (32 * 1024)

enum hello_kind {
    HELLO_INCOMPLETE, // more bytes are needed to tell
    HELLO_NOT_TLS,    // another protocol
    HELLO_TLS,        // a ClientHello
    HELLO_BROKEN,     // TLS-shaped, refused
};
struct hello {
    enum hello_kind kind;
    char name[NAME_SIZE];     // canonical server name, "" without one
    bool has_encrypted_hello; // an inner ClientHello hides the true name (ECH), or pretends to (GREASE)
};
struct hello hello_parse(const unsigned char *bytes, size_t len);
