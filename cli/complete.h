// What a shell asks while somebody types: `chat2shell __complete WORD…`, the words behind the program's name, the last one as far
// as it is typed (the empty word where a new one begins). Printed: a candidate a line, a tab and what it is behind it where that is
// known, and in the end a line ":N" with what the shell does with them, as bits. This is the protocol of cobra, which kubectl
// uses. Nothing is ever said on stderr; where the daemon does not answer within a second there are just no names.
#pragma once
#include "cli/command.h"

enum complete_directive {
    COMPLETE_NO_SPACE = 2, // the word goes on
    COMPLETE_NO_FILES = 4, // no file names where nothing fits
    COMPLETE_DIRECTORIES = 16,
};

#define COMPLETE_WORD "__complete"
int complete_run(int argc, char **argv); // an exit code

// ---- between complete.c and complete_values.c -----------------------------------------------------------------------------
struct completion {
    struct invocation in; // what stands before the word, as far as it could be read
    const char *word;     // what is typed of it: in a comma list, what stands behind the last comma
    const char *prefix;   // what stands before that in the same word, with its length
    size_t prefix_len;
    int directive;
};
// Prints it if it begins with the word and has nothing that a shell would take for something else. doc: NULL = none.
void complete_add(const struct completion *completion, const char *candidate, const char *doc);
void completion_move_on(struct completion *completion, size_t len); // so much of the word is no more looked at
void complete_argument(struct completion *completion); // of the command, at the place of the next one
void complete_value(struct completion *completion, const struct option_row *row);
