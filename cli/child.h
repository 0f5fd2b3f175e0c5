// Other programs that a command runs on this terminal: an editor, a program that shows differences. Directly, never by a shell.
#pragma once
#include "controller/base/error.h"
#include <stddef.h>

#define CHILD_MAX_WORDS 32

// The words of a command line as in $EDITOR, split at blanks, NULL-terminated, with room for `more` further ones. The caller frees
// *ret and *ret_text (in which they stand). ERROR_USAGE where it is empty or has too many words.
int child_split(const char *line, size_t more, const char ***ret, char **ret_text, struct error *err);
// Runs it with our standard input, output and error, looked for in PATH. While it runs, ^C is for it alone. *ret_exit_code: 128+N
// for death by signal N.
int child_run(const char *const *argv, int *ret_exit_code, struct error *err);
