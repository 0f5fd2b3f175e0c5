#include "api/guest/import_address.h"
#include "controller/base/cleanup.h"
#include <arpa/inet.h>
#include <stdint.h>
#include <string.h>

struct block {
    unsigned char prefix[16];
    unsigned bits;
    enum import_address verdict;
};

// The first that fits. Everything that IANA does not give out as globally reachable.
static const struct block blocks4[] = {
    {{127}, 8, IMPORT_ADDRESS_LOOPBACK},
    {{0}, 8, IMPORT_ADDRESS_BLOCKED},
    {{10}, 8, IMPORT_ADDRESS_BLOCKED},
    {{100, 64}, 10, IMPORT_ADDRESS_BLOCKED},
    {{169, 254}, 16, IMPORT_ADDRESS_BLOCKED},
    {{172, 16}, 12, IMPORT_ADDRESS_BLOCKED},
    {{192, 0, 0}, 24, IMPORT_ADDRESS_BLOCKED},
    {{192, 0, 2}, 24, IMPORT_ADDRESS_BLOCKED},
    {{192, 88, 99}, 24, IMPORT_ADDRESS_BLOCKED},
    {{192, 168}, 16, IMPORT_ADDRESS_BLOCKED},
    {{198, 18}, 15, IMPORT_ADDRESS_BLOCKED},
    {{198, 51, 100}, 24, IMPORT_ADDRESS_BLOCKED},
    {{203, 0, 113}, 24, IMPORT_ADDRESS_BLOCKED},
    {{224}, 3, IMPORT_ADDRESS_BLOCKED}, // multicast, reserved, broadcast
};

// Of IPv6 only 2000::/3 is given out; these stand before that rule.
static const struct block blocks6[] = {
    {{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1}, 128, IMPORT_ADDRESS_LOOPBACK},
    {{0x20, 0x01, 0x0d, 0xb8}, 32, IMPORT_ADDRESS_BLOCKED}, // documentation
    {{0x20, 0x01, 0x00, 0x00}, 23, IMPORT_ADDRESS_BLOCKED}, // Teredo and other protocol assignments
    {{0x3f, 0xff, 0x00}, 20, IMPORT_ADDRESS_BLOCKED},       // documentation
};

// IPv6 forms that carry an IPv4 address, and where in them.
static const struct {
    unsigned char prefix[16];
    unsigned bits, at;
} carriers[] = {
    {{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff}, 96, 12}, // IPv4-mapped
    {{0, 0x64, 0xff, 0x9b}, 96, 12},                      // NAT64
    {{0x20, 0x02}, 16, 2},                                // 6to4
};

static bool is_in(const unsigned char *address, const unsigned char *prefix, unsigned bits)
{
    unsigned whole = bits / 8, rest = bits % 8;
    if (memcmp(address, prefix, whole) != 0)
        return false;
    return !rest || ((address[whole] ^ prefix[whole]) >> (8 - rest)) == 0;
}

static enum import_address judge4(const unsigned char address[4])
{
    for (size_t i = 0; i < ARRAY_LEN(blocks4); i++)
        if (is_in(address, blocks4[i].prefix, blocks4[i].bits))
            return blocks4[i].verdict;
    return IMPORT_ADDRESS_PUBLIC;
}

static enum import_address judge6(const unsigned char address[16])
{
    for (size_t i = 0; i < ARRAY_LEN(carriers); i++)
        if (is_in(address, carriers[i].prefix, carriers[i].bits))
            return judge4(address + carriers[i].at);
    for (size_t i = 0; i < ARRAY_LEN(blocks6); i++)
        if (is_in(address, blocks6[i].prefix, blocks6[i].bits))
            return blocks6[i].verdict;
    return (address[0] & 0xe0) == 0x20 ? IMPORT_ADDRESS_PUBLIC : IMPORT_ADDRESS_BLOCKED;
}

bool import_address_judge(const char *text, enum import_address *ret)
{
    unsigned char address[16];
    if (inet_pton(AF_INET, text, address) == 1)
        *ret = judge4(address);
    else if (inet_pton(AF_INET6, text, address) == 1)
        *ret = judge6(address);
    else
        return false;
    return true;
}
