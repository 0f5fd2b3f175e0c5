#include "reconcilers/effects.h"
#include "controller/base/cleanup.h"
#include "controller/base/memory.h"
#include "controller/hash.h"
#include "controller/metrics.h"
#include <assert.h>
#include <pthread.h>
#include <string.h>
#include <sys/queue.h>

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

#define BUCKETS 1024 // by uid: a few of the records that there may be to each

struct effect {
    int64_t began_us;
    struct effects *effects;
    struct effect *next; // in its bucket
    TAILQ_ENTRY(effect) place; // in the line of its kind, while it waits
    enum effect_kind kind;
    enum kind record_kind;
    char *uid;
    enum effect_state state; // NONE: it waits for a slot
    uint64_t call;           // while it waits: a slot is kept for it, and its record was requeued to take that; else 0
    bool is_forgotten;       // its record is gone: freed at its end
    struct error err;
    void *payload;
    void (*free_payload)(void *);
};

struct death {
    struct death *next;
    char *uid, *reason;
};

struct bucket {
    struct effect *effects; // bounded: one a kind and live record
    struct death *deaths;
};

struct effects {
    struct manager *manager;
    pthread_mutex_t lock; // guards all below
    struct bucket buckets[BUCKETS];
    int taken[EFFECT_KIND_COUNT]; // slots: of what runs, and kept for who was called
    int running[EFFECT_KIND_COUNT];
    TAILQ_HEAD(line, effect) lines[EFFECT_KIND_COUNT]; // who waits and was not called yet, the oldest first
    uint64_t calls;
};

struct effects *effects_new(struct manager *manager)
{
    struct effects *effects = mem_alloc(sizeof(*effects));
    effects->manager = manager;
    pthread_mutex_init(&effects->lock, NULL);
    for (int kind = 0; kind < EFFECT_KIND_COUNT; kind++)
        TAILQ_INIT(&effects->lines[kind]);
    return effects;
}

static void effect_free(struct effect *effect)
{
    if (effect->payload && effect->free_payload)
        effect->free_payload(effect->payload);
    free(effect->uid);
    free(effect);
}

static void free_death(struct death *death)
{
    free(death->uid);
    free(death->reason);
    free(death);
}

static void bucket_clear(struct bucket *bucket)
{
    for (struct effect *at = bucket->effects, *next; at; at = next) {
        next = at->next;
        effect_free(at);
    }
    for (struct death *at = bucket->deaths, *next; at; at = next) {
        next = at->next;
        free_death(at);
    }
}

void effects_free(struct effects *effects)
{
    if (!effects)
        return;
    for (size_t i = 0; i < BUCKETS; i++)
        bucket_clear(&effects->buckets[i]);
    pthread_mutex_destroy(&effects->lock);
    free(effects);
}

// ---- with the lock held -------------------------------------------------------------------------------------------
static struct bucket *bucket_of(struct effects *effects, const char *uid)
{
    return &effects->buckets[hash_text(uid) % BUCKETS];
}

static struct effect **find(struct effects *effects, enum effect_kind kind, const char *uid)
{
    struct effect **at = &bucket_of(effects, uid)->effects;
    while (*at && ((*at)->kind != kind || (*at)->is_forgotten || strcmp((*at)->uid, uid) != 0))
        at = &(*at)->next;
    return at;
}

static bool is_waiting(const struct effect *effect)
{
    return effect && effect->state == EFFECT_NONE;
}

static struct effect *add(struct effects *effects, enum effect_kind kind, enum kind record_kind, const char *uid)
{
    struct effect *effect = mem_alloc(sizeof(*effect));
    struct bucket *bucket = bucket_of(effects, uid);
    *effect = (struct effect){.effects = effects, .next = bucket->effects, .kind = kind, .record_kind = record_kind, .uid = mem_strdup(uid)};
    bucket->effects = effect;
    return effect;
}

static void unlink_effect(struct effects *effects, struct effect *effect)
{
    struct effect **at = &bucket_of(effects, effect->uid)->effects;
    while (*at != effect)
        at = &(*at)->next;
    *at = effect->next;
}

// A slot came free: it is kept for who waits longest, and nobody else is disturbed.
static void free_slot(struct effects *effects, enum effect_kind kind)
{
    effects->taken[kind]--;
    struct effect *next = TAILQ_FIRST(&effects->lines[kind]);
    if (!next)
        return;
    TAILQ_REMOVE(&effects->lines[kind], next, place);
    effects->taken[kind]++;
    next->call = ++effects->calls;
    manager_enqueue(effects->manager, next->record_kind, next->uid);
}

