// The fair line: whatever one asker does, the others get their places and their turns.
#include "controller/queue/fair.h"
#include "controller/base/memory.h"
#include "tests/support/support.h"
#include <stdlib.h>
#include <string.h>

#define HOG 7
#define MAX 1000

struct thing {
    struct fair_item item; // first: an item is its thing
    uint64_t asker;
    size_t number; // of this asker's, in order of asking
};

static bool ask(struct fair_line *line, uint64_t asker, struct thing *thing)
{
    thing->asker = asker;
    if (!fair_enter(line, asker, &thing->item))
        return false;
    fair_push(line, &thing->item);
    return true;
}

static void ten_others_are_served_before_the_twelfth_call_of_one_that_asked_for_a_thousand(void **state)
{
    (void)state;
    struct fair_line line;
    fair_init(&line, 2000);
    struct thing *hog = mem_alloc(1000 * sizeof(*hog)), others[10] = {0};
    for (size_t i = 0; i < 1000; i++) {
        hog[i].number = i;
        assert_true(ask(&line, HOG, &hog[i]));
    }
    for (size_t i = 0; i < 10; i++)
        assert_true(ask(&line, 100 + i, &others[i]));
    size_t of_hog = 0, of_others = 0;
    for (struct fair_item *item; (item = fair_pop(&line));) {
        struct thing *thing = (struct thing *)item;
        if (thing->asker == HOG)
            assert_int_equal(thing->number, of_hog++); // in its own order
        else
            of_others++;
        if (of_hog == 11)
            assert_int_equal(of_others, 10);
        fair_leave(&line, item);
    }
    assert_int_equal(of_hog, 1000);
    fair_clear(&line);
    free(hog);
}

static void one_asker_gets_four_fifths_and_leaves_the_rest_to_others(void **state)
{
    (void)state;
    struct fair_line line;
    fair_init(&line, MAX);
    struct thing *things = mem_alloc(2 * MAX * sizeof(*things));
    size_t count = 0;
    while (ask(&line, HOG, &things[count]))
        count++;
    assert_int_equal(count, FAIR_MOST(MAX));
    for (uint64_t other = 0; other < MAX - FAIR_MOST(MAX); other++) // one each: to the last place
        assert_true(ask(&line, 1000 + other, &things[count++]));
    assert_int_equal(count, MAX);
    assert_false(ask(&line, 5000, &things[count]));
    assert_false(ask(&line, HOG, &things[count]));
    fair_leave(&line, &things[0].item); // a place of the hog's: not for the hog again
    assert_false(ask(&line, HOG, &things[count]));
    assert_true(ask(&line, 5000, &things[count]));
    for (size_t i = 0; i <= count; i++)
        fair_leave(&line, &things[i].item);
    assert_int_equal(line.held + line.waiting, 0);
    assert_null(fair_pop(&line));
    fair_clear(&line);
    free(things);
}

static void whoever_leaves_the_line_is_not_served(void **state)
{
    (void)state;
    struct fair_line line;
    fair_init(&line, 10);
    struct thing things[4] = {0};
    for (size_t i = 0; i < 4; i++)
        assert_true(ask(&line, i / 2, &things[i]));
    fair_leave(&line, &things[0].item);
    fair_leave(&line, &things[0].item); // again: nothing
    fair_leave(&line, &things[3].item);
    assert_ptr_equal(fair_pop(&line), &things[1].item);
    assert_ptr_equal(fair_pop(&line), &things[2].item);
    assert_null(fair_pop(&line));
    assert_int_equal(line.held, 2); // served, and still holding their places
    fair_leave(&line, &things[1].item);
    fair_leave(&line, &things[2].item);
    fair_clear(&line);
}

enum { THINGS = 400, ASKERS = 12 };
struct crowd {
    struct fair_line line;
    struct thing things[THINGS];
    size_t held[ASKERS], in_line[ASKERS], total;
    size_t passed[ASKERS][ASKERS]; // [a][b]: turns of b while a stood in line, since a's own last turn
};

static void crowd_ask(struct crowd *crowd, struct thing *thing, uint64_t asker)
{
    bool may = crowd->held[asker] < 4 * (crowd->line.max - crowd->total);
    assert_int_equal(ask(&crowd->line, asker, thing), may);
    crowd->held[asker] += may, crowd->total += may, crowd->in_line[asker] += may;
    if (may && crowd->in_line[asker] == 1)
        memset(crowd->passed[asker], 0, sizeof(crowd->passed[asker]));
}

static void crowd_leave(struct crowd *crowd, struct thing *thing)
{
    crowd->held[thing->asker]--, crowd->total--, crowd->in_line[thing->asker] -= thing->item.is_in_line;
    fair_leave(&crowd->line, &thing->item);
}

static void crowd_serve(struct crowd *crowd)
{
    struct thing *served = (struct thing *)fair_pop(&crowd->line);
    if (!served)
        return;
    crowd->in_line[served->asker]--;
    memset(crowd->passed[served->asker], 0, sizeof(crowd->passed[served->asker]));
    for (size_t other = 0; other < ASKERS; other++)
        if (other != served->asker && crowd->in_line[other])
            assert_int_equal(++crowd->passed[other][served->asker], 1);
}

// Whatever happens in whatever order: counts agree, nobody exceeds the share, and nobody is passed twice by the same one.
static void random_askers_keep_the_rules(void **state)
{
    (void)state;
    struct crowd *crowd = mem_alloc(sizeof(*crowd));
    unsigned seed = 5;
    fair_init(&crowd->line, 100);
    for (int i = 0; i < 200000; i++) {
        struct thing *thing = &crowd->things[(size_t)rand_r(&seed) % THINGS];
        if (!thing->item.asker)
            crowd_ask(crowd, thing, (uint64_t)rand_r(&seed) % (uint64_t)(1 + rand_r(&seed) % ASKERS));
        else if (rand_r(&seed) % 3)
            crowd_leave(crowd, thing);
        if (rand_r(&seed) % 4 == 0)
            crowd_serve(crowd);
        assert_int_equal(crowd->line.held, crowd->total);
    }
    for (size_t i = 0; i < THINGS; i++)
        fair_leave(&crowd->line, &crowd->things[i].item);
    fair_clear(&crowd->line);
    free(crowd);
}

static void names_have_numbers_apart_from_counted_ones(void **state)
{
    (void)state;
    assert_true(fair_asker_of("") >> 63 && fair_asker_of("mcp:token:a") >> 63);
    assert_true(fair_asker_of("mcp:token:a") != fair_asker_of("mcp:token:b"));
    assert_true(fair_asker_of("mcp:token:a") == fair_asker_of("mcp:token:a"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ten_others_are_served_before_the_twelfth_call_of_one_that_asked_for_a_thousand),
        cmocka_unit_test(one_asker_gets_four_fifths_and_leaves_the_rest_to_others),
        cmocka_unit_test(whoever_leaves_the_line_is_not_served),
        cmocka_unit_test(random_askers_keep_the_rules),
        cmocka_unit_test(names_have_numbers_apart_from_counted_ones),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
