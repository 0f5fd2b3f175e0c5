// Templates: text and expressions in braces.
#include "cli/printers/jsonpath_internal.h"
#include "controller/base/cleanup.h"
#include "controller/base/memory.h"
#include <stdlib.h>
#include <string.h>

enum part_type { PART_TEXT, PART_PATH, PART_RANGE, PART_END };
struct part {
    enum part_type type;
    char *text;                  // TEXT
    struct json_expression path; // PATH, RANGE
    size_t end;                  // RANGE: where its END stands
};
struct jsonpath {
    struct part *parts;
    size_t count;
    size_t open[JSONPATH_MAX_RANGES]; // while it is parsed
    size_t open_count;
};

void jsonpath_free(struct jsonpath **jsonpath)
{
    struct jsonpath *at = *jsonpath;
    for (size_t i = 0; at && i < at->count; i++) {
        free(at->parts[i].text);
        json_expression_free(&at->parts[i].path);
    }
    if (at)
        free(at->parts);
    free(at);
    *jsonpath = NULL;
}

static struct part *add_part(struct jsonpath *to, enum part_type type)
{
    to->parts = mem_realloc_array(to->parts, to->count + 1, sizeof(*to->parts));
    struct part *part = &to->parts[to->count++];
    *part = (struct part){.type = type};
    return part;
}

// ---- reading ------------------------------------------------------------------------------------------------------------
static bool take_word(struct path_scanner *scanner, const char *word)
{
    size_t len = strlen(word);
    bool is_it = (size_t)(scanner->end - scanner->at) >= len && memcmp(scanner->at, word, len) == 0 &&
                 (scanner->at + len == scanner->end || strchr(" \t}", scanner->at[len]));
    if (is_it)
        scanner->at += len;
    return is_it;
}

static int open_range(struct path_scanner *scanner, struct jsonpath *to, struct error *err)
{
    if (to->open_count == JSONPATH_MAX_RANGES)
        return path_refuse(scanner, err, "too many ranges stand in each other");
    path_skip_blanks(scanner);
    to->open[to->open_count++] = to->count;
    return path_scan(scanner, &add_part(to, PART_RANGE)->path, err);
}

static int end_range(struct path_scanner *scanner, struct jsonpath *to, struct error *err)
{
    if (!to->open_count)
        return path_refuse(scanner, err, "this end has no range");
    to->parts[to->open[--to->open_count]].end = to->count;
    add_part(to, PART_END);
    return 0;
}

static int read_expression(struct path_scanner *scanner, struct jsonpath *to, struct error *err)
{
    if (scanner->at < scanner->end && (*scanner->at == '"' || *scanner->at == '\''))
        return path_scan_quoted(scanner, &add_part(to, PART_TEXT)->text, err);
    if (take_word(scanner, "range"))
        return open_range(scanner, to, err);
    if (take_word(scanner, "end"))
        return end_range(scanner, to, err);
    if (scanner->at < scanner->end && (*scanner->at == '$' || *scanner->at == '@'))
        scanner->at++; // both are what the expression begins with anyway
    else if (scanner->at < scanner->end && !strchr(".[", *scanner->at))
        return path_refuse(scanner, err, "a path begins with a dot");
    return path_scan(scanner, &add_part(to, PART_PATH)->path, err);
}

static int read_braces(struct path_scanner *scanner, struct jsonpath *to, struct error *err)
{
    scanner->at++;
    path_skip_blanks(scanner);
    if (scanner->at < scanner->end && *scanner->at == '}')
        return path_refuse(scanner, err, "the braces are empty");
    while (scanner->at < scanner->end && *scanner->at != '}') {
        const char *from = scanner->at;
        if (read_expression(scanner, to, err) < 0)
            return -1;
        path_skip_blanks(scanner);
        if (scanner->at == from)
            return path_refuse(scanner, err, "the expression does not go on like this");
    }
    if (scanner->at == scanner->end)
        return path_refuse(scanner, err, "a } is missing");
    scanner->at++;
    return 0;
}

static int read_template(struct path_scanner *scanner, struct jsonpath *to, struct error *err)
{
    while (scanner->at < scanner->end) {
        if (*scanner->at == '{') {
            if (read_braces(scanner, to, err) < 0)
                return -1;
            continue;
        }
        size_t len = strcspn(scanner->at, "{");
        add_part(to, PART_TEXT)->text = mem_strndup(scanner->at, len);
        scanner->at += len;
    }
    return to->open_count ? path_refuse(scanner, err, "a range is not closed by {end}") : 0;
}

int jsonpath_parse(const char *text, struct jsonpath **ret, struct error *err)
{
    size_t len = strlen(text);
    if (len > JSONPATH_MAX_BYTES)
        return error_set(err, ERROR_USAGE, "use a shorter one", "the template is longer than %d bytes", JSONPATH_MAX_BYTES);
    // A path alone, without braces, is meant as one.
    CLEANUP_FREE char *whole = text[0] == '.' || text[0] == '$' ? mem_format("{%s}", text) : mem_strdup(text);
    CLEANUP(jsonpath_free) struct jsonpath *made = mem_alloc(sizeof(*made));
    struct path_scanner scanner = {whole, whole, whole + strlen(whole), 0};
    if (read_template(&scanner, made, err) < 0)
        return -1;
    *ret = TAKE_PTR(made);
    return 0;
}

// ---- writing ------------------------------------------------------------------------------------------------------------
static int write_values(const struct part *part, json_t *root, struct buffer *out, struct error *err)
{
    CLEANUP(path_values_free) struct path_values values = {0};
    if (json_expression_find(&part->path, root, &values, err) < 0)
        return -1;
    for (size_t i = 0; i < values.count; i++) {
        CLEANUP_FREE char *text = path_value_text(values.items[i]);
        if (i)
            buffer_append_char(out, ' ');
        buffer_append_text(out, text);
    }
    return 0;
}

static int write_parts(const struct jsonpath *jsonpath, size_t from, size_t until, json_t *root, struct buffer *out, struct error *err);

static int write_range(const struct jsonpath *jsonpath, size_t at, json_t *root, struct buffer *out, struct error *err)
{
    const struct part *part = &jsonpath->parts[at];
    CLEANUP(path_values_free) struct path_values values = {0};
    if (json_expression_find(&part->path, root, &values, err) < 0)
        return -1;
    for (size_t i = 0; i < values.count && !out->is_over; i++)
        if (write_parts(jsonpath, at + 1, part->end, values.items[i], out, err) < 0)
            return -1;
    return 0;
}

static int write_parts(const struct jsonpath *jsonpath, size_t from, size_t until, json_t *root, struct buffer *out, struct error *err)
{
    for (size_t i = from; i < until; i++) {
        const struct part *part = &jsonpath->parts[i];
        int r = 0;
        if (part->type == PART_TEXT)
            buffer_append_text(out, part->text);
        else if (part->type == PART_PATH)
            r = write_values(part, root, out, err);
        else if (part->type == PART_RANGE)
            r = write_range(jsonpath, i, root, out, err);
        if (r < 0)
            return -1;
        if (part->type == PART_RANGE)
            i = part->end;
    }
    return 0;
}

int jsonpath_write(const struct jsonpath *jsonpath, json_t *root, struct buffer *out, struct error *err)
{
    if (write_parts(jsonpath, 0, jsonpath->count, root, out, err) < 0)
        return -1;
    return out->is_over ? error_set(err, ERROR_TOO_LARGE, "choose fewer objects", "what is printed is larger than %zu bytes", out->max) : 0;
}
