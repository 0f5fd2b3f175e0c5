// Waiting for objects, by watches: the state first, then each change as it is stored.
#include "api/client/watch.h"
#include "cli/objects.h"
#include "controller/base/memory.h"
#include "controller/base/time.h"
#include <stdlib.h>
#include <string.h>

#define WAIT_MAX_S 86400

int wait_seconds(const struct invocation *in, struct error *err)
{
    static const struct {
        const char *unit;
        unsigned long seconds;
    } units[] = {{"", 1}, {"s", 1}, {"m", 60}, {"h", 3600}};
    const char *text = invocation_option(in, "timeout");
    if (!text)
        return WAIT_DEFAULT_S;
    char *end;
    unsigned long number = strtoul(text, &end, 10);
    bool is_number = *text >= '0' && *text <= '9' && number <= WAIT_MAX_S;
    for (size_t i = 0; is_number && i < ARRAY_LEN(units); i++)
        if (strcmp(end, units[i].unit) == 0 && number * units[i].seconds <= WAIT_MAX_S)
            return (int)(number * units[i].seconds);
    return error_set(err, ERROR_USAGE, "give a number like --timeout 60, or 60s, 5m, 1h",
                     "--timeout cannot be '%.40s': it is in seconds, at most %d", text, WAIT_MAX_S);
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

struct waiting {
    const struct object_wait *wait;
    json_t *last;  // its newest image; NULL: it is not there
    bool is_synced;
};

// 1: reached or failed, 0: go on
static int look(struct waiting *waiting, struct error *err)
{
    const struct object_wait *wait = waiting->wait;
    if (!waiting->last && !waiting->is_synced)
        return 0; // not told yet
    int r = wait->look(wait->arg, waiting->last, err);
    return r < 0 ? -1 : r == 0;
}

static int on_event(void *arg, size_t ask, enum watch_type type, json_t *object, struct error *err)
{
    struct waiting *waiting = arg;
    (void)ask;
    if (type == WATCH_RESTART)
        waiting->is_synced = false;
    if (type == WATCH_SYNCED)
        waiting->is_synced = true;
    if (type != WATCH_SYNCED) {
        json_decref(waiting->last);
        waiting->last = type == WATCH_DELETED || !object ? NULL : json_incref(object);
    }
    return type == WATCH_RESTART ? 0 : look(waiting, err);
}

// "; it has the conditions Published, Reachable": where the one that is waited for is none of them. The caller owns it.
static char *word_conditions(const struct object_wait *wait, const json_t *object)
{
    const json_t *conditions = json_object_get(json_object_get(object, "status"), "conditions");
    if (!wait->condition || object_condition(object, wait->condition))
        return mem_strdup("");
    char *words = mem_strdup(json_array_size(conditions) ? "; it has the conditions" : "; it has no conditions");
    for (size_t i = 0; i < json_array_size(conditions); i++) {
        const char *type = json_get_text(json_array_get(conditions, i), "type");
        char *longer = mem_format("%s%s %s", words, i ? "," : "", type ? type : "?");
        free(words);
        words = longer;
    }
    return words;
}

static int say_timeout(const struct object_wait *wait, const json_t *last, struct error *err)
{
    CLEANUP_FREE char *conditions = word_conditions(wait, last);
    const char *holdup = last ? word_holdup(last) : "", *wanted = wait->wanted ? wait->wanted : "ready";
    return error_set(err, ERROR_TIMEOUT, "look again with: chat2shell describe, or wait longer with --timeout", "%s/%s is not %s after %d s%s%s%s",
                     wait->info->singular, wait->name, wanted, wait->timeout_s, last ? conditions : "", *holdup ? ": " : "", holdup);
}

int object_wait(const struct rest *rest, const struct object_wait *wait, json_t **ret, struct error *err)
{
    struct waiting waiting = {.wait = wait};
    int64_t deadline_ms = wait->deadline_ms ? wait->deadline_ms : boot_time_now().ms + wait->timeout_s * 1000LL;
    CLEANUP_FREE char *collection = rest_path(wait->info, NULL);
    CLEANUP_FREE char *name = http_escape(wait->name);
    CLEANUP_FREE char *uid = http_escape(wait->uid ? wait->uid : "");
    CLEANUP_FREE char *path = mem_format("%s?fieldSelector=metadata.name%%3D%s%s%s", collection, name, wait->uid ? "%2Cmetadata.uid%3D" : "", uid);
    const struct watch_ask ask = {.path = path};
    int r = watch_follow(rest, &ask, 1, deadline_ms, -1, on_event, &waiting, err);
    if (r == 0)
        r = say_timeout(wait, waiting.last, err);
    CLEANUP_JSON json_t *last = waiting.last;
    if (r < 0)
        return -1;
    if (ret)
        *ret = last ? TAKE_PTR(last) : json_null();
    return 0;
}

// ---- what is waited for most --------------------------------------------------------------------------------------------
static int look_gone(const void *arg, const json_t *object, struct error *err)
{
    (void)arg, (void)err;
    return object != NULL;
}

static int look_ready(const void *arg, const json_t *object, struct error *err)
{
    const char *name = arg;
    if (!object)
        return error_set(err, ERROR_NOT_FOUND, "somebody deleted it", "%s is gone", name);
    if (object_is_true(object, CONDITION_FAILED))
        return error_set(err, ERROR_STATE, "look closer: chat2shell describe", "%s failed: %s", name, object_message(object, CONDITION_FAILED));
    return !object_is_true(object, CONDITION_READY);
}

int wait_until_gone(const struct rest *rest, const struct kind_info *info, const char *uid, int timeout_s, int64_t deadline_ms, struct error *err)
{
    CLEANUP_JSON json_t *object = NULL;
    struct error local = ERROR_INIT;
    if (object_get(rest, info, uid, &object, &local) < 0)
        return local.code == ERROR_NOT_FOUND ? 0 : error_copy(err, &local);
    const struct object_wait wait = {.info = info, .name = object_name(object), .uid = uid, .timeout_s = timeout_s, .deadline_ms = deadline_ms,
                                     .wanted = "gone", .look = look_gone};
    return object_wait(rest, &wait, NULL, err);
}

int wait_until_ready(const struct rest *rest, const struct kind_info *info, const char *uid, int timeout_s, json_t **ret, struct error *err)
{
    CLEANUP_JSON json_t *object = NULL;
    if (object_get(rest, info, uid, &object, err) < 0)
        return -1;
    const char *name = object_name(object);
    const struct object_wait wait = {.info = info, .name = name, .uid = uid, .timeout_s = timeout_s, .look = look_ready, .arg = name};
    return object_wait(rest, &wait, ret, err);
}
