#include "cli/unified_diff.h"
#include "cli/terminal.h"
#include "controller/base/cleanup.h"
#include "controller/base/memory.h"
#include "controller/base/utf8.h"
#include <stdint.h>
#include <string.h>

struct line {
    const char *text;
    size_t len; // without the newline
    bool is_cut; // the last one, without a newline
};
struct lines {
    struct line *items;
    size_t count;
};
struct edit {
    char what; // ' ', '-', '+'
    const struct line *line;
};
struct edits {
    struct edit *items;
    size_t count;
};

static struct lines split(const char *text)
{
    size_t max = 1;
    for (const char *at = text; *at; at++)
        max += *at == '\n';
    struct lines lines = {mem_alloc(max * sizeof(struct line)), 0};
    while (*text) {
        size_t len = strcspn(text, "\n");
        lines.items[lines.count++] = (struct line){text, len, !text[len]};
        text += len + (text[len] == '\n');
    }
    return lines;
}

static bool is_equal(const struct line *a, const struct line *b)
{
    return a->len == b->len && a->is_cut == b->is_cut && memcmp(a->text, b->text, a->len) == 0;
}

// ---- which lines stay ---------------------------------------------------------------------------------------------------------
static void add(struct edits *edits, char what, const struct line *line)
{
    edits->items[edits->count++] = (struct edit){what, line};
}

static void add_all(struct edits *edits, char what, const struct line *lines, size_t count)
{
    for (size_t i = 0; i < count; i++)
        add(edits, what, &lines[i]);
}

// best[i][j]: the longest common run of lines of a from i on and b from j on.
static void compare(const struct line *a, size_t n, const struct line *b, size_t m, struct edits *edits)
{
    CLEANUP_FREE uint32_t *best = mem_alloc((n + 1) * (m + 1) * sizeof(*best));
    size_t width = m + 1, i = 0, j = 0;
    for (size_t y = n; y-- > 0;)
        for (size_t x = m; x-- > 0;) {
            uint32_t down = best[(y + 1) * width + x], right = best[y * width + x + 1];
            best[y * width + x] = is_equal(&a[y], &b[x]) ? best[(y + 1) * width + x + 1] + 1 : down > right ? down : right;
        }
    while (i < n && j < m) {
        if (is_equal(&a[i], &b[j])) {
            add(edits, ' ', &a[i++]);
            j++;
        } else if (best[(i + 1) * width + j] >= best[i * width + j + 1]) {
            add(edits, '-', &a[i++]);
        } else {
            add(edits, '+', &b[j++]);
        }
    }
    add_all(edits, '-', a + i, n - i);
    add_all(edits, '+', b + j, m - j);
}

static void find_edits(const struct lines *from, const struct lines *to, struct edits *edits)
{
    size_t n = from->count, m = to->count, head = 0, tail = 0;
    while (head < n && head < m && is_equal(&from->items[head], &to->items[head]))
        head++;
    while (tail < n - head && tail < m - head && is_equal(&from->items[n - 1 - tail], &to->items[m - 1 - tail]))
        tail++;
    const struct line *a = from->items + head, *b = to->items + head;
    size_t left = n - head - tail, right = m - head - tail;
    add_all(edits, ' ', from->items, head);
    if ((left + 1) * (right + 1) <= DIFF_MAX_CELLS) {
        compare(a, left, b, right, edits);
    } else {
        add_all(edits, '-', a, left);
        add_all(edits, '+', b, right);
    }
    add_all(edits, ' ', from->items + n - tail, tail);
}

// ---- hunks --------------------------------------------------------------------------------------------------------------------
struct hunk {
    size_t begin, end;         // of edits
    size_t from_line, to_line; // before it
    size_t from_count, to_count;
};

// The next run of changes with what stands around it, joined with those that are near. False: there is none.
static bool next_hunk(const struct edits *edits, size_t at, struct hunk *ret)
{
    while (at < edits->count && edits->items[at].what == ' ')
        at++;
    if (at == edits->count)
        return false;
    size_t begin = at > DIFF_CONTEXT ? at - DIFF_CONTEXT : 0, last = at;
    for (size_t i = at; i < edits->count && i <= last + 2 * DIFF_CONTEXT + 1; i++)
        last = edits->items[i].what != ' ' ? i : last;
    size_t end = last + DIFF_CONTEXT + 1;
    *ret = (struct hunk){.begin = begin < ret->end ? ret->end : begin, .end = end < edits->count ? end : edits->count};
    for (size_t i = 0; i < ret->end; i++) {
        bool is_inside = i >= ret->begin;
        *(is_inside ? &ret->from_count : &ret->from_line) += edits->items[i].what != '+';
        *(is_inside ? &ret->to_count : &ret->to_line) += edits->items[i].what != '-';
    }
    return true;
}

static void put_range(struct buffer *out, char mark, size_t before, size_t count)
{
    size_t first = count ? before + 1 : before;
    if (count == 1)
        buffer_format(out, "%c%zu", mark, first);
    else
        buffer_format(out, "%c%zu,%zu", mark, first, count);
}

static void put_hunk(struct buffer *out, const struct edits *edits, const struct hunk *hunk)
{
    buffer_append_text(out, "@@ ");
    put_range(out, '-', hunk->from_line, hunk->from_count);
    buffer_append_char(out, ' ');
    put_range(out, '+', hunk->to_line, hunk->to_count);
    buffer_append_text(out, " @@\n");
    for (size_t i = hunk->begin; i < hunk->end; i++) {
        const struct line *line = edits->items[i].line;
        buffer_append_char(out, edits->items[i].what);
        buffer_append(out, line->text, line->len);
        buffer_append_text(out, line->is_cut ? "\n\\ No newline at end of file\n" : "\n");
    }
}

bool unified_diff(const char *from, const char *to, const char *from_name, const char *to_name, struct buffer *out)
{
    if (strcmp(from, to) == 0)
        return false;
    struct lines a = split(from), b = split(to);
    struct edits edits = {mem_alloc((a.count + b.count + 1) * sizeof(struct edit)), 0};
    struct hunk hunk = {0};
    find_edits(&a, &b, &edits);
    buffer_format(out, "--- %s\n+++ %s\n", from_name, to_name);
    while (next_hunk(&edits, hunk.end, &hunk))
        put_hunk(out, &edits, &hunk);
    free(edits.items);
    free(a.items);
    free(b.items);
    return true;
}

static enum style style_of(const char *line)
{
    if (strncmp(line, "--- ", 4) == 0 || strncmp(line, "+++ ", 4) == 0)
        return STYLE_HEADING;
    return line[0] == '+' ? STYLE_ADDED : line[0] == '-' ? STYLE_REMOVED : line[0] == '@' ? STYLE_FAINT : STYLE_PLAIN;
}

void unified_diff_print(const char *diff)
{
    while (*diff) {
        size_t len = strcspn(diff, "\n");
        enum style style = style_of(diff);
        CLEANUP_FREE char *printable = utf8_to_printable(diff, len, false);
        printf("%s%s%s\n", style_on(stdout, style), printable, style_off(stdout, style));
        diff += len + (diff[len] == '\n');
    }
}
