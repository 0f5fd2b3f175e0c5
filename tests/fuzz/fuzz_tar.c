// A tar stream as a sandbox may send it. The first byte says in pieces of how many bytes it comes, and whether every block gets a
// right checksum first: what is read must be the same as when it comes at once, every name bounded, and exactly as much content
// given as was announced.
#include "cli/copy/tar.h"
#include "cli/copy/tar_header.h"
#include "controller/base/buffer.h"
#include "controller/base/memory.h"
#include "tests/fuzz/fuzz.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct source {
    const uint8_t *bytes;
    size_t len, piece;
};
struct seen {
    struct buffer text;
    int result;
};

static ssize_t take(void *arg, void *to, size_t len, struct error *err)
{
    struct source *source = arg;
    size_t part = source->len < len ? source->len : len;
    (void)err;
    part = part < source->piece ? part : source->piece;
    memcpy(to, source->bytes, part);
    source->bytes += part;
    source->len -= part;
    return (ssize_t)part;
}

static void see(struct seen *seen, const struct tar_entry *entry)
{
    fuzz_expect(entry->path[0] && strlen(entry->path) <= TAR_NAME_MAX_BYTES, "a path is neither empty nor too long");
    fuzz_expect(entry->size >= 0 && (entry->type == TAR_FILE || !entry->size), "only files have a size");
    fuzz_expect(entry->mtime_ns >= 0 && entry->mtime_ns < 1000000000, "nanoseconds are less than a second");
    fuzz_expect((entry->mode & ~07777u) == 0, "a mode is a mode");
    buffer_format(&seen->text, "%d %s %s %o %lld %lld\n", (int)entry->type, entry->path, entry->link ? entry->link : "", entry->mode, (long long)entry->size,
                  (long long)entry->mtime_s);
}

static int see_content(struct seen *seen, struct tar_reader *reader, int64_t size)
{
    const char *bytes;
    size_t len;
    int r;
    int64_t sum = 0;
    while ((r = tar_reader_data(reader, &bytes, &len, NULL)) > 0) {
        sum += (int64_t)len;
        buffer_append(&seen->text, bytes, len);
    }
    fuzz_expect(r < 0 || sum == size, "as much content as was announced");
    return r;
}

static void read_all(const uint8_t *bytes, size_t len, size_t piece, struct seen *seen)
{
    struct source source = {bytes, len, piece};
    struct tar_reader *reader = tar_reader_new(take, &source);
    struct tar_entry entry;
    int r;
    while ((r = tar_reader_next(reader, &entry, NULL)) > 0) {
        see(seen, &entry);
        if (entry.mode & 1 && (r = see_content(seen, reader, entry.size)) < 0) // the others' is skipped
            break;
    }
    seen->result = r;
    tar_reader_free(reader);
}

// Else hardly any change of a header would get past its sum.
static void sum_up(uint8_t *bytes, size_t len)
{
    for (; len >= TAR_BLOCK_BYTES; bytes += TAR_BLOCK_BYTES, len -= TAR_BLOCK_BYTES) {
        struct tar_header header;
        memcpy(&header, bytes, sizeof(header));
        if (header.name[0])
            snprintf(header.checksum, sizeof(header.checksum), "%06o", tar_header_sum(&header));
        memcpy(bytes, &header, sizeof(header));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    if (!len)
        return 0;
    struct seen whole = {.text = BUFFER_INIT(1 << 20)}, pieces = whole;
    uint8_t *stream = mem_alloc(len);
    memcpy(stream, bytes + 1, len - 1);
    if (bytes[0] & 0x80)
        sum_up(stream, len - 1);
    read_all(stream, len - 1, SIZE_MAX, &whole);
    read_all(stream, len - 1, bytes[0] % 64 + 1u, &pieces);
    free(stream);
    fuzz_expect(whole.result == pieces.result && whole.text.len == pieces.text.len &&
                    memcmp(buffer_text(&whole.text), buffer_text(&pieces.text), whole.text.len) == 0,
                "what is read does not depend on the pieces");
    buffer_free(&whole.text);
    buffer_free(&pieces.text);
    return 0;
}
