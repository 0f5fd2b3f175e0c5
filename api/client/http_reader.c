// Reads one HTTP/1.1 answer, byte by byte as it comes: Content-Length, chunked, or until the end.
#include "api/client/http.h"
#include "controller/base/memory.h"
#include <string.h>
#include <strings.h>

void answer_reader_init(struct answer_reader *reader)
{
    *reader = (struct answer_reader){.line = BUFFER_INIT(HTTP_ANSWER_HEAD_MAX_BYTES), .body = BUFFER_INIT(HTTP_ANSWER_BODY_MAX_BYTES)};
}

void answer_reader_clear(struct answer_reader *reader)
{
    buffer_free(&reader->line);
    buffer_free(&reader->body);
    free(reader->content_type);
    free(reader->warnings);
    reader->content_type = reader->warnings = NULL;
}

static int refuse(struct error *err, const char *why)
{
    return error_set(err, ERROR_INTERNAL, "is another program listening there?", "the answer is not HTTP that chat2shell speaks: %s", why);
}

// Decimal or hexadecimal digits only, and no more than the body may have.
static int parse_size(const char *text, size_t len, unsigned base, size_t *ret)
{
    size_t value = 0;
    if (!len || len > 16)
        return -1;
    for (size_t i = 0; i < len; i++) {
        char c = text[i] | 0x20;
        unsigned digit = text[i] >= '0' && text[i] <= '9' ? (unsigned)(text[i] - '0') : c >= 'a' && c <= 'f' ? (unsigned)(c - 'a') + 10 : 99;
        if (digit >= base)
            return -1;
        value = value * base + digit;
        if (value > HTTP_ANSWER_BODY_MAX_BYTES)
            return -1;
    }
    *ret = value;
    return 0;
}

// ---- the head -------------------------------------------------------------------------------------------------------
struct head {
    bool has_length, is_chunked;
    size_t length;
};

static int take_header(struct answer_reader *reader, const char *line, size_t len, struct head *head, struct error *err)
{
    const char *colon = memchr(line, ':', len);
    if (!colon || colon == line)
        return refuse(err, "a header line has no name");
    size_t name_len = (size_t)(colon - line);
    const char *value = colon + 1, *end = line + len;
    while (value < end && (*value == ' ' || *value == '\t'))
        value++;
    while (end > value && (end[-1] == ' ' || end[-1] == '\t'))
        end--;
    size_t value_len = (size_t)(end - value);
    if (name_len == 14 && strncasecmp(line, "Content-Length", 14) == 0) {
        size_t length;
        if (parse_size(value, value_len, 10, &length) < 0 || (head->has_length && head->length != length))
            return refuse(err, "Content-Length is wrong or too large");
        head->has_length = true;
        head->length = length;
    } else if (name_len == 17 && strncasecmp(line, "Transfer-Encoding", 17) == 0) {
        if (value_len != 7 || strncasecmp(value, "chunked", 7) != 0)
            return refuse(err, "its transfer encoding is unknown");
        head->is_chunked = true;
    } else if (name_len == 12 && strncasecmp(line, "Content-Type", 12) == 0) {
        free(reader->content_type);
        reader->content_type = mem_strndup(value, value_len);
    } else if (name_len == 7 && strncasecmp(line, "Warning", 7) == 0) { // bounded by the head
        CLEANUP_FREE char *before = TAKE_PTR(reader->warnings);
        reader->warnings = mem_format("%s%s%.*s", before ? before : "", before ? ", " : "", (int)value_len, value);
    } else if (name_len == 10 && strncasecmp(line, "Connection", 10) == 0) {
        reader->must_close |= value_len == 5 && strncasecmp(value, "close", 5) == 0;
    }
    return 0;
}

static int take_status(struct answer_reader *reader, const char *line, size_t len, struct error *err)
{
    if (len < 12 || strncmp(line, "HTTP/1.", 7) != 0 || line[8] != ' ')
        return refuse(err, "it does not begin with a status line");
    size_t status;
    if (parse_size(line + 9, 3, 10, &status) < 0 || status < 100 || status > 599 || (len > 12 && line[12] != ' '))
        return refuse(err, "its status is not a number");
    reader->status = (int)status;
    return 0;
}

static int parse_head(struct answer_reader *reader, struct head *head, struct error *err)
{
    const char *at = reader->line.data, *end = at + reader->line.len;
    for (bool is_first = true; at < end; is_first = false) {
        const char *stop = memmem(at, (size_t)(end - at), "\r\n", 2);
        size_t len = (size_t)(stop - at);
        if (len && (is_first ? take_status(reader, at, len, err) : take_header(reader, at, len, head, err)) < 0)
            return -1;
        at = stop + 2;
    }
    return 0;
}

