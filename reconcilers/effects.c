#include "reconcilers/effects.h"
#include "controller/base/cleanup.h"
#include "controller/base/memory.h"
#include "controller/metrics.h"
#include <assert.h>
#include <pthread.h>
#include <string.h>

// How many effects of a kind run at once, over all records. Removal has its own (design 3).
static const int slots[EFFECT_KIND_COUNT] = {
    [EFFECT_CREATE] = 8, [EFFECT_REMOVE] = 8,     [EFFECT_SESSION] = 16, [EFFECT_BUNDLE] = 4,
    [EFFECT_PUBLISH] = 16, [EFFECT_UNPUBLISH] = 16, [EFFECT_PROBE] = 8,
};

// As /metrics names them.
static const char *const commands[EFFECT_KIND_COUNT] = {
    [EFFECT_CREATE] = "create",   [EFFECT_REMOVE] = "remove",       [EFFECT_SESSION] = "session", [EFFECT_BUNDLE] = "bundle",
    [EFFECT_PUBLISH] = "publish", [EFFECT_UNPUBLISH] = "unpublish", [EFFECT_PROBE] = "probe",
};

struct effect {
    int64_t began_us;
    struct effects *effects;
    struct effect *next;
    enum effect_kind kind;
    enum kind record_kind;
    char *uid;
    enum effect_state state;
    bool is_forgotten; // its record is gone: freed at its end
    struct error err;
    void *payload;
    void (*free_payload)(void *);
};

struct death {
    struct death *next;
    char *uid, *reason;
};

struct effects {
    struct manager *manager;
    pthread_mutex_t lock; // guards all below
    struct effect *list;  // bounded: one a kind and live record
    struct death *deaths;
    int running[EFFECT_KIND_COUNT];
    struct waiting { // records that found no slot, bounded by live records
        struct waiting *next;
        enum kind record_kind;
        char *uid;
    } *waiting[EFFECT_KIND_COUNT];
};

struct effects *effects_new(struct manager *manager)
{
    struct effects *effects = mem_alloc(sizeof(*effects));
    effects->manager = manager;
    pthread_mutex_init(&effects->lock, NULL);
    return effects;
}

static void effect_free(struct effect *effect)
{
    if (effect->payload && effect->free_payload)
        effect->free_payload(effect->payload);
    free(effect->uid);
    free(effect);
}

static void free_waiting(struct waiting *at)
{
    while (at) {
        struct waiting *next = at->next;
        free(at->uid);
        free(at);
        at = next;
    }
}

static void free_death(struct death *death)
{
    free(death->uid);
    free(death->reason);
    free(death);
}

void effects_free(struct effects *effects)
{
    if (!effects)
        return;
    for (struct effect *at = effects->list, *next; at; at = next) {
        next = at->next;
        effect_free(at);
    }
    for (struct death *at = effects->deaths, *next; at; at = next) {
        next = at->next;
        free_death(at);
    }
    for (int kind = 0; kind < EFFECT_KIND_COUNT; kind++)
        free_waiting(effects->waiting[kind]);
    pthread_mutex_destroy(&effects->lock);
    free(effects);
}

static struct effect **find(struct effects *effects, enum effect_kind kind, const char *uid)
{
    struct effect **at = &effects->list;
    while (*at && ((*at)->kind != kind || (*at)->is_forgotten || strcmp((*at)->uid, uid) != 0))
        at = &(*at)->next;
    return at;
}

static void note_waiting(struct effects *effects, enum effect_kind kind, enum kind record_kind, const char *uid)
{
    for (struct waiting *at = effects->waiting[kind]; at; at = at->next)
        if (strcmp(at->uid, uid) == 0)
            return;
    struct waiting *waiting = mem_alloc(sizeof(*waiting));
    *waiting = (struct waiting){effects->waiting[kind], record_kind, mem_strdup(uid)};
    effects->waiting[kind] = waiting;
}

struct effect *effects_begin(struct effects *effects, enum effect_kind kind, enum kind record_kind, const char *uid)
{
    pthread_mutex_lock(&effects->lock);
    struct effect *effect = NULL;
    if (*find(effects, kind, uid))
        goto out;
    if (effects->running[kind] >= slots[kind]) {
        note_waiting(effects, kind, record_kind, uid);
        goto out;
    }
    effect = mem_alloc(sizeof(*effect));
    *effect = (struct effect){.effects = effects, .next = effects->list, .kind = kind, .record_kind = record_kind,
                              .uid = mem_strdup(uid), .state = EFFECT_RUNNING, .began_us = boot_time_us()};
    effects->list = effect;
    effects->running[kind]++;
out:
    pthread_mutex_unlock(&effects->lock);
    return effect;
}

static void unlink_effect(struct effects *effects, struct effect *effect)
{
    struct effect **at = &effects->list;
    while (*at != effect)
        at = &(*at)->next;
    *at = effect->next;
}

