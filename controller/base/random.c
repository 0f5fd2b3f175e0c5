#include "controller/base/random.h"
#include <stdlib.h>

void random_bytes(void *to, size_t len)
{
    arc4random_buf(to, len); // glibc 2.36: getrandom(2), aborts where there is none
}

uint32_t random_below(uint32_t limit)
{
    return arc4random_uniform(limit);
}

static void random_digits(char *to, size_t len, const char *alphabet, unsigned char mask)
{
    random_bytes(to, len);
    for (size_t i = 0; i < len; i++)
        to[i] = alphabet[(unsigned char)to[i] & mask];
    to[len] = '\0';
}

void random_base32(char *to, size_t len)
{
    random_digits(to, len, "abcdefghijklmnopqrstuvwxyz234567", 31);
}

void random_hex(char *to, size_t len)
{
    random_digits(to, len, "0123456789abcdef", 15);
}
