#include "reconcilers/egress/address.h"
#include "controller/base/cleanup.h"
#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>

bool address_parse(const char *text, struct address *ret)
{
    struct address parsed = {.family = strchr(text, ':') ? AF_INET6 : AF_INET};
    if (inet_pton(parsed.family, text, parsed.bytes) != 1)
        return false;
    *ret = parsed;
    return true;
}

bool address_from_sockaddr(const struct sockaddr *from, struct address *ret)
{
    *ret = (struct address){.family = from->sa_family};
    if (from->sa_family == AF_INET)
        memcpy(ret->bytes, &((const struct sockaddr_in *)(const void *)from)->sin_addr, 4);
    else if (from->sa_family == AF_INET6)
        memcpy(ret->bytes, &((const struct sockaddr_in6 *)(const void *)from)->sin6_addr, 16);
    else
        return false;
    return true;
}

socklen_t address_to_sockaddr(const struct address *address, uint16_t port, struct sockaddr_storage *ret)
{
    memset(ret, 0, sizeof(*ret));
    if (address->family == AF_INET) {
        struct sockaddr_in *v4 = (void *)ret;
        v4->sin_family = AF_INET;
        v4->sin_port = htons(port);
        memcpy(&v4->sin_addr, address->bytes, 4);
        return sizeof(*v4);
    }
    struct sockaddr_in6 *v6 = (void *)ret;
    v6->sin6_family = AF_INET6;
    v6->sin6_port = htons(port);
    memcpy(&v6->sin6_addr, address->bytes, 16);
    return sizeof(*v6);
}

void address_format(const struct address *address, char text[ADDRESS_TEXT_SIZE])
{
    if (!inet_ntop(address->family, address->bytes, text, ADDRESS_TEXT_SIZE))
        text[0] = '\0';
}

struct range {
    sa_family_t family;
    uint8_t prefix[16];
    unsigned bits;
    struct address_refusal refusal;
};

#define LOOPBACK {"loopback", "a loopback address"}
#define LINK_LOCAL {"link-local", "a link-local address (cloud metadata services live there)"}
#define PRIVATE {"private", "in a private network"}
#define UNSPECIFIED {"unspecified", "an unspecified address"}
#define MULTICAST {"multicast", "a multicast address"}
#define BROADCAST {"broadcast", "the broadcast address"}
#define RESERVED {"reserved", "reserved and nobody's public address"}
#define METADATA {"metadata", "a cloud metadata service"}

// First match wins. Documentation ranges (192.0.2.0/24 and so on) are deliberately absent: nothing is routed there
// by default, and laboratories that do route them mean to be reached.
static const struct range refused[] = {
    {AF_INET, {0}, 8, UNSPECIFIED},
    {AF_INET, {10}, 8, PRIVATE},
    {AF_INET, {100, 64}, 10, PRIVATE}, // carrier-grade NAT
    {AF_INET, {127}, 8, LOOPBACK},
    {AF_INET, {168, 63, 129, 16}, 32, METADATA},
    {AF_INET, {169, 254}, 16, LINK_LOCAL},
    {AF_INET, {172, 16}, 12, PRIVATE},
    {AF_INET, {192, 0, 0}, 24, RESERVED}, // protocol assignments; one cloud's metadata service is 192.0.0.192
    {AF_INET, {192, 168}, 16, PRIVATE},
    {AF_INET, {224}, 4, MULTICAST},
    {AF_INET, {255, 255, 255, 255}, 32, BROADCAST},
    {AF_INET, {240}, 4, RESERVED},
    {AF_INET6, {0}, 128, UNSPECIFIED},
    {AF_INET6, {[15] = 1}, 128, LOOPBACK},
    {AF_INET6, {0x00, 0x64, 0xff, 0x9b, 0x00, 0x01}, 48, PRIVATE}, // local-use NAT64: leads wherever a site decides
    {AF_INET6, {0x20, 0x01, 0x00, 0x00}, 32, RESERVED},            // Teredo hides an IPv4 address behind a relay
    {AF_INET6, {0xfc}, 7, PRIVATE},
    {AF_INET6, {0xfe, 0x80}, 10, LINK_LOCAL},
    {AF_INET6, {0xfe, 0xc0}, 10, PRIVATE}, // site-local, deprecated and still configured in places
    {AF_INET6, {0xff}, 8, MULTICAST},
};

static bool has_prefix(const uint8_t *bytes, const uint8_t *prefix, unsigned bits)
{
    unsigned whole = bits / 8, rest = bits % 8;
    if (memcmp(bytes, prefix, whole) != 0)
        return false;
    return !rest || (bytes[whole] >> (8 - rest)) == (prefix[whole] >> (8 - rest));
}

static const struct embedding {
    uint8_t prefix[16];
    unsigned bits;
    size_t offset; // where the IPv4 address stands
} embeddings[] = {
    {{[10] = 0xff, [11] = 0xff}, 96, 12},            // ::ffff:a.b.c.d, IPv4-mapped
    {{[8] = 0xff, [9] = 0xff}, 96, 12},              // ::ffff:0:a.b.c.d, IPv4-translated
    {{0x00, 0x64, 0xff, 0x9b}, 96, 12},              // 64:ff9b::a.b.c.d, NAT64
    {{0x20, 0x02}, 16, 2},                           // 2002:aabb:ccdd::, 6to4
    {{0}, 96, 12},                                   // ::a.b.c.d, IPv4-compatible
};

bool address_embedded_v4(const struct address *address, struct address *ret)
{
    if (address->family != AF_INET6)
        return false;
    for (size_t i = 0; i < ARRAY_LEN(embeddings); i++)
        if (has_prefix(address->bytes, embeddings[i].prefix, embeddings[i].bits)) {
            struct address v4 = {.family = AF_INET};
            memcpy(v4.bytes, address->bytes + embeddings[i].offset, 4);
            *ret = v4;
            return true;
        }
    return false;
}

struct address address_normalize(const struct address *address)
{
    struct address v4;
    if (address->family == AF_INET6 && has_prefix(address->bytes, embeddings[0].prefix, 96) &&
        address_embedded_v4(address, &v4))
        return v4;
    return *address;
}

static const struct address_refusal *range_refusal(const struct address *address)
{
    for (size_t i = 0; i < ARRAY_LEN(refused); i++)
        if (refused[i].family == address->family && has_prefix(address->bytes, refused[i].prefix, refused[i].bits))
            return &refused[i].refusal;
    return NULL;
}

const struct address_refusal *address_refusal(const struct address *address)
{
    const struct address_refusal *refusal = range_refusal(address);
    struct address v4;
    if (!refusal && address_embedded_v4(address, &v4))
        refusal = range_refusal(&v4);
    return refusal;
}
