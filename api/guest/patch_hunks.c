// One file's hunks on its text. The rules are those of git apply where a hunk fits at once.
#include "api/guest/patch_direct.h"
#include "controller/base/memory.h"
#include <ctype.h>
#include <string.h>

#define MAX_NUMBER 100000000

struct hunk {
    long old_at, old_lines, new_at, new_lines;
};

struct changing {
    const char *text, *end; // the old file: first byte not yet copied, and its end
    long line;              // of text, from 1
    long added;             // lines, so far
    struct buffer *out;
};

static bool take_text(const char **at, const char *end, const char *text)
{
    size_t len = strlen(text);
    if ((size_t)(end - *at) < len || memcmp(*at, text, len) != 0)
        return false;
    *at += len;
    return true;
}

static bool take_number(const char **at, const char *end, long *ret)
{
    long value = 0;
    const char *start = *at;
    for (; *at < end && isdigit((unsigned char)**at) && value < MAX_NUMBER; (*at)++)
        value = value * 10 + (**at - '0');
    *ret = value;
    return *at > start && value < MAX_NUMBER;
}

static bool take_range(const char **at, const char *end, long *ret_at, long *ret_lines)
{
    *ret_lines = 1;
    return take_number(at, end, ret_at) && (!take_text(at, end, ",") || take_number(at, end, ret_lines));
}

// "@@ -1,7 +1,8 @@ anything"
static bool take_header(const char **at, const char *end, struct hunk *ret)
{
    if (!take_text(at, end, "@@ -") || !take_range(at, end, &ret->old_at, &ret->old_lines) ||
        !take_text(at, end, " +") || !take_range(at, end, &ret->new_at, &ret->new_lines) ||
        !take_text(at, end, " @@"))
        return false;
    const char *stop = memchr(*at, '\n', (size_t)(end - *at));
    if (!stop)
        return false;
    *at = stop + 1;
    return ret->old_at && ret->old_lines && ret->new_at && ret->new_lines;
}

static bool copy_lines_before(struct changing *changing, long line)
{
    const char *start = changing->text;
    for (; changing->line < line; changing->line++) {
        const char *stop = memchr(changing->text, '\n', (size_t)(changing->end - changing->text));
        if (!stop)
            return false;
        changing->text = stop + 1;
    }
    return buffer_append(changing->out, start, (size_t)(changing->text - start)) == 0;
}

// A line that the patch says is there: with its line end, byte for byte.
static bool match_line(struct changing *changing, const char *line, size_t len)
{
    if ((size_t)(changing->end - changing->text) < len || memcmp(changing->text, line, len) != 0)
        return false;
    changing->text += len;
    changing->line++;
    return true;
}

static bool change_line(struct changing *changing, struct hunk *hunk, const char *line, size_t len)
{
    hunk->old_lines -= *line != '+';
    hunk->new_lines -= *line != '-';
    if (hunk->old_lines < 0 || hunk->new_lines < 0 || (*line != '+' && *line != '-' && *line != ' '))
        return false;
    if (*line != '+' && !match_line(changing, line + 1, len - 1))
        return false;
    return *line == '-' || buffer_append(changing->out, line + 1, len - 1) == 0;
}

// A hunk that ends without context belongs to the end of the file, one that begins the file to its beginning.
static bool change_lines(struct changing *changing, struct hunk hunk, const char **at, const char *end)
{
    bool has_change = false;
    char last = ' ';
    while (hunk.old_lines || hunk.new_lines) {
        const char *stop = memchr(*at, '\n', (size_t)(end - *at));
        if (!stop || !change_line(changing, &hunk, *at, (size_t)(stop + 1 - *at)))
            return false;
        last = **at;
        has_change |= last != ' ';
        *at = stop + 1;
    }
    return has_change && (last == ' ' || changing->text == changing->end);
}

static bool change_hunk(struct changing *changing, const char **at, const char *end)
{
    struct hunk hunk;
    if (!take_header(at, end, &hunk) || hunk.old_at < changing->line ||
        hunk.new_at - hunk.old_at != changing->added || (hunk.old_at == 1 && hunk.new_at != 1))
        return false;
    changing->added += hunk.new_lines - hunk.old_lines;
    return copy_lines_before(changing, hunk.old_at) && change_lines(changing, hunk, at, end);
}

bool patch_direct_change(const char **hunks, const char *end, const char *text, size_t len,
                         struct buffer *out)
{
    struct changing changing = {.text = text, .end = text + len, .line = 1, .out = out};
    do {
        if (!change_hunk(&changing, hunks, end))
            return false;
    } while (end - *hunks >= 2 && memcmp(*hunks, "@@", 2) == 0);
    return buffer_append(out, changing.text, (size_t)(changing.end - changing.text)) == 0 && out->len > 0;
}
