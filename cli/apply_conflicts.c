// Conflicts of an apply as people can settle them: the field, who set it, and both values.
#include "cli/apply.h"
#include "controller/base/buffer.h"
#include "controller/base/json.h"
#include "controller/base/memory.h"
#include <string.h>

#define CAUSE_CONFLICT "FieldManagerConflict"
#define VALUE_MAX_BYTES 80

bool apply_is_conflict(const json_t *causes)
{
    const char *reason = json_get_text(json_array_get(causes, 0), "reason");
    return reason && strcmp(reason, CAUSE_CONFLICT) == 0;
}

// The member whose key is the longest that path starts with: keys may hold dots themselves. Lists are not looked into.
static const json_t *find(const json_t *value, const char *path)
{
    while (*path == '.') {
        const json_t *best = NULL;
        const char *key;
        json_t *member;
        size_t best_len = 0;
        path++;
        json_object_foreach((json_t *)value, key, member)
        {
            size_t len = strlen(key);
            if (len > best_len && strncmp(path, key, len) == 0 && strchr(".[", path[len])) {
                best = member;
                best_len = len;
            }
        }
        if (!best)
            return NULL;
        value = best;
        path += best_len;
    }
    return *path ? NULL : value;
}

static char *word_value(const json_t *value)
{
    CLEANUP_FREE char *text = value ? json_to_text(value) : mem_strdup("not set");
    return strlen(text) <= VALUE_MAX_BYTES ? TAKE_PTR(text) : mem_format("%.*s…", VALUE_MAX_BYTES, text); // escaped, so ASCII
}

json_t *apply_word_conflicts(const struct apply_item *item, const json_t *causes)
{
    json_t *worded = json_array(), *cause;
    size_t i;
    json_array_foreach((json_t *)causes, i, cause)
    {
        const char *field = json_get_text(cause, "field"), *message = json_get_text(cause, "message");
        CLEANUP_FREE char *there = word_value(find(item->before, field ? field : ""));
        CLEANUP_FREE char *here = word_value(find(item->wanted, field ? field : ""));
        CLEANUP_FREE char *text = mem_format("%s: there it is %s, here %s", message ? message : "conflict", there, here);
        json_array_append_new(worded, json_pack("{s:s, s:s}", "field", field ? field + (*field == '.') : "", "message", text));
    }
    return worded;
}
