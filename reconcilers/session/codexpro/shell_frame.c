// The framing of an answer: "c2s NONCE words…", a line for each block, "c2s NONCE end CRC LENGTH", in between whatever the
// login files of the sandbox print.
#include "reconcilers/session/codexpro/shell_state.h"
#include "controller/base/buffer.h"
#include "controller/base/memory.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// As cksum(1) computes it: the CRC of POSIX over the bytes, then over their number.
static uint32_t crc_step(uint32_t crc, unsigned char byte)
{
    crc ^= (uint32_t)byte << 24;
    for (int bit = 0; bit < 8; bit++)
        crc = crc & 0x80000000u ? crc << 1 ^ 0x04c11db7u : crc << 1;
    return crc;
}

static uint32_t crc_of(const char *bytes, size_t len)
{
    uint32_t crc = 0;
    for (size_t i = 0; i < len; i++)
        crc = crc_step(crc, (unsigned char)bytes[i]);
    for (size_t left = len; left; left >>= 8)
        crc = crc_step(crc, (unsigned char)left);
    return ~crc;
}

void shell_reply_free(struct shell_reply *reply)
{
    for (size_t i = 0; i < SHELL_BLOCKS_MAX; i++)
        free(reply->blocks[i].bytes);
    free(reply->text);
    *reply = (struct shell_reply){0};
}

bool shell_reply_is(const struct shell_reply *reply, const char *word)
{
    return reply->word_count && strcmp(reply->words[0], word) == 0;
}

int64_t shell_reply_number(const struct shell_reply *reply, size_t word)
{
    const char *text = word < reply->word_count ? reply->words[word] : "";
    size_t len = strlen(text);
    return len && len <= 18 && strspn(text, "0123456789") == len ? strtoll(text, NULL, 10) : -1;
}

static int hex_digit(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

// Pairs of digits with blanks between them.
static int decode_hex(const char *text, char **ret, size_t *ret_len)
{
    CLEANUP_FREE char *bytes = mem_alloc(strlen(text) / 2 + 1);
    size_t len = 0;
    while (*text) {
        if (*text == ' ') {
            text++;
            continue;
        }
        int high = hex_digit(text[0]), low = high < 0 ? -1 : hex_digit(text[1]);
        if (low < 0)
            return -1;
        bytes[len++] = (char)(high << 4 | low);
        text += 2;
    }
    *ret = TAKE_PTR(bytes);
    *ret_len = len;
    return 0;
}

static int decode_base64(const char *text, char **ret, size_t *ret_len)
{
    static const char padding[] = "===";
    size_t len = strlen(text);
    if (len % 4 == 1)
        return -1;
    CLEANUP_FREE char *padded = mem_format("%s%.*s", text, (int)((4 - len % 4) % 4), padding);
    return json_decode_base64(padded, ret, ret_len, NULL);
}

static int read_words(char *line, struct shell_reply *reply)
{
    for (char *word = line; word; reply->word_count++) {
        if (reply->word_count == SHELL_WORDS_MAX)
            return -1;
        char *blank = strchr(word, ' ');
        if (blank)
            *blank = '\0';
        reply->words[reply->word_count] = word;
        word = blank ? blank + 1 : NULL;
    }
    return 0;
}

// The checked text: a line of words and a line for each block, each with its newline.
static int read_lines(bool is_hex, struct shell_reply *reply)
{
    char *line = reply->text, *end = strchr(line, '\n');
    if (!end)
        return -1;
    *end = '\0';
    if (read_words(line, reply) < 0)
        return -1;
    for (line = end + 1; (end = strchr(line, '\n')); line = end + 1) {
        size_t at = reply->block_count++;
        *end = '\0';
        if (at == SHELL_BLOCKS_MAX || (is_hex ? decode_hex : decode_base64)(line, &reply->blocks[at].bytes, &reply->blocks[at].len) < 0)
            return -1;
    }
    return *line ? -1 : 0;
}

static const char *find(const char *bytes, size_t len, const char *text)
{
    return memmem(bytes, len, text, strlen(text));
}

enum shell_frame_state shell_frame_read(const char *bytes, size_t len, const char *nonce, bool is_hex, struct shell_reply *ret)
{
    CLEANUP_FREE char *head = mem_format("\nc2s %s ", nonce), *gone = mem_format("\nc2s %s gone\n", nonce);
    CLEANUP_FREE char *tail = mem_format("\nc2s %s end ", nonce);
    const char *start = find(bytes, len, head);
    if (!start)
        return FRAME_ABSENT;
    if (find(bytes, len, gone))
        return FRAME_GONE;
    const char *from = start + strlen(head), *until = find(from, len - (size_t)(from - bytes), tail);
    if (!until)
        return FRAME_DAMAGED;
    size_t size = (size_t)(until - from) + 1; // with the newline
    CLEANUP_FREE char *expected = mem_format("%s%u %zu\n", tail, crc_of(from, size), size);
    if (find(until, len - (size_t)(until - bytes), expected) != until || memchr(from, '\0', size))
        return FRAME_DAMAGED;
    struct shell_reply reply = {.text = mem_strndup(from, size)};
    if (read_lines(is_hex, &reply) < 0) {
        shell_reply_free(&reply);
        return FRAME_DAMAGED;
    }
    *ret = reply;
    return FRAME_GOOD;
}

char *shell_quote(const char *text)
{
    CLEANUP(buffer_free) struct buffer word = BUFFER_INIT(4 * strlen(text) + 2);
    buffer_append_char(&word, '\'');
    for (; *text; text++) {
        if (*text == '\'')
            buffer_append_text(&word, "'\\''");
        else
            buffer_append_char(&word, *text);
    }
    buffer_append_char(&word, '\'');
    return buffer_take_string(&word);
}
