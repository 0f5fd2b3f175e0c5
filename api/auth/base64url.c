#include "api/auth/base64url.h"
#include "controller/base/json.h"
#include <stdint.h>

int base64url_decode(const char *text, size_t len, unsigned char *ret, size_t *ret_len)
{
    uint32_t bits = 0;
    unsigned count = 0;
    size_t out = 0;
    if (len % 4 == 1)
        return -1;
    for (size_t i = 0; i < len; i++) {
        int digit = base64_digit(text[i], '-', '_');
        if (digit < 0)
            return -1;
        bits = bits << 6 | (uint32_t)digit;
        count += 6;
        if (count >= 8) {
            count -= 8;
            ret[out++] = (unsigned char)(bits >> count);
            bits &= (1u << count) - 1;
        }
    }
    if (bits)
        return -1; // not canonical
    *ret_len = out;
    return 0;
}
