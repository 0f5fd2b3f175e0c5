#include "api/operator/json_patch.h"
#include "api/operator/json_pointer.h"
#include "controller/base/memory.h"
#include <string.h>

#define LIST_MAX 10000

struct patching {
    json_t *document;
    size_t copied_bytes;
};
struct operation {
    const char *op, *path, *from;
    json_t *value; // borrowed
};

// ---- values
// ------------------------------------------------------------------------------------------------------------
static size_t depth_of(const json_t *value)
{
    size_t deepest = 0, i;
    const char *key;
    json_t *item;
    if (!json_is_object(value) && !json_is_array(value))
        return 0;
    json_object_foreach((json_t *)value, key, item)
    {
        size_t depth = depth_of(item);
        deepest = depth > deepest ? depth : deepest;
    }
    json_array_foreach((json_t *)value, i, item)
    {
        size_t depth = depth_of(item);
        deepest = depth > deepest ? depth : deepest;
    }
    return deepest + 1;
}

static size_t count_values(const json_t *value)
{
    size_t count = 1, i;
    const char *key;
    json_t *item;
    json_object_foreach((json_t *)value, key, item) count += count_values(item);
    json_array_foreach((json_t *)value, i, item) count += count_values(item);
    return count;
}

// Numbers are equal by value, however they are written.
static bool is_equal(const json_t *a, const json_t *b)
{
    const char *key;
    json_t *item;
    size_t i;
    if (json_is_number(a) && json_is_number(b))
        return json_is_integer(a) && json_is_integer(b) ? json_integer_value(a) == json_integer_value(b)
                                                        : json_number_value(a) == json_number_value(b);
    if (json_is_object(a) && json_is_object(b)) {
        json_object_foreach((json_t *)a, key, item) if (!is_equal(item, json_object_get(b, key))) return false;
        return json_object_size(a) == json_object_size(b);
    }
    if (json_is_array(a) && json_is_array(b)) {
        json_array_foreach((json_t *)a, i, item) if (!is_equal(item, json_array_get(b, i))) return false;
        return json_array_size(a) == json_array_size(b);
    }
    return a && b && json_equal(a, b);
}

static size_t count_steps(const char *pointer)
{
    size_t steps = 0;
    for (; *pointer; pointer++)
        steps += *pointer == '/';
    return steps;
}

static int check_depth(const char *pointer, const json_t *value, struct error *err)
{
    if (count_steps(pointer) + depth_of(value) <= JSON_MAX_DEPTH)
        return 0;
    return error_set(err, ERROR_TOO_LARGE, NULL, "the patch nests deeper than %d levels", JSON_MAX_DEPTH);
}

// ---- steps
// -------------------------------------------------------------------------------------------------------------
// Moving the items of a long list for each of many operations would take long; no field has such lists.
static int check_list(const json_t *parent, struct error *err)
{
    if (json_array_size(parent) <= LIST_MAX)
        return 0;
    return error_set(err, ERROR_TOO_LARGE, NULL, "the patch changes a list of more than %d items", LIST_MAX);
}

static int refuse_missing(const char *pointer, struct error *err)
{
    return error_set(err, ERROR_INVALID, NULL, "path \"%.200s\" does not exist", pointer);
}

// Puts value (taken) where the pointer says.
static int put(struct patching *patching, const char *pointer, json_t *value, struct error *err)
{
    CLEANUP_JSON json_t *taken = value;
    CLEANUP(json_place_clear) struct json_place place = {0};
    if (json_place_find(patching->document, pointer, &place, err) < 0 || check_depth(pointer, taken, err) < 0 ||
        check_list(place.parent, err) < 0)
        return -1;
    if (!place.parent) {
        json_decref(patching->document);
        patching->document = json_incref(taken);
    } else if (json_is_object(place.parent)) {
        json_object_set(place.parent, place.name, taken);
    } else if (json_array_insert(place.parent, place.index, taken) < 0) {
        return error_set(err, ERROR_INVALID, NULL, "path \"%.200s\" is beyond the end of the list", pointer);
    }
    return 0;
}

// Takes out what the pointer names. *ret: a new reference.
static int take(struct patching *patching, const char *pointer, json_t **ret, struct error *err)
{
    CLEANUP(json_place_clear) struct json_place place = {0};
    if (json_place_find(patching->document, pointer, &place, err) < 0 || check_list(place.parent, err) < 0)
        return -1;
    json_t *value = json_place_get(patching->document, &place);
    if (!value)
        return refuse_missing(pointer, err);
    *ret = json_incref(value);
    if (!place.parent) {
        json_decref(patching->document);
        patching->document = json_null();
    } else if (json_is_object(place.parent)) {
        json_object_del(place.parent, place.name);
    } else {
        json_array_remove(place.parent, place.index);
    }
    return 0;
}

