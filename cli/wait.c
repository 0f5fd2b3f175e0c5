// Waiting by looking again: the operator API of this version has no watches.
#include "cli/objects.h"
#include "controller/base/memory.h"
#include "controller/base/time.h"
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LOOK_FIRST_MS 10
#define LOOK_MAX_MS 250
#define WAIT_MAX_S 86400

int wait_seconds(const struct invocation *in, struct error *err)
{
    const char *text = invocation_option(in, "timeout");
    if (!text)
        return WAIT_DEFAULT_S;
    char *end;
    unsigned long seconds = strtoul(text, &end, 10);
    if (*text < '0' || *text > '9' || *end || seconds > WAIT_MAX_S)
        return error_set(err, ERROR_USAGE, "give a number like --timeout 60", "--timeout cannot be '%.40s': it is in seconds, at most %d", text, WAIT_MAX_S);
    return (int)seconds;
}

// What holds it up, in the words of its conditions: the first one that is not as it should be.
static const char *word_holdup(const json_t *object)
{
    static const char *const order[] = {CONDITION_STALLED, CONDITION_FAILED, CONDITION_RUNTIME_REMOVED, CONDITION_RUNTIME_CREATED, CONDITION_SESSION_READY,
                                        CONDITION_READY, CONDITION_PUBLISHED};
    for (size_t i = 0; i < ARRAY_LEN(order); i++) {
        bool is_bad_when_true = i < 2;
        if (object_condition(object, order[i]) && object_is_true(object, order[i]) == is_bad_when_true)
            return object_message(object, order[i]);
    }
    return "";
}

// 1: go on, 0: reached, -1: error
typedef int look_fn(const json_t *object, struct error *err);

static int wait_for(const struct rest *rest, const struct kind_info *info, const char *uid, int timeout_s, look_fn *look, json_t **ret, struct error *err)
{
    int64_t deadline_ms = boot_time_now().ms + timeout_s * 1000LL;
    for (int pause_ms = LOOK_FIRST_MS;; pause_ms = pause_ms * 2 < LOOK_MAX_MS ? pause_ms * 2 : LOOK_MAX_MS) {
        CLEANUP_JSON json_t *object = NULL;
        if (object_get(rest, info, uid, &object, err) < 0)
            return -1;
        int r = look(object, err);
        if (r <= 0) {
            if (r == 0 && ret)
                *ret = TAKE_PTR(object);
            return r;
        }
        if (boot_time_now().ms >= deadline_ms) {
            const char *holdup = word_holdup(object);
            return error_set(err, ERROR_TIMEOUT, "the work goes on; look again with: chat2shell get, or wait longer with --timeout",
                             "%s %s is not there yet after %d s%s%s", info->singular, object_name(object), timeout_s, *holdup ? ": " : "", holdup);
        }
        poll(NULL, 0, pause_ms);
    }
}

static int look_gone(const json_t *object, struct error *err)
{
    (void)object, (void)err;
    return 1;
}

int wait_until_gone(const struct rest *rest, const struct kind_info *info, const char *uid, int timeout_s, struct error *err)
{
    struct error local = ERROR_INIT;
    wait_for(rest, info, uid, timeout_s, look_gone, NULL, &local); // ends by an error only
    return local.code == ERROR_NOT_FOUND ? 0 : error_copy(err, &local);
}

static int look_ready(const json_t *object, struct error *err)
{
    if (object_is_true(object, CONDITION_FAILED))
        return error_set(err, ERROR_STATE, "look closer: chat2shell describe", "%s failed: %s", object_name(object), object_message(object, CONDITION_FAILED));
    return !object_is_true(object, CONDITION_READY);
}

int wait_until_ready(const struct rest *rest, const struct kind_info *info, const char *uid, int timeout_s, json_t **ret, struct error *err)
{
    return wait_for(rest, info, uid, timeout_s, look_ready, ret, err);
}
