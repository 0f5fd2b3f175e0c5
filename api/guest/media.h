// What bytes are, by themselves: names and declared types are not trusted.
#pragma once
#include <stddef.h>

struct image_info {
    const char *mime_type;
    long width, height; // -1: the file does not say
};

// PNG, JPEG, GIF or WebP. 0, or -1: none of them.
int media_sniff_image(const unsigned char *bytes, size_t len, struct image_info *ret);
// The images, PDF, ZIP and gzip. NULL: nothing that is known.
const char *media_sniff_type(const unsigned char *bytes, size_t len);
