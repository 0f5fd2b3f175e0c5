// The journal of a sandbox: what it keeps, what it drops, who is woken.
#include "tests/support/support.h"
#include "controller/base/buffer.h"
#include "controller/base/cleanup.h"
#include "controller/base/memory.h"
#include "controller/clock.h"
#include "controller/thread.h"
#include "reconcilers/session/journal.h"
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

struct rig {
    struct clock *clock;
    struct loop *loop;
    struct journals *journals;
    atomic_int woken;
};

static int set_up(void **state)
{
    struct rig *rig = mem_alloc(sizeof(*rig));
    struct error err = ERROR_INIT;
    rig->clock = clock_new_fake((struct wall_time){1800000000000LL});
    assert_ok(loop_start(rig->clock, &rig->loop, &err));
    rig->journals = journals_new(rig->loop);
    journals_begin(rig->journals, "sbx_a", "dev");
    *state = rig;
    return 0;
}

static void free_on_loop(void *arg)
{
    journals_free(arg);
}

static int tear_down(void **state)
{
    struct rig *rig = *state;
    loop_call(rig->loop, free_on_loop, rig->journals);
    loop_stop(rig->loop);
    clock_free(rig->clock);
    free(rig);
    return 0;
}

static void add(struct rig *rig, const char *uid, enum journal_source source, const char *text)
{
    journals_add(rig->journals, uid, &(struct journal_line){.source = source, .text = text, .caller = "mcp", .tool = "bash", .result = "ok", .exit_code = -1});
}

static struct journal_view view(struct rig *rig, const char *uid, int64_t after, int64_t tail, unsigned sources)
{
    struct journal_view seen = {0};
    const struct journal_query query = {.after = after, .tail = tail, .sources = sources, .max_bytes = 1 << 20};
    assert_true(journals_read(rig->journals, uid, &query, &seen));
    return seen;
}

static const char *text_at(const struct journal_view *seen, size_t at)
{
    return json_get_text(json_array_get(seen->lines, at), "text");
}

static void lines_are_read_on_from_a_position_and_by_source(void **state)
{
    struct rig *rig = *state;
    add(rig, "sbx_a", JOURNAL_CALL, "one");
    add(rig, "sbx_a", JOURNAL_SERVER, "two");
    struct journal_view seen = view(rig, "sbx_a", 0, -1, JOURNAL_ALL);
    assert_int_equal(json_array_size(seen.lines), 2);
    assert_string_equal(text_at(&seen, 1), "two");
    json_decref(seen.lines);
    int64_t position = seen.position;
    add(rig, "sbx_a", JOURNAL_CALL, "three");
    seen = view(rig, "sbx_a", position, -1, JOURNAL_ALL);
    assert_int_equal(json_array_size(seen.lines), 1);
    assert_string_equal(text_at(&seen, 0), "three");
    json_decref(seen.lines);
    seen = view(rig, "sbx_a", 0, 1, 1u << JOURNAL_SERVER);
    assert_string_equal(text_at(&seen, 0), "two");
    json_decref(seen.lines);
}

static void the_oldest_lines_go_and_who_reads_on_is_told(void **state)
{
    struct rig *rig = *state;
    add(rig, "sbx_a", JOURNAL_CALL, "first");
    struct journal_view seen = view(rig, "sbx_a", 0, -1, JOURNAL_ALL);
    json_decref(seen.lines);
    int64_t position = seen.position;
    for (int i = 0; i < JOURNAL_MAX_LINES + 10; i++)
        add(rig, "sbx_a", JOURNAL_CALL, "x");
    seen = view(rig, "sbx_a", 0, -1, JOURNAL_ALL);
    assert_int_equal(json_array_size(seen.lines), JOURNAL_MAX_LINES);
    assert_false(seen.has_gap); // who begins only now has missed nothing
    json_decref(seen.lines);
    seen = view(rig, "sbx_a", position, -1, JOURNAL_ALL);
    assert_true(seen.has_gap);
    json_decref(seen.lines);
}

static void all_together_hold_no_more_than_their_bound_and_removed_ones_go_first(void **state)
{
    struct rig *rig = *state;
    CLEANUP_FREE char *text = mem_alloc(JOURNAL_TEXT_BYTES + 100);
    memset(text, 'x', JOURNAL_TEXT_BYTES + 99);
    for (int i = 0; i < 40; i++) {
        CLEANUP_FREE char *uid = mem_format("sbx_%d", i);
        journals_begin(rig->journals, uid, uid);
        for (int n = 0; n < 240; n++)
            add(rig, uid, JOURNAL_SERVER, text);
        if (i == 3)
            journals_end(rig->journals, uid);
    }
    struct journal_view removed = view(rig, "sbx_3", 0, -1, JOURNAL_ALL), live = view(rig, "sbx_39", 0, -1, JOURNAL_ALL);
    assert_int_equal(json_array_size(removed.lines), 0);
    assert_true(json_array_size(live.lines) > 100);
    json_decref(removed.lines);
    json_decref(live.lines);
}

