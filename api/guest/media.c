#include "api/guest/media.h"
#include "controller/base/cleanup.h"
#include <stdbool.h>
#include <string.h>

#define PNG_HEADER_BYTES 24 // signature, and the IHDR chunk up to the height

static bool has(const unsigned char *bytes, size_t len, size_t at, const char *magic, size_t magic_len)
{
    return len >= at + magic_len && memcmp(bytes + at, magic, magic_len) == 0;
}

static long big_endian(const unsigned char *at, int size)
{
    long value = 0;
    for (int i = 0; i < size; i++)
        value = value << 8 | at[i];
    return value;
}

static long little_endian(const unsigned char *at, int size)
{
    long value = 0;
    while (size--)
        value = value << 8 | at[size];
    return value;
}

static bool sniff_png(const unsigned char *bytes, size_t len, struct image_info *ret)
{
    if (len < PNG_HEADER_BYTES || !has(bytes, len, 0, "\x89PNG\r\n\x1a\n", 8))
        return false;
    *ret = (struct image_info){"image/png", big_endian(bytes + 16, 4), big_endian(bytes + 20, 4)};
    return true;
}

static bool sniff_gif(const unsigned char *bytes, size_t len, struct image_info *ret)
{
    if (!has(bytes, len, 0, "GIF87a", 6) && !has(bytes, len, 0, "GIF89a", 6))
        return false;
    *ret = (struct image_info){"image/gif", -1, -1};
    if (len >= 10) {
        ret->width = little_endian(bytes + 6, 2);
        ret->height = little_endian(bytes + 8, 2);
    }
    return true;
}

// Start-of-frame markers are C0 to CF without DHT (C4), JPG (C8) and DAC (CC).
static bool is_frame(unsigned char marker)
{
    return marker >= 0xC0 && marker <= 0xCF && marker != 0xC4 && marker != 0xC8 && marker != 0xCC;
}

static bool stands_alone(unsigned char marker) // without a length behind it
{
    return marker == 0x01 || (marker >= 0xD0 && marker <= 0xD8);
}

static void find_frame(const unsigned char *bytes, size_t len, struct image_info *ret)
{
    size_t at = 2;
    while (at + 4 <= len && bytes[at] == 0xFF) {
        unsigned char marker = bytes[at + 1];
        if (marker == 0xFF) { // fill
            at++;
            continue;
        }
        if (stands_alone(marker)) {
            at += 2;
            continue;
        }
        size_t segment = (size_t)big_endian(bytes + at + 2, 2);
        if (is_frame(marker) && at + 9 <= len) {
            ret->height = big_endian(bytes + at + 5, 2);
            ret->width = big_endian(bytes + at + 7, 2);
        }
        if (is_frame(marker) || marker == 0xD9 || marker == 0xDA || segment < 2)
            return; // found, the end, or the picture's data
        at += 2 + segment;
    }
}

static bool sniff_jpeg(const unsigned char *bytes, size_t len, struct image_info *ret)
{
    if (!has(bytes, len, 0, "\xFF\xD8\xFF", 3))
        return false;
    *ret = (struct image_info){"image/jpeg", -1, -1};
    find_frame(bytes, len, ret);
    return true;
}

static bool sniff_webp(const unsigned char *bytes, size_t len, struct image_info *ret)
{
    if (!has(bytes, len, 0, "RIFF", 4) || !has(bytes, len, 8, "WEBP", 4))
        return false;
    *ret = (struct image_info){"image/webp", -1, -1};
    if (has(bytes, len, 12, "VP8X", 4) && len >= 30) {
        ret->width = 1 + little_endian(bytes + 24, 3);
        ret->height = 1 + little_endian(bytes + 27, 3);
    }
    return true;
}

int media_sniff_image(const unsigned char *bytes, size_t len, struct image_info *ret)
{
    return sniff_png(bytes, len, ret) || sniff_gif(bytes, len, ret) || sniff_jpeg(bytes, len, ret) ||
                   sniff_webp(bytes, len, ret)
               ? 0
               : -1;
}

const char *media_sniff_type(const unsigned char *bytes, size_t len)
{
    static const struct {
        const char *magic;
        size_t len;
        const char *type;
    } others[] = {
        {"\x89PNG\r\n\x1a\n", 8, "image/png"}, // a cut one too
        {"%PDF-", 5, "application/pdf"},       {"PK\x03\x04", 4, "application/zip"},
        {"PK\x05\x06", 4, "application/zip"}, // an empty archive
        {"\x1F\x8B", 2, "application/gzip"},
    };
    struct image_info image;
    if (media_sniff_image(bytes, len, &image) == 0)
        return image.mime_type;
    for (size_t i = 0; i < ARRAY_LEN(others); i++)
        if (has(bytes, len, 0, others[i].magic, others[i].len))
            return others[i].type;
    return NULL;
}
