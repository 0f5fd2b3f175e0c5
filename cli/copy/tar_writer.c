#include "cli/copy/tar.h"
#include "cli/copy/tar_header.h"
#include "controller/base/cleanup.h"
#include <stdio.h>
#include <string.h>


static const char zeros[2 * TAR_BLOCK_BYTES];

// Octal where it fits, else GNU's binary form.
static void put_number(char *field, size_t len, int64_t value)
{
    if (value >= 0 && (uint64_t)value <= (UINT64_C(1) << (3 * (len - 1))) - 1) {
        snprintf(field, len, "%0*llo", (int)len - 1, (unsigned long long)value);
        return;
    }
    for (size_t i = len; i-- > 1; value >>= 8)
        field[i] = (char)(value & 0xFF);
    field[0] = (char)(value < 0 ? 0xFF : 0x80);
}
#define PUT_NUMBER(field, value) put_number(field, sizeof(field), value)

static char flag_of(enum tar_type type)
{
    static const char flags[] = {[TAR_FILE] = '0', [TAR_DIRECTORY] = '5', [TAR_SYMLINK] = '2', [TAR_HARD_LINK] = '1', [TAR_SPECIAL] = '0'};
    return flags[type];
}

static void put_text(char *field, size_t size, const char *text)
{
    size_t len = strnlen(text, size);
    memcpy(field, text, len); // a full field has no NUL
}

static int write_header(struct tar_writer *writer, char flag, const struct tar_entry *entry, struct error *err)
{
    struct tar_header header = {.type = flag, .magic = "ustar ", .version = " "};
    put_text(header.name, sizeof(header.name), entry->path);
    if (entry->link)
        put_text(header.link, sizeof(header.link), entry->link);
    PUT_NUMBER(header.mode, entry->mode);
    PUT_NUMBER(header.uid, 0);
    PUT_NUMBER(header.gid, 0);
    PUT_NUMBER(header.size, entry->size);
    PUT_NUMBER(header.mtime, entry->mtime_s);
    char sum[8];
    snprintf(sum, sizeof(sum), "%06o", tar_header_sum(&header) & 0777777);
    memcpy(header.checksum, sum, 7);
    header.checksum[7] = ' ';
    return writer->write(writer->arg, &header, sizeof(header), err);
}

static int write_padding(struct tar_writer *writer, int64_t size, struct error *err)
{
    size_t pad = (size_t)((TAR_BLOCK_BYTES - size % TAR_BLOCK_BYTES) % TAR_BLOCK_BYTES);
    return pad ? writer->write(writer->arg, zeros, pad, err) : 0;
}

// GNU's way with names that do not fit: an entry before, whose content is the name.
static int write_long_name(struct tar_writer *writer, char flag, const char *name, struct error *err)
{
    const struct tar_entry about = {.path = "././@LongLink", .size = (int64_t)strlen(name) + 1, .mode = 0644};
    if (write_header(writer, flag, &about, err) < 0 || writer->write(writer->arg, name, (size_t)about.size, err) < 0)
        return -1;
    return write_padding(writer, about.size, err);
}

int tar_writer_begin(struct tar_writer *writer, const struct tar_entry *entry, struct error *err)
{
    if (entry->link && strlen(entry->link) > sizeof(((struct tar_header *)0)->link) && write_long_name(writer, 'K', entry->link, err) < 0)
        return -1;
    if (strlen(entry->path) > sizeof(((struct tar_header *)0)->name) && write_long_name(writer, 'L', entry->path, err) < 0)
        return -1;
    return write_header(writer, flag_of(entry->type), entry, err);
}

int tar_writer_data(struct tar_writer *writer, const void *bytes, size_t len, struct error *err)
{
    return len ? writer->write(writer->arg, bytes, len, err) : 0;
}

int tar_writer_end_entry(struct tar_writer *writer, int64_t size, struct error *err)
{
    return write_padding(writer, size, err);
}

int tar_writer_end(struct tar_writer *writer, struct error *err)
{
    return writer->write(writer->arg, zeros, sizeof(zeros), err);
}
