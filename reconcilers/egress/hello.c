#include "reconcilers/egress/hello.h"
#include <stdint.h>
#include <string.h>

#define EXTENSION_SERVER_NAME 0
#define EXTENSION_ENCRYPTED_HELLO 0xfe0d
#define MAX_EXTENSIONS 128

// A cursor that never reads past its end; `is_bad` sticks.
struct cursor {
    const unsigned char *at;
    size_t left;
    bool is_bad;
};

static struct cursor take_bytes(struct cursor *from, size_t len)
{
    struct cursor part = {from->at, len, false};
    if (from->is_bad || len > from->left) {
        from->is_bad = true;
        return (struct cursor){.is_bad = true};
    }
    from->at += len;
    from->left -= len;
    return part;
}

static size_t take_number(struct cursor *from, size_t width)
{
    struct cursor digits = take_bytes(from, width);
    size_t value = 0;
    for (size_t i = 0; i < digits.left; i++)
        value = value << 8 | digits.at[i];
    return value;
}

static struct cursor take_vector(struct cursor *from, size_t width)
{
    return take_bytes(from, take_number(from, width));
}

// ServerNameList: exactly one host_name.
static bool read_server_name(struct cursor extension, struct hello *hello)
{
    struct cursor list = take_vector(&extension, 2);
    size_t type = take_number(&list, 1);
    struct cursor name = take_vector(&list, 2);
    if (extension.is_bad || list.is_bad || extension.left || list.left || type != 0)
        return false;
    return name_normalize((const char *)name.at, name.left, hello->name);
}

static bool read_extensions(struct cursor list, struct hello *hello)
{
    uint16_t seen[MAX_EXTENSIONS];
    size_t count = 0;
    while (list.left && !list.is_bad) {
        uint16_t type = (uint16_t)take_number(&list, 2);
        struct cursor body = take_vector(&list, 2);
        for (size_t i = 0; i < count; i++)
            if (seen[i] == type)
                return false;
        if (list.is_bad || count == MAX_EXTENSIONS)
            return false;
        seen[count++] = type;
        if (type == EXTENSION_SERVER_NAME && !read_server_name(body, hello))
            return false;
        hello->has_encrypted_hello |= type == EXTENSION_ENCRYPTED_HELLO;
    }
    return !list.is_bad;
}

static bool read_client_hello(struct cursor body, struct hello *hello)
{
    size_t version = take_number(&body, 2);
    take_bytes(&body, 32); // random
    struct cursor session = take_vector(&body, 1);
    struct cursor ciphers = take_vector(&body, 2);
    struct cursor compressions = take_vector(&body, 1);
    if (body.is_bad || version >> 8 != 3 || session.left > 32 || ciphers.left < 2 || ciphers.left % 2 ||
        !compressions.left)
        return false;
    if (!body.left)
        return true; // no extensions: an old client without a server name
    struct cursor extensions = take_vector(&body, 2);
    return !body.is_bad && !body.left && read_extensions(extensions, hello);
}

// Joins handshake records until the first message is complete. Returns its bytes, HELLO_INCOMPLETE or HELLO_BROKEN.
static enum hello_kind join_records(struct cursor stream, unsigned char *joined, size_t *ret_len)
{
    size_t len = 0;
    while (stream.left) {
        if (stream.at[0] != 22 || (stream.left > 1 && stream.at[1] != 3))
            return HELLO_BROKEN;
        if (stream.left < 5)
            return HELLO_INCOMPLETE;
        take_bytes(&stream, 3);
        size_t size = take_number(&stream, 2);
        if (size == 0 || size > 16384)
            return HELLO_BROKEN;
        size_t have = size < stream.left ? size : stream.left;
        memcpy(joined + len, stream.at, have);
        len += have;
        take_bytes(&stream, have);
        if (joined[0] != 1)
            return HELLO_BROKEN; // not a ClientHello
        if (len < 4)
            continue;
        size_t message = 4 + ((size_t)joined[1] << 16 | (size_t)joined[2] << 8 | joined[3]);
        if (message > HELLO_MAX_BYTES - 1024 || len > message)
            return HELLO_BROKEN;
        *ret_len = message;
        if (len == message && have == size)
            return HELLO_TLS;
    }
    return HELLO_INCOMPLETE;
}

// Record types 20 to 23 with a version that some server takes for TLS. Only a handshake may come first, but an
// alert before it is skipped by some servers, so that it must not count as "another protocol".
static enum hello_kind look_at_first_bytes(const unsigned char *bytes, size_t len)
{
    if (len == 0)
        return HELLO_INCOMPLETE;
    if (bytes[0] >= 20 && bytes[0] <= 23)
        return len == 1 ? HELLO_INCOMPLETE : bytes[1] < 0x10 ? HELLO_TLS : HELLO_NOT_TLS;
    if (!(bytes[0] & 0x80))
        return HELLO_NOT_TLS;
    if (len < 4)
        return HELLO_INCOMPLETE;
    // SSL 2.0 framing of a ClientHello: still understood by servers, and has no server name.
    return bytes[2] == 1 && bytes[3] <= 3 ? HELLO_BROKEN : HELLO_NOT_TLS;
}

struct hello hello_parse(const unsigned char *bytes, size_t len)
{
    static unsigned char joined[HELLO_MAX_BYTES]; // one thread; too large for the stack
    struct hello hello = {.kind = look_at_first_bytes(bytes, len)};
    if (hello.kind != HELLO_TLS)
        return hello;
    if (len > HELLO_MAX_BYTES) {
        hello.kind = HELLO_BROKEN;
        return hello;
    }
    size_t size = 0;
    hello.kind = join_records((struct cursor){bytes, len, false}, joined, &size);
    if (hello.kind == HELLO_INCOMPLETE && len == HELLO_MAX_BYTES)
        hello.kind = HELLO_BROKEN;
    if (hello.kind == HELLO_TLS && !read_client_hello((struct cursor){joined + 4, size - 4, false}, &hello))
        hello.kind = HELLO_BROKEN;
    return hello;
}
