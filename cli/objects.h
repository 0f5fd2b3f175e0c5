// What several commands do with API objects.
#pragma once
#include "cli/command.h"

// KIND or KIND/NAME words: "sandboxes", "sbx", "sandbox/dev". ERROR_USAGE with a likely meaning.
const struct kind_info *object_kind(const char *word, struct error *err);
// The NAME in "NAME" or, as `-o name` prints it, "KIND/NAME"; borrowed from `text`. ERROR_USAGE where KIND is another one.
const char *object_reference(const struct kind_info *info, const char *text, struct error *err);
// Gets one object by name, uid or unique prefix, behind a KIND/ or not. New reference.
int object_get(const struct rest *rest, const struct kind_info *info, const char *name, json_t **ret, struct error *err);
const char *object_name(const json_t *object); // metadata.name, "" if absent
const char *object_uid(const json_t *object);
// "sandbox/dev", as `-o name` prints. The caller owns it.
char *object_word(const json_t *object);
// The True/False condition of that type in status, NULL if absent; borrowed.
const json_t *object_condition(const json_t *object, const char *type);
// A new object that shares all but its metadata, which has no managedFields.
json_t *object_without_managers(const json_t *object);
// A new object that shares most of it: without who is noted for which field, in an object, in each item of a List and in what a watch
// prints ({type, object}), unless --show-managed-fields is given.
json_t *object_shown(const struct invocation *in, const json_t *object);
#define OPTION_SHOW_MANAGERS {.name = "show-managed-fields", .doc = "with -o json or yaml: also who is noted for which field (metadata.managedFields)"}
// -o json, yaml or name of one object (a List prints its items with name), as object_shown has it. False for other formats.
bool object_print(const struct invocation *in, const json_t *object);
bool object_is_true(const json_t *object, const char *condition);
const char *object_message(const json_t *object, const char *condition); // of that condition, "" if absent

// ---- waiting (wait.c) ---------------------------------------------------------------------------------------------------
#define WAIT_DEFAULT_S 120
int wait_seconds(const struct invocation *in, struct error *err); // --timeout in seconds, or -1
// 0: reached, 1: go on, -1: it cannot be reached. object NULL: it is not there.
typedef int look_fn(const void *arg, const json_t *object, struct error *err);
struct object_wait {
    const struct kind_info *info;
    const char *name, *uid; // uid NULL: whatever object has the name
    int timeout_s;
    int64_t deadline_ms; // boot time; 0: timeout_s from now
    const char *wanted;    // for the sentence that it "is not …" when the time is over; NULL: "ready"
    const char *condition; // its type, if one is waited for: whether the object has it at all is said then; or NULL
    look_fn *look; // at the state, and at each change
    const void *arg;
};
// *ret (NULL allowed): the object as `look` saw it last, a new reference; null if it is not there.
int object_wait(const struct rest *rest, const struct object_wait *wait, json_t **ret, struct error *err);
// Until the object of this uid is gone. deadline_ms as in object_wait. ERROR_TIMEOUT says what it waits for.
int wait_until_gone(const struct rest *rest, const struct kind_info *info, const char *uid, int timeout_s, int64_t deadline_ms, struct error *err);
// Until Ready is True (0, *ret the object) or Failed is (ERROR_STATE).
int wait_until_ready(const struct rest *rest, const struct kind_info *info, const char *uid, int timeout_s, json_t **ret, struct error *err);
#define OPTION_TIMEOUT {.name = "timeout", .value = "TIME", .doc = "how long to wait, as 60, 60s, 5m or 1h; 120 by default"}

// ---- what a deletion loses (loss.c) ---------------------------------------------------------------------------------------
// Says on stderr what deleting the sandbox loses, if anything; asks on a terminal; elsewhere goes on only with --yes.
// ERROR_REFUSED, or ERROR_CANCELLED where the answer was no.
int loss_confirm(const struct invocation *in, const struct rest *rest, const json_t *sandbox, struct error *err);
int loss_foretell(const struct rest *rest, const json_t *sandbox, struct error *err); // says it on stderr, asks nobody
#define OPTION_YES {.name = "yes", .letter = 'y', .doc = "go on even if work is lost"}
