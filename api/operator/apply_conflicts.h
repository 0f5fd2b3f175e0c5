// Inside api/operator/apply*.c only.
#pragma once
#include "controller/base/json.h"

struct conflicts { // one entry and one set for each manager
    json_t *entries, *sets;
};
void conflicts_clear(struct conflicts *conflicts);
struct conflicts conflicts_find(const json_t *others, const json_t *changed); // entries are shared with `others`
void conflicts_subtract(struct conflicts *conflicts, const json_t *allowed);
int conflicts_to_error(const struct conflicts *conflicts, json_t *causes, struct error *err); // there is at least one
