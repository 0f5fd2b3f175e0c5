// Slots and turns: who finds no slot waits in line, a slot that comes free is one record's turn, and a turn that is not taken goes on.
#include "reconcilers/effects.h"
#include "controller/base/cleanup.h"
#include "controller/base/memory.h"
#include "controller/clock.h"
#include "tests/support/support.h"
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define SLOTS 8 // of EFFECT_CREATE
#define MANY 3000

struct rig {
    struct clock *clock;
    struct manager *manager;
    struct effects *effects;
    pthread_mutex_t lock; // guards what follows
    struct effect *running[MANY];
    int order[MANY]; // which record began as which
    int count, ended;
    bool is_idle[MANY]; // begins nothing when its turn comes
    atomic_int runs, done;
};

static char *uid_of(int i)
{
    return mem_format("sbx_%d", i);
}

static bool begin(struct rig *rig, int i)
{
    CLEANUP_FREE char *uid = uid_of(i);
    struct effect *effect = effects_begin(rig->effects, EFFECT_CREATE, KIND_SANDBOX, uid);
    if (!effect)
        return false;
    pthread_mutex_lock(&rig->lock);
    rig->order[rig->count] = i;
    rig->running[rig->count++] = effect;
    pthread_mutex_unlock(&rig->lock);
    return true;
}

static enum reconcile_verdict reconcile(void *arg, const char *uid, struct reconcile_outcome *outcome, struct error *err)
{
    (void)outcome, (void)err;
    struct rig *rig = arg;
    int i = atoi(strchr(uid, '_') + 1);
    uint64_t entered = effects_enter(rig->effects);
    rig->runs++;
    if (effects_look(rig->effects, EFFECT_CREATE, uid, NULL, NULL) == EFFECT_DONE)
        rig->done++;
    else if (!rig->is_idle[i])
        begin(rig, i);
    effects_leave(rig->effects, uid, entered);
    return RECONCILE_DONE;
}

static struct rig *open_rig(struct clock *clock, int workers)
{
    struct rig *rig = mem_alloc(sizeof(*rig));
    struct error err = ERROR_INIT;
    rig->clock = clock;
    pthread_mutex_init(&rig->lock, NULL);
    rig->manager = manager_new(&(struct manager_options){.clock = rig->clock, .worker_count = workers});
    rig->effects = effects_new(rig->manager);
    manager_add(rig->manager, &(struct reconciler){.name = "test", .kind = KIND_SANDBOX, .reconcile = reconcile, .arg = rig});
    assert_ok(manager_start(rig->manager, &err));
    return rig;
}

static int setup(void **state)
{
    *state = open_rig(clock_new_fake((struct wall_time){1796000000000LL}), -1);
    return 0;
}

static void end_at(struct rig *rig, int position)
{
    pthread_mutex_lock(&rig->lock);
    struct effect *effect = TAKE_PTR(rig->running[position]);
    rig->ended += effect != NULL;
    pthread_mutex_unlock(&rig->lock);
    if (effect)
        effect_end(effect, 0, NULL, NULL, NULL);
}

static int teardown(void **state)
{
    struct rig *rig = *state;
    assert_true(manager_stop(rig->manager, SUPPORT_PATIENCE_MS));
    for (int i = 0; i < rig->count; i++)
        end_at(rig, i);
    effects_free(rig->effects);
    manager_free(rig->manager);
    clock_free(rig->clock);
    pthread_mutex_destroy(&rig->lock);
    free(rig);
    return 0;
}

// The first SLOTS run, the rest waits.
static void begin_all(struct rig *rig, int count)
{
    for (int i = 0; i < count; i++)
        assert_int_equal(begin(rig, i), i < SLOTS);
}

static void settle(struct rig *rig)
{
    manager_run_until_idle(rig->manager, 100000);
}

