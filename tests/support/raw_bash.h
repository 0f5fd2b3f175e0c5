// The tool `bash` of CodexPro 0.30.0 as a function: each call really runs `/bin/bash -lc COMMAND` in a session of its own, with
// that server's environment, time limit, output cap (and the killing that goes with it) and masking. What a shell over
// CodexPro is tested with, without a server.
#pragma once
#include "controller/loop.h"
#include "reconcilers/session/codexpro/shell.h"
#include "tests/support/support.h"
#include <stdatomic.h>

struct raw_bash;
struct raw_bash *raw_bash_new(struct loop *loop, const char *workspace, const char *home);
// Ends all that the calls have started, removes the directories that shells made, frees it. The loop still runs.
void raw_bash_free(struct raw_bash *raw);
struct shell_host raw_bash_host(struct raw_bash *raw);

int raw_bash_calls(struct raw_bash *raw);          // so far
char *raw_bash_directory(struct raw_bash *raw);    // the newest one that a shell made; the caller's
// From now on the stdout of every call passes this first (NULL: none). text: the caller's to free; returns what to free.
void raw_bash_set_fault(struct raw_bash *raw, char *(*fault)(void *arg, char *text), void *arg);
// The masking alone. Frees text; the result is the caller's.
char *raw_bash_mask(char *text);
