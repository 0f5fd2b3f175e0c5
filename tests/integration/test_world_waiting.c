// More sandboxes than may be made at once, on the daemon's workers and the real clock, while the driver hangs and fails, some are deleted
// where they stand, and the daemon is started again: all settle, and no slot is lost.
#include "controller/base/memory.h"
#include "tests/support/world_fixture.h"
#include <string.h>
#include <time.h>

#define COUNT 16
#define SLOTS 8 // creates at once
#define STANDSTILL_MS SUPPORT_PATIENCE_MS

static struct world_fixture *open_world(void)
{
    struct world_fixture *fixture = world_open_busy();
    fixture->config.max_sandboxes = 2 * COUNT; // those that go count, too
    return fixture;
}

static int set_up(void **state)
{
    *state = open_world();
    return 0;
}

// With a name of its own: a second one of the same words would join the first.
static void create(struct world_fixture *fixture)
{
    static int number;
    CLEANUP_FREE char *name = mem_format("box-%d", ++number);
    CLEANUP_RECORD struct record *sandbox = NULL;
    struct error err = ERROR_INIT;
    assert_ok(world_create(fixture, &(struct sandbox_request){.principal = "operator:uid=0", .manager = "test", .name = name}, NULL, &sandbox, &err));
}

static void list(struct world_fixture *fixture, struct record_list *ret)
{
    struct error err = ERROR_INIT;
    *ret = (struct record_list){0};
    assert_ok(store_list(fixture->world.store, KIND_SANDBOX, ret, NULL, &err));
}

static bool is_settled(const struct record *sandbox)
{
    bool is_gone = !sandbox->status.sandbox.runtime_name || record_is_true(sandbox, CONDITION_RUNTIME_REMOVED);
    bool has_failed = record_is_true(sandbox, CONDITION_FAILED) && is_gone;
    return !sandbox->meta.deletion_at.ms && (record_is_true(sandbox, CONDITION_READY) || has_failed);
}

static int count_unsettled(struct world_fixture *fixture)
{
    struct record_list all;
    int count = 0;
    list(fixture, &all);
    for (size_t i = 0; i < all.count; i++)
        count += !is_settled(all.items[i]);
    record_list_free(&all);
    return count;
}

static int count_all(struct world_fixture *fixture)
{
    struct record_list all;
    list(fixture, &all);
    int count = (int)all.count;
    record_list_free(&all);
    return count;
}

static int count_free_slots(struct world_fixture *fixture)
{
    return SLOTS - fake_driver_hung(fixture->world.driver);
}

static void wait_for_none(struct world_fixture *fixture, int (*count)(struct world_fixture *fixture), const char *what)
{
    int64_t revision = 0, moved_ms = boot_time_now().ms;
    for (int left; (left = count(fixture));) {
        if (store_revision(fixture->world.store) != revision)
            moved_ms = boot_time_now().ms;
        else if (boot_time_now().ms - moved_ms > STANDSTILL_MS)
            fail_msg("%d %s, and nothing moves", left, what);
        revision = store_revision(fixture->world.store);
        nanosleep(&(struct timespec){0, 5000000}, NULL);
    }
}

// Every second one of those that are there.
static void destroy_half(struct world_fixture *fixture)
{
    struct record_list all;
    struct error err = ERROR_INIT;
    list(fixture, &all);
    for (size_t i = 0; i < all.count; i += 2)
        if (!all.items[i]->meta.deletion_at.ms)
            assert_ok(world_destroy(fixture, all.items[i]->meta.uid, NULL, &err));
    record_list_free(&all);
}

static void expose_all(struct world_fixture *fixture)
{
    struct record_list all;
    struct error err = ERROR_INIT;
    list(fixture, &all);
    for (size_t i = 0; i < all.count; i++) {
        struct record *exposure = NULL;
        world_expose(fixture, all.items[i]->meta.uid, 8000, &exposure, &err); // refused where it does not run
        record_free(exposure);
    }
    record_list_free(&all);
}

static void create_many(struct world_fixture *fixture)
{
    while (count_all(fixture) < COUNT)
        create(fixture);
}

static void set_fault(struct world_fixture *fixture, enum fake_fault fault, int count)
{
    for (int call = 0; call < FAKE_CALL_COUNT; call++)
        fake_driver_inject(fixture->world.driver, (enum fake_call)call, fault, count);
}

static void destroy_all_and_create_one(struct world_fixture *fixture)
{
    set_fault(fixture, FAKE_OK, 0);
    while (count_all(fixture)) {
        destroy_half(fixture);
        nanosleep(&(struct timespec){0, 5000000}, NULL);
    }
    assert_int_equal(fake_driver_runtimes(fixture->world.driver), 0);
    create(fixture);
    wait_for_none(fixture, count_unsettled, "sandboxes are not settled");
    assert_int_equal(fake_driver_runtimes(fixture->world.driver), 1);
    assert_int_equal(fake_driver_names_reused(fixture->world.driver), 0);
}

// All slots hang, and who waits is behind them.
static void fill(struct world_fixture *fixture)
{
    fake_driver_inject(fixture->world.driver, FAKE_CREATE, FAKE_HANG, SLOTS);
    create_many(fixture);
    wait_for_none(fixture, count_free_slots, "creates do not hang yet");
}

static void go_on(struct world_fixture *fixture, enum fake_fault fault)
{
    set_fault(fixture, fault, 3);
    fake_driver_release(fixture->world.driver, FAKE_CREATE);
}

static void whoever_waits_settles_when_the_driver_fails_and_others_go(void **state)
{
    struct world_fixture *fixture = *state;
    static const enum fake_fault faults[] = {FAKE_FAIL, FAKE_HALF_DONE, FAKE_TIMEOUT};
    for (size_t i = 0; i < ARRAY_LEN(faults); i++) {
        fill(fixture);
        destroy_half(fixture);
        go_on(fixture, faults[i]);
        expose_all(fixture);
        destroy_half(fixture);
        wait_for_none(fixture, count_unsettled, "sandboxes are not settled");
    }
    destroy_all_and_create_one(fixture);
}

static void whoever_waits_settles_after_a_restart(void **state)
{
    struct world_fixture *fixture = *state;
    fill(fixture);
    destroy_half(fixture);
    world_restart(fixture);
    go_on(fixture, FAKE_HALF_DONE);
    destroy_half(fixture);
    wait_for_none(fixture, count_unsettled, "sandboxes are not settled");
    destroy_all_and_create_one(fixture);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, world_teardown)
    const struct CMUnitTest tests[] = {
        TEST(whoever_waits_settles_when_the_driver_fails_and_others_go),
        TEST(whoever_waits_settles_after_a_restart),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
