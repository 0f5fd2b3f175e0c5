#include "tests/support/support.h"
#include "controller/clock.h"
#include "controller/heap.h"
#include "controller/base/random.h"

static void a_fake_clock_moves_only_when_told(void **state)
{
    (void)state;
    struct clock *clock = clock_new_fake((struct wall_time){1000});
    struct boot_time boot = clock_boot(clock);
    assert_true(clock_is_fake(clock));
    assert_int_equal(clock_wall(clock).ms, 1000);
    clock_advance(clock, 86400000);
    assert_int_equal(clock_wall(clock).ms, 86401000);
    assert_int_equal(clock_boot(clock).ms, boot.ms + 86400000);
    clock_free(clock);
}

static void a_step_of_the_wall_clock_leaves_boot_time_alone(void **state)
{
    (void)state;
    struct clock *clock = clock_new_fake((struct wall_time){5000});
    struct boot_time boot = clock_boot(clock);
    clock_step_wall(clock, -3000);
    assert_int_equal(clock_wall(clock).ms, 2000);
    assert_int_equal(clock_boot(clock).ms, boot.ms);
    clock_free(clock);
}

static void count(void *arg)
{
    ++*(int *)arg;
}

static void each_advance_wakes_every_hook_until_it_is_taken_off(void **state)
{
    (void)state;
    struct clock *clock = clock_new_fake((struct wall_time){0});
    int first = 0, second = 0;
    clock_on_advance(clock, count, &first);
    clock_on_advance(clock, count, &second);
    clock_advance(clock, 1);
    clock_off_advance(clock, &first);
    clock_advance(clock, 1);
    assert_int_equal(first, 1);
    assert_int_equal(second, 2);
    clock_off_advance(clock, &second);
    clock_free(clock);
}

static void a_real_clock_tells_the_systems_time(void **state)
{
    (void)state;
    struct clock *clock = clock_new_real();
    int64_t before = wall_time_now().ms;
    assert_in_range(clock_wall(clock).ms - before, 0, 10000);
    assert_in_range(clock_boot(clock).ms - boot_time_now().ms + 10000, 0, 10000);
    assert_false(clock_is_fake(clock));
    clock_free(clock);
}

#define NODES 500

static void a_heap_gives_deadlines_in_order_whatever_is_removed(void **state)
{
    (void)state;
    struct heap heap = {0};
    struct heap_node nodes[NODES] = {0};
    for (size_t i = 0; i < NODES; i++)
        heap_put(&heap, &nodes[i], random_below(50));
    for (size_t i = 0; i < NODES; i += 3)
        heap_remove(&heap, &nodes[i]);
    heap_remove(&heap, &nodes[0]); // again: nothing
    int64_t last_ms = -1;
    uint64_t last_order = 0;
    size_t left = 0;
    for (struct heap_node *node; (node = heap_first(&heap)); left++) {
        heap_remove(&heap, node);
        assert_true(node->deadline_ms > last_ms ||
                    (node->deadline_ms == last_ms && node->order > last_order));
        last_ms = node->deadline_ms;
        last_order = node->order;
    }
    assert_int_equal(left, NODES - (NODES + 2) / 3);
    heap_free(&heap);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_fake_clock_moves_only_when_told),
        cmocka_unit_test(a_step_of_the_wall_clock_leaves_boot_time_alone),
        cmocka_unit_test(each_advance_wakes_every_hook_until_it_is_taken_off),
        cmocka_unit_test(a_real_clock_tells_the_systems_time),
        cmocka_unit_test(a_heap_gives_deadlines_in_order_whatever_is_removed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
