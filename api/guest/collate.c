#include "api/guest/collate.h"
#include <ctype.h>
#include <string.h>

static int weight(unsigned char c)
{
    static const char punctuation[] = "\t\n\v\f\r _-,;:!?.'\"()[]{}@*/\\&#%`^+<=>|~$";
    if (c >= 0x80)
        return 512 + c;
    if (isdigit(c))
        return 128 + c;
    if (isalpha(c))
        return 256 + tolower(c);
    const char *at = c ? strchr(punctuation, c) : NULL;
    return at ? 1 + (int)(at - punctuation) : 0;
}

int collate_names(const char *a, const char *b)
{
    const unsigned char *x = (const unsigned char *)a, *y = (const unsigned char *)b;
    for (; *x && *y; x++, y++)
        if (weight(*x) != weight(*y))
            return weight(*x) - weight(*y);
    if (*x || *y)
        return *x ? 1 : -1;
    return -strcmp(a, b); // lower case first
}