static void thousands_wait_and_each_end_brings_one_of_them_in_the_order_in_which_they_came(void **state)
{
    struct rig *rig = *state;
    begin_all(rig, MANY);
    for (int i = 0; i < MANY; i++) {
        assert_int_equal(effects_count_running(rig->effects), i + SLOTS < MANY ? SLOTS : MANY - i);
        end_at(rig, i);
        settle(rig);
    }
    assert_int_equal(rig->count, MANY);
    for (int i = 0; i < MANY; i++)
        assert_int_equal(rig->order[i], i);
    assert_int_equal(rig->runs, MANY + MANY - SLOTS); // each end, and one turn for each that waited
}

static void who_asks_again_while_it_waits_keeps_its_place(void **state)
{
    struct rig *rig = *state;
    begin_all(rig, SLOTS + 2);
    for (int i = 0; i < 3; i++)
        assert_false(begin(rig, SLOTS));
    end_at(rig, 0);
    end_at(rig, 1);
    settle(rig);
    assert_int_equal(rig->order[SLOTS], SLOTS);
    assert_int_equal(rig->order[SLOTS + 1], SLOTS + 1);
    assert_int_equal(effects_count_running(rig->effects), SLOTS);
}

static void a_kept_slot_is_not_for_who_comes_later(void **state)
{
    struct rig *rig = *state;
    begin_all(rig, SLOTS + 1);
    end_at(rig, 0); // the turn of the one that waits, which does not know yet
    assert_false(begin(rig, SLOTS + 1));
    assert_int_equal(effects_count_running(rig->effects), SLOTS - 1);
    settle(rig);
    assert_int_equal(rig->order[SLOTS], SLOTS);
}

static void a_turn_that_is_not_taken_goes_to_the_next(void **state)
{
    struct rig *rig = *state;
    begin_all(rig, SLOTS + 4);
    rig->is_idle[SLOTS] = rig->is_idle[SLOTS + 1] = true;
    end_at(rig, 0);
    settle(rig);
    assert_int_equal(rig->count, SLOTS + 1);
    assert_int_equal(rig->order[SLOTS], SLOTS + 2);
    assert_int_equal(effects_count_running(rig->effects), SLOTS);
    rig->is_idle[SLOTS] = false;
    assert_false(begin(rig, SLOTS)); // at the end of the line now
    end_at(rig, 1);
    end_at(rig, 2);
    settle(rig);
    assert_int_equal(rig->order[SLOTS + 1], SLOTS + 3);
    assert_int_equal(rig->order[SLOTS + 2], SLOTS);
}

static void the_place_and_the_turn_of_a_record_that_is_gone_go_to_the_next(void **state)
{
    struct rig *rig = *state;
    begin_all(rig, SLOTS + 3);
    CLEANUP_FREE char *second = uid_of(SLOTS + 1), *first = uid_of(SLOTS);
    effects_clear_all(rig->effects, second); // stands in line
    end_at(rig, 0);
    rig->is_idle[SLOTS] = rig->is_idle[SLOTS + 1] = true;
    effects_clear_all(rig->effects, first); // it was its turn
    settle(rig);
    assert_int_equal(rig->count, SLOTS + 1);
    assert_int_equal(rig->order[SLOTS], SLOTS + 2);
    for (int i = 1; i < SLOTS + 1; i++)
        end_at(rig, i);
    settle(rig);
    assert_int_equal(effects_count_running(rig->effects), 0);
    for (int i = 100; i < 100 + SLOTS; i++) // and no slot is lost
        assert_true(begin(rig, i));
    assert_false(begin(rig, 200));
}

static void an_effect_of_a_record_that_is_gone_holds_its_slot_until_it_ends(void **state)
{
    struct rig *rig = *state;
    begin_all(rig, SLOTS + 1);
    CLEANUP_FREE char *gone = uid_of(0);
    effects_clear_all(rig->effects, gone);
    settle(rig);
    assert_int_equal(rig->count, SLOTS);
    assert_int_equal(effects_count_running(rig->effects), SLOTS);
    end_at(rig, 0);
    settle(rig);
    assert_int_equal(rig->order[SLOTS], SLOTS);
}

