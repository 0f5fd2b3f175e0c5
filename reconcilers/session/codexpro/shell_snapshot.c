// What a Bash session gives to a reader: only new bytes, never half a character, and a word where bytes are missing.
#include "reconcilers/session/codexpro/shell_session.h"
#include "controller/base/buffer.h"
#include "controller/base/memory.h"
#include "controller/base/utf8.h"
#include <string.h>

#define MARKER_MAX 240
#define MAX_TAIL 3 // bytes that a character may still lack or have

static bool read_exit(struct shell_session *session, const struct shell_reply *reply)
{
    int64_t code = shell_reply_number(reply, 1), ended = shell_reply_number(reply, 2);
    bool is_running = reply->word_count > 1 && strcmp(reply->words[1], "-") == 0;
    if ((!is_running && !shell_is_exit_code(code)) || ended < 0)
        return false;
    if (!is_running && !session->has_exited) {
        session->has_exited = true;
        session->exit_code = (int)code;
    }
    session->has_ended = session->has_exited && ended;
    return true;
}

// "ok CODE|- ENDED START SIZE LENGTH DISK-WAS-FULL" and one block.
int session_note_look(struct shell_session *session, const struct shell_reply *reply, struct shell_window *ret)
{
    int64_t start = shell_reply_number(reply, 3), size = shell_reply_number(reply, 4), len = shell_reply_number(reply, 5);
    int64_t full = shell_reply_number(reply, 6);
    if (!shell_reply_is(reply, "ok") || reply->word_count != 7 || reply->block_count != 1 || start < 0 || size < start || full < 0 ||
        len != (int64_t)reply->blocks[0].len || len > size - start || !read_exit(session, reply))
        return -1;
    *ret = (struct shell_window){(uint64_t)start, (uint64_t)size, reply->blocks[0].bytes, (size_t)len, full > 0};
    return 0;
}

// The window's part that nobody was given; what came before it was dropped in the sandbox.
static struct shell_window unread_part(const struct shell_session *session, const struct shell_window *window)
{
    struct shell_window part = *window;
    if (part.start >= session->pos)
        return part;
    uint64_t given = session->pos - part.start;
    size_t skip = given < part.len ? (size_t)given : part.len;
    part.bytes += skip;
    part.len -= skip;
    part.start += skip;
    return part;
}

bool session_has_readable(const struct shell_session *session, const struct shell_window *window)
{
    struct shell_window part = unread_part(session, window);
    uint64_t from = part.start > session->pos ? part.start : session->pos;
    uint64_t unread = part.size > from ? part.size - from : 0;
    if (part.start > session->pos && part.len + unread > 0)
        return true;
    if (!unread || unread > MAX_TAIL || session->has_exited || part.len < unread)
        return unread > 0;
    return utf8_cut(part.bytes, part.len) > 0;
}

static void append_marker(struct buffer *out, uint64_t dropped, bool has_disk_failed)
{
    if (has_disk_failed)
        buffer_format(out, "\n[chat2shell: %llu bytes of output, and what came while the sandbox's disk was full, were dropped here]\n",
                      (unsigned long long)dropped);
    else
        buffer_format(out, "\n[chat2shell: %llu bytes of older output were dropped here: nobody read them and the log is full]\n",
                      (unsigned long long)dropped);
}

static json_t *take_output(struct shell_session *session, const struct shell_window *window, size_t max_bytes)
{
    CLEANUP(buffer_free) struct buffer out = BUFFER_INIT(max_bytes + MARKER_MAX + MAX_TAIL + 1);
    struct shell_window part = unread_part(session, window);
    if (part.start > session->pos) {
        append_marker(&out, part.start - session->pos, part.has_disk_failed);
        session->pos = part.start;
    }
    size_t limit = max_bytes > out.len ? max_bytes - out.len : 1;
    bool is_final = session->has_exited && part.start + part.len == part.size;
    size_t len = utf8_cut_piece(part.bytes, part.len, limit, is_final);
    buffer_append(&out, part.bytes, len);
    session->pos += len;
    session->seen = part.len - len <= MAX_TAIL ? part.start + part.len : session->pos;
    return json_from_bytes(buffer_text(&out), out.len);
}

json_t *session_take_snapshot(struct shell_session *session, const struct shell_window *window, size_t max_bytes)
{
    json_t *result = json_object(), *output = take_output(session, window, max_bytes);
    session->has_unread = session_has_readable(session, window);
    json_set_text(result, "session_id", session->id);
    json_set_text(result, "status", session->has_exited ? "exited" : "running");
    json_object_set_new(result, "exit_code", session->has_exited ? json_integer(session->exit_code) : json_null());
    json_object_set_new(result, "output", output);
    json_object_set_new(result, "has_more_output", json_boolean(session->has_unread));
    return result;
}