static void drop_waiting(struct effects *effects, struct effect *effect)
{
    if (effect->call)
        free_slot(effects, effect->kind);
    else
        TAILQ_REMOVE(&effects->lines[effect->kind], effect, place);
    unlink_effect(effects, effect);
    effect_free(effect);
}

static struct effect *start(struct effects *effects, struct effect *effect)
{
    effect->state = EFFECT_RUNNING;
    effect->call = 0;
    effect->began_us = boot_time_us();
    effects->running[effect->kind]++;
    return effect;
}

// ---- slots --------------------------------------------------------------------------------------------------------
struct effect *effects_begin(struct effects *effects, enum effect_kind kind, enum kind record_kind, const char *uid)
{
    pthread_mutex_lock(&effects->lock);
    struct effect *effect = *find(effects, kind, uid), *begun = NULL;
    if (effect) {
        if (is_waiting(effect) && effect->call)
            begun = start(effects, effect);
        goto out;
    }
    effect = add(effects, kind, record_kind, uid);
    if (effects->taken[kind] < slots[kind]) { // then nobody waits
        effects->taken[kind]++;
        begun = start(effects, effect);
    } else {
        TAILQ_INSERT_TAIL(&effects->lines[kind], effect, place);
    }
out:
    pthread_mutex_unlock(&effects->lock);
    return begun;
}

uint64_t effects_enter(struct effects *effects)
{
    pthread_mutex_lock(&effects->lock);
    uint64_t calls = effects->calls;
    pthread_mutex_unlock(&effects->lock);
    return calls;
}

void effects_leave(struct effects *effects, const char *uid, uint64_t entered)
{
    pthread_mutex_lock(&effects->lock);
    for (int kind = 0; kind < EFFECT_KIND_COUNT; kind++) {
        struct effect *effect = *find(effects, (enum effect_kind)kind, uid);
        if (is_waiting(effect) && effect->call && effect->call <= entered)
            drop_waiting(effects, effect);
    }
    pthread_mutex_unlock(&effects->lock);
}

// Of what has ended or was not begun.
static void give_back(struct effects *effects, const struct effect *effect)
{
    effects->running[effect->kind]--;
    free_slot(effects, effect->kind);
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
    give_back(effects, effect);
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
    give_back(effects, effect);
    pthread_mutex_unlock(&effects->lock);
    effect_free(effect);
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
    bool is_settled = effect && (effect->state == EFFECT_DONE || effect->state == EFFECT_FAILED);
    if (is_settled)
        *at = effect->next;
    pthread_mutex_unlock(&effects->lock);
    if (is_settled)
        effect_free(effect);
}

static void clear_deaths(struct effects *effects, const char *uid)
{
    for (struct death **at = &bucket_of(effects, uid)->deaths; *at;) {
        struct death *death = *at;
        if (strcmp(death->uid, uid) != 0) {
            at = &death->next;
            continue;
        }
        *at = death->next;
        free_death(death);
    }
}

static void forget(struct effects *effects, struct effect *effect)
{
    if (effect->state == EFFECT_RUNNING) {
        effect->is_forgotten = true;
    } else if (is_waiting(effect)) {
        drop_waiting(effects, effect);
    } else {
        unlink_effect(effects, effect);
        effect_free(effect);
    }
}

void effects_clear_all(struct effects *effects, const char *uid)
{
    pthread_mutex_lock(&effects->lock);
    for (int kind = 0; kind < EFFECT_KIND_COUNT; kind++) {
        struct effect *effect = *find(effects, (enum effect_kind)kind, uid);
        if (effect)
            forget(effects, effect);
    }
    clear_deaths(effects, uid);
    pthread_mutex_unlock(&effects->lock);
}

void effects_set_death(struct effects *effects, const char *uid, enum kind record_kind, const char *reason)
{
    pthread_mutex_lock(&effects->lock);
    clear_deaths(effects, uid); // the newest word counts
    struct death *death = mem_alloc(sizeof(*death));
    struct bucket *bucket = bucket_of(effects, uid);
    *death = (struct death){bucket->deaths, mem_strdup(uid), mem_strdup(reason)};
    bucket->deaths = death;
    pthread_mutex_unlock(&effects->lock);
    manager_enqueue(effects->manager, record_kind, uid);
}

char *effects_death(struct effects *effects, const char *uid)
{
    char *reason = NULL;
    pthread_mutex_lock(&effects->lock);
    for (struct death *at = bucket_of(effects, uid)->deaths; at && !reason; at = at->next)
        if (strcmp(at->uid, uid) == 0)
            reason = mem_strdup(at->reason);
    pthread_mutex_unlock(&effects->lock);
    return reason;
}
