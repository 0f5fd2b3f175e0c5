#include "cli/printers/manifest.h"
#include "controller/yaml/yaml.h"
#include "controller/base/buffer.h"
#include "controller/base/fs.h"
#include "controller/base/json.h"
#include "controller/base/memory.h"
#include "controller/fields/problems.h"
#include <string.h>

#define LIST_KIND "List"

static void add_document(struct manifest *manifest, json_t *value, const struct yaml_node *lines)
{
    if ((manifest->count & (manifest->count - 1)) == 0) // a power of two is full
        manifest->documents = mem_realloc_array(manifest->documents, manifest->count ? manifest->count * 2 : 1, sizeof(*manifest->documents));
    manifest->documents[manifest->count++] = (struct manifest_document){json_incref(value), lines};
}

static const struct yaml_node *child_of(const struct yaml_node *node, const char *key)
{
    for (size_t i = 0; i < node->count; i++)
        if (node->items[i].key && strcmp(node->items[i].key, key) == 0)
            return &node->items[i];
    return NULL;
}

// `get -o yaml` of several objects prints one List: its items are documents of their own.
static bool is_list(const json_t *value)
{
    const char *kind = json_get_text(value, "kind"), *version = json_get_text(value, "apiVersion");
    return kind && version && strcmp(kind, LIST_KIND) == 0 && strcmp(version, "v1") == 0 &&
           json_is_array(json_object_get(value, "items"));
}

static void take_document(void *arg, json_t *value, struct yaml_node *root)
{
    struct manifest *manifest = arg;
    if ((manifest->tree_count & (manifest->tree_count - 1)) == 0)
        manifest->trees = mem_realloc_array(manifest->trees, manifest->tree_count ? manifest->tree_count * 2 : 1, sizeof(struct yaml_node *));
    manifest->trees[manifest->tree_count++] = root;
    const json_t *items = is_list(value) ? json_object_get(value, "items") : NULL;
    if (items) {
        const struct yaml_node *lines = child_of(root, "items");
        for (size_t i = 0; i < json_array_size(items); i++)
            add_document(manifest, json_array_get(items, i), &lines->items[i]);
    } else if (!json_is_null(value)) {
        add_document(manifest, value, root);
    }
    json_decref(value);
}

static int check_objects(const struct manifest *manifest, struct error *err)
{
    for (size_t i = 0; i < manifest->count; i++)
        if (!json_is_object(manifest->documents[i].value))
            return error_set(err, ERROR_INVALID, "start with `apiVersion`, `kind` and `metadata`",
                             "%s:%zu:%zu: must be an object", manifest->file, manifest->documents[i].lines->line,
                             manifest->documents[i].lines->column);
    if (!manifest->count)
        return error_set(err, ERROR_INVALID,
                         "give at least one object with `apiVersion`, `kind` and `metadata`",
                         "%s: holds no objects", manifest->file);
    return 0;
}

// ---- JSON input
// ----------------------------------------------------------------------------------------------------
static bool is_json_like(const char *bytes, size_t len)
{
    size_t i = 0;
    while (i < len && strchr(" \t\r\n", bytes[i]) && bytes[i])
        i++;
    return i < len && (bytes[i] == '{' || bytes[i] == '[');
}

static int hex_value(const char *at, size_t len)
{
    int value = 0;
    if (len < 6 || at[0] != '\\' || at[1] != 'u')
        return -1;
    for (size_t i = 2; i < 6; i++) {
        const char *digits = "0123456789abcdef", *digit = at[i] ? strchr(digits, at[i] | 0x20) : NULL;
        if (!digit)
            return -1;
        value = value * 16 + (int)(digit - digits);
    }
    return value;
}

// Length of the UTF-8 character that the surrogate pair at `at` ("\ud83d\ude00") stands for, 0 if there is
// none.
static size_t join_pair(const char *at, size_t len, char to[4])
{
    int high = hex_value(at, len), low = len >= 12 ? hex_value(at + 6, len - 6) : -1;
    if (high < 0xD800 || high > 0xDBFF || low < 0xDC00 || low > 0xDFFF)
        return 0;
    unsigned code = 0x10000u + (((unsigned)high - 0xD800u) << 10) + ((unsigned)low - 0xDC00u);
    to[0] = (char)(0xF0 | code >> 18);
    to[1] = (char)(0x80 | (code >> 12 & 0x3F));
    to[2] = (char)(0x80 | (code >> 6 & 0x3F));
    to[3] = (char)(0x80 | (code & 0x3F));
    return 4;
}

