// What a copy has done so far and whom it tells: shared by both directions. It is stopped through the stream's own functions.
#pragma once
#include <stdint.h>

struct tally {
    int64_t files, directories, links, skipped, bytes;
    int64_t troubles; // entries that could not be copied as they were; the rest was
    void (*warn)(void *arg, const char *text); // text: a sentence, printable
    void (*progress)(void *arg, const struct tally *tally); // often; NULL allowed
    void *arg;
};
// A sentence about one entry: its name is made printable.
void tally_warn(const struct tally *tally, const char *name, const char *format, ...) __attribute__((format(printf, 3, 4)));
void tally_add_bytes(struct tally *tally, int64_t bytes);
