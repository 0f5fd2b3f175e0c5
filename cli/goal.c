#include "cli/goal.h"
#include "cli/objects.h"
#include "controller/base/memory.h"
#include <string.h>
#include <strings.h>

void goal_free(struct goal *goal)
{
    free(goal->condition);
    free(goal->value);
    free(goal->word);
    free(goal->wanted);
    json_expression_free(&goal->path);
}

// ---- looking ------------------------------------------------------------------------------------------------------------
static int look_deleted(const void *arg, const json_t *object, struct error *err)
{
    (void)arg, (void)err;
    return object != NULL;
}

static int look_created(const void *arg, const json_t *object, struct error *err)
{
    (void)arg, (void)err;
    return object == NULL;
}

static int refuse_absent(const struct goal *goal, struct error *err)
{
    return error_set(err, ERROR_NOT_FOUND, "somebody deleted it", "%s is gone", goal->word);
}

// A condition about an older spec says nothing about this one.
static bool is_current(const json_t *object, const json_t *condition)
{
    json_int_t generation = json_get_int(json_object_get(object, "metadata"), "generation", 0);
    return json_get_int(condition, "observedGeneration", generation) >= generation;
}

static int look_condition(const void *arg, const json_t *object, struct error *err)
{
    const struct goal *goal = arg;
    if (!object)
        return refuse_absent(goal, err);
    const json_t *condition = object_condition(object, goal->condition);
    const char *status = json_get_text(condition, "status");
    if (status && strcasecmp(status, goal->value) == 0 && is_current(object, condition))
        return 0;
    bool wants_ready = strcmp(goal->condition, CONDITION_READY) == 0 && strcasecmp(goal->value, "True") == 0;
    if (wants_ready && object_is_true(object, CONDITION_FAILED))
        return error_set(err, ERROR_STATE, "look closer: chat2shell describe", "%s failed: %s", goal->word, object_message(object, CONDITION_FAILED));
    return 1;
}

static int look_path(const void *arg, const json_t *object, struct error *err)
{
    const struct goal *goal = arg;
    CLEANUP(path_values_free) struct path_values values = {0};
    if (!object)
        return refuse_absent(goal, err);
    if (json_expression_find(&goal->path, (json_t *)object, &values, err) < 0)
        return -1;
    bool is_reached = !goal->value && values.count;
    for (size_t i = 0; goal->value && i < values.count && !is_reached; i++) {
        CLEANUP_FREE char *text = path_value_text(values.items[i]);
        is_reached = strcmp(text, goal->value) == 0;
    }
    return !is_reached;
}

// ---- --for --------------------------------------------------------------------------------------------------------------
static int parse_condition(const char *text, struct goal *ret, struct error *err)
{
    size_t len = strcspn(text, "=");
    if (!len || (text[len] && !text[len + 1]))
        return error_set(err, ERROR_USAGE, "like condition=Ready or condition=Ready=False", "the condition to wait for is incomplete");
    ret->condition = mem_strndup(text, len);
    ret->value = mem_strdup(text[len] ? text + len + 1 : "True");
    ret->look = look_condition;
    return 0;
}

// "{.status.phase}=running": the = behind the path, not one inside it.
static int parse_path(const char *text, struct goal *ret, struct error *err)
{
    const char *close = text[0] == '{' ? strrchr(text, '}') : NULL;
    const char *equal = strchr(close ? close : text, '=');
    CLEANUP_FREE char *path = mem_strndup(text, equal ? (size_t)(equal - text) : strlen(text));
    if (!*path || (equal && !equal[1]))
        return error_set(err, ERROR_USAGE, "like jsonpath='{.status.phase}'=running", "the path to wait for is incomplete");
    ret->value = equal ? mem_strdup(equal + 1) : NULL;
    ret->look = look_path;
    return json_expression_parse(path, &ret->path, err);
}

int goal_parse(const char *text, struct goal *ret, struct error *err)
{
    static const char hint[] = "one of: condition=NAME[=VALUE], jsonpath=PATH[=VALUE], delete, create";
    if (!text)
        return error_set(err, ERROR_USAGE, hint, "what to wait for is not given: --for is missing");
    bool is_delete = strcmp(text, "delete") == 0;
    ret->wanted = strchr(text, '=') ? mem_format("at %.200s", text) : mem_strdup(is_delete ? "gone" : "there");
    if (strncmp(text, "condition=", 10) == 0)
        return parse_condition(text + 10, ret, err);
    if (strncmp(text, "jsonpath=", 9) == 0)
        return parse_path(text + 9, ret, err);
    if (!is_delete && strcmp(text, "create") != 0)
        return error_set(err, ERROR_USAGE, hint, "it cannot be waited for '%.100s'", text);
    ret->look = is_delete ? look_deleted : look_created;
    ret->may_be_absent = true;
    return 0;
}

bool goal_is_deletion(const struct goal *goal)
{
    return goal->look == look_deleted;
}
