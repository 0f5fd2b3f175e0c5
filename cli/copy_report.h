// What `cp` tells on standard error: how far it is (only on a terminal), warnings, and the summary. --quiet leaves the warnings.
#pragma once
#include "cli/copy/tally.h"
#include "controller/base/buffer.h"
#include <stdbool.h>

#define COPY_WARNINGS_MAX 100 // shown; the rest is counted

struct copy_report {
    bool is_live; // progress is shown
    int64_t shown_at_us;  // when progress was last shown; 0: it does not stand there
    int64_t warnings;
    struct tally tally;
};
void copy_report_init(struct copy_report *report); // its tally is then ready to be used
// What the program in the sandbox said, line by line, made printable.
void copy_report_words(struct copy_report *report, const char *sandbox, struct buffer *words);
void copy_report_end(struct copy_report *report, const char *from, const char *to, bool is_whole);