static int find(struct patching *patching, const char *pointer, json_t **ret, struct error *err)
{
    CLEANUP(json_place_clear) struct json_place place = {0};
    if (json_place_find(patching->document, pointer, &place, err) < 0)
        return -1;
    *ret = json_place_get(patching->document, &place);
    return *ret ? 0 : refuse_missing(pointer, err);
}

// ---- operations
// ------------------------------------------------------------------------------------------------------------
static int run_add(struct patching *patching, const struct operation *operation, struct error *err)
{
    return put(patching, operation->path, json_deep_copy(operation->value), err);
}

static int run_remove(struct patching *patching, const struct operation *operation, struct error *err)
{
    CLEANUP_JSON json_t *gone = NULL;
    return take(patching, operation->path, &gone, err);
}

static int run_replace(struct patching *patching, const struct operation *operation, struct error *err)
{
    CLEANUP_JSON json_t *gone = NULL;
    if (take(patching, operation->path, &gone, err) < 0)
        return -1;
    return put(patching, operation->path, json_deep_copy(operation->value), err);
}

static bool is_inside(const char *path, const char *of)
{
    size_t len = strlen(of);
    return strncmp(path, of, len) == 0 && path[len] == '/';
}

static int run_move(struct patching *patching, const struct operation *operation, struct error *err)
{
    json_t *value = NULL;
    if (is_inside(operation->path, operation->from))
        return error_set(err, ERROR_INVALID, NULL, "\"%.200s\" cannot be moved into itself", operation->from);
    if (take(patching, operation->from, &value, err) < 0)
        return -1;
    return put(patching, operation->path, value, err);
}

static int run_copy(struct patching *patching, const struct operation *operation, struct error *err)
{
    json_t *value = NULL;
    if (find(patching, operation->from, &value, err) < 0)
        return -1;
    patching->copied_bytes += json_dumpb(value, NULL, 0, JSON_COMPACT | JSON_ENCODE_ANY) + count_values(value) * JSON_PATCH_VALUE_BYTES;
    if (patching->copied_bytes > JSON_PATCH_MAX_COPIED_BYTES)
        return error_set(err, ERROR_TOO_LARGE, NULL, "the patch copies more than %d bytes", JSON_PATCH_MAX_COPIED_BYTES);
    return put(patching, operation->path, json_deep_copy(value), err);
}

static int run_test(struct patching *patching, const struct operation *operation, struct error *err)
{
    json_t *value = NULL;
    if (find(patching, operation->path, &value, err) < 0)
        return -1;
    return is_equal(value, operation->value)
               ? 0
               : error_set(err, ERROR_INVALID, "read the object again", "testing path \"%.200s\" failed: it has another value", operation->path);
}

static const struct {
    const char *name;
    int (*run)(struct patching *patching, const struct operation *operation, struct error *err);
    bool needs_value, needs_from;
} kinds[] = {
    {"add", run_add, true, false},         {"remove", run_remove, false, false}, {"replace", run_replace, true, false},
    {"move", run_move, false, true},       {"copy", run_copy, false, true},      {"test", run_test, true, false},
};

static int run(struct patching *patching, const json_t *json, struct error *err)
{
    const struct operation operation = {json_get_text(json, "op"), json_get_text(json, "path"), json_get_text(json, "from"),
                                        json_object_get(json, "value")};
    if (!operation.op || !operation.path)
        return error_set(err, ERROR_USAGE, NULL, "must be an object with \"op\" and \"path\"");
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
        if (strcmp(kinds[i].name, operation.op) != 0)
            continue;
        if (kinds[i].needs_value && !operation.value)
            return error_set(err, ERROR_USAGE, NULL, "\"%s\" needs a \"value\"", operation.op);
        if (kinds[i].needs_from && !operation.from)
            return error_set(err, ERROR_USAGE, NULL, "\"%s\" needs \"from\"", operation.op);
        return kinds[i].run(patching, &operation, err);
    }
    return error_set(err, ERROR_USAGE, "use add, remove, replace, move, copy or test", "\"op\" is unknown: \"%.40s\"", operation.op);
}

int json_patch_apply(json_t **document, const json_t *operations, struct error *err)
{
    struct patching patching = {.document = json_deep_copy(*document)};
    size_t count = json_array_size(operations);
    int r = count <= JSON_PATCH_MAX_OPERATIONS
                ? 0
                : error_set(err, ERROR_TOO_LARGE, NULL, "The allowed maximum operations in a JSON patch is %d, got %zu",
                            JSON_PATCH_MAX_OPERATIONS, count);
    for (size_t i = 0; i < count && r == 0; i++)
        if ((r = run(&patching, json_array_get(operations, i), err)) < 0)
            error_context(err, "operation %zu of the JSON patch", i);
    if (r < 0) {
        json_decref(patching.document);
        return -1;
    }
    json_decref(*document);
    *document = patching.document;
    return 0;
}
