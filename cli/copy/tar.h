// Tar streams between the host and a sandbox's own `tar`: a strict reader and a plain writer.
//
// Why not a library: libarchive is the well-kept one, but what comes here was written by whatever runs in a sandbox and is read
// by the operator's own program. We ask for one format (what `tar c` writes: ustar and GNU headers, pax headers are read too),
// need names as bytes whatever the locale (libarchive converts those of pax headers to the locale's charset and loses what does
// not fit), and want neither its filters nor its other formats in reach of hostile bytes. What is left is small, refuses
// everything that it does not know, allocates only bounded names, and is fuzzed (tests/fuzz/fuzz_tar.c).
#pragma once
#include "controller/base/error.h"
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define TAR_BLOCK_BYTES 512
#define TAR_NAME_MAX_BYTES 4096          // of a path, of a link's target
#define TAR_PAX_MAX_BYTES (1024 * 1024)  // one extended header
#define TAR_SIZE_MAX_BYTES (INT64_C(1) << 60)

enum tar_type { TAR_FILE, TAR_DIRECTORY, TAR_SYMLINK, TAR_HARD_LINK, TAR_SPECIAL };
struct tar_entry {
    enum tar_type type;
    const char *kind;      // TAR_SPECIAL: "a device" and the like; else NULL
    const char *path;      // bytes, not empty, no NUL; as they stand
    const char *link;      // of links: likewise
    unsigned mode;         // permission bits with set-id and sticky, nothing else
    int64_t mtime_s, mtime_ns;
    int64_t size;          // of a TAR_FILE's content
};

// ---- reading ------------------------------------------------------------------------------------------------------
struct tar_reader;
// Where the bytes come from: like read(2), 0 at the end; -1 with err filled.
typedef ssize_t (*tar_read_fn)(void *arg, void *to, size_t len, struct error *err);
struct tar_reader *tar_reader_new(tar_read_fn read, void *arg);
void tar_reader_free(struct tar_reader *reader);
// The next entry; what is unread of the one before is skipped. 1: there is one, its texts are the reader's until the next call;
// 0: the end mark was read; -1: ERROR_INVALID (not a tar stream that we take), or the source's own error.
int tar_reader_next(struct tar_reader *reader, struct tar_entry *ret, struct error *err);
// The next piece of the entry's content, in the reader's memory until the next call. 1; 0 when there is no more; -1.
int tar_reader_data(struct tar_reader *reader, const char **ret, size_t *ret_len, struct error *err);

// ---- writing ------------------------------------------------------------------------------------------------------
// ustar headers with GNU's long names and sizes: what every tar reads, byte for byte. Owner and group are root without a name;
// times are whole seconds.
struct tar_writer {
    int (*write)(void *arg, const void *bytes, size_t len, struct error *err);
    void *arg;
};
int tar_writer_begin(struct tar_writer *writer, const struct tar_entry *entry, struct error *err);
// In pieces that together are exactly entry.size.
int tar_writer_data(struct tar_writer *writer, const void *bytes, size_t len, struct error *err);
int tar_writer_end_entry(struct tar_writer *writer, int64_t size, struct error *err); // once all of it is written
int tar_writer_end(struct tar_writer *writer, struct error *err);                     // the end mark
