// -o custom-columns: headings and the paths of what stands below them.
//
//     NAME:.metadata.name,PHASE:.status.phase,PORTS:.items[*].spec.port
#pragma once
#include "cli/printers/jsonpath.h"
#include "cli/printers/print.h"

struct custom_columns;
// ERROR_USAGE. The caller frees *ret.
int custom_columns_parse(const char *text, struct custom_columns **ret, struct error *err);
// A line of headings and a line of paths, apart by blanks.
int custom_columns_parse_lines(const char *text, struct custom_columns **ret, struct error *err);
void custom_columns_free(struct custom_columns **columns);
// Several values stand apart by a comma; where nothing is: "<none>".
void custom_columns_add_heading(const struct custom_columns *columns, struct text_table *to);
int custom_columns_add_row(const struct custom_columns *columns, json_t *object, struct text_table *to, struct error *err);
