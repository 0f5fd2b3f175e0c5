// Git's ignore files, as git reads them: the last matching rule of the deepest directory that has one
// decides.
#pragma once
#include <stdbool.h>
#include <stddef.h>

struct ignore_rule {
    char *pattern;
    bool is_negated, is_for_directories, is_anchored;
};

// The rules of one directory. Levels form a chain from the directory at work up to the root.
struct ignore_level {
    const struct ignore_level *parent;
    size_t base_len; // of the directory's path and its slash, in paths relative to the root
    struct ignore_rule *rules;
    size_t count;
};

// dir_path is "" for the root. Reads .gitignore and .ignore (and .git/info/exclude at the root) there.
void ignore_read(struct ignore_level *level, const struct ignore_level *parent, int dir_fd,
                 const char *dir_path);
void ignore_parse(struct ignore_level *level, const char *text); // adds the rules of one file
void ignore_free(struct ignore_level *level);
bool ignore_hides(const struct ignore_level *level, const char *path, bool is_directory);
