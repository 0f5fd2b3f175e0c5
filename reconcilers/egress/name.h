// Host names as they arrive from a sandbox, and the list of denied ones.
#pragma once
#include "controller/base/error.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define NAME_SIZE 254 // 253 bytes of a name and the NUL
#define NAME_MAX_DENIED 256

// Canonical form: lower case, one trailing dot dropped, labels of letters, digits, '-' and '_' only, and a label
// "xn--…-" that encodes nothing but ASCII written as that ASCII, so that one name has one spelling. Non-ASCII
// names and names whose last label is a number (half-written addresses: "127.1", "0x7f.1") are refused.
bool name_normalize(const char *text, size_t len, char ret[NAME_SIZE]);

struct name_list {
    char *names[NAME_MAX_DENIED]; // canonical
    size_t count;
};
int name_list_add(struct name_list *list, const char *text, struct error *err);
// The entry that `name` (canonical) equals or is a subdomain of, or NULL.
const char *name_list_match(const struct name_list *list, const char *name);
void name_list_free(struct name_list *list);

// Where a request wants to go.
struct endpoint {
    char host[NAME_SIZE]; // canonical name, or an address as text without brackets
    bool is_address;
    uint16_t port;        // 1–65535
};
// "host", "host:port", "1.2.3.4:port", "[v6]:port". default_port 0: the port must be there.
// On failure *ret_problem is a sentence.
int endpoint_parse(const char *text, size_t len, uint16_t default_port, struct endpoint *ret, const char **ret_problem);
// "host:port" with brackets around IPv6.
#define ENDPOINT_TEXT_SIZE (NAME_SIZE + 8)
void endpoint_format(const struct endpoint *endpoint, char text[ENDPOINT_TEXT_SIZE]);
