// What goes to standard output. Untrusted text never reaches a terminal as it is: control, BiDi and zero-width characters
// come out as a backslash, u and four digits, which in JSON and YAML is the same text.
#pragma once
#include "cli/terminal.h"
#include "controller/base/buffer.h"
#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

void print_json(const json_t *value);
void print_yaml(const json_t *value);
void yaml_write(struct buffer *out, const json_t *value); // what print_yaml prints

// ---- tables ----------------------------------------------------------------------------------------------------------
#define TABLE_MAX_COLUMNS 24
struct text_table {
    size_t column_count, row_count;
    char **cells; // row by row; row 0 is the heading
    unsigned char *styles; // of the cells, as in terminal.h; 0: by their column
    size_t least_widths[TABLE_MAX_COLUMNS]; // of columns that are to stand below others; 0: as wide as their text
};
void text_table_add_row(struct text_table *table, const char *const *cells, size_t count); // copied, made printable; the first row sets the count
void text_table_style(struct text_table *table, size_t column, enum style style); // of the newest row
void text_table_write(const struct text_table *table, bool has_heading, struct buffer *out);
void text_table_widths(const struct text_table *table, size_t from_row, size_t ret[TABLE_MAX_COLUMNS]); // in characters
// Onto stdout. Where that has colours, headings and words of PHASE, STATUS, DECISION and TYPE columns have theirs; a wide table is
// never cut or wrapped: a terminal wraps it, and whoever copies a line has all of it.
void text_table_print(const struct text_table *table, bool has_heading);
void text_table_free(struct text_table *table);
// A meta.k8s.io/v1 Table as the server sent it: its columns of priority 0, or all.
int text_table_from_server(const json_t *server_table, bool is_wide, struct text_table *ret);

void print_text(const char *text);  // printable, newlines kept