static void a_long_text_is_cut_between_characters(void **state)
{
    struct rig *rig = *state;
    CLEANUP(buffer_free) struct buffer text = BUFFER_INIT(3 * JOURNAL_TEXT_BYTES);
    while (text.len < 2 * JOURNAL_TEXT_BYTES)
        buffer_append_text(&text, "\xE2\x82\xAC");
    add(rig, "sbx_a", JOURNAL_CALL, buffer_text(&text));
    struct journal_view seen = view(rig, "sbx_a", 0, -1, JOURNAL_ALL);
    assert_int_equal(strlen(text_at(&seen, 0)), JOURNAL_TEXT_BYTES / 3 * 3);
    json_decref(seen.lines);
}

static void nothing(void *arg)
{
    (void)arg;
}

static void the_newest_of_a_name_is_found_and_after_its_time_nothing(void **state)
{
    struct rig *rig = *state;
    char *uid = NULL;
    journals_end(rig->journals, "sbx_a");
    journals_begin(rig->journals, "sbx_b", "dev");
    assert_true(journals_find(rig->journals, "dev", &uid));
    assert_string_equal(uid, "sbx_b");
    free(uid);
    loop_call(rig->loop, nothing, NULL); // the order to sweep has run
    clock_advance(rig->clock, JOURNAL_KEPT_MS + 1000);
    for (int i = 0; i < SUPPORT_PATIENCE_MS / 10 && journals_find(rig->journals, "sbx_a", &uid); i++) {
        free(uid);
        usleep(10000);
    }
    assert_false(journals_find(rig->journals, "sbx_a", &uid));
}

// ---- waiting --------------------------------------------------------------------------------------------------------------
static void on_woken(void *arg)
{
    atomic_fetch_add(&((struct rig *)arg)->woken, 1);
}

static void wait_for_calls(void *arg)
{
    struct rig *rig = arg;
    assert_non_null(journals_wait(rig->journals, "sbx_a", 0, 1u << JOURNAL_CALL, on_woken, rig));
}

static void who_waits_is_woken_once_by_a_line_of_its_source_or_by_the_end(void **state)
{
    struct rig *rig = *state;
    loop_call(rig->loop, wait_for_calls, rig);
    add(rig, "sbx_a", JOURNAL_SERVER, "not this one");
    loop_call(rig->loop, nothing, NULL);
    assert_int_equal(rig->woken, 0);
    add(rig, "sbx_a", JOURNAL_CALL, "this one");
    add(rig, "sbx_a", JOURNAL_CALL, "and this one");
    loop_call(rig->loop, nothing, NULL);
    assert_int_equal(rig->woken, 1);
    loop_call(rig->loop, wait_for_calls, rig); // there is something behind 0 already
    loop_call(rig->loop, nothing, NULL);
    assert_int_equal(rig->woken, 2);
    journals_begin(rig->journals, "sbx_c", "other");
    journals_end(rig->journals, "sbx_a");
    loop_call(rig->loop, wait_for_calls, rig);
    loop_call(rig->loop, nothing, NULL);
    assert_int_equal(rig->woken, 3);
}

static void *flood(void *arg)
{
    struct rig *rig = arg;
    for (int i = 0; i < 3000; i++)
        add(rig, "sbx_a", i % 2 ? JOURNAL_CALL : JOURNAL_SERVER, "x");
    return NULL;
}

static void many_threads_may_add_while_others_read_and_wait(void **state)
{
    struct rig *rig = *state;
    struct error err = ERROR_INIT;
    pthread_t threads[3];
    for (size_t i = 0; i < ARRAY_LEN(threads); i++)
        assert_ok(thread_start(&threads[i], "flood", flood, rig, &err));
    for (int i = 0; i < 50; i++) {
        struct journal_view seen = view(rig, "sbx_a", 0, 10, JOURNAL_ALL);
        json_decref(seen.lines);
        loop_call(rig->loop, wait_for_calls, rig);
    }
    for (size_t i = 0; i < ARRAY_LEN(threads); i++)
        pthread_join(threads[i], NULL);
    loop_call(rig->loop, nothing, NULL);
    assert_int_equal(rig->woken, 50);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(lines_are_read_on_from_a_position_and_by_source, set_up, tear_down),
        cmocka_unit_test_setup_teardown(the_oldest_lines_go_and_who_reads_on_is_told, set_up, tear_down),
        cmocka_unit_test_setup_teardown(all_together_hold_no_more_than_their_bound_and_removed_ones_go_first, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_long_text_is_cut_between_characters, set_up, tear_down),
        cmocka_unit_test_setup_teardown(the_newest_of_a_name_is_found_and_after_its_time_nothing, set_up, tear_down),
        cmocka_unit_test_setup_teardown(who_waits_is_woken_once_by_a_line_of_its_source_or_by_the_end, set_up, tear_down),
        cmocka_unit_test_setup_teardown(many_threads_may_add_while_others_read_and_wait, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
