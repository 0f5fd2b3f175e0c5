#include "api/operator/json_pointer.h"
#include "api/operator/json_patch.h"
#include "controller/base/memory.h"
#include "controller/base/utf8.h"
#include <string.h>

#define POINTER_SHOWN_BYTES 200

void json_place_clear(struct json_place *place)
{
    free(place->name);
    *place = (struct json_place){0};
}

static char *shown(const char *pointer)
{
    size_t len = strlen(pointer);
    return utf8_to_printable(pointer, len > POINTER_SHOWN_BYTES ? utf8_cut(pointer, POINTER_SHOWN_BYTES) : len, false);
}

static int refuse(const char *pointer, enum error_code code, const char *why, struct error *err)
{
    CLEANUP_FREE char *text = shown(pointer);
    return error_set(err, code, NULL, "path \"%s\" %s", text, why);
}

// One step between slashes, with ~1 and ~0 resolved; NULL if a ~ stands alone.
static char *take_step(const char *from, size_t len)
{
    char *step = mem_alloc(len + 1);
    size_t to = 0;
    for (size_t i = 0; i < len; i++) {
        step[to] = from[i];
        if (from[i] == '~') {
            char next = i + 1 < len ? from[++i] : 0;
            if (next != '0' && next != '1') {
                free(step);
                return NULL;
            }
            step[to] = next == '0' ? '~' : '/';
        }
        to++;
    }
    step[to] = '\0';
    return step;
}

// An index has no sign and no leading zero.
static bool read_index(const char *step, size_t *ret)
{
    size_t len = strlen(step);
    if (!len || len > 9 || strspn(step, "0123456789") != len || (len > 1 && step[0] == '0'))
        return false;
    *ret = (size_t)strtoul(step, NULL, 10);
    return true;
}

static int set_place(json_t *parent, char *step, const char *pointer, struct json_place *ret, struct error *err)
{
    struct json_place place = {.parent = parent, .name = step};
    if (json_is_array(parent)) {
        place.is_end = strcmp(step, "-") == 0;
        place.index = json_array_size(parent);
        if (!place.is_end && !read_index(step, &place.index))
            return refuse(pointer, ERROR_INVALID, "is not an index of the list there", err);
    } else if (!json_is_object(parent)) {
        return refuse(pointer, ERROR_INVALID, "leads through a value that has no members", err);
    }
    *ret = place;
    return 0;
}

json_t *json_place_get(json_t *document, const struct json_place *place)
{
    if (!place->parent)
        return document;
    if (json_is_object(place->parent))
        return json_object_get(place->parent, place->name);
    return place->is_end ? NULL : json_array_get(place->parent, place->index);
}

int json_place_find(json_t *document, const char *pointer, struct json_place *ret, struct error *err)
{
    CLEANUP(json_place_clear) struct json_place place = {0};
    json_t *at = document;
    if (*pointer && *pointer != '/')
        return refuse(pointer, ERROR_USAGE, "must be empty or begin with '/'", err);
    for (const char *from = pointer; *from == '/';) {
        size_t len = strcspn(++from, "/");
        CLEANUP_FREE char *step = take_step(from, len);
        if (!step)
            return refuse(pointer, ERROR_USAGE, "has a '~' that is neither '~0' nor '~1'", err);
        if (!at)
            return refuse(pointer, ERROR_INVALID, "does not exist", err);
        struct json_place next = {0};
        if (set_place(at, step, pointer, &next, err) < 0)
            return -1;
        json_place_clear(&place);
        place = next;
        step = NULL;
        at = json_place_get(document, &place);
        from += len;
    }
    *ret = place;
    place = (struct json_place){0};
    return 0;
}

json_t *json_pointer_get(json_t *document, const char *pointer)
{
    CLEANUP(json_place_clear) struct json_place place = {0};
    return json_place_find(document, pointer, &place, NULL) == 0 ? json_place_get(document, &place) : NULL;
}
