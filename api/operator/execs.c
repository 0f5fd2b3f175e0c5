// The table of the operator's programs, and the end of those that nobody reads.
#include "api/operator/exec.h"
#include "controller/base/cleanup.h"
#include "controller/base/memory.h"
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#define EXEC_UNREAD_MS (10 * 60 * 1000) // ended when nobody read for so long
#define EXEC_SWEEP_MS 30000

struct exec_entry {
    struct exec_entry *next;
    char id[EXEC_ID_SIZE];
    char *sandbox_uid;
    struct boot_time last_read;
    size_t reads; // under way: it is not unread
};
struct execs {
    struct world *world;
    pthread_mutex_t lock; // guards the rest
    struct exec_entry *first;
    size_t count;
    struct loop_timer *sweep; // loop thread only
    bool is_stopping;         // loop thread only
};

// ---- the table
// ----------------------------------------------------------------------------------------------------------
static void entry_free(struct exec_entry *entry)
{
    free(entry->sandbox_uid);
    free(entry);
}

static struct exec_entry **find(struct execs *execs, const char *id) // under the lock
{
    struct exec_entry **at = &execs->first;
    while (*at && strcmp((*at)->id, id) != 0)
        at = &(*at)->next;
    return at;
}

static struct exec_entry *take_out(struct execs *execs, struct exec_entry **at)
{
    struct exec_entry *entry = *at;
    *at = entry->next;
    entry->next = NULL;
    execs->count--;
    return entry;
}

bool operator_execs_touch(struct execs *execs, const char *id, const char *sandbox_uid, int reads)
{
    pthread_mutex_lock(&execs->lock);
    struct exec_entry *entry = *find(execs, id);
    bool is_there = entry && strcmp(entry->sandbox_uid, sandbox_uid) == 0;
    if (is_there && reads) {
        entry->reads += (size_t)reads;
        entry->last_read = clock_boot(execs->world->clock);
    }
    pthread_mutex_unlock(&execs->lock);
    return is_there;
}

bool operator_execs_add(struct execs *execs, const char *id, const char *sandbox_uid)
{
    struct exec_entry *entry = mem_alloc(sizeof(*entry));
    snprintf(entry->id, sizeof(entry->id), "%s", id);
    entry->sandbox_uid = mem_strdup(sandbox_uid);
    entry->last_read = clock_boot(execs->world->clock);
    pthread_mutex_lock(&execs->lock);
    bool has_room = execs->count < EXECS_MAX;
    if (has_room) {
        entry->next = execs->first;
        execs->first = entry;
        execs->count++;
    }
    pthread_mutex_unlock(&execs->lock);
    if (!has_room)
        entry_free(entry);
    return has_room;
}

void operator_execs_remove(struct execs *execs, const char *id)
{
    pthread_mutex_lock(&execs->lock);
    struct exec_entry **at = find(execs, id), *entry = *at ? take_out(execs, at) : NULL;
    pthread_mutex_unlock(&execs->lock);
    if (entry)
        entry_free(entry);
}

// ---- the end of programs that nobody reads
// ----------------------------------------------------------------------------------
static void ignore_answer(void *arg, int result, json_t *answer, const struct error *err)
{
    (void)arg, (void)result, (void)answer, (void)err; // the sandbox may be gone: then so is the program
}

static void end_entry(struct execs *execs, struct exec_entry *entry)
{
    lane_request(execs->world->lanes, entry->sandbox_uid, "chat2shell/exec_end",
                 json_pack("{s:s}", "exec_id", entry->id), EXEC_GRACE_MS, ignore_answer, NULL);
    entry_free(entry);
}

static struct exec_entry *take_unread(struct execs *execs, int64_t before_ms)
{
    struct exec_entry *taken = NULL;
    pthread_mutex_lock(&execs->lock);
    for (struct exec_entry **at = &execs->first; *at;) {
        if ((*at)->reads || (*at)->last_read.ms > before_ms) {
            at = &(*at)->next;
            continue;
        }
        struct exec_entry *entry = take_out(execs, at);
        entry->next = taken;
        taken = entry;
    }
    pthread_mutex_unlock(&execs->lock);
    return taken;
}

static void end_unread(struct execs *execs, int64_t before_ms)
{
    struct exec_entry *taken = take_unread(execs, before_ms);
    while (taken) {
        struct exec_entry *entry = taken;
        taken = entry->next;
        end_entry(execs, entry);
    }
}

static void sweep(void *arg)
{
    struct execs *execs = arg;
    execs->sweep = NULL;
    end_unread(execs, clock_boot(execs->world->clock).ms - EXEC_UNREAD_MS);
    if (!execs->is_stopping)
        execs->sweep = loop_after(execs->world->loop, EXEC_SWEEP_MS, sweep, execs);
}

struct execs *operator_execs_new(struct world *world)
{
    struct execs *execs = mem_alloc(sizeof(*execs));
    execs->world = world;
    pthread_mutex_init(&execs->lock, NULL);
    loop_call(world->loop, sweep, execs);
    return execs;
}

static void stop_sweep(void *arg)
{
    struct execs *execs = arg;
    execs->is_stopping = true;
    loop_cancel(execs->sweep);
    execs->sweep = NULL;
}

void operator_execs_stop(struct execs *execs)
{
    loop_call(execs->world->loop, stop_sweep, execs);
    end_unread(execs, INT64_MAX);
}

void operator_execs_free(struct execs *execs)
{
    while (execs->first)
        entry_free(take_out(execs, &execs->first));
    pthread_mutex_destroy(&execs->lock);
    free(execs);
}
