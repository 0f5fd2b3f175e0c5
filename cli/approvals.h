// Approvals, as the commands of `approval` see them (cmd_approval.c has their rows).
#pragma once
#include "cli/command.h"

const struct kind_info *approval_info(void);
// Fields of spec and status, "" if absent; borrowed.
const char *approval_spec(const json_t *approval, const char *key);
const char *approval_status(const json_t *approval, const char *key);
bool approval_is_pending(const json_t *approval);
// Pending, and the operator's rules have been asked: it waits for somebody.
bool approval_is_open(const json_t *approval);
// Decided, and what follows from that is there: the workspace, or the reason that there is none.
bool approval_is_settled(const json_t *approval);
bool approval_is_usable(const json_t *approval); // approved, with a workspace that is not taken back
// What it asks for, and what that exposes, for the person who decides.
void approval_say(const json_t *approval, FILE *to);
// "approved, its workspace is ws_…", "rejected: not today". The caller owns it.
char *approval_word(const json_t *approval);

// Decides as it was shown: of the version that `approval` has, or `version` if not NULL; what changed since is ERROR_CONFLICT.
// *ret: the approval afterwards. Threads may do this at once.
int approval_decide(const struct rest *rest, const json_t *approval, const char *version, const char *decision, const char *reason, json_t **ret,
                    struct error *err);

// --mode, --under and --requester: which approvals are meant.
struct approval_filter {
    const char *mode, *requester; // NULL: any; a requester may end in *
    char *under;                  // resolved; NULL: anywhere
};
int approval_filter_read(const struct invocation *in, struct approval_filter *ret, struct error *err);
bool approval_filter_is_given(const struct invocation *in);
void approval_filter_clear(struct approval_filter *filter);
bool approval_filter_holds(const struct approval_filter *filter, const json_t *approval);

// ---- the commands
int approval_run_list(struct invocation *in, struct error *err);
int approval_run_approve(struct invocation *in, struct error *err);
int approval_run_reject(struct invocation *in, struct error *err);
int approval_run_wait(struct invocation *in, struct error *err);
int approval_run_watch(struct invocation *in, struct error *err);
