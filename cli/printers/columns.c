#include "cli/printers/columns.h"
#include "controller/base/cleanup.h"
#include "controller/base/memory.h"
#include <string.h>

#define CELL_MAX_BYTES (64 * 1024)

struct column {
    char *heading;
    struct json_expression path;
};
struct custom_columns {
    struct column items[TABLE_MAX_COLUMNS];
    size_t count;
};

void custom_columns_free(struct custom_columns **columns)
{
    struct custom_columns *at = *columns;
    for (size_t i = 0; at && i < at->count; i++) {
        free(at->items[i].heading);
        json_expression_free(&at->items[i].path);
    }
    free(at);
    *columns = NULL;
}

// Up to a comma that stands in no brackets and no quotes.
static size_t column_length(const char *text)
{
    size_t depth = 0, len = 0;
    for (char quote = 0; text[len]; len++) {
        char c = text[len];
        if (quote)
            quote = c == quote ? 0 : quote;
        else if (c == '"' || c == '\'')
            quote = c;
        else if (c == '[' || c == '(' || c == '{')
            depth++;
        else if ((c == ']' || c == ')' || c == '}') && depth)
            depth--;
        else if (c == ',' && !depth)
            break;
    }
    return len;
}

static int add_column(struct custom_columns *to, const char *text, size_t len, struct error *err)
{
    const char *colon = memchr(text, ':', len);
    if (!colon || colon == text || colon + 1 == text + len)
        return error_set(err, ERROR_USAGE, "like -o custom-columns=NAME:.metadata.name,PHASE:.status.phase", "'%.*s' is not of the form HEADING:PATH",
                         (int)(len < 100 ? len : 100), text);
    if (to->count == TABLE_MAX_COLUMNS)
        return error_set(err, ERROR_USAGE, "name fewer", "more than %d columns are given", TABLE_MAX_COLUMNS);
    struct column *column = &to->items[to->count++];
    column->heading = mem_strndup(text, (size_t)(colon - text));
    CLEANUP_FREE char *path = mem_strndup(colon + 1, (size_t)(text + len - colon - 1));
    return json_expression_parse(path, &column->path, err);
}

int custom_columns_parse(const char *text, struct custom_columns **ret, struct error *err)
{
    CLEANUP(custom_columns_free) struct custom_columns *made = mem_alloc(sizeof(*made));
    do {
        size_t len = column_length(text);
        if (add_column(made, text, len, err) < 0)
            return -1;
        text += len;
    } while (*text++ == ',');
    *ret = TAKE_PTR(made);
    return 0;
}

// The next word of a line; NULL at its end. The caller owns it.
static char *next_word(const char **at)
{
    *at += strspn(*at, " \t\r");
    size_t len = strcspn(*at, " \t\r\n");
    char *word = len ? mem_strndup(*at, len) : NULL;
    *at += len;
    return word;
}

int custom_columns_parse_lines(const char *text, struct custom_columns **ret, struct error *err)
{
    CLEANUP(custom_columns_free) struct custom_columns *made = mem_alloc(sizeof(*made));
    const char *headings = text, *paths = strchr(text, '\n') ? strchr(text, '\n') + 1 : NULL;
    for (bool is_more = paths != NULL; is_more;) {
        CLEANUP_FREE char *heading = next_word(&headings), *path = next_word(&paths);
        CLEANUP_FREE char *both = heading && path ? mem_format("%s:%s", heading, path) : NULL;
        if (!heading != !path)
            return error_set(err, ERROR_USAGE, "give a path for each heading", "the file of columns has not as many paths as headings");
        if (both && add_column(made, both, strlen(both), err) < 0)
            return -1;
        is_more = both != NULL;
    }
    if (!made->count)
        return error_set(err, ERROR_USAGE, "the first line: NAME PHASE; the second one: .metadata.name .status.phase",
                         "a file of columns has two lines, one of headings and one of paths");
    *ret = TAKE_PTR(made);
    return 0;
}

void custom_columns_add_heading(const struct custom_columns *columns, struct text_table *to)
{
    const char *cells[TABLE_MAX_COLUMNS];
    for (size_t i = 0; i < columns->count; i++)
        cells[i] = columns->items[i].heading;
    text_table_add_row(to, cells, columns->count);
}

static int write_cell(const struct column *column, json_t *object, char **ret, struct error *err)
{
    CLEANUP(buffer_free) struct buffer cell = BUFFER_INIT(CELL_MAX_BYTES);
    CLEANUP(path_values_free) struct path_values values = {0};
    if (json_expression_find(&column->path, object, &values, err) < 0)
        return -1;
    for (size_t i = 0; i < values.count; i++) {
        CLEANUP_FREE char *text = path_value_text(values.items[i]);
        buffer_format(&cell, "%s%s", i ? "," : "", text);
    }
    *ret = values.count ? buffer_take_string(&cell) : mem_strdup("<none>");
    return 0;
}

int custom_columns_add_row(const struct custom_columns *columns, json_t *object, struct text_table *to, struct error *err)
{
    char *cells[TABLE_MAX_COLUMNS] = {0};
    int r = 0;
    for (size_t i = 0; i < columns->count && r == 0; i++)
        r = write_cell(&columns->items[i], object, &cells[i], err);
    if (r == 0)
        text_table_add_row(to, (const char *const *)cells, columns->count);
    for (size_t i = 0; i < columns->count; i++)
        free(cells[i]);
    return r;
}
