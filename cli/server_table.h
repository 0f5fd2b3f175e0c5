// A server's Table (meta.k8s.io/v1) before it is printed: further columns, order, several in one. All in place.
#pragma once
#include "cli/printers/jsonpath.h"
#include "controller/base/json.h"

void server_table_add_label(json_t *table, const char *key);     // a column of that label's values
void server_table_add_labels(json_t *table);                     // LABELS: "a=b,c=d"
void server_table_add_word(json_t *table, const char *heading, const char *word); // before all others, the same in every row
void server_table_qualify(json_t *table, const char *singular);  // names become "sandbox/dev"
void server_table_append(json_t *table, const json_t *more);     // rows of the same kind
// By what the path leads to: numbers, quantities ("512Mi", "1.5") and text, each by its own order. Objects without a value
// stand first. Stable. Rows need their whole objects (includeObject=Object).
int server_table_sort(json_t *table, const struct json_expression *by, struct error *err);
int server_items_sort(json_t *items, const struct json_expression *by, struct error *err); // the same for a list's objects
