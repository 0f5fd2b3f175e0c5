// When a call says how it is getting on, and the message that says so. First after a second, so that short calls have
// nothing to say; then at growing intervals; and whenever there is news, at most once a second.
#pragma once
#include "api/tools/tools.h"

#define PROGRESS_FIRST_MS 1000
#define PROGRESS_PAUSE_MS 1000          // at least, between two messages
#define PROGRESS_GAP_MAX_MS (20 * 1000) // without news: after 1, 2, 4, … s, then every 20 s

struct progress { // of one call; zeroed at birth. Times since the call began.
    int64_t said_ms; // what the last message said; 0: nothing yet
    int64_t next_ms; // 0: PROGRESS_FIRST_MS
    int64_t gap_ms;
    bool has_news;
};
int64_t progress_due_ms(const struct progress *progress);
// The notification's JSON text, owned by the caller; the value it tells is greater than the one before. token: raw JSON
// text, given back as it came.
char *progress_say(struct progress *progress, int64_t waited_ms, const char *token, const struct tool_progress *what);
