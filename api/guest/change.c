#include "api/guest/change.h"
#include "api/guest/text.h"
#include "controller/base/buffer.h"

void change_set_result(struct tool_call *call, const struct change *change)
{
    char sha256[TEXT_SHA256_SIZE];
    CLEANUP(diff_free) struct diff diff = {0};
    text_sha256(change->new_text, change->new_len, sha256);
    diff_make(change->path, change->old_text, change->old_len, change->new_text, change->new_len, &diff);
    json_t *to = call->structured;
    json_set_text(to, "path", change->path);
    json_object_set_new(to, "bytes", json_integer((json_int_t)change->new_len));
    json_set_text(to, "sha256", sha256);
    json_object_set_new(to, "additions", json_integer((json_int_t)diff.additions));
    json_object_set_new(to, "deletions", json_integer((json_int_t)diff.deletions));
    json_object_set_new(to, "diff", json_from_bytes(diff.text, diff.len));
    struct buffer text = BUFFER_INIT(2 * DIFF_MAX_CHARS);
    buffer_format(&text,
                  "# %s\nPath: %s\n%s: %s\nBytes: %zu\nSHA-256: %s\nDiff stats: +%zu -%zu\n\n```diff\n",
                  change->heading, change->path, change->label, change->label_value, change->new_len, sha256,
                  diff.additions, diff.deletions);
    buffer_append(&text, diff.text, diff.len);
    buffer_append_text(&text, "\n```");
    call->text_len = text.len;
    call->text = buffer_take_string(&text);
}

int change_check_size(size_t len, const char *what, struct error *err)
{
    if (len <= TEXT_MAX_WRITE_BYTES)
        return 0;
    return guest_tool_fail(err, "write it in parts with bash",
                           "%s is too large (%zu bytes). Limit: %d bytes.", what, len, TEXT_MAX_WRITE_BYTES);
}