static int end_head(struct answer_reader *reader, struct error *err)
{
    struct head head = {0};
    if (parse_head(reader, &head, err) < 0)
        return -1;
    buffer_consume(&reader->line, reader->line.len);
    if (reader->status == 101 && reader->may_upgrade) {
        reader->state = ANSWER_DONE;
        return 0;
    }
    if (reader->status < 200) // an interim answer: the real one follows
        return 0;
    if (head.has_length && head.is_chunked)
        return refuse(err, "it has two lengths");
    if (reader->status == 204 || reader->status == 304 || (head.has_length && !head.length))
        reader->state = ANSWER_DONE;
    else
        reader->state = head.is_chunked ? ANSWER_CHUNK_HEAD : head.has_length ? ANSWER_LENGTH : ANSWER_UNTIL_END;
    reader->must_close |= reader->state == ANSWER_UNTIL_END;
    reader->left = head.length;
    return 0;
}

// ---- the body -------------------------------------------------------------------------------------------------------
static int end_chunk_head(struct answer_reader *reader, struct error *err)
{
    size_t len = strcspn(buffer_text(&reader->line), ";\r \t");
    if (parse_size(reader->line.data, len, 16, &reader->left) < 0)
        return refuse(err, "a chunk's size is wrong or too large");
    buffer_consume(&reader->line, reader->line.len);
    reader->state = reader->left ? ANSWER_CHUNK : ANSWER_TRAILER;
    return 0;
}

static int end_line(struct answer_reader *reader, struct error *err)
{
    bool is_blank = reader->line.len == 2;
    if (reader->state == ANSWER_CHUNK_HEAD)
        return end_chunk_head(reader, err);
    if (reader->state == ANSWER_CHUNK_END && !is_blank)
        return refuse(err, "a chunk is longer than it said");
    if (reader->state == ANSWER_CHUNK_END)
        reader->state = ANSWER_CHUNK_HEAD;
    else if (is_blank) // the trailer's end
        reader->state = ANSWER_DONE;
    buffer_consume(&reader->line, reader->line.len);
    return 0;
}

static bool ends_with(const struct buffer *line, const char *end)
{
    size_t len = strlen(end);
    return line->len >= len && memcmp(line->data + line->len - len, end, len) == 0;
}

static int feed_line(struct answer_reader *reader, char c, struct error *err)
{
    if (buffer_append_char(&reader->line, c) < 0)
        return refuse(err, "its head is too long");
    if (reader->state == ANSWER_HEAD)
        return ends_with(&reader->line, "\r\n\r\n") ? end_head(reader, err) : 0;
    return ends_with(&reader->line, "\r\n") ? end_line(reader, err) : 0;
}

// Returns how many of the bytes belong to the body.
static int feed_body(struct answer_reader *reader, const char *bytes, size_t len, size_t *ret_taken, struct error *err)
{
    size_t take = reader->state == ANSWER_UNTIL_END || len < reader->left ? len : reader->left;
    if (buffer_append(&reader->body, bytes, take) < 0)
        return error_set(err, ERROR_TOO_LARGE, "ask for less", "the answer is larger than %u bytes", HTTP_ANSWER_BODY_MAX_BYTES);
    if (reader->state != ANSWER_UNTIL_END) {
        reader->left -= take;
        if (!reader->left)
            reader->state = reader->state == ANSWER_CHUNK ? ANSWER_CHUNK_END : ANSWER_DONE;
    }
    *ret_taken = take;
    return 0;
}

int answer_reader_feed(struct answer_reader *reader, const char *bytes, size_t len, struct error *err)
{
    size_t at = 0;
    while (at < len && reader->state != ANSWER_DONE) {
        bool is_body = reader->state == ANSWER_LENGTH || reader->state == ANSWER_CHUNK || reader->state == ANSWER_UNTIL_END;
        size_t taken = 1;
        if ((is_body ? feed_body(reader, bytes + at, len - at, &taken, err) : feed_line(reader, bytes[at], err)) < 0)
            return -1;
        at += taken;
    }
    if (reader->state == ANSWER_DONE && reader->status == 101)
        buffer_append(&reader->body, bytes + at, len - at);
    return 0;
}

int answer_reader_end(struct answer_reader *reader, struct error *err)
{
    if (reader->state == ANSWER_UNTIL_END)
        reader->state = ANSWER_DONE;
    if (reader->state == ANSWER_DONE)
        return 0;
    return error_set(err, ERROR_UNAVAILABLE, "look at the daemon's log, then try again", "the connection ended in the middle of the answer");
}
