// Blocks, headers and content. The extended (pax) headers are in tar_pax.c.
#include "cli/copy/tar.h"
#include "cli/copy/tar_header.h"
#include "cli/copy/tar_pax.h"
#include "controller/base/cleanup.h"
#include "controller/base/memory.h"
#include <string.h>

#define BUFFER_BYTES (128 * 1024)

struct tar_reader {
    tar_read_fn read;
    void *arg;
    char *bytes;         // BUFFER_BYTES
    size_t at, end;      // what is read and not used
    int64_t left, pad;   // of the entry: content, and what fills its last block
    struct tar_names names;
    struct tar_header header;
    char name[sizeof(((struct tar_header *)0)->prefix) + sizeof(((struct tar_header *)0)->name) + 2]; // prefix/name
    char link[sizeof(((struct tar_header *)0)->link) + 1];
};

static int fail(struct error *err, const char *what)
{
    return error_set(err, ERROR_INVALID, "is `tar` in the sandbox what it should be?", "this is not a tar stream that can be trusted: %s", what);
}

struct tar_reader *tar_reader_new(tar_read_fn read, void *arg)
{
    struct tar_reader *reader = mem_alloc(sizeof(*reader));
    *reader = (struct tar_reader){.read = read, .arg = arg, .bytes = mem_alloc(BUFFER_BYTES)};
    return reader;
}

void tar_reader_free(struct tar_reader *reader)
{
    if (!reader)
        return;
    tar_names_clear(&reader->names);
    free(reader->bytes);
    free(reader);
}

// ---- bytes ----------------------------------------------------------------------------------------------------------
// 1: there is at least one unused byte; 0: the source has ended.
static int fill(struct tar_reader *reader, struct error *err)
{
    if (reader->at < reader->end)
        return 1;
    ssize_t n = reader->read(reader->arg, reader->bytes, BUFFER_BYTES, err);
    if (n < 0)
        return -1;
    reader->at = 0;
    reader->end = (size_t)n;
    return n > 0;
}

static int take(struct tar_reader *reader, void *to, size_t len, struct error *err)
{
    for (size_t done = 0; done < len;) {
        int r = fill(reader, err);
        if (r <= 0)
            return r < 0 ? -1 : fail(err, "it ends early");
        size_t part = reader->end - reader->at < len - done ? reader->end - reader->at : len - done;
        memcpy((char *)to + done, reader->bytes + reader->at, part);
        reader->at += part;
        done += part;
    }
    return 0;
}

static int skip(struct tar_reader *reader, int64_t len, struct error *err)
{
    while (len > 0) {
        int r = fill(reader, err);
        if (r <= 0)
            return r < 0 ? -1 : fail(err, "it ends early");
        int64_t there = (int64_t)(reader->end - reader->at), part = there < len ? there : len;
        reader->at += (size_t)part;
        len -= part;
    }
    return 0;
}

static int64_t padding_of(int64_t size)
{
    return (TAR_BLOCK_BYTES - size % TAR_BLOCK_BYTES) % TAR_BLOCK_BYTES;
}

// ---- fields ---------------------------------------------------------------------------------------------------------
// GNU's large numbers: big-endian two's complement behind a marking bit.
static int read_binary(const char *field, size_t len, int64_t *ret)
{
    const unsigned char *bytes = (const unsigned char *)field;
    uint64_t value = bytes[0] & 0x40 ? UINT64_MAX : 0;
    value = value << 6 | (bytes[0] & 0x3F);
    for (size_t i = 1; i < len; i++) {
        uint64_t top = value >> 55; // 9 bits: they must all be the sign
        if (top != 0 && top != 0x1FF)
            return -1;
        value = value << 8 | bytes[i];
    }
    *ret = (int64_t)value;
    return 0;
}

// Octal digits between blanks, ended by a blank, NUL or the field's end; an empty field is 0.
static int read_number(const char *field, size_t len, int64_t *ret)
{
    int64_t value = 0;
    size_t at = 0;
    if (field[0] & 0x80)
        return read_binary(field, len, ret);
    while (at < len && field[at] == ' ')
        at++;
    for (; at < len && field[at] >= '0' && field[at] <= '7'; at++)
        value = value * 8 + (field[at] - '0'); // 12 digits at most
    for (; at < len; at++)
        if (field[at] != ' ' && field[at] != '\0')
            return -1;
    *ret = value;
    return 0;
}
#define READ_NUMBER(field, ret) read_number(field, sizeof(field), ret)

static bool is_zero_block(const struct tar_header *header)
{
    const char *bytes = (const char *)header;
    return !bytes[0] && memcmp(bytes, bytes + 1, sizeof(*header) - 1) == 0;
}

static int check_sum(const struct tar_header *header, struct error *err)
{
    int64_t stated;
    if (READ_NUMBER(header->checksum, &stated) < 0 || stated != (int64_t)tar_header_sum(header))
        return fail(err, "a header's checksum is wrong");
    return 0;
}

// ---- extended headers -------------------------------------------------------------------------------------------------
// The content of a header that is about the next one.
static int take_extra(struct tar_reader *reader, int64_t size, struct error *err)
{
    char type = reader->header.type;
    int64_t most = type == 'x' || type == 'g' ? TAR_PAX_MAX_BYTES : TAR_NAME_MAX_BYTES + 1;
    if (size < 0 || size > most)
        return fail(err, "an extended header is too large");
    CLEANUP_FREE char *bytes = mem_alloc((size_t)size + 1);
    const char *fault = NULL;
    if (take(reader, bytes, (size_t)size, err) < 0 || skip(reader, padding_of(size), err) < 0)
        return -1;
    if (type == 'g')
        return 0; // about the archive: comments and the like
    fault = type == 'x' ? tar_names_read_pax(&reader->names, bytes, (size_t)size) : tar_names_read_gnu(&reader->names, type == 'L', bytes, (size_t)size);
    return fault ? fail(err, fault) : 0;
}

