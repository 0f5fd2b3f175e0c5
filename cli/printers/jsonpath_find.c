// Paths: steps over a document.
#include "cli/printers/jsonpath_internal.h"
#include "controller/base/cleanup.h"
#include "controller/base/json.h"
#include "controller/base/memory.h"
#include <stdlib.h>
#include <string.h>

void path_values_free(struct path_values *values)
{
    free(values->items);
    *values = (struct path_values){0};
}

static int add(struct path_values *to, json_t *value, struct error *err)
{
    if (!value)
        return 0;
    if (to->count == JSONPATH_MAX_RESULTS)
        return error_set(err, ERROR_TOO_LARGE, "choose fewer objects, or a narrower path", "a path leads to more than %d values", JSONPATH_MAX_RESULTS);
    if ((to->count & (to->count - 1)) == 0) // grows by doubling
        to->items = mem_realloc_array(to->items, to->count ? to->count * 2 : 1, sizeof(*to->items));
    to->items[to->count++] = value;
    return 0;
}

char *path_value_text(const json_t *value)
{
    if (!json_is_string(value))
        return json_to_text(value);
    return mem_strndup(json_string_value(value), json_string_length(value));
}

// ---- filters ------------------------------------------------------------------------------------------------------------
// <0, 0, >0; 2: the two have no order
static int compare(const json_t *left, const json_t *right)
{
    if (json_is_number(left) && json_is_number(right)) {
        double a = json_number_value(left), b = json_number_value(right);
        return (a > b) - (a < b);
    }
    if (json_is_string(left) && json_is_string(right)) {
        int order = strcmp(json_string_value(left), json_string_value(right));
        return (order > 0) - (order < 0);
    }
    return json_equal(left, right) ? 0 : 2;
}

static bool is_right(enum path_operator op, int order)
{
    switch (op) {
    case PATH_EQUAL: return order == 0;
    case PATH_NOT_EQUAL: return order != 0;
    case PATH_LESS: return order == -1;
    case PATH_LESS_EQUAL: return order == -1 || order == 0;
    case PATH_GREATER: return order == 1;
    case PATH_GREATER_EQUAL: return order == 1 || order == 0;
    case PATH_IS_THERE: break;
    }
    return true;
}

// 1: it fits
static int fits(const struct path_filter *filter, json_t *value, struct error *err)
{
    CLEANUP(path_values_free) struct path_values left = {0};
    if (json_expression_find(&filter->left, value, &left, err) < 0)
        return -1;
    if (filter->op == PATH_IS_THERE || !left.count)
        return left.count > 0;
    return is_right(filter->op, compare(left.items[0], filter->right));
}

// ---- steps --------------------------------------------------------------------------------------------------------------
typedef int visit_fn(const struct path_step *step, json_t *value, struct path_values *to, struct error *err);

static json_t *walk(json_t *value, const char *path)
{
    for (size_t len; value && *path; path += len + (path[len] == '.')) {
        len = strcspn(path, ".");
        value = json_object_getn(value, path, len);
    }
    return value;
}

static int visit_field(const struct path_step *step, json_t *value, struct path_values *to, struct error *err)
{
    json_t *field = json_object_get(value, step->name);
    return add(to, !field && step->is_quoted ? walk(value, step->name) : field, err);
}

static int visit_children(json_t *value, struct path_values *to, struct error *err)
{
    const char *key;
    json_t *child;
    json_object_foreach(value, key, child)
        if (add(to, child, err) < 0)
            return -1;
    for (size_t i = 0; i < json_array_size(value); i++)
        if (add(to, json_array_get(value, i), err) < 0)
            return -1;
    return 0;
}

static int visit_all(const struct path_step *step, json_t *value, struct path_values *to, struct error *err)
{
    (void)step;
    return visit_children(value, to, err);
}

static int visit_slice(const struct path_step *step, json_t *value, struct path_values *to, struct error *err)
{
    long size = (long)json_array_size(value), from = step->from < 0 ? step->from + size : step->from;
    long until = step->is_index ? from + 1 : step->has_to ? (step->to < 0 ? step->to + size : step->to) : size;
    if (step->is_index && from < 0)
        return 0;
    for (long i = from < 0 ? 0 : from; i < until && i < size; i += step->by ? step->by : 1)
        if (add(to, json_array_get(value, (size_t)i), err) < 0)
            return -1;
    return 0;
}

static int go_below(json_t *value, int depth, struct path_values *to, struct error *err)
{
    CLEANUP(path_values_free) struct path_values children = {0};
    if (add(to, value, err) < 0 || visit_children(value, &children, err) < 0)
        return -1;
    for (size_t i = 0; i < children.count && depth < JSONPATH_MAX_DEPTH; i++)
        if (go_below(children.items[i], depth + 1, to, err) < 0)
            return -1;
    return 0;
}

static int visit_below(const struct path_step *step, json_t *value, struct path_values *to, struct error *err)
{
    (void)step;
    return go_below(value, 0, to, err);
}

static int visit_filter(const struct path_step *step, json_t *value, struct path_values *to, struct error *err)
{
    CLEANUP(path_values_free) struct path_values children = {0};
    if (visit_children(value, &children, err) < 0)
        return -1;
    for (size_t i = 0; i < children.count; i++) {
        int r = fits(step->filter, children.items[i], err);
        if (r < 0 || (r && add(to, children.items[i], err) < 0))
            return -1;
    }
    return 0;
}

static int visit_union(const struct path_step *step, json_t *value, struct path_values *to, struct error *err);

static visit_fn *const visits[] = {[STEP_FIELD] = visit_field, [STEP_ALL] = visit_all, [STEP_SLICE] = visit_slice, [STEP_BELOW] = visit_below,
                                   [STEP_FILTER] = visit_filter, [STEP_UNION] = visit_union};

static int visit_union(const struct path_step *step, json_t *value, struct path_values *to, struct error *err)
{
    for (size_t i = 0; i < step->part_count; i++)
        if (visits[step->parts[i].type](&step->parts[i], value, to, err) < 0)
            return -1;
    return 0;
}

int json_expression_find(const struct json_expression *expression, json_t *root, struct path_values *ret, struct error *err)
{
    CLEANUP(path_values_free) struct path_values now = {0};
    if (add(&now, root, err) < 0)
        return -1;
    for (size_t step = 0; step < expression->count; step++) {
        struct path_values next = {0};
        for (size_t i = 0; i < now.count; i++)
            if (visits[expression->steps[step].type](&expression->steps[step], now.items[i], &next, err) < 0) {
                path_values_free(&next);
                return -1;
            }
        path_values_free(&now);
        now = next;
    }
    *ret = now;
    now = (struct path_values){0};
    return 0;
}
