// Parts of making the CodexPro template that its files share. All of it blocks and belongs to the one thread of `setup`; it
// opens no driver, so that it needs neither a store nor a daemon.
#pragma once
#include "controller/base/buffer.h"
#include "reconcilers/drivers/sbx/sbx.h"
#include "reconcilers/drivers/templates.h"

#define BOOTSTRAP_PREFIX "c2s-setup-"
#define BOOTSTRAP_RANDOM 20 // characters of base 32 behind it
#define BOOTSTRAP_NOTES_MAX 32

// ---- template_run.c: one run of `sbx WORDS…`, awaited ------------------------------------------------------------------
struct setup {
    const struct template_build *build;
    char *program;
    char **environment;
    int dir_fd; // data_root/templates
};
struct order {
    const char *words[12]; // NULL-terminated
    const char *subject;   // the sandbox it is about; NULL = none
    int64_t deadline_ms;
    bool is_shown;   // what it prints is progress
    bool is_cleanup; // runs to its end though the user wants no more
};
struct answer {
    struct call_result result; // as of any call of the driver: sbx_call_judge and its kin read it
    struct buffer output, printed, errors;
    struct error start_error;
};
void order_run(const struct setup *setup, const struct order *order, struct answer *ret);
void answer_free(struct answer *answer);
int order_check(const struct setup *setup, const struct order *order, struct error *err); // run, judge, forget
bool setup_is_stopped(const struct setup *setup);
void setup_say(const struct setup *setup, const char *format, ...) __attribute__((format(printf, 2, 3)));

// ---- template_notes.c: the sandboxes that a setup made, or was about to ----------------------------------------------------
struct note {
    char name[sizeof(BOOTSTRAP_PREFIX) + BOOTSTRAP_RANDOM];
    struct wall_time since;
};
struct notes {
    struct note items[BOOTSTRAP_NOTES_MAX];
    size_t count;
};
int notes_read(int dir_fd, struct notes *ret, struct error *err); // what is not of our own form is not taken
int notes_write(int dir_fd, const struct notes *notes, struct error *err);
bool note_is_name(const char *text); // BOOTSTRAP_PREFIX and BOOTSTRAP_RANDOM characters of a-z2-7
void note_make_name(struct note *note);

// ---- template_sandbox.c: the sandbox in which the template is made --------------------------------------------------------
int bootstrap_make(const struct setup *setup, struct notes *notes, const struct note **ret, struct error *err); // noted first
// Removes every noted sandbox and its directory. One that was not there stays noted for a while: its create may still be going on.
int bootstrap_remove_all(const struct setup *setup, struct notes *notes, struct error *err);
