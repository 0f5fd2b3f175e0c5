// What has been happening in each sandbox, for `chat2shell logs`: the tool calls made of it, and the lines that its tool server
// prints. In memory only, and bounded: a sandbox keeps its newest lines, all together theirs; a journal is kept for a while after
// its sandbox's record was removed. Lines may hold secrets (a command of bash): they are shown to the operator and go nowhere else.
//
// Any thread, unless stated.
#pragma once
#include "controller/base/json.h"
#include "controller/loop.h"
#include <stdbool.h>
#include <stdint.h>

#define JOURNAL_MAX_BYTES (512 * 1024) // of one sandbox, what keeping it takes included
#define JOURNAL_MAX_LINES 2000
#define JOURNALS_MAX_BYTES (16 * 1024 * 1024) // of all
#define JOURNALS_MAX 512                      // of which those of removed sandboxes go first
#define JOURNAL_KEPT_MS (60 * 60 * 1000)      // after the record's removal
#define JOURNAL_TEXT_BYTES 2048               // of one text of a line

enum journal_source { JOURNAL_CALL, JOURNAL_SERVER, JOURNAL_SOURCE_COUNT };
#define JOURNAL_ALL ((1u << JOURNAL_SOURCE_COUNT) - 1)
struct journal_line { // texts are printable; longer ones are cut
    enum journal_source source;
    const char *text;         // SERVER: the line; CALL: what was done
    const char *caller, *tool, *result;
    int exit_code;            // -1: there is none
    int64_t duration_us;
};

struct journals;
struct journals *journals_new(struct loop *loop);
void journals_free(struct journals *journals); // loop thread; nobody waits any more; NULL allowed
// Before something is added; again is fine. name: of the record, to be found by later.
void journals_begin(struct journals *journals, const char *uid, const char *name);
void journals_add(struct journals *journals, const char *uid, const struct journal_line *line); // no such journal: nothing
void journals_end(struct journals *journals, const char *uid);                                  // the record was removed

struct journal_query {
    int64_t after;     // only lines behind this position; 0: from the oldest
    int64_t since_ms;  // only lines of this wall time and later; 0: all
    int64_t tail;      // of what fits only so many, the newest; -1: all
    unsigned sources;  // bits 1 << JOURNAL_…
    size_t max_bytes;  // of the answer, about
};
struct journal_view {
    json_t *lines;     // array of {time, source, text, caller?, tool?, result?, exitCode?, durationMs?}; the caller's
    int64_t position;  // what `after` of the next query is
    bool has_gap;      // lines behind `after` are gone already
    bool is_over;      // the record was removed: nothing comes any more
    bool has_more;     // the answer was full
};
// By uid, or by name: the newest one of that name. False: there is none.
bool journals_find(struct journals *journals, const char *name_or_uid, char **ret_uid); // *ret_uid: the caller's
bool journals_read(struct journals *journals, const char *uid, const struct journal_query *query, struct journal_view *ret);

// Loop thread: fn runs once, on the loop thread and not from inside, when a line of these sources behind `after` is there, or nothing
// comes any more. NULL: there is no such journal.
struct journal_wait;
struct journal_wait *journals_wait(struct journals *journals, const char *uid, int64_t after, unsigned sources, void (*fn)(void *arg), void *arg);
void journals_wait_cancel(struct journals *journals, struct journal_wait *wait); // fn did not run yet
