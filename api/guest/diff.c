#include "api/guest/diff.h"
#include "api/guest/text.h"
#include "controller/base/buffer.h"
#include "controller/base/cleanup.h"
#include "controller/base/memory.h"
#include "controller/base/utf8.h"
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define CONTEXT 3

void diff_free(struct diff *diff)
{
    free(diff->text);
    diff->text = NULL;
}

static bool is_equal(const struct text_line *a, const struct text_line *b)
{
    return a->len == b->len && memcmp(a->at, b->at, a->len) == 0;
}

static void append_lines(struct buffer *out, char mark, const struct text_lines *lines, size_t from,
                         size_t to)
{
    for (size_t i = from; i < to; i++) {
        buffer_append_char(out, '\n');
        buffer_append_char(out, mark);
        buffer_append(out, lines->lines[i].at, lines->lines[i].len);
    }
}

static void cut_text(struct buffer *out)
{
    if (out->len <= DIFF_MAX_CHARS)
        return;
    out->len = utf8_cut(out->data, DIFF_MAX_CHARS);
    buffer_append_text(out, "\n...[diff truncated: the rest is not shown]");
}

// prefix and suffix: how many lines are the same at the start and at the end.
static void make_hunk(const char *path, const struct text_lines *before, const struct text_lines *after,
                      size_t prefix, size_t suffix, struct diff *ret)
{
    size_t old_end = before->count - suffix, new_end = after->count - suffix;
    size_t start = prefix > CONTEXT ? prefix - CONTEXT : 0;
    size_t tail = suffix > CONTEXT ? CONTEXT : suffix;
    CLEANUP(buffer_free) struct buffer out = BUFFER_INIT(SIZE_MAX / 2);
    buffer_format(&out, "--- a/%s\n+++ b/%s\n@@ -%zu,%zu +%zu,%zu @@", path, path, start + 1,
                  old_end + tail - start, start + 1, new_end + tail - start);
    append_lines(&out, ' ', before, start, prefix);
    append_lines(&out, '-', before, prefix, old_end);
    append_lines(&out, '+', after, prefix, new_end);
    append_lines(&out, ' ', before, old_end, old_end + tail);
    cut_text(&out);
    *ret = (struct diff){.len = out.len, .deletions = old_end - prefix, .additions = new_end - prefix};
    ret->text = buffer_take_string(&out);
}

void diff_make(const char *path, const char *old_text, size_t old_len, const char *new_text, size_t new_len,
               struct diff *ret)
{
    CLEANUP(text_lines_free) struct text_lines before, after;
    text_split(old_text, old_len, &before);
    text_split(new_text, new_len, &after);
    size_t shared = before.count < after.count ? before.count : after.count, prefix = 0, suffix = 0;
    while (prefix < shared && is_equal(&before.lines[prefix], &after.lines[prefix]))
        prefix++;
    while (suffix < shared - prefix &&
           is_equal(&before.lines[before.count - 1 - suffix], &after.lines[after.count - 1 - suffix]))
        suffix++;
    if (prefix != before.count || prefix != after.count) {
        make_hunk(path, &before, &after, prefix, suffix, ret);
        return;
    }
    bool is_same = old_len == new_len && memcmp(old_text, new_text, old_len) == 0;
    *ret = (struct diff){
        .text = mem_format(is_same ? "No changes in %s." : "Only line ends changed in %s.", path)};
    ret->len = strlen(ret->text);
}
