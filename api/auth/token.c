#include "api/auth/token.h"
#include "controller/base/random.h"
#include <sha2.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define ALPHABET "abcdefghijklmnopqrstuvwxyz234567"
#define PREFIX_LEN (sizeof(TOKEN_PREFIX) - 1)
#define RANDOM_LEN 52
#define SUM_LEN 7 // 32 bits

// CRC-32 (IEEE 802.3): finds typing errors and look-alikes; it protects nothing.
static uint32_t checksum(const char *text, size_t len)
{
    uint32_t sum = 0xFFFFFFFFu;
    for (size_t i = 0; i < len; i++) {
        sum ^= (unsigned char)text[i];
        for (int bit = 0; bit < 8; bit++)
            sum = sum >> 1 ^ (sum & 1 ? 0xEDB88320u : 0);
    }
    return ~sum;
}

static void write_checksum(uint32_t sum, char to[SUM_LEN])
{
    for (int i = 0; i < SUM_LEN; i++)
        to[i] = ALPHABET[sum >> 5 * i & 31];
}

void token_make(char text[TOKEN_LEN + 1])
{
    memcpy(text, TOKEN_PREFIX, PREFIX_LEN);
    random_base32(text + PREFIX_LEN, RANDOM_LEN);
    write_checksum(checksum(text, PREFIX_LEN + RANDOM_LEN), text + PREFIX_LEN + RANDOM_LEN);
    text[TOKEN_LEN] = '\0';
}

bool token_is_formed(const char *text)
{
    char sum[SUM_LEN];
    if (strncmp(text, TOKEN_PREFIX, PREFIX_LEN) != 0 || strlen(text) != TOKEN_LEN ||
        strspn(text + PREFIX_LEN, ALPHABET) != TOKEN_LEN - PREFIX_LEN)
        return false;
    write_checksum(checksum(text, PREFIX_LEN + RANDOM_LEN), sum);
    return memcmp(sum, text + PREFIX_LEN + RANDOM_LEN, SUM_LEN) == 0;
}

void token_digest(const char *text, size_t len, unsigned char ret[TOKEN_DIGEST_BYTES])
{
    SHA2_CTX context;
    SHA256Init(&context);
    SHA256Update(&context, (const uint8_t *)text, len);
    SHA256Final(ret, &context);
    explicit_bzero(&context, sizeof(context));
}

void token_digest_format(const unsigned char digest[TOKEN_DIGEST_BYTES], char text[TOKEN_DIGEST_HEX_SIZE])
{
    for (size_t i = 0; i < TOKEN_DIGEST_BYTES; i++)
        snprintf(text + 2 * i, 3, "%02x", digest[i]);
}

static int hex_value(char c)
{
    static const char digits[] = "0123456789abcdef";
    const char *at = c ? strchr(digits, c) : NULL;
    return at ? (int)(at - digits) : -1;
}

int token_digest_parse(const char *text, unsigned char ret[TOKEN_DIGEST_BYTES])
{
    if (strlen(text) != 2 * TOKEN_DIGEST_BYTES)
        return -1;
    for (size_t i = 0; i < TOKEN_DIGEST_BYTES; i++) {
        int high = hex_value(text[2 * i]), low = hex_value(text[2 * i + 1]);
        if (high < 0 || low < 0)
            return -1;
        ret[i] = (unsigned char)(high << 4 | low);
    }
    return 0;
}

bool token_digest_is_equal(const unsigned char a[TOKEN_DIGEST_BYTES], const unsigned char b[TOKEN_DIGEST_BYTES])
{
    volatile unsigned char difference = 0;
    for (size_t i = 0; i < TOKEN_DIGEST_BYTES; i++)
        difference = (unsigned char)(difference | (a[i] ^ b[i]));
    return difference == 0;
}