// Reads headers up to one that is an entry's own. 0: the end mark.
static int take_header(struct tar_reader *reader, int64_t *ret_size, struct error *err)
{
    struct tar_header *header = &reader->header;
    for (unsigned extra = 0;; extra++) {
        if (take(reader, header, sizeof(*header), err) < 0)
            return -1;
        if (is_zero_block(header))
            return extra ? fail(err, "an extended header belongs to nothing") : 0;
        if (check_sum(header, err) < 0)
            return -1;
        if (READ_NUMBER(header->size, ret_size) < 0)
            return fail(err, "a size is not a number");
        if (!header->type || !strchr("xgLK", header->type))
            return 1;
        if (extra >= 8)
            return fail(err, "too many extended headers follow each other");
        if (take_extra(reader, *ret_size, err) < 0)
            return -1;
    }
}

// ---- entries ----------------------------------------------------------------------------------------------------------
static const char *read_name(struct tar_reader *reader)
{
    const struct tar_header *header = &reader->header;
    size_t prefix = memcmp(header->magic, "ustar", 6) == 0 ? strnlen(header->prefix, sizeof(header->prefix)) : 0;
    size_t len = strnlen(header->name, sizeof(header->name));
    memcpy(reader->name, header->prefix, prefix);
    if (prefix)
        reader->name[prefix++] = '/';
    memcpy(reader->name + prefix, header->name, len);
    reader->name[prefix + len] = '\0';
    return reader->name;
}

static const char *read_link(struct tar_reader *reader)
{
    size_t len = strnlen(reader->header.link, sizeof(reader->header.link));
    memcpy(reader->link, reader->header.link, len);
    reader->link[len] = '\0';
    return reader->link;
}

static const struct type_row {
    char flag;
    enum tar_type type;
    const char *kind;
} types[] = {
    {'0', TAR_FILE},        {'\0', TAR_FILE},      {'7', TAR_FILE},
    {'1', TAR_HARD_LINK},   {'2', TAR_SYMLINK},    {'5', TAR_DIRECTORY},
    {'3', TAR_SPECIAL, "a device"}, {'4', TAR_SPECIAL, "a device"}, {'6', TAR_SPECIAL, "a named pipe"},
};

static int read_type(const struct tar_header *header, struct tar_entry *ret, struct error *err)
{
    for (size_t i = 0; i < ARRAY_LEN(types); i++)
        if (types[i].flag == header->type) {
            ret->type = types[i].type;
            ret->kind = types[i].kind;
            return 0;
        }
    return fail(err, header->type == 'S' ? "it has sparse files, which were not asked for" : "an entry's type is unknown");
}

static int read_entry(struct tar_reader *reader, int64_t size, struct tar_entry *ret, struct error *err)
{
    const struct tar_header *header = &reader->header;
    const struct tar_names *names = &reader->names;
    int64_t mode;
    struct tar_entry entry = {.path = names->path ? names->path : read_name(reader), .link = names->link ? names->link : read_link(reader),
                              .size = names->has_size ? names->size : size, .mtime_s = names->mtime_s, .mtime_ns = names->mtime_ns};
    if (read_type(header, &entry, err) < 0)
        return -1;
    if (READ_NUMBER(header->mode, &mode) < 0 || (!names->has_mtime && READ_NUMBER(header->mtime, &entry.mtime_s) < 0))
        return fail(err, "a mode or a time is not a number");
    size_t len = strlen(entry.path);
    bool is_old_directory = entry.type == TAR_FILE && !header->type && len && entry.path[len - 1] == '/';
    entry.type = is_old_directory ? TAR_DIRECTORY : entry.type;
    if (!len || ((entry.type == TAR_SYMLINK || entry.type == TAR_HARD_LINK) && !entry.link[0]))
        return fail(err, "an entry has no name");
    if (entry.size < 0 || entry.size > TAR_SIZE_MAX_BYTES || (entry.type != TAR_FILE && entry.size))
        return fail(err, "an entry's size is not possible");
    entry.mode = (unsigned)mode & 07777;
    *ret = entry;
    return 0;
}

int tar_reader_next(struct tar_reader *reader, struct tar_entry *ret, struct error *err)
{
    int64_t size = 0;
    if (skip(reader, reader->left, err) < 0 || skip(reader, reader->pad, err) < 0)
        return -1;
    reader->left = reader->pad = 0;
    tar_names_clear(&reader->names);
    int r = take_header(reader, &size, err);
    if (r <= 0)
        return r;
    if (read_entry(reader, size, ret, err) < 0)
        return -1;
    reader->left = ret->size;
    reader->pad = padding_of(ret->size);
    return 1;
}

int tar_reader_data(struct tar_reader *reader, const char **ret, size_t *ret_len, struct error *err)
{
    if (!reader->left)
        return 0;
    int r = fill(reader, err);
    if (r <= 0)
        return r < 0 ? -1 : fail(err, "it ends early");
    size_t there = reader->end - reader->at, part = (int64_t)there < reader->left ? there : (size_t)reader->left;
    *ret = reader->bytes + reader->at;
    *ret_len = part;
    reader->at += part;
    reader->left -= (int64_t)part;
    return 1;
}
