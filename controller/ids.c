#include "controller/ids.h"
#include "controller/base/random.h"
#include "controller/record.h"
#include <stdio.h>
#include <string.h>

#define ID_RANDOM_CHARS 26
#define ID_ALPHABET "abcdefghijklmnopqrstuvwxyz234567"
#define BASH_PREFIX "bash_"
#define BASH_RANDOM_CHARS 32

void id_make(enum kind kind, char text[ID_TEXT_SIZE])
{
    int len = snprintf(text, ID_TEXT_SIZE - ID_RANDOM_CHARS, "%s", kind_info(kind)->uid_prefix);
    random_base32(text + len, ID_RANDOM_CHARS);
}

void id_make_bash_session(char text[ID_TEXT_SIZE])
{
    memcpy(text, BASH_PREFIX, strlen(BASH_PREFIX));
    random_hex(text + strlen(BASH_PREFIX), BASH_RANDOM_CHARS);
}

bool id_is_of(enum kind kind, const char *text)
{
    const char *prefix = kind_info(kind)->uid_prefix;
    size_t len = strlen(prefix);
    if (!text || strncmp(text, prefix, len) != 0)
        return false;
    return strlen(text + len) == ID_RANDOM_CHARS && strspn(text + len, ID_ALPHABET) == ID_RANDOM_CHARS;
}

void id_to_name(const char *uid, char text[ID_TEXT_SIZE])
{
    snprintf(text, ID_TEXT_SIZE, "%s", uid);
    for (char *c = text; *c; c++)
        if (*c == '_')
            *c = '-';
}
