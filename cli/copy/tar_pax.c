#include "cli/copy/tar_pax.h"
#include "cli/copy/tar.h"
#include "controller/base/cleanup.h"
#include "controller/base/memory.h"
#include <string.h>

#define DIGITS_MAX 18 // what surely fits an int64_t

void tar_names_clear(struct tar_names *names)
{
    free(names->path);
    free(names->link);
    *names = (struct tar_names){0};
}

static const char *take_name(char **to, const char *bytes, size_t len)
{
    if (!len || len > TAR_NAME_MAX_BYTES)
        return len ? "a name is too long" : "an entry has no name";
    if (memchr(bytes, '\0', len))
        return "a name has a NUL in it";
    free(*to);
    *to = mem_strndup(bytes, len);
    return NULL;
}

// ---- numbers ----------------------------------------------------------------------------------------------------------
static size_t read_digits(const char *bytes, size_t len, int64_t *ret)
{
    size_t at = 0;
    for (*ret = 0; at < len && at < DIGITS_MAX && bytes[at] >= '0' && bytes[at] <= '9'; at++)
        *ret = *ret * 10 + (bytes[at] - '0');
    return at;
}

static const char *take_size(struct tar_names *names, const char *bytes, size_t len)
{
    int64_t size;
    if (!len || read_digits(bytes, len, &size) != len)
        return "a size is not a number";
    names->has_size = true;
    names->size = size;
    return NULL;
}

// "-12.5" is 12.5 s before the epoch: second -13 and half a second.
static const char *take_time(struct tar_names *names, const char *bytes, size_t len)
{
    bool is_negative = len && bytes[0] == '-';
    size_t at = is_negative, digits = read_digits(bytes + at, len - at, &names->mtime_s);
    int64_t ns = 0, unit = 100000000;
    at += digits;
    if (digits && at < len && bytes[at] == '.')
        for (at++; at < len && bytes[at] >= '0' && bytes[at] <= '9'; at++, unit /= 10)
            ns += unit * (bytes[at] - '0');
    if (!digits || at != len)
        return "a time is not a number";
    names->has_mtime = true;
    names->mtime_s = is_negative ? -names->mtime_s - (ns > 0) : names->mtime_s;
    names->mtime_ns = is_negative && ns ? 1000000000 - ns : ns;
    return NULL;
}

// ---- records: "LENGTH KEY=VALUE\n" ----------------------------------------------------------------------------------
static const char *take_path(struct tar_names *names, const char *bytes, size_t len)
{
    return take_name(&names->path, bytes, len);
}

static const char *take_link(struct tar_names *names, const char *bytes, size_t len)
{
    return take_name(&names->link, bytes, len);
}

static const struct pax_key {
    const char *key;
    const char *(*take)(struct tar_names *names, const char *bytes, size_t len);
} keys[] = {{"path", take_path}, {"linkpath", take_link}, {"size", take_size}, {"mtime", take_time}};

static const char *take_record(struct tar_names *names, const char *bytes, size_t len)
{
    const char *sign = memchr(bytes, '=', len);
    if (!sign || sign == bytes)
        return "an extended header has a record without a key";
    size_t key_len = (size_t)(sign - bytes);
    if (key_len >= 11 && memcmp(bytes, "GNU.sparse.", 11) == 0)
        return "it has sparse files, which were not asked for";
    for (size_t i = 0; i < ARRAY_LEN(keys); i++)
        if (strlen(keys[i].key) == key_len && memcmp(keys[i].key, bytes, key_len) == 0)
            return keys[i].take(names, sign + 1, len - key_len - 1);
    return NULL; // owners, other times, attributes: nothing that is taken over
}

const char *tar_names_read_pax(struct tar_names *names, const char *bytes, size_t len)
{
    while (len) {
        int64_t stated;
        size_t digits = read_digits(bytes, len, &stated);
        if (!digits || digits >= len || bytes[digits] != ' ' || stated < (int64_t)digits + 2 || stated > (int64_t)len || bytes[stated - 1] != '\n')
            return "an extended header's record has a wrong length";
        const char *fault = take_record(names, bytes + digits + 1, (size_t)stated - digits - 2);
        if (fault)
            return fault;
        bytes += stated;
        len -= (size_t)stated;
    }
    return NULL;
}

const char *tar_names_read_gnu(struct tar_names *names, bool is_path, const char *bytes, size_t len)
{
    if (len && bytes[len - 1] == '\0')
        len--;
    return take_name(is_path ? &names->path : &names->link, bytes, len);
}
