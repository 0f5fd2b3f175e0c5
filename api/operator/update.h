// A change of one stored object, from its body to its answer.
#pragma once
#include "api/operator/internal.h"

enum update_form { UPDATE_REPLACE, UPDATE_MERGE, UPDATE_JSON_PATCH, UPDATE_APPLY };
struct update {
    struct call *call;
    enum kind kind;
    char *uid;
    enum update_form form;
    struct record *record; // what came out
    json_t *causes;
    int result;
    struct error error;
    // Approvals: a changed decision is a request of its own (decisions.c)
    bool must_decide, is_decided;
    enum approval_decision decision;
    int64_t shown;
    char *reason;
    struct boot_time deadline;
    struct store_waiter *waiter;
};
// Takes the call, in its handler. `record` is the one that is stored now.
void update_start(struct call *call, const struct record *record, enum update_form form);
// The same on the loop thread, for a call that is under way: of a kind that nothing is decided about, since nobody could cancel that.
void update_start_late(struct call *call, const struct record *record, enum update_form form);
void update_run(struct update *update);                           // loop thread: once more, or the first time
void update_finish(struct update *update);                        // loop thread: answers with update->record
void update_fail(struct update *update, const struct error *err); // loop thread
// decisions.c; loop thread
void decision_start(struct update *update);
void decision_settle(struct update *update); // the decision is stored: waits for what follows from it
void decision_cancel(struct update *update);
