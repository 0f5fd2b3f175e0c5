// The 512 bytes of a tar header, shared by reader and writer.
#pragma once
#include <stdint.h>

struct tar_header { // offsets as POSIX has them
    char name[100], mode[8], uid[8], gid[8], size[12], mtime[12], checksum[8], type, link[100];
    char magic[6], version[2], owner[32], group[32], device_major[8], device_minor[8], prefix[155], padding[12];
};
_Static_assert(sizeof(struct tar_header) == 512, "a tar header is one block");

static inline unsigned tar_header_sum(const struct tar_header *header)
{
    const unsigned char *bytes = (const unsigned char *)header;
    unsigned sum = 8 * ' '; // the field itself counts as blanks
    for (unsigned i = 0; i < sizeof(*header); i++)
        sum += i >= 148 && i < 156 ? 0 : bytes[i];
    return sum;
}
