#include "cli/printers/print.h"
#include "controller/base/cleanup.h"
#include "controller/base/json.h"
#include "controller/base/memory.h"
#include "controller/base/utf8.h"
#include <stdio.h>
#include <string.h>

#define ROW_MAX_BYTES (256u * 1024 * 1024) // more than the daemon sends in one piece
#define COLUMN_GAP 3

void text_table_add_row(struct text_table *table, const char *const *cells, size_t count)
{
    if (!table->row_count)
        table->column_count = count < TABLE_MAX_COLUMNS ? count : TABLE_MAX_COLUMNS;
    size_t at = table->row_count++ * table->column_count;
    table->cells = mem_realloc_array(table->cells, at + table->column_count, sizeof(char *));
    table->styles = mem_realloc_array(table->styles, at + table->column_count, sizeof(*table->styles));
    memset(table->styles + at, STYLE_PLAIN, table->column_count);
    for (size_t i = 0; i < table->column_count; i++) {
        const char *text = i < count && cells[i] ? cells[i] : "";
        table->cells[at + i] = utf8_to_printable(text, strlen(text), false);
    }
}

void text_table_free(struct text_table *table)
{
    for (size_t i = 0; i < table->row_count * table->column_count; i++)
        free(table->cells[i]);
    free(table->cells);
    free(table->styles);
    *table = (struct text_table){0};
}

// Characters, not bytes: continuation bytes do not count.
static size_t text_width(const char *text)
{
    size_t width = 0;
    for (; *text; text++)
        width += ((unsigned char)*text & 0xC0) != 0x80;
    return width;
}

void text_table_widths(const struct text_table *table, size_t from, size_t widths[TABLE_MAX_COLUMNS])
{
    memcpy(widths, table->least_widths, sizeof(table->least_widths));
    for (size_t i = from * table->column_count; i < table->row_count * table->column_count; i++) {
        size_t width = text_width(table->cells[i]);
        if (width > widths[i % table->column_count])
            widths[i % table->column_count] = width;
    }
}

void text_table_style(struct text_table *table, size_t column, enum style style)
{
    table->styles[(table->row_count - 1) * table->column_count + column] = (unsigned char)style;
}

// ---- writing -----------------------------------------------------------------------------------------------------------
static enum style style_of_cell(const struct text_table *table, size_t row, size_t column)
{
    static const char *const columns[] = {"PHASE", "STATUS", "DECISION", "TYPE"};
    size_t at = row * table->column_count + column;
    if (!row || table->styles[at])
        return row ? (enum style)table->styles[at] : STYLE_HEADING;
    for (size_t i = 0; i < ARRAY_LEN(columns); i++)
        if (strcmp(table->cells[column] + strspn(table->cells[column], " "), columns[i]) == 0)
            return style_of_word(table->cells[at]);
    return STYLE_PLAIN;
}

static void write_cell(const struct text_table *table, size_t row, size_t column, bool has_colour, struct buffer *out)
{
    enum style style = has_colour ? style_of_cell(table, row, column) : STYLE_PLAIN;
    buffer_append_text(out, style_bytes(style));
    buffer_append_text(out, table->cells[row * table->column_count + column]);
    if (style != STYLE_PLAIN)
        buffer_append_text(out, STYLE_END);
}

static void fill(struct buffer *out, size_t blanks)
{
    char *at = buffer_reserve(out, blanks);
    if (!at)
        return;
    memset(at, ' ', blanks);
    out->len += blanks;
}

static void write_row(const struct text_table *table, size_t row, const size_t *widths, bool has_colour, struct buffer *out)
{
    const char *const *cells = (const char *const *)&table->cells[row * table->column_count];
    size_t last = table->column_count;
    while (last && !cells[last - 1][0])
        last--; // no blanks at a line's end
    for (size_t i = 0; i < last; i++) {
        write_cell(table, row, i, has_colour, out);
        if (i + 1 < last)
            fill(out, widths[i] - text_width(cells[i]) + COLUMN_GAP);
    }
    buffer_append_char(out, '\n');
}

void text_table_write(const struct text_table *table, bool has_heading, struct buffer *out)
{
    size_t widths[TABLE_MAX_COLUMNS], from = has_heading ? 0 : 1;
    text_table_widths(table, from, widths);
    for (size_t row = from; row < table->row_count; row++)
        write_row(table, row, widths, false, out);
}

// Row by row: however many there are, their text does not wait in memory.
void text_table_print(const struct text_table *table, bool has_heading)
{
    size_t widths[TABLE_MAX_COLUMNS], from = has_heading ? 0 : 1;
    bool has_colour = terminal_has_colour(stdout);
    CLEANUP(buffer_free) struct buffer line = BUFFER_INIT(ROW_MAX_BYTES);
    text_table_widths(table, from, widths);
    for (size_t row = from; row < table->row_count; row++) {
        write_row(table, row, widths, has_colour, &line);
        fwrite(buffer_text(&line), 1, line.len, stdout);
        buffer_consume(&line, line.len);
    }
}

// ---- from the server ---------------------------------------------------------------------------------------------------
static char *word_cell(const json_t *cell)
{
    if (json_is_string(cell))
        return mem_strdup(json_string_value(cell)[0] ? json_string_value(cell) : "<none>");
    if (!cell || json_is_null(cell))
        return mem_strdup("<none>");
    return json_to_text(cell);
}

static void upper(char *text)
{
    for (; *text; text++)
        if (*text >= 'a' && *text <= 'z')
            *text = (char)(*text - 'a' + 'A');
}

static size_t pick_columns(const json_t *columns, bool is_wide, size_t picked[TABLE_MAX_COLUMNS])
{
    size_t count = 0;
    for (size_t i = 0; i < json_array_size(columns) && count < TABLE_MAX_COLUMNS; i++)
        if (is_wide || json_get_int(json_array_get(columns, i), "priority", 0) == 0)
            picked[count++] = i;
    return count;
}

static void add_and_free(struct text_table *table, char **cells, size_t count)
{
    text_table_add_row(table, (const char *const *)cells, count);
    for (size_t i = 0; i < count; i++)
        free(cells[i]);
}

int text_table_from_server(const json_t *server_table, bool is_wide, struct text_table *ret)
{
    const json_t *columns = json_object_get(server_table, "columnDefinitions"), *rows = json_object_get(server_table, "rows");
    size_t picked[TABLE_MAX_COLUMNS], count = pick_columns(columns, is_wide, picked);
    if (!count || !json_is_array(rows))
        return -1;
    char *cells[TABLE_MAX_COLUMNS];
    for (size_t i = 0; i < count; i++) {
        cells[i] = word_cell(json_object_get(json_array_get(columns, picked[i]), "name"));
        upper(cells[i]);
    }
    add_and_free(ret, cells, count);
    for (size_t row = 0; row < json_array_size(rows); row++) {
        const json_t *values = json_object_get(json_array_get(rows, row), "cells");
        for (size_t i = 0; i < count; i++)
            cells[i] = word_cell(json_array_get(values, picked[i]));
        add_and_free(ret, cells, count);
    }
    return 0;
}

void print_text(const char *text)
{
    CLEANUP_FREE char *printable = utf8_to_printable(text, strlen(text), true);
    fputs(printable, stdout);
}

void print_json(const json_t *value)
{
    CLEANUP_FREE char *text = json_to_pretty_text(value);
    print_text(text);
    fputc('\n', stdout);
}