// JSON writes characters beyond U+FFFF as two escapes, which YAML does not know: they become the character
// itself.
static void join_surrogates(struct buffer *text)
{
    size_t to = 0;
    for (size_t at = 0; at < text->len;) {
        char *from = text->data + at;
        size_t left = text->len - at, keep = *from == '\\' && left > 1 ? 2 : 1;
        char pair[4];
        size_t joined = *from == '\\' ? join_pair(from, left, pair) : 0;
        memmove(text->data + to, joined ? pair : from, joined ? joined : keep);
        to += joined ? joined : keep;
        at += joined ? 12 : keep;
    }
    text->len = to;
}

// ---- the public functions
// ------------------------------------------------------------------------------------------
static int parse_text(const char *file, struct buffer *text, struct manifest *ret, struct error *err)
{
    CLEANUP(manifest_free) struct manifest manifest = {.file = mem_strdup(file)};
    if (is_json_like(buffer_text(text), text->len))
        join_surrogates(text);
    if (yaml_parse_bounded(file, buffer_text(text), text->len, MANIFEST_MAX_NODES, take_document, &manifest, err) < 0 ||
        check_objects(&manifest, err) < 0)
        return -1;
    *ret = manifest;
    manifest = (struct manifest){0};
    return 0;
}

static int refuse_size(const char *file, struct error *err)
{
    return error_set(err, ERROR_TOO_LARGE, "split it into several files", "%s: larger than %d bytes", file,
                     MANIFEST_MAX_BYTES);
}

int manifest_parse(const char *file, const char *bytes, size_t len, struct manifest *ret, struct error *err)
{
    CLEANUP(buffer_free) struct buffer text = BUFFER_INIT(MANIFEST_MAX_BYTES);
    if (buffer_append(&text, bytes, len) < 0)
        return refuse_size(file, err);
    return parse_text(file, &text, ret, err);
}

int manifest_read(const char *path, struct manifest *ret, struct error *err)
{
    CLEANUP(buffer_free) struct buffer text = BUFFER_INIT(MANIFEST_MAX_BYTES);
    bool is_stdin = strcmp(path, "-") == 0;
    const char *file = is_stdin ? "standard input" : path;
    int r = is_stdin ? fs_read_all(STDIN_FILENO, &text, err) : fs_read_file(path, &text, err);
    if (text.is_over || (r < 0 && err->code == ERROR_TOO_LARGE))
        return refuse_size(file, err);
    if (r < 0)
        return error_hint(err, "name a file that you may read, a directory of them, or - for standard input");
    return parse_text(file, &text, ret, err);
}

void manifest_free(struct manifest *manifest)
{
    for (size_t i = 0; i < manifest->count; i++)
        json_decref(manifest->documents[i].value);
    for (size_t i = 0; i < manifest->tree_count; i++)
        yaml_node_free(manifest->trees[i]);
    free(manifest->documents);
    free(manifest->trees);
    free(manifest->file);
    *manifest = (struct manifest){0};
}

// The child whose key is the longest that path starts with: keys may hold dots themselves.
static const struct yaml_node *longest_child(const struct yaml_node *node, const char *path, size_t *ret_len)
{
    const struct yaml_node *best = NULL;
    size_t best_len = 0;
    for (size_t i = 0; i < node->count; i++) {
        const char *key = node->items[i].key;
        size_t len = key ? strlen(key) : 0;
        if (len > best_len && strncmp(path, key, len) == 0 && strchr(".[", path[len])) {
            best = &node->items[i];
            best_len = len;
        }
    }
    *ret_len = best_len;
    return best;
}

static const struct yaml_node *item_at(const struct yaml_node *node, const char *path, size_t *ret_len)
{
    char *end;
    unsigned long index = strtoul(path + 1, &end, 10);
    *ret_len = (size_t)(end - path) + (*end == ']');
    return *end == ']' && node->is_list && index < node->count ? &node->items[index] : NULL;
}

static const struct yaml_node *find_node(const struct manifest *manifest, size_t document, const char *path)
{
    const struct yaml_node *node = manifest->documents[document].lines;
    while (*path) {
        size_t len = 0;
        path += *path == '.';
        const struct yaml_node *next =
            *path == '[' ? item_at(node, path, &len) : longest_child(node, path, &len);
        if (!next)
            break;
        node = next;
        path += len;
    }
    return node;
}

char *manifest_place(const struct manifest *manifest, size_t document, const char *path)
{
    const struct yaml_node *node = find_node(manifest, document, path);
    return mem_format("%s:%zu:%zu", manifest->file, node->line, node->column);
}

char *manifest_word_cause(const struct manifest *manifest, size_t document, const json_t *cause)
{
    const char *field = json_get_text(cause, "field"), *message = json_get_text(cause, "message");
    bool has_field = field && *field;
    CLEANUP_FREE char *place = manifest_place(manifest, document, has_field ? field : "");
    return mem_format("%s: %s%s%s", place, has_field ? field : "", has_field ? ": " : "", message ? message : "is invalid");
}
