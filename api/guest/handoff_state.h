// What .ai-bridge/handoff-run-state.json says about the run of a local agent. Somebody else writes that file:
// a missing, huge, half-written or wrong one counts as none. Worker threads only.
#pragma once
#include "api/guest/tool.h"
#include "api/guest/workspace.h"

struct handoff_question {
    const char *plan_hash;   // NULL: any
    int64_t since_iteration; // -1: any
    int64_t poll_ms;
    bool include_diff, include_log, include_tests;
};
void handoff_question_read(const json_t *args, struct handoff_question *ret);

// Looks once. NULL if what is awaited has not come and is_last is false; else the structured result begun in
// `structured` (taken in either case), and *ret_text (the caller's; it may hold NUL characters).
json_t *handoff_look(const struct workspace *workspace, const struct handoff_question *question, bool is_last,
                     json_t *structured, char **ret_text, size_t *ret_len);
extern const struct tool_field handoff_fields[];
