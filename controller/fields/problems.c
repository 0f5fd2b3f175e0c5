#include "controller/fields/problems.h"
#include "controller/base/buffer.h"
#include "controller/base/cleanup.h"
#include "controller/base/json.h"
#include "controller/base/memory.h"
#include "controller/base/utf8.h"
#include <string.h>

#define PATH_MAX_BYTES 512
#define NAME_MAX_BYTES 320 // the longest label key is 317
#define QUOTE_MAX_BYTES 40
#define NEAREST_MAX_BYTES 40
#define NEAREST_MAX_DISTANCE 2

// Names are the sender's: unknown fields and keys of maps may hold anything.
static void put_name(struct buffer *to, const char *name)
{
    size_t len = strlen(name);
    CLEANUP_FREE char *printable =
        utf8_to_printable(name, len > NAME_MAX_BYTES ? utf8_cut(name, NAME_MAX_BYTES) : len, false);
    buffer_format(to, "%s%s", to->len ? "." : "", printable);
}

static void put_path(struct buffer *to, const struct field_path *path)
{
    if (path->up)
        put_path(to, path->up);
    if (!path->name)
        buffer_format(to, "[%zu]", path->index);
    else if (*path->name)
        put_name(to, path->name);
}

char *field_path_text(const struct field_path *path)
{
    struct buffer text = BUFFER_INIT(PATH_MAX_BYTES);
    put_path(&text, path);
    return buffer_take_string(&text);
}

void problems_add(struct field_problem_list *list, const struct field_path *path, const char *reason,
                  const char *format, ...)
{
    if (++list->count > FIELDS_MAX_PROBLEMS)
        return;
    va_list args;
    va_start(args, format);
    CLEANUP_FREE char *message = mem_vformat(format, args);
    va_end(args);
    CLEANUP_FREE char *field = field_path_text(path);
    if (!list->causes)
        list->causes = json_array();
    json_array_append_new(list->causes, json_pack("{s:o, s:o, s:s}", "field", json_from_text(field),
                                                  "message", json_from_text(message), "reason", reason));
}

static void put_cause(struct buffer *to, const json_t *cause)
{
    const char *field = json_get_text(cause, "field");
    const char *message = json_get_text(cause, "message");
    if (field && *field)
        buffer_format(to, "%s%s: %s", to->len ? "; " : "", field, message ? message : "is invalid");
    else
        buffer_format(to, "%s%s", to->len ? "; " : "", message ? message : "is invalid");
}

// Joins as many as an error's message holds, and says how many more there are.
static int word_causes(const json_t *causes, size_t count, struct error *err)
{
    CLEANUP(buffer_free) struct buffer text = BUFFER_INIT(sizeof(err->message) - 64);
    size_t shown = 0;
    for (; shown < json_array_size(causes) && !text.is_over; shown++)
        put_cause(&text, json_array_get(causes, shown));
    if (text.is_over)
        shown--;
    if (shown == count)
        return error_set(err, ERROR_INVALID, NULL, "%s", buffer_text(&text));
    return error_set(err, ERROR_INVALID, NULL, "%s%s%zu more problems", buffer_text(&text),
                     shown ? "; and " : "", count - shown);
}

int fields_causes_to_error(const json_t *causes, struct error *err)
{
    size_t count = json_array_size(causes);
    return count ? word_causes(causes, count, err) : 0;
}

int problems_finish(struct field_problem_list *list, json_t *causes, struct error *err)
{
    if (!list->count)
        return 0;
    if (causes)
        json_array_extend(causes, list->causes);
    word_causes(list->causes, list->count, err);
    json_decref(list->causes);
    *list = (struct field_problem_list){0};
    return -1;
}

char *problems_quote(const char *text)
{
    size_t len = strlen(text), keep = len;
    if (keep > QUOTE_MAX_BYTES)
        keep = utf8_cut(text, QUOTE_MAX_BYTES);
    CLEANUP_FREE char *printable = utf8_to_printable(text, keep, false);
    return mem_format("'%s%s'", printable, keep < len ? "…" : "");
}

static size_t smallest(size_t a, size_t b, size_t c)
{
    size_t m = a < b ? a : b;
    return m < c ? m : c;
}

// Levenshtein's distance by one row; both texts are short.
static size_t edit_distance(const char *a, size_t a_len, const char *b, size_t b_len)
{
    size_t row[NEAREST_MAX_BYTES + 1];
    for (size_t j = 0; j <= b_len; j++)
        row[j] = j;
    for (size_t i = 1; i <= a_len; i++) {
        size_t diagonal = row[0];
        row[0] = i;
        for (size_t j = 1; j <= b_len; j++) {
            size_t above = row[j];
            row[j] = smallest(above + 1, row[j - 1] + 1, diagonal + (a[i - 1] != b[j - 1]));
            diagonal = above;
        }
    }
    return row[b_len];
}

const char *problems_nearest(const char *word, const char *const *known, size_t count)
{
    const char *best = NULL;
    size_t best_distance = NEAREST_MAX_DISTANCE + 1, len = strlen(word);
    if (len > NEAREST_MAX_BYTES)
        return NULL;
    for (size_t i = 0; i < count; i++) {
        size_t known_len = strlen(known[i]);
        if (known_len > NEAREST_MAX_BYTES)
            continue;
        size_t distance = edit_distance(word, len, known[i], known_len);
        // `gte` is a misspelt `get`, `foo` is no misspelt `top`
        bool is_alike = distance < len && distance < known_len && (2 * distance <= len || word[0] == known[i][0]);
        if (distance < best_distance && is_alike) {
            best_distance = distance;
            best = known[i];
        }
    }
    return best;
}
