// What is counted comes out in the Prometheus text format, whole and bounded.
#include "controller/metrics.h"
#include "controller/base/cleanup.h"
#include "tests/support/support.h"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define THREADS 4
#define EACH 20000

static struct buffer written(void)
{
    struct buffer text = BUFFER_INIT(METRICS_TEXT_MAX);
    metrics_write(&text);
    assert_false(text.is_over);
    return text;
}

static void assert_has(const char *line)
{
    CLEANUP(buffer_free) struct buffer text = written();
    if (!strstr(buffer_text(&text), line))
        fail_msg("'%s' is not in:\n%s", line, buffer_text(&text));
}

static void every_family_has_its_help_and_type(void **state)
{
    (void)state;
    assert_has("# TYPE chat2shell_reconcile_duration_seconds histogram\n");
    assert_has("# TYPE chat2shell_mcp_calls_total counter\n");
    assert_has("# TYPE chat2shell_open_connections gauge\n");
}

static void a_time_is_in_its_bucket_and_all_larger_ones(void **state)
{
    (void)state;
    metrics_time(METRIC_STORE_WRITE, "ok", NULL, 1500);
    metrics_time(METRIC_STORE_WRITE, "ok", NULL, 3000000000);
    assert_has("chat2shell_store_write_duration_seconds_bucket{result=\"ok\",le=\"0.001\"} 0\n");
    assert_has("chat2shell_store_write_duration_seconds_bucket{result=\"ok\",le=\"0.0025\"} 1\n");
    assert_has("chat2shell_store_write_duration_seconds_bucket{result=\"ok\",le=\"600\"} 1\n");
    assert_has("chat2shell_store_write_duration_seconds_bucket{result=\"ok\",le=\"+Inf\"} 2\n");
    assert_has("chat2shell_store_write_duration_seconds_sum{result=\"ok\"} 3000.001500\n");
    metrics_time(METRIC_LANE_WAIT, NULL, NULL, 10);
    assert_has("chat2shell_lane_wait_seconds_bucket{le=\"0.0005\"} 1\n");
    assert_has("chat2shell_lane_wait_seconds_count 1\n");
}

static void *count_much(void *arg)
{
    for (int i = 0; i < EACH; i++) {
        char tool[16];
        snprintf(tool, sizeof(tool), "tool%d", i % 7);
        metrics_count(METRIC_MCP_CALLS, tool, "ok");
        metrics_move(METRIC_CONNECTIONS, "unix", 1);
        metrics_move(METRIC_CONNECTIONS, "unix", -1);
    }
    return arg;
}

static void threads_lose_no_count(void **state)
{
    (void)state;
    pthread_t threads[THREADS];
    for (size_t i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, count_much, NULL), 0);
    for (size_t i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    CLEANUP(buffer_free) struct buffer text = written();
    long total = 0;
    for (const char *at = buffer_text(&text); (at = strstr(at, "chat2shell_mcp_calls_total{tool=\"tool"));
         at++)
        total += strtol(strchr(at, '}') + 2, NULL, 10);
    assert_int_equal(total, THREADS * EACH);
    assert_has("chat2shell_open_connections{listener=\"unix\"} 0\n");
}

static void series_are_bounded_and_labels_escaped(void **state)
{
    (void)state;
    metrics_count(METRIC_DRIVER_CALL, "a\"b\\c\nd", "ok");
    assert_has("command=\"a\\\"b\\\\c\\nd\"");
    for (int i = 0; i < 2 * METRICS_SERIES_MAX; i++) {
        char name[200];
        snprintf(name, sizeof(name), "%d-%0150d", i, i);
        metrics_count(METRIC_DRIVER_CALL, name, "ok");
    }
    assert_has("command=\"other\"");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_family_has_its_help_and_type),
        cmocka_unit_test(a_time_is_in_its_bucket_and_all_larger_ones),
        cmocka_unit_test(threads_lose_no_count),
        cmocka_unit_test(series_are_bounded_and_labels_escaped),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
