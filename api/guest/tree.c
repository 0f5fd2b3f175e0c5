#include "api/guest/tree.h"
#include "api/guest/blocked.h"
#include "api/guest/directory.h"
#include <dirent.h>
#include <linux/openat2.h>
#include <string.h>

#define MAX_TEXT_BYTES (4 * 1024 * 1024) // 3000 entries of 255 bytes and their lines

struct drawing {
    const struct tree_options *options;
    struct tree *tree;
    struct buffer prefix;
};

static bool is_shown(const struct drawing *drawing, const struct directory_entry *entry)
{
    if (entry->name[0] == '.' && !drawing->options->include_hidden)
        return false;
    return !blocked_name(entry->name);
}

static void drop_hidden(const struct drawing *drawing, struct directory *directory)
{
    size_t kept = 0;
    for (size_t i = 0; i < directory->count; i++) {
        if (is_shown(drawing, &directory->entries[i]))
            directory->entries[kept++] = directory->entries[i];
        else
            free(directory->entries[i].name);
    }
    directory->count = kept;
}

static void draw_directory(struct drawing *drawing, int fd, int depth);

static void draw_below(struct drawing *drawing, int fd, const char *name, bool is_last, int depth)
{
    if (depth >= drawing->options->max_depth || strcmp(name, ".ssh") == 0) // what lies below .ssh is blocked
        return;
    CLEANUP_CLOSE int sub =
        fs_openat2(fd, name, O_RDONLY | O_DIRECTORY, 0, RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS);
    if (sub < 0)
        return; // unreadable or gone: its line stands
    size_t len = drawing->prefix.len;
    buffer_append_text(&drawing->prefix, is_last ? "    " : "│   ");
    draw_directory(drawing, sub, depth + 1);
    drawing->prefix.len = len;
}

static bool draw_entry(struct drawing *drawing, int fd, const struct directory_entry *entry, bool is_last,
                       int depth)
{
    struct tree *tree = drawing->tree;
    if (tree->entries >= drawing->options->max_entries || atomic_load(drawing->options->is_cancelled)) {
        tree->is_truncated = true;
        return false;
    }
    buffer_append_char(&tree->text, '\n');
    buffer_append(&tree->text, buffer_text(&drawing->prefix), drawing->prefix.len);
    buffer_append_text(&tree->text, is_last ? "└── " : "├── ");
    buffer_append_text(&tree->text, entry->name);
    if (entry->type == DT_DIR)
        buffer_append_char(&tree->text, '/');
    tree->entries++;
    if (entry->type == DT_DIR)
        draw_below(drawing, fd, entry->name, is_last, depth);
    return !tree->is_truncated;
}

static void draw_directory(struct drawing *drawing, int fd, int depth)
{
    CLEANUP_DIRECTORY struct directory directory = {0};
    if (directory_read(fd, true, &directory) < 0)
        return;
    bool is_cut = directory.is_cut;
    drop_hidden(drawing, &directory);
    for (size_t i = 0; i < directory.count; i++)
        if (!draw_entry(drawing, fd, &directory.entries[i], i + 1 == directory.count && !is_cut, depth))
            return;
    drawing->tree->is_truncated |= is_cut;
}

void tree_draw(int fd, const char *path, const struct tree_options *options, struct tree *ret)
{
    struct tree tree = {.text = BUFFER_INIT(MAX_TEXT_BYTES)};
    struct drawing drawing = {.options = options, .tree = &tree, .prefix = BUFFER_INIT(256)};
    buffer_append_text(&tree.text, path);
    if (strcmp(path, ".") != 0)
        buffer_append_char(&tree.text, '/');
    size_t len = strlen(path);
    bool is_ssh = len >= 4 && strcmp(path + len - 4, ".ssh") == 0 && (len == 4 || path[len - 5] == '/');
    if (!is_ssh) // what lies below .ssh is blocked
        draw_directory(&drawing, fd, 1);
    buffer_free(&drawing.prefix);
    if (tree.is_truncated)
        buffer_format(&tree.text, "\n...[tree truncated after %d entries]", tree.entries);
    buffer_text(&tree.text);
    *ret = tree;
}
