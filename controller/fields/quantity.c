// Byte quantities and thousandths as text. Suffixes as Kubernetes has them, without exponents and
// milli-bytes.
#include "controller/base/cleanup.h"
#include "controller/fields/fields.h"
#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const struct unit {
    const char *suffix;
    int64_t factor;
} units[] = {
    // largest first: the first that divides gives the shortest text
    {"Ei", 1LL << 60}, {"E", 1000000000000000000LL},
    {"Pi", 1LL << 50}, {"P", 1000000000000000LL},
    {"Ti", 1LL << 40}, {"T", 1000000000000LL},
    {"Gi", 1LL << 30}, {"G", 1000000000LL},
    {"Mi", 1LL << 20}, {"M", 1000000LL},
    {"Ki", 1LL << 10}, {"k", 1000LL},
    {"", 1},
};

void quantity_format(int64_t bytes, char text[QUANTITY_TEXT_SIZE])
{
    const struct unit *unit = units;
    while (unit->factor > 1 && (bytes == 0 || bytes % unit->factor != 0))
        unit++;
    snprintf(text, QUANTITY_TEXT_SIZE, "%" PRId64 "%s", bytes / unit->factor, unit->suffix);
}

static const struct unit *unit_of(const char *suffix)
{
    for (size_t i = 0; i < ARRAY_LEN(units); i++)
        if (strcmp(units[i].suffix, suffix) == 0)
            return &units[i];
    return NULL;
}

// "12", "12.5", ".5": whole part, and the fraction as numerator over a power of ten (at most nine digits).
struct decimal {
    int64_t whole, numerator, denominator;
};

static int parse_digit(char c, int64_t *value)
{
    return __builtin_mul_overflow(*value, 10, value) || __builtin_add_overflow(*value, c - '0', value) ? -1
                                                                                                       : 0;
}

static int parse_decimal(const char **at, struct decimal *ret)
{
    struct decimal d = {.denominator = 1};
    const char *p = *at;
    size_t digits = 0;
    for (; isdigit((unsigned char)*p); p++, digits++)
        if (parse_digit(*p, &d.whole) < 0)
            return -1;
    if (*p == '.')
        for (p++; isdigit((unsigned char)*p); p++, digits++) {
            if (d.denominator >= 1000000000 || parse_digit(*p, &d.numerator) < 0)
                return -1;
            d.denominator *= 10;
        }
    if (!digits)
        return -1;
    *at = p;
    *ret = d;
    return 0;
}

// decimal × factor where that is a whole number within int64_t.
static int scale(struct decimal d, int64_t factor, int64_t *ret)
{
    __int128 value = (__int128)d.whole * factor;
    __int128 part = (__int128)d.numerator * factor;
    if (part % d.denominator != 0)
        return -1;
    value += part / d.denominator;
    if (value > INT64_MAX)
        return -1;
    *ret = (int64_t)value;
    return 0;
}

int quantity_parse(const char *text, int64_t *ret_bytes)
{
    struct decimal d;
    if (parse_decimal(&text, &d) < 0)
        return -1;
    const struct unit *unit = unit_of(text);
    return unit ? scale(d, unit->factor, ret_bytes) : -1;
}

void milli_format(int64_t milli, char text[QUANTITY_TEXT_SIZE])
{
    int len = snprintf(text, QUANTITY_TEXT_SIZE, "%s%" PRId64 ".%03d", milli < 0 ? "-" : "",
                       milli < 0 ? -(milli / 1000) : milli / 1000,
                       (int)(milli < 0 ? -(milli % 1000) : milli % 1000));
    while (text[len - 1] == '0')
        text[--len] = '\0';
    if (text[len - 1] == '.')
        text[--len] = '\0';
}

int milli_parse(const char *text, int64_t *ret_milli)
{
    struct decimal d;
    if (parse_decimal(&text, &d) < 0)
        return -1;
    if (strcmp(text, "m") == 0)
        return scale(d, 1, ret_milli);
    return *text ? -1 : scale(d, 1000, ret_milli);
}
