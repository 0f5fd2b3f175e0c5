// Pieces of struct → JSON that records need outside a table. Inside controller/fields and controller/record*
// only.
#pragma once
#include "schemas/kinds/kinds.h"

json_t *time_to_json(struct wall_time time); // RFC 3339, with milliseconds where there are any
json_t *text_list_to_json(const struct text_list *list);
json_t *text_map_to_json(const struct text_map *map);
