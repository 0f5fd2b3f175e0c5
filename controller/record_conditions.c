// Conditions are the truth; the phase is a printer word computed from them (here, and nowhere else).
#include "controller/record.h"
#include "controller/base/cleanup.h"
#include "controller/base/memory.h"
#include "schemas/kinds/common.h"
#include <assert.h>
#include <string.h>

// Where each kind's status keeps the parts that all of them have.
struct status_parts {
    size_t conditions, phase;
};
#define STATUS_PARTS(type)                                                                                   \
    {                                                                                                        \
        offsetof(struct type, conditions), offsetof(struct type, phase)                                      \
    }
static const struct status_parts parts[KIND_COUNT] = {
    [KIND_WORKSPACE] = STATUS_PARTS(workspace_status), [KIND_APPROVAL] = STATUS_PARTS(approval_status),
    [KIND_SANDBOX] = STATUS_PARTS(sandbox_status),     [KIND_SESSION] = STATUS_PARTS(session_status),
    [KIND_EXPOSURE] = STATUS_PARTS(exposure_status),   [KIND_APPROVAL_RULE] = STATUS_PARTS(approval_rule_status),
};

struct condition_list *record_conditions(struct record *record)
{
    return (struct condition_list *)((char *)&record->status + parts[record->kind].conditions);
}

static struct condition *find(struct record *record, const char *type)
{
    struct condition_list *list = record_conditions(record);
    for (size_t i = 0; i < list->count; i++)
        if (strcmp(list->items[i].type, type) == 0)
            return &list->items[i];
    return NULL;
}

const struct condition *record_condition(const struct record *record, const char *type)
{
    return find((struct record *)record, type);
}

static bool has_status(const struct record *record, const char *type, enum condition_status status)
{
    const struct condition *condition = record_condition(record, type);
    return condition && condition->status == status;
}

bool record_is_true(const struct record *record, const char *type)
{
    return has_status(record, type, CONDITION_TRUE);
}

bool record_is_false(const struct record *record, const char *type)
{
    return has_status(record, type, CONDITION_FALSE);
}

static struct condition *append(struct record *record, const char *type)
{
    struct condition_list *list = record_conditions(record);
    list->items = mem_realloc_array(list->items, list->count + 1, sizeof(*list->items));
    struct condition *condition = &list->items[list->count++];
    *condition = (struct condition){.type = mem_strdup(type)};
    return condition;
}

static bool replace_if_other(char **at, const char *text)
{
    if (*at && strcmp(*at, text) == 0)
        return false;
    mem_replace(at, text);
    return true;
}

bool record_set_condition(struct record *record, const char *type, enum condition_status status,
                          struct wall_time now, const char *reason, const char *message_format, ...)
{
    assert(type && *type && reason && *reason);
    va_list args;
    va_start(args, message_format);
    CLEANUP_FREE char *message = mem_vformat(message_format, args);
    va_end(args);

    struct condition *condition = find(record, type);
    bool is_new = !condition, is_flip = is_new || condition->status != status;
    if (is_new)
        condition = append(record, type);
    if (is_flip) {
        condition->status = status;
        condition->last_transition_time = now;
    }
    bool is_other_reason = replace_if_other(&condition->reason, reason);
    bool is_other_message = replace_if_other(&condition->message, message);
    bool is_other_generation = condition->observed_generation != record->meta.generation;
    condition->observed_generation = record->meta.generation;
    return is_flip || is_other_reason || is_other_message || is_other_generation;
}

bool record_drop_condition(struct record *record, const char *type)
{
    struct condition_list *list = record_conditions(record);
    struct condition *condition = find(record, type);
    if (!condition)
        return false;
    size_t at = (size_t)(condition - list->items);
    fields_clear(&condition_table, condition);
    list->count--;
    memmove(list->items + at, list->items + at + 1, (list->count - at) * sizeof(*list->items));
    return true;
}

// ---- phase
// --------------------------------------------------------------------------------------------------------
// For each kind the first rule that holds gives the word; the last rule of each always holds.
static bool is_removed(const struct record *r)
{
    return r->meta.removed_at.ms || (r->meta.deletion_at.ms && record_is_true(r, CONDITION_RUNTIME_REMOVED));
}

static bool is_tombstone(const struct record *r)
{
    return r->meta.removed_at.ms != 0;
}

static bool is_deleting(const struct record *r)
{
    return r->meta.deletion_at.ms != 0;
}

static bool is_approved(const struct record *r)
{
    return r->spec.approval.decision == APPROVAL_APPROVED;
}

static bool is_rejected(const struct record *r)
{
    return r->spec.approval.decision == APPROVAL_REJECTED;
}

static bool is_not_ready(const struct record *r)
{
    return record_is_false(r, CONDITION_READY);
}

struct phase_rule {
    const char *word;
    const char *condition;                      // must be True; or
    bool (*holds)(const struct record *record); // must hold; or neither: always
};
static const struct phase_rule workspace_rules[] = {
    {"trashed", CONDITION_TRASHED, NULL},
    {"revoked", CONDITION_REVOKED, NULL},
    {"revoked", NULL, is_tombstone},
    {"retained", CONDITION_RETAINED, NULL},
    {"approved", CONDITION_READY, NULL},
    {"pending", NULL, NULL},
};
static const struct phase_rule approval_rules[] = {
    {"revoked", CONDITION_REVOKED, NULL},
    {"revoked", NULL, is_tombstone},
    {"approved", NULL, is_approved},
    {"rejected", NULL, is_rejected},
    {"pending", NULL, NULL},
};
static const struct phase_rule sandbox_rules[] = {
    {"destroyed", NULL, is_removed},    {"destroying", NULL, is_deleting}, {"failed", CONDITION_FAILED, NULL},
    {"running", CONDITION_READY, NULL}, {"creating", NULL, NULL},
};
static const struct phase_rule session_rules[] = {
    {"ended", NULL, is_tombstone},
    {"failed", CONDITION_FAILED, NULL},
    {"ready", CONDITION_READY, NULL},
    {"starting", NULL, NULL},
};
static const struct phase_rule exposure_rules[] = {
    {"removed", NULL, is_tombstone},
    {"published", CONDITION_PUBLISHED, NULL},
    {"failed", CONDITION_FAILED, NULL},
    {"pending", NULL, NULL},
};
static const struct phase_rule approval_rule_rules[] = {
    {"removed", NULL, is_tombstone},
    {"expired", CONDITION_EXPIRED, NULL}, {"exhausted", CONDITION_EXHAUSTED, NULL}, {"active", CONDITION_READY, NULL},
    {"outside", NULL, is_not_ready},      {"pending", NULL, NULL},
};
static const struct phase_rule *const phase_rules[KIND_COUNT] = {
    [KIND_WORKSPACE] = workspace_rules, [KIND_APPROVAL] = approval_rules, [KIND_SANDBOX] = sandbox_rules,
    [KIND_SESSION] = session_rules,     [KIND_EXPOSURE] = exposure_rules,
    [KIND_APPROVAL_RULE] = approval_rule_rules,
};

static bool rule_holds(const struct phase_rule *rule, const struct record *record)
{
    if (rule->condition)
        return record_is_true(record, rule->condition);
    return !rule->holds || rule->holds(record);
}

const char *record_compute_phase(struct record *record)
{
    const struct phase_rule *rule = phase_rules[record->kind];
    while (!rule_holds(rule, record))
        rule++;
    replace_if_other((char **)((char *)&record->status + parts[record->kind].phase), rule->word);
    return rule->word;
}
