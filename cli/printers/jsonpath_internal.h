// What the files of the template language share.
#pragma once
#include "cli/printers/jsonpath.h"

struct path_scanner {
    const char *text, *at, *end;
    int depth; // of filters in filters
};
struct path_filter {
    struct json_expression left;
    enum path_operator op;
    json_t *right; // the literal; NULL with PATH_IS_THERE
};
// Reads steps until what cannot be one. The scanner stands on the first byte after them.
int path_scan(struct path_scanner *scanner, struct json_expression *ret, struct error *err);
// A text in quotes, with \n, \t, \r, \\ and the quotes themselves escaped. The caller owns it.
int path_scan_quoted(struct path_scanner *scanner, char **ret, struct error *err);
void path_skip_blanks(struct path_scanner *scanner);
int path_refuse(const struct path_scanner *scanner, struct error *err, const char *why); // with the position
