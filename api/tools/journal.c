// A finished call's line in its sandbox's journal (reconcilers/session/journal.h): who asked for what, and how it ended. For the
// operator's eyes, in memory only.
#include "api/tools/result.h"
#include "api/tools/tools.h"
#include "controller/base/memory.h"
#include "controller/base/utf8.h"
#include <string.h>

#define SUMMARY_BYTES 400
#define FAILURE_BYTES 300

// The argument that says best what a call is about, in this order.
static const char *const telling[] = {"command", "path", "query", "session_id", "destination", "title", "name", "plan_hash", NULL};

static char *shorten(const char *text, size_t len, size_t most)
{
    bool is_cut = len > most;
    CLEANUP_FREE char *shown = utf8_to_printable(text, is_cut ? utf8_cut(text, most) : len, false);
    return mem_format("%s%s", shown, is_cut ? "…" : "");
}

static char *summarize(const struct tool_call *call)
{
    for (size_t i = 0; telling[i]; i++) {
        const json_t *value = json_object_get(call->arguments, telling[i]);
        if (json_is_string(value))
            return shorten(json_string_value(value), json_string_length(value), SUMMARY_BYTES);
    }
    const json_t *port = json_object_get(call->arguments, "port"), *patch = json_object_get(call->arguments, "patch");
    if (json_is_integer(port))
        return mem_format("port %lld", (long long)json_integer_value(port));
    return json_is_string(patch) ? mem_format("a patch of %zu bytes", json_string_length(patch)) : mem_strdup("");
}

static char *word_failure(const json_t *result)
{
    const json_t *text = json_object_get(json_array_get(json_object_get(result, "content"), 0), "text");
    const char *words = json_is_string(text) ? json_string_value(text) : "it failed";
    CLEANUP_FREE char *shown = shorten(words, strcspn(words, "\n"), FAILURE_BYTES);
    return mem_format("error: %s", shown);
}

static char *word_result(const json_t *result, const json_t *structured)
{
    const char *status = json_get_text(structured, "status"), *session = json_get_text(structured, "session_id");
    if (json_get_bool(result, "isError", false))
        return word_failure(result);
    return session && status && strcmp(status, "running") == 0 ? mem_format("running as %s", session) : mem_strdup("ok");
}

void tool_note_in_journal(const struct tool_call *call, const json_t *result)
{
    const char *sandbox = tool_text(call, "sandbox_id");
    const json_t *structured = json_object_get(result, "structuredContent");
    if (!sandbox || call->tool->place == TOOL_READS)
        return; // those look at records only
    CLEANUP_FREE char *summary = summarize(call), *words = word_result(result, structured);
    bool has_exit_code = json_is_integer(json_object_get(structured, "exit_code"));
    journals_add(lanes_journals(call->world->lanes), sandbox,
                 &(struct journal_line){.source = JOURNAL_CALL, .text = summary, .caller = call->principal, .tool = call->tool->name, .result = words,
                                        .exit_code = has_exit_code ? (int)json_get_int(structured, "exit_code", -1) : -1,
                                        .duration_us = boot_time_us() - call->started_us});
}
