// Syntax of names, labels and annotations, as Kubernetes has it.
#include "controller/record_names.h"
#include "controller/base/cleanup.h"
#include "controller/fields/problems.h"
#include "controller/record.h"
#include <string.h>

#define LOWER "abcdefghijklmnopqrstuvwxyz"
#define DIGITS "0123456789"
#define ALNUM LOWER DIGITS "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
#define NAME_MAX_CHARS 63
#define PREFIX_MAX_CHARS 253

// Only `allowed` characters, of which the first and the last are from `ends`.
static bool is_word(const char *text, size_t len, size_t max, const char *allowed, const char *ends)
{
    return len && len <= max && strspn(text, allowed) >= len && strchr(ends, text[0]) &&
           strchr(ends, text[len - 1]);
}

static bool is_dns_label(const char *text, size_t len)
{
    return is_word(text, len, NAME_MAX_CHARS, LOWER DIGITS "-", LOWER DIGITS);
}

static bool is_dns_subdomain(const char *text, size_t len)
{
    if (len > PREFIX_MAX_CHARS)
        return false;
    for (size_t at = 0; at <= len;) {
        size_t part = strcspn(text + at, "./");
        if (!is_dns_label(text + at, part))
            return false;
        at += part + 1;
    }
    return true;
}

int record_check_name(const char *name, struct error *err)
{
    if (is_dns_label(name, strlen(name)))
        return 0;
    CLEANUP_FREE char *quoted = problems_quote(name);
    return error_set(err, ERROR_INVALID, "choose a name like 'dev' or 'my-sandbox-2'",
                     "name %s must be a lower-case DNS label: letters, digits and '-', at most 63 "
                     "characters, starting and "
                     "ending with a letter or digit",
                     quoted);
}

bool name_is_qualified(const char *key)
{
    const char *slash = strchr(key, '/');
    const char *name = slash ? slash + 1 : key;
    if (slash && !is_dns_subdomain(key, (size_t)(slash - key)))
        return false;
    return is_word(name, strlen(name), NAME_MAX_CHARS, ALNUM "-_.", ALNUM);
}

bool name_is_label_value(const char *value)
{
    return !*value || is_word(value, strlen(value), NAME_MAX_CHARS, ALNUM "-_.", ALNUM);
}

bool name_is_own(const char *key)
{
    return strncmp(key, API_GROUP "/", strlen(API_GROUP "/")) == 0;
}
