// JSON whose objects may have a member more than once. The text is parsed twice: by the library, where the last one
// counts, and by a walk of ours that only looks at names; it runs on text that the library found right.
#include "controller/base/buffer.h"
#include "controller/base/json.h"
#include <string.h>

#define PATH_MAX_BYTES 512

// Where a value is; rendered only when there is something to report.
struct place {
    const struct place *up;
    const char *name; // NULL: an item of a list
    size_t index;
};
struct walk {
    const char *at, *end;
    json_t *repeated;
    size_t max;
};

static void skip_blanks(struct walk *walk)
{
    while (walk->at < walk->end && strchr(" \t\r\n", *walk->at) && *walk->at)
        walk->at++;
}

// Leaves the walk behind the closing quote; answers the text with its quotes.
static const char *skip_string(struct walk *walk, size_t *ret_len)
{
    const char *start = walk->at++;
    while (walk->at < walk->end && *walk->at != '"')
        walk->at += *walk->at == '\\' ? 2 : 1;
    walk->at++;
    *ret_len = (size_t)(walk->at - start);
    return start;
}

static void put_place(struct buffer *to, const struct place *place)
{
    if (!place)
        return;
    put_place(to, place->up);
    if (place->name)
        buffer_format(to, "%s%s", to->len ? "." : "", place->name);
    else
        buffer_format(to, "[%zu]", place->index);
}

static void report(struct walk *walk, const struct place *place)
{
    CLEANUP(buffer_free) struct buffer text = BUFFER_INIT(PATH_MAX_BYTES);
    put_place(&text, place);
    const char *path = buffer_text(&text);
    for (size_t i = 0; i < json_array_size(walk->repeated); i++)
        if (strcmp(json_string_value(json_array_get(walk->repeated, i)), path) == 0)
            return;
    if (json_array_size(walk->repeated) < walk->max)
        json_array_append_new(walk->repeated, json_from_text(path));
}

static void walk_value(struct walk *walk, const struct place *place);

static void walk_member(struct walk *walk, json_t *seen, const struct place *up)
{
    CLEANUP_JSON json_t *name = NULL;
    size_t len;
    const char *text = skip_string(walk, &len);
    if (json_parse(text, len, &name, NULL) < 0)
        return;
    struct place place = {.up = up, .name = json_string_value(name)};
    if (json_object_get(seen, place.name))
        report(walk, &place);
    json_object_set_new(seen, place.name, json_true());
    skip_blanks(walk);
    walk->at++; // the colon
    walk_value(walk, &place);
}

static void walk_object(struct walk *walk, const struct place *place)
{
    CLEANUP_JSON json_t *seen = json_object();
    for (walk->at++; skip_blanks(walk), walk->at < walk->end && *walk->at != '}';) {
        if (*walk->at == ',')
            walk->at++;
        else
            walk_member(walk, seen, place);
    }
    walk->at++;
}

static void walk_list(struct walk *walk, const struct place *up)
{
    size_t index = 0;
    for (walk->at++; skip_blanks(walk), walk->at < walk->end && *walk->at != ']';) {
        if (*walk->at == ',') {
            walk->at++;
            continue;
        }
        walk_value(walk, &(struct place){.up = up, .index = index++});
    }
    walk->at++;
}

// Depth is bounded: the library's parse came first.
static void walk_value(struct walk *walk, const struct place *place)
{
    size_t len;
    skip_blanks(walk);
    if (walk->at >= walk->end)
        return;
    if (*walk->at == '{')
        walk_object(walk, place);
    else if (*walk->at == '[')
        walk_list(walk, place);
    else if (*walk->at == '"')
        skip_string(walk, &len);
    else
        while (walk->at < walk->end && !strchr(",]} \t\r\n", *walk->at))
            walk->at++;
}

int json_parse_with_repeats(const char *bytes, size_t len, json_t **ret, json_t *repeated, struct error *err)
{
    if (json_parse_last_counts(bytes, len, ret, err) < 0)
        return -1;
    struct walk walk = {.at = bytes, .end = bytes + len, .repeated = repeated, .max = JSON_MAX_REPEATS};
    walk_value(&walk, NULL);
    return 0;
}
