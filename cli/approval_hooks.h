// Programs that decide approvals (approval watch --exec). For each approval that waits the program is run once, without a shell,
// with the approval as JSON on standard input and CHAT2SHELL_APPROVAL_{ID,NAME,PATH,MODE,REQUESTER,RESOURCE_VERSION} in its
// environment. It decides by ending with status 0 after a first line of output that is exactly
//
//     approve              or       reject              or       reject REASON
//
// Everything else leaves the approval waiting: another status, a signal, another line, none, more time than it has. So a program
// that crashes, or that was not written for this, never approves anything.
#pragma once
#include "api/client/rest.h"
#include "controller/spawn.h"

#define HOOKS_PARALLEL_MAX 16
#define HOOK_OUTPUT_MAX 4096 // bytes of a first line
#define HOOK_GRACE_MS 2000   // between SIGTERM and SIGKILL

struct hooks; // thread-safe
struct hook_options { // outlives the hooks
    const struct rest *rest;
    const char *path;           // absolute
    const char *const *argv;    // NULL-terminated
    const char *directory;
    int parallel;               // 1 to HOOKS_PARALLEL_MAX
    int timeout_ms;             // of one run
};
int hooks_start(const struct hook_options *options, struct hooks **ret, struct error *err);
// One that waits: run once for each time that it is asked for, however often it is offered.
void hooks_offer(struct hooks *hooks, const json_t *approval);
// It does not wait any more, or is gone: not run if it was still in line. Whether it was offered is forgotten.
void hooks_settle(struct hooks *hooks, const char *uid);
// Ends what runs (SIGTERM to its process group, then SIGKILL), and the threads. NULL allowed.
void hooks_stop(struct hooks *hooks);

// ---- one run (approval_hook_run.c) ------------------------------------------------------------------------------------------
enum hook_word { HOOK_NOTHING, HOOK_APPROVE, HOOK_REJECT };
struct hook_verdict {
    enum hook_word word;
    char *reason; // of a rejection, or why nothing was decided; owned
};
void hook_verdict_clear(struct hook_verdict *verdict);
// stop_fd: readable once runs are to be ended.
void hook_run(const struct hook_options *options, struct spawner *spawner, const json_t *approval, int stop_fd, struct hook_verdict *ret);
// What a program said that ended with status 0; by itself for tests.
void hook_read_word(const char *output, size_t len, struct hook_verdict *ret);
