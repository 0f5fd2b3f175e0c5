#include "cli/edit_patch.h"
#include "controller/base/buffer.h"
#include "controller/base/cleanup.h"
#include "controller/base/json.h"
#include <string.h>

static void add_removals(json_t *patch, const json_t *before, const json_t *after)
{
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)before, key, value) if (!json_object_get(after, key)) json_object_set_new(patch, key, json_null());
}

json_t *merge_patch(const json_t *before, const json_t *after)
{
    json_t *patch = json_object(), *value;
    const char *key;
    json_object_foreach((json_t *)after, key, value)
    {
        json_t *old = json_object_get(before, key);
        if (old && json_equal(old, value))
            continue;
        if (!json_is_object(value))
            json_object_set(patch, key, value);
        else // what is not an object there is replaced by an empty one first
            json_object_set_new(patch, key, merge_patch(json_is_object(old) ? old : NULL, value));
    }
    add_removals(patch, before, after);
    return patch;
}

static const char *const editable_metadata[] = {"labels", "annotations", "finalizers"};
static const char *const ignored_metadata[] = {"resourceVersion", "managedFields"};

static bool is_one_of(const char *word, const char *const *words, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(words[i], word) == 0)
            return true;
    return false;
}

static void name_fixed(struct buffer *fixed, const char *prefix, const char *key)
{
    if (fixed->len < 300)
        buffer_format(fixed, "%s%s%.60s", fixed->len ? ", " : "", prefix, key);
}

static json_t *take_metadata(const json_t *changes, struct buffer *fixed)
{
    json_t *kept = json_object(), *value;
    const char *key;
    json_object_foreach((json_t *)changes, key, value)
    {
        if (is_one_of(key, editable_metadata, ARRAY_LEN(editable_metadata)))
            json_object_set(kept, key, value);
        else if (!is_one_of(key, ignored_metadata, ARRAY_LEN(ignored_metadata)))
            name_fixed(fixed, "metadata.", key);
    }
    return kept;
}

int edit_patch(const json_t *before, const json_t *after, json_t **ret, struct error *err)
{
    CLEANUP_JSON json_t *changes = merge_patch(before, after), *patch = json_object();
    CLEANUP(buffer_free) struct buffer fixed = BUFFER_INIT(1024);
    const char *key;
    json_t *value;
    json_object_foreach(changes, key, value)
    {
        if (strcmp(key, "metadata") == 0 && json_is_object(value)) {
            CLEANUP_JSON json_t *metadata = take_metadata(value, &fixed);
            if (json_object_size(metadata))
                json_object_set(patch, key, metadata);
        } else if (strcmp(key, "spec") == 0) {
            json_object_set(patch, key, value);
        } else {
            name_fixed(&fixed, "", key);
        }
    }
    if (fixed.len)
        return error_set(err, ERROR_INVALID, "put it back as it was", "cannot be changed: %s; only labels, annotations, finalizers and spec can", buffer_text(&fixed));
    *ret = TAKE_PTR(patch);
    return 0;
}

bool edit_is_same(const json_t *a, const json_t *b)
{
    const json_t *left = json_object_get(a, "metadata"), *right = json_object_get(b, "metadata"), *x, *y;
    for (size_t i = 0; i < ARRAY_LEN(editable_metadata); i++) {
        x = json_object_get(left, editable_metadata[i]);
        y = json_object_get(right, editable_metadata[i]);
        if (x != y && !(x && y && json_equal(x, y)))
            return false;
    }
    x = json_object_get(a, "spec");
    y = json_object_get(b, "spec");
    return x == y || (x && y && json_equal(x, y));
}
