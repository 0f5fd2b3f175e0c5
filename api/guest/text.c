#include "api/guest/text.h"
#include "controller/base/memory.h"
#include <sha2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void text_split(const char *text, size_t len, struct text_lines *ret)
{
    size_t count = 1;
    for (const char *at = text; (at = memchr(at, '\n', len - (size_t)(at - text))); at++)
        count++;
    *ret = (struct text_lines){.lines = mem_realloc_array(NULL, count, sizeof(struct text_line)),
                               .count = count};
    const char *start = text, *end = text + len;
    for (size_t i = 0; i < count; i++) {
        const char *stop = i + 1 < count ? memchr(start, '\n', (size_t)(end - start)) : end;
        size_t line_len = (size_t)(stop - start);
        if (stop < end && line_len && stop[-1] == '\r')
            line_len--;
        ret->lines[i] = (struct text_line){start, line_len};
        start = stop + 1;
    }
}

void text_lines_free(struct text_lines *lines)
{
    free(lines->lines);
    *lines = (struct text_lines){0};
}

static int digits_of(size_t number)
{
    return snprintf(NULL, 0, "%zu", number);
}

int text_number_lines(const struct text_lines *lines, size_t start, size_t end, struct buffer *out)
{
    int width = digits_of(end);
    for (size_t i = start; i <= end; i++) {
        const struct text_line *line = &lines->lines[i - 1];
        if (buffer_format(out, "%s%*zu | ", i > start ? "\n" : "", width, i) < 0 ||
            buffer_append(out, line->at, line->len) < 0)
            return -1;
    }
    return 0;
}

void text_sha256(const char *bytes, size_t len, char digest[TEXT_SHA256_SIZE])
{
    SHA2_CTX context;
    SHA256Init(&context);
    SHA256Update(&context, (const uint8_t *)bytes, len);
    SHA256End(&context, digest);
}

bool text_is_binary(const char *bytes, size_t len)
{
    return memchr(bytes, '\0', len) != NULL;
}
