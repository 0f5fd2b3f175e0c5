#include "cli/label.h"
#include "controller/base/memory.h"
#include <string.h>

static bool is_pair(const char *word)
{
    size_t len = strlen(word);
    return strchr(word, '=') || (len && word[len - 1] == '-');
}

int label_add_pair(json_t *pairs, const char *word, const char *one, struct error *err)
{
    const char *equal = strchr(word, '=');
    size_t len = equal ? (size_t)(equal - word) : strlen(word) - 1;
    CLEANUP_FREE char *key = mem_strndup(word, len);
    const json_t *other = json_object_get(pairs, key);
    if (!len)
        return error_set(err, ERROR_USAGE, "like team=web, or team- to remove it", "'%.100s' has no key", word);
    if (other && json_is_null(other) != !equal)
        return error_set(err, ERROR_USAGE, "do one of the two", "the %s '%.100s' is both set and removed", one, key);
    if (other)
        return error_set(err, ERROR_USAGE, "give it once", "the %s '%.100s' is given twice", one, key);
    json_t *value = equal ? json_string(equal + 1) : json_null();
    if (!value || json_object_set_new(pairs, key, value) < 0)
        return error_set(err, ERROR_USAGE, "write it in UTF-8", "the %s '%.100s' is not UTF-8 text", one, key);
    return 0;
}

int label_take_pairs(struct invocation *in, const struct label_words *words, json_t **ret, struct error *err)
{
    CLEANUP_JSON json_t *pairs = json_object();
    int first = 0;
    while (first < in->argument_count && !is_pair(in->arguments[first]))
        first++;
    for (int i = first; i < in->argument_count; i++) {
        if (!is_pair(in->arguments[i]))
            return error_set(err, ERROR_USAGE, "name the objects first, then KEY=VALUE or KEY-", "'%.100s' stands behind the %s", in->arguments[i], words->part);
        if (label_add_pair(pairs, in->arguments[i], words->one, err) < 0)
            return -1;
    }
    in->argument_count = first;
    in->arguments[first] = NULL;
    *ret = TAKE_PTR(pairs);
    return 0;
}

int label_changes(const json_t *pairs, const json_t *now, bool may_overwrite, json_t **ret, struct error *err)
{
    CLEANUP_JSON json_t *changes = json_object();
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)pairs, key, value)
    {
        const json_t *old = json_object_get(now, key);
        if (old && !json_is_null(value) && !json_equal(old, value) && !may_overwrite)
            return error_set(err, ERROR_CONFLICT, "add --overwrite", "'%.100s' already has a value (%.100s), and --overwrite is false", key, json_string_value(old));
        if (json_is_null(value) ? old != NULL : !old || !json_equal(old, value))
            json_object_set(changes, key, value);
    }
    *ret = TAKE_PTR(changes);
    return 0;
}

bool label_only_removes(const json_t *changes)
{
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)changes, key, value) if (!json_is_null(value)) return false;
    return true;
}
