// Walks over manifests from -f FILE|DIR|-. All input is read and checked before anything is done, every mistake told with file and
// line: on bad input nothing changes. What the daemon refuses afterwards does not keep the other documents from being done; the
// command fails at the end.
#pragma once
#include "cli/command.h"
#include "cli/printers/manifest.h"

// One good head (kind known). Errors are worded with file and line by the callee, or printed by manifests_complain (then
// err->message is empty and only its code counts).
typedef int manifests_fn(void *arg, const struct manifest *manifest, size_t document, const struct kind_info *info, struct error *err);
// has_specs: the documents' specs are checked too (apply), not only their heads (delete).
int manifests_each(struct invocation *in, bool is_reverse, bool has_specs, manifests_fn *fn, void *arg, struct error *err);
// "error: FILE:LINE: FIELD: …" a cause on stderr; true if there was any.
bool manifests_complain(const struct manifest *manifest, size_t document, const json_t *causes);

#define OPTION_FILENAME {.name = "filename", .letter = 'f', .value = "FILE", .doc = "file, directory of files, or - for standard input", .is_repeatable = true}
