// A Markdown document of bounded size: headings, fenced texts, and the files that somebody chose for it.
#pragma once
#include "api/guest/tool.h"
#include "controller/base/buffer.h"

struct bundle {
    struct buffer text; // never over its max
    size_t reserve;     // bytes of it that are kept for the end
    bool is_truncated;  // something found no room
};

void bundle_format(struct bundle *bundle, const char *format, ...) __attribute__((format(printf, 2, 3)));
size_t bundle_room(const struct bundle *bundle);
// The text between fences that it cannot end itself, cut at max bytes and at the room there is.
void bundle_add_fenced(struct bundle *bundle, const char *language, const char *text, size_t len, size_t max);
// The same, but whole or not at all: false.
bool bundle_add_whole(struct bundle *bundle, const char *heading, const char *text, size_t len);

// ---- bundle_files.c
// ------------------------------------------------------------------------------------------------
enum bundle_rank { BUNDLE_SELECTED, BUNDLE_WELL_KNOWN, BUNDLE_FOUND };
struct bundle_file {
    char *path; // folded
    enum bundle_rank rank;
    size_t order; // of the well-known and the selected ones
};
struct bundle_files {
    struct bundle_file *list; // sorted when chosen: selected, well-known, the others by name
    size_t count;
    json_t *skipped; // texts "PATH [reason]"
    bool is_cut;     // there were more than are kept
};
// Chooses by the arguments selected_paths, extra_globs, include_important_files and include_changed_files.
int bundle_choose(struct tool_call *call, struct bundle_files *ret, struct error *err);
void bundle_files_free(struct bundle_files *files);
void bundle_skip(struct bundle_files *files, const char *path, const char *reason);
