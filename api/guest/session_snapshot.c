// What a Bash session gives to a reader: only new bytes, never half a character.
#include "api/guest/session_state.h"
#include "controller/base/memory.h"
#include "controller/base/utf8.h"
#include <stdio.h>
#include <string.h>

#define MARKER_MAX 160
#define MAX_TAIL 3 // bytes that a character may still lack or have

static size_t append_marker(struct session *session, struct buffer *out)
{
    uint64_t dropped = bash_log_take_dropped(&session->log);
    if (dropped)
        buffer_format(out,
                      "\n[chat2shell: %llu bytes of older output were dropped here: nobody read them and the "
                      "log is full]\n",
                      (unsigned long long)dropped);
    return out->len;
}

bool session_has_readable(const struct session *session)
{
    size_t unread = bash_log_unread(&session->log);
    char tail[MAX_TAIL];
    if (!unread)
        return session->log.dropped_bytes > 0;
    if (unread > MAX_TAIL || session->has_exited)
        return true;
    return utf8_cut(tail, bash_log_peek(&session->log, tail, unread)) > 0;
}

static json_t *take_output(struct session *session, size_t max_bytes)
{
    CLEANUP(buffer_free) struct buffer out = BUFFER_INIT(max_bytes + MARKER_MAX + MAX_TAIL + 1);
    size_t marker_len = append_marker(session, &out);
    size_t limit = max_bytes > marker_len ? max_bytes - marker_len : 1;
    char *to = buffer_reserve(&out, limit + MAX_TAIL);
    size_t asked = limit + MAX_TAIL, unread = bash_log_unread(&session->log);
    size_t have = bash_log_peek(&session->log, to, asked);
    if (have < (unread < asked ? unread : asked)) // its file cannot be read: say so once, as lost bytes
        session->log.dropped_bytes += unread, bash_log_consume(&session->log, unread), have = 0;
    size_t len = utf8_cut_piece(to, have, limit, session->has_exited && have == unread);
    bash_log_consume(&session->log, len);
    return json_from_bytes(out.data, marker_len + len);
}

json_t *session_take_snapshot(struct session *session, size_t max_bytes)
{
    json_t *result = json_object(), *output = take_output(session, max_bytes);
    json_set_text(result, "session_id", session->id);
    json_set_text(result, "status", session->has_exited ? "exited" : "running");
    json_object_set_new(result, "exit_code",
                        session->has_exited ? json_integer(session->exit_code) : json_null());
    json_object_set_new(result, "output", output);
    json_object_set_new(result, "has_more_output", json_boolean(session_has_readable(session)));
    return result;
}
