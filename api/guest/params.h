// Parameters of the extension methods: 0, or -1 with a sentence that names the parameter.
#pragma once
#include "controller/base/error.h"
#include "controller/base/json.h"
#include <stdint.h>

int params_get_text(const json_t *params, const char *name, const char **ret, struct error *err); // required
int params_get_optional_text(const json_t *params, const char *name, const char **ret,
                             struct error *err); // NULL if absent
int params_get_int(const json_t *params, const char *name, int64_t min, int64_t max, int64_t *ret,
                   struct error *err);
// Leaves *ret alone if absent.
int params_get_optional_int(const json_t *params, const char *name, int64_t min, int64_t max, int64_t *ret,
                            struct error *err);