// It looked for a slot before one came free: the run that follows takes it.
static void a_turn_that_comes_during_a_reconcile_is_for_the_next_one(void **state)
{
    struct rig *rig = *state;
    begin_all(rig, SLOTS + 2);
    CLEANUP_FREE char *uid = uid_of(SLOTS);
    uint64_t entered = effects_enter(rig->effects);
    assert_false(begin(rig, SLOTS));
    end_at(rig, 0);
    effects_leave(rig->effects, uid, entered);
    settle(rig);
    assert_int_equal(rig->order[SLOTS], SLOTS);
}

static void an_abandoned_effect_gives_its_slot_to_the_next(void **state)
{
    struct rig *rig = *state;
    begin_all(rig, SLOTS + 1);
    effect_abandon(TAKE_PTR(rig->running[3]));
    settle(rig);
    assert_int_equal(rig->order[SLOTS], SLOTS);
    CLEANUP_FREE char *abandoned = uid_of(3);
    assert_int_equal(effects_look(rig->effects, EFFECT_CREATE, abandoned, NULL, NULL), EFFECT_NONE);
    assert_false(begin(rig, 3));
    assert_int_equal(effects_count_running(rig->effects), SLOTS);
}

static void a_waiting_effect_is_none_and_clearing_it_changes_nothing(void **state)
{
    struct rig *rig = *state;
    begin_all(rig, SLOTS + 1);
    CLEANUP_FREE char *uid = uid_of(SLOTS);
    effects_clear(rig->effects, EFFECT_CREATE, uid);
    assert_int_equal(effects_look(rig->effects, EFFECT_CREATE, uid, NULL, NULL), EFFECT_NONE);
    end_at(rig, 0);
    settle(rig);
    assert_int_equal(rig->order[SLOTS], SLOTS);
}

static void each_kind_has_slots_of_its_own(void **state)
{
    struct rig *rig = *state;
    begin_all(rig, MANY);
    struct effect *removal = effects_begin(rig->effects, EFFECT_REMOVE, KIND_SANDBOX, "sbx_0");
    assert_non_null(removal);
    effect_end(removal, 0, NULL, NULL, NULL);
}

static void *end_whatever_runs(void *arg)
{
    struct rig *rig = arg;
    bool is_all = false;
    while (!is_all) {
        pthread_mutex_lock(&rig->lock);
        int next = rig->ended, count = rig->count;
        is_all = next == MANY;
        pthread_mutex_unlock(&rig->lock);
        if (next < count)
            end_at(rig, next);
        else
            nanosleep(&(struct timespec){0, 100000}, NULL);
    }
    return NULL;
}

static void on_several_workers_every_one_of_thousands_gets_its_turn(void **state)
{
    (void)state;
    struct rig *rig = open_rig(clock_new_real(), 4);
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, end_whatever_runs, rig), 0);
    for (int i = 0; i < MANY; i++) {
        CLEANUP_FREE char *uid = uid_of(i);
        manager_enqueue(rig->manager, KIND_SANDBOX, uid);
    }
    pthread_join(thread, NULL);
    while (rig->done < MANY)
        nanosleep(&(struct timespec){0, 1000000}, NULL);
    assert_int_equal(effects_count_running(rig->effects), 0);
    void *ended = rig;
    teardown(&ended);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(thousands_wait_and_each_end_brings_one_of_them_in_the_order_in_which_they_came),
        TEST(who_asks_again_while_it_waits_keeps_its_place),
        TEST(a_kept_slot_is_not_for_who_comes_later),
        TEST(a_turn_that_is_not_taken_goes_to_the_next),
        TEST(the_place_and_the_turn_of_a_record_that_is_gone_go_to_the_next),
        TEST(an_effect_of_a_record_that_is_gone_holds_its_slot_until_it_ends),
        TEST(a_turn_that_comes_during_a_reconcile_is_for_the_next_one),
        TEST(an_abandoned_effect_gives_its_slot_to_the_next),
        TEST(a_waiting_effect_is_none_and_clearing_it_changes_nothing),
        TEST(each_kind_has_slots_of_its_own),
        cmocka_unit_test(on_several_workers_every_one_of_thousands_gets_its_turn),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
