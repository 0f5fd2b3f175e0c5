#include "reconcilers/session/codexpro/sse.h"
#include <string.h>

#define BOM "\xef\xbb\xbf"

static bool is_field(const char *name, const char *line, size_t name_len)
{
    return strlen(name) == name_len && memcmp(name, line, name_len) == 0;
}

static void take_data(struct sse *sse, const char *value, size_t len)
{
    if (sse->has_data)
        buffer_append_char(&sse->data, '\n');
    buffer_append(&sse->data, value, len);
    sse->has_data = true;
}

static void take_field(struct sse *sse, const char *line, size_t len)
{
    const char *colon = memchr(line, ':', len);
    size_t name_len = colon ? (size_t)(colon - line) : len;
    const char *value = colon ? colon + 1 : line + len;
    size_t value_len = (size_t)(line + len - value);
    if (value_len && *value == ' ') {
        value++;
        value_len--;
    }
    if (is_field("data", line, name_len))
        take_data(sse, value, value_len);
    else if (is_field("event", line, name_len))
        sse->is_other = value_len && !is_field("message", value, value_len);
}

// A blank line: the event is complete. False: enough.
static bool dispatch(struct sse *sse, sse_event_fn fn, void *arg)
{
    bool is_wanted = sse->has_data && !sse->is_other;
    sse->events += sse->has_data;
    bool goes_on = !is_wanted || fn(arg, buffer_text(&sse->data), sse->data.len);
    buffer_free(&sse->data);
    sse->has_data = sse->is_other = false;
    return goes_on;
}

// False: enough.
static bool take_line(struct sse *sse, sse_event_fn fn, void *arg)
{
    const char *line = buffer_text(&sse->line);
    size_t len = sse->line.len;
    if (!sse->is_begun && len >= strlen(BOM) && memcmp(line, BOM, strlen(BOM)) == 0) {
        line += strlen(BOM);
        len -= strlen(BOM);
    }
    sse->is_begun = true;
    bool goes_on = true;
    if (!len)
        goes_on = dispatch(sse, fn, arg);
    else
        take_field(sse, line, len);
    buffer_free(&sse->line);
    return goes_on;
}

static const char *find_over(const struct sse *sse)
{
    if (sse->line.is_over || sse->data.is_over)
        return "its answer is over the limit of 24 MiB";
    if (sse->events > SSE_EVENTS_MAX || sse->bytes > SSE_STREAM_MAX_BYTES)
        return "it flooded the answer with messages that nobody asked for";
    return NULL;
}

// Bytes up to the next line end.
static size_t measure(const char *bytes, size_t len)
{
    const char *lf = memchr(bytes, '\n', len);
    size_t before_lf = lf ? (size_t)(lf - bytes) : len;
    const char *cr = memchr(bytes, '\r', before_lf);
    return cr ? (size_t)(cr - bytes) : before_lf;
}

const char *sse_feed(struct sse *sse, const char *bytes, size_t len, sse_event_fn fn, void *arg, bool *ret_is_enough)
{
    *ret_is_enough = false;
    sse->bytes += len;
    for (const char *end = bytes + len; bytes < end;) {
        if (sse->is_after_cr && *bytes == '\n')
            bytes++;
        sse->is_after_cr = false;
        size_t part = measure(bytes, (size_t)(end - bytes));
        buffer_append(&sse->line, bytes, part);
        bytes += part;
        if (bytes < end) {
            sse->is_after_cr = *bytes++ == '\r';
            *ret_is_enough = !take_line(sse, fn, arg);
        }
        const char *over = find_over(sse);
        if (over || *ret_is_enough)
            return *ret_is_enough ? NULL : over;
    }
    return NULL;
}

void sse_free(struct sse *sse)
{
    buffer_free(&sse->line);
    buffer_free(&sse->data);
}
