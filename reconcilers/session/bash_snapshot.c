// Snapshots of a Bash session: {session_id, status, exit_code, output, has_more_output}. They come from an untrusted
// tool server, so only what has exactly this shape is copied.
#include "reconcilers/session/lane.h"
#include <string.h>

// One raw byte becomes at most one U+FFFD (3 bytes); up to 3 held-back bytes come on top.
#define TEXT_MAX_BYTES (3 * (BASH_OUTPUT_BYTES + 3))

static json_t *make(const char *id, const char *status, json_t *exit_code, json_t *output, bool has_more)
{
    return json_pack("{s:s, s:s, s:O, s:O, s:b}", "session_id", id, "status", status, "exit_code", exit_code, "output", output,
                     "has_more_output", has_more);
}

json_t *snapshot_read(const json_t *result, const char *session_id)
{
    const char *id = json_get_text(result, "session_id"), *status = json_get_text(result, "status");
    json_t *exit_code = json_object_get(result, "exit_code"), *output = json_object_get(result, "output");
    json_t *has_more = json_object_get(result, "has_more_output");
    if (!id || strcmp(id, session_id) != 0 || !status || !json_is_string(output) || !json_is_boolean(has_more))
        return NULL;
    bool has_exited = strcmp(status, "exited") == 0;
    if (!has_exited && strcmp(status, "running") != 0)
        return NULL;
    if (has_exited ? !json_is_integer(exit_code) : !json_is_null(exit_code))
        return NULL;
    if (json_string_length(output) > TEXT_MAX_BYTES)
        return NULL;
    return make(session_id, status, exit_code, output, json_is_true(has_more));
}

json_t *snapshot_running(const char *session_id)
{
    CLEANUP_JSON json_t *output = json_string("");
    return make(session_id, "running", json_null(), output, false);
}

json_t *snapshot_without_output(const json_t *snapshot)
{
    json_t *copy = json_copy((json_t *)snapshot);
    json_object_set_new(copy, "output", json_string(""));
    return copy;
}

bool snapshot_is_final(const json_t *snapshot)
{
    const char *status = json_get_text(snapshot, "status");
    return status && strcmp(status, "exited") == 0 && !json_get_bool(snapshot, "has_more_output", false);
}
