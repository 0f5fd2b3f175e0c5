// Manifests from -f FILE|DIR|-: all of them are read and checked before anything is done, and every mistake is told with file,
// line and column, so that on bad input nothing changes.
//
//     CLEANUP(manifests_clear) struct manifests manifests = {0};
//     if (manifests_read(in, MANIFESTS_OBJECTS, &manifests, err) < 0) return -1;   // mistakes are printed
//     for (size_t i = 0; i < manifests.count; i++) … manifests.items[i] …
#pragma once
#include "cli/command.h"
#include "cli/printers/manifest.h"

struct manifest_item {
    const struct manifest *manifest;
    size_t document;
    const struct kind_info *info;
    const json_t *value; // borrowed
};
struct manifests {
    struct manifest *streams;
    size_t stream_count;
    struct manifest_item *items; // in the order of the input
    size_t count;
};
enum manifests_check {
    MANIFESTS_NAMES,   // apiVersion, kind and a name: enough to find objects (delete, label)
    MANIFESTS_OBJECTS, // all that can be known here: metadata and spec too, and no object twice (apply, diff)
};
// Of --filename and --recursive; with --selector only what it fits (MANIFESTS_OBJECTS). What could not be read or is wrong is
// printed; the error says how much of it.
int manifests_read(struct invocation *in, enum manifests_check check, struct manifests *ret, struct error *err);
void manifests_clear(struct manifests *manifests);

// "error: FILE:LINE:COLUMN: FIELD: …" a cause on stderr; true if there was any.
bool manifests_complain(const struct manifest_item *item, const json_t *causes);
// One failure of an item, by its causes or as a whole.
void manifests_tell(const struct invocation *in, const struct manifest_item *item, const json_t *causes, const struct error *err);

// What refers to others comes behind them: 0 for workspaces and what stands alone, 1 for sandboxes, 2 for what lives with them.
#define KIND_RANKS 3
int kind_rank(enum kind kind);

#define OPTION_FILENAME {.name = "filename", .letter = 'f', .value = "FILE", .doc = "file, directory of files, or - for standard input", .is_repeatable = true}
#define OPTION_RECURSIVE {.name = "recursive", .letter = 'R', .doc = "with -f DIR: the directories below it too"}