static void wake(struct manager *manager, struct waiting *list)
{
    for (struct waiting *at = list; at; at = at->next)
        manager_enqueue(manager, at->record_kind, at->uid);
    free_waiting(list);
}

void effect_end(struct effect *effect, int result, const struct error *err, void *payload, void (*free_payload)(void *))
{
    struct effects *effects = effect->effects;
    metrics_time(METRIC_DRIVER_CALL, commands[effect->kind], result < 0 ? "failed" : "ok", boot_time_us() - effect->began_us);
    pthread_mutex_lock(&effects->lock);
    assert(effect->state == EFFECT_RUNNING);
    effect->state = result < 0 ? EFFECT_FAILED : EFFECT_DONE;
    if (result < 0 && err)
        effect->err = *err;
    effect->payload = payload;
    effect->free_payload = free_payload;
    effects->running[effect->kind]--;
    struct waiting *waiting = TAKE_PTR(effects->waiting[effect->kind]);
    CLEANUP_FREE char *uid = mem_strdup(effect->uid);
    enum kind record_kind = effect->record_kind;
    bool is_forgotten = effect->is_forgotten;
    if (is_forgotten)
        unlink_effect(effects, effect);
    pthread_mutex_unlock(&effects->lock);
    if (is_forgotten)
        effect_free(effect);
    else
        manager_enqueue(effects->manager, record_kind, uid);
    wake(effects->manager, waiting);
}

enum effect_state effects_look(struct effects *effects, enum effect_kind kind, const char *uid, void **ret_payload, struct error *ret_err)
{
    pthread_mutex_lock(&effects->lock);
    struct effect *effect = *find(effects, kind, uid);
    enum effect_state state = effect ? effect->state : EFFECT_NONE;
    if (state == EFFECT_DONE && ret_payload)
        *ret_payload = effect->payload;
    if (state == EFFECT_FAILED)
        error_copy(ret_err, &effect->err);
    pthread_mutex_unlock(&effects->lock);
    return state;
}

void effect_abandon(struct effect *effect)
{
    struct effects *effects = effect->effects;
    pthread_mutex_lock(&effects->lock);
    unlink_effect(effects, effect);
    effects->running[effect->kind]--;
    struct waiting *waiting = TAKE_PTR(effects->waiting[effect->kind]);
    pthread_mutex_unlock(&effects->lock);
    effect_free(effect);
    wake(effects->manager, waiting);
}

int effects_count_running(struct effects *effects)
{
    int count = 0;
    pthread_mutex_lock(&effects->lock);
    for (int kind = 0; kind < EFFECT_KIND_COUNT; kind++)
        count += effects->running[kind];
    pthread_mutex_unlock(&effects->lock);
    return count;
}

void effects_clear(struct effects *effects, enum effect_kind kind, const char *uid)
{
    pthread_mutex_lock(&effects->lock);
    struct effect **at = find(effects, kind, uid), *effect = *at;
    bool is_settled = effect && effect->state != EFFECT_RUNNING;
    if (is_settled)
        *at = effect->next;
    pthread_mutex_unlock(&effects->lock);
    if (is_settled)
        effect_free(effect);
}

static void clear_deaths(struct effects *effects, const char *uid)
{
    for (struct death **at = &effects->deaths; *at;) {
        struct death *death = *at;
        if (strcmp(death->uid, uid) != 0) {
            at = &death->next;
            continue;
        }
        *at = death->next;
        free_death(death);
    }
}

void effects_clear_all(struct effects *effects, const char *uid)
{
    for (int kind = 0; kind < EFFECT_KIND_COUNT; kind++)
        effects_clear(effects, (enum effect_kind)kind, uid);
    pthread_mutex_lock(&effects->lock);
    for (struct effect *at = effects->list; at; at = at->next)
        if (strcmp(at->uid, uid) == 0)
            at->is_forgotten = true;
    clear_deaths(effects, uid);
    pthread_mutex_unlock(&effects->lock);
}

void effects_set_death(struct effects *effects, const char *uid, enum kind record_kind, const char *reason)
{
    pthread_mutex_lock(&effects->lock);
    struct death *death = mem_alloc(sizeof(*death));
    *death = (struct death){effects->deaths, mem_strdup(uid), mem_strdup(reason)};
    clear_deaths(effects, uid); // the newest word counts
    death->next = effects->deaths;
    effects->deaths = death;
    pthread_mutex_unlock(&effects->lock);
    manager_enqueue(effects->manager, record_kind, uid);
}

char *effects_death(struct effects *effects, const char *uid)
{
    char *reason = NULL;
    pthread_mutex_lock(&effects->lock);
    for (struct death *at = effects->deaths; at && !reason; at = at->next)
        if (strcmp(at->uid, uid) == 0)
            reason = mem_strdup(at->reason);
    pthread_mutex_unlock(&effects->lock);
    return reason;
}
