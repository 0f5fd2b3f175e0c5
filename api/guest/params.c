#include "api/guest/params.h"
#include <string.h>

static int check_text(const json_t *value, const char *name, const char **ret, struct error *err)
{
    if (!json_is_string(value))
        return error_set(err, ERROR_INVALID, NULL, "%s must be a string", name);
    if (strlen(json_string_value(value)) != json_string_length(value))
        return error_set(err, ERROR_INVALID, NULL, "%s must not contain NUL characters", name);
    *ret = json_string_value(value);
    return 0;
}

int params_get_text(const json_t *params, const char *name, const char **ret, struct error *err)
{
    return check_text(json_object_get(params, name), name, ret, err);
}

int params_get_optional_text(const json_t *params, const char *name, const char **ret, struct error *err)
{
    const json_t *value = json_object_get(params, name);
    if (value)
        return check_text(value, name, ret, err);
    *ret = NULL;
    return 0;
}

int params_get_int(const json_t *params, const char *name, int64_t min, int64_t max, int64_t *ret,
                   struct error *err)
{
    const json_t *value = json_object_get(params, name);
    if (!json_is_integer(value) || json_integer_value(value) < min || json_integer_value(value) > max)
        return error_set(err, ERROR_INVALID, NULL, "%s must be an integer from %lld to %lld", name,
                         (long long)min, (long long)max);
    *ret = json_integer_value(value);
    return 0;
}

int params_get_optional_int(const json_t *params, const char *name, int64_t min, int64_t max, int64_t *ret,
                            struct error *err)
{
    return json_object_get(params, name) ? params_get_int(params, name, min, max, ret, err) : 0;
}
