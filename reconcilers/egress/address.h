// Internet addresses and which of them a sandbox may reach. Pure functions: what belongs to the host itself changes
// while we run and is asked from the kernel in route.h.
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#define ADDRESS_TEXT_SIZE 46 // INET6_ADDRSTRLEN

struct address {
    sa_family_t family; // AF_INET (first 4 bytes used) or AF_INET6
    uint8_t bytes[16];
};

// Why an address is refused: `word` is the value of X-Chat2shell-Denied, `text` completes "ADDRESS is …".
struct address_refusal {
    const char *word;
    const char *text;
};

// Dotted quad with four decimal parts, or RFC 4291 text without zone and without brackets. Nothing else
// ("127.1", "0x7f000001", "017.0.0.1" are not addresses).
bool address_parse(const char *text, struct address *ret);
bool address_from_sockaddr(const struct sockaddr *from, struct address *ret);
socklen_t address_to_sockaddr(const struct address *address, uint16_t port, struct sockaddr_storage *ret);
void address_format(const struct address *address, char text[ADDRESS_TEXT_SIZE]);
// IPv4-mapped IPv6 becomes IPv4, so that one address has one form before it is judged and dialed.
struct address address_normalize(const struct address *address);
// The IPv4 address that an IPv6 form leads to (mapped, compatible, translated, 6to4, NAT64).
bool address_embedded_v4(const struct address *address, struct address *ret);
// NULL if policy permits it. Judges embedded IPv4 addresses too.
const struct address_refusal *address_refusal(const struct address *address);
