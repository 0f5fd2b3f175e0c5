#include "controller/metrics.h"
#include "controller/base/cleanup.h"
#include "controller/base/memory.h"
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

enum metric_type { COUNTER, GAUGE, HISTOGRAM };
static const struct family_row {
    const char *name, *help;
    enum metric_type type;
    const char *a, *b; // label names; NULL = none
} rows[METRIC_COUNT] = {
    [METRIC_QUEUE_WAIT] = {"chat2shell_queue_wait_seconds", "Time that a record waited for its reconciler once it was due.", HISTOGRAM,
                           "reconciler", NULL},
    [METRIC_RECONCILE] = {"chat2shell_reconcile_duration_seconds", "Time that one reconcile took.", HISTOGRAM,
                          "reconciler", "result"},
    [METRIC_DRIVER_CALL] = {"chat2shell_driver_call_duration_seconds",
                            "Time that a call of the sandbox driver took.", HISTOGRAM, "command", "result"},
    [METRIC_MCP_CALLS] = {"chat2shell_mcp_calls_total", "Tool calls that were answered.", COUNTER, "tool",
                          "result"},
    [METRIC_LANE_WAIT] = {"chat2shell_lane_wait_seconds",
                          "Time that a tool call waited for its turn in its sandbox.", HISTOGRAM, NULL, NULL},
    [METRIC_STORE_WRITE] = {"chat2shell_store_write_duration_seconds",
                            "Time of one group commit of the store.", HISTOGRAM, "result", NULL},
    [METRIC_CONNECTIONS] = {"chat2shell_open_connections", "Open HTTP connections.", GAUGE, "listener", NULL},
};
static const char *const type_words[] = {[COUNTER] = "counter", [GAUGE] = "gauge", [HISTOGRAM] = "histogram"};

// Upper bounds in microseconds, and as Prometheus writes them.
static const struct {
    int64_t us;
    const char *text;
} bounds[] = {{500, "0.0005"},  {1000, "0.001"},  {2500, "0.0025"}, {5000, "0.005"},  {10000, "0.01"},
              {25000, "0.025"}, {50000, "0.05"},  {100000, "0.1"},  {250000, "0.25"}, {500000, "0.5"},
              {1000000, "1"},   {2500000, "2.5"}, {10000000, "10"}, {60000000, "60"}, {600000000, "600"}};

struct series { // labels never change once published
    char a[METRICS_LABEL_MAX], b[METRICS_LABEL_MAX];
    _Atomic int64_t value, sum_us; // value: of a histogram, how many
    _Atomic int64_t in_bound[ARRAY_LEN(bounds)];
};
static struct family {
    _Atomic(struct series *) series[METRICS_SERIES_MAX];
    _Atomic size_t count;
} families[METRIC_COUNT];
static pthread_mutex_t adding = PTHREAD_MUTEX_INITIALIZER; // guards growth only

static bool is_of(const struct series *series, const char *a, const char *b)
{
    return strncmp(series->a, a, METRICS_LABEL_MAX - 1) == 0 &&
           strncmp(series->b, b, METRICS_LABEL_MAX - 1) == 0;
}

static struct series *find(struct family *family, const char *a, const char *b)
{
    size_t count = atomic_load_explicit(&family->count, memory_order_acquire);
    for (size_t i = 0; i < count; i++) {
        struct series *series = atomic_load_explicit(&family->series[i], memory_order_relaxed);
        if (is_of(series, a, b))
            return series;
    }
    return NULL;
}

static struct series *add(struct family *family, const char *a, const char *b)
{
    pthread_mutex_lock(&adding);
    struct series *series = find(family, a, b);
    size_t count = atomic_load(&family->count);
    if (!series && count < METRICS_SERIES_MAX) {
        bool is_last = count == METRICS_SERIES_MAX - 1;
        series = mem_alloc(sizeof(*series));
        snprintf(series->a, sizeof(series->a), "%s", is_last && *a ? "other" : a);
        snprintf(series->b, sizeof(series->b), "%s", is_last && *b ? "other" : b);
        atomic_store_explicit(&family->series[count], series, memory_order_relaxed);
        atomic_store_explicit(&family->count, count + 1, memory_order_release);
    }
    if (!series)
        series = atomic_load(&family->series[METRICS_SERIES_MAX - 1]);
    pthread_mutex_unlock(&adding);
    return series;
}

static struct series *series_of(enum metric metric, const char *a, const char *b)
{
    struct series *series = find(&families[metric], a ? a : "", b ? b : "");
    return series ? series : add(&families[metric], a ? a : "", b ? b : "");
}

void metrics_count(enum metric metric, const char *a, const char *b)
{
    atomic_fetch_add_explicit(&series_of(metric, a, b)->value, 1, memory_order_relaxed);
}

void metrics_move(enum metric metric, const char *a, int64_t by)
{
    atomic_fetch_add_explicit(&series_of(metric, a, NULL)->value, by, memory_order_relaxed);
}

void metrics_time(enum metric metric, const char *a, const char *b, int64_t us)
{
    struct series *series = series_of(metric, a, b);
    us = us < 0 ? 0 : us;
    for (size_t i = 0; i < ARRAY_LEN(bounds); i++)
        if (us <= bounds[i].us) {
            atomic_fetch_add_explicit(&series->in_bound[i], 1, memory_order_relaxed);
            break;
        }
    atomic_fetch_add_explicit(&series->sum_us, us, memory_order_relaxed);
    atomic_fetch_add_explicit(&series->value, 1, memory_order_relaxed);
}

// ---- text
static void write_label(struct buffer *text, const char *name, const char *value, bool is_first)
{
    buffer_format(text, "%s%s=\"", is_first ? "" : ",", name);
    for (; *value; value++)
        if (*value == '"' || *value == '\\')
            buffer_format(text, "\\%c", *value);
        else if (*value == '\n')
            buffer_append_text(text, "\\n");
        else
            buffer_append_char(text, *value);
    buffer_append_char(text, '"');
}

// {a="…",b="…",le="…"}, or nothing.
static void write_labels(struct buffer *text, const struct family_row *row, const struct series *series,
                         const char *le)
{
    if (!row->a && !le)
        return;
    buffer_append_char(text, '{');
    if (row->a)
        write_label(text, row->a, series->a, true);
    if (row->b)
        write_label(text, row->b, series->b, false);
    if (le)
        write_label(text, "le", le, !row->a);
    buffer_append_char(text, '}');
}

static void write_histogram(struct buffer *text, const struct family_row *row, struct series *series)
{
    int64_t sum = 0, count = atomic_load(&series->value), sum_us = atomic_load(&series->sum_us);
    for (size_t i = 0; i < ARRAY_LEN(bounds); i++) {
        sum += atomic_load(&series->in_bound[i]);
        buffer_format(text, "%s_bucket", row->name);
        write_labels(text, row, series, bounds[i].text);
        buffer_format(text, " %" PRId64 "\n", sum);
    }
    count = count < sum ? sum : count; // one may be counted right now
    buffer_format(text, "%s_bucket", row->name);
    write_labels(text, row, series, "+Inf");
    buffer_format(text, " %" PRId64 "\n%s_sum", count, row->name);
    write_labels(text, row, series, NULL);
    buffer_format(text, " %" PRId64 ".%06" PRId64 "\n%s_count", sum_us / 1000000, sum_us % 1000000,
                  row->name);
    write_labels(text, row, series, NULL);
    buffer_format(text, " %" PRId64 "\n", count);
}

void metrics_write_head(struct buffer *text, const char *name, const char *type, const char *help)
{
    buffer_format(text, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

void metrics_write_value(struct buffer *text, const char *name, const char *label, const char *value,
                         int64_t number)
{
    buffer_append_text(text, name);
    if (label) {
        buffer_append_char(text, '{');
        write_label(text, label, value, true);
        buffer_append_char(text, '}');
    }
    buffer_format(text, " %" PRId64 "\n", number);
}

static void write_family(struct buffer *text, enum metric metric)
{
    const struct family_row *row = &rows[metric];
    metrics_write_head(text, row->name, type_words[row->type], row->help);
    size_t count = atomic_load_explicit(&families[metric].count, memory_order_acquire);
    for (size_t i = 0; i < count; i++) {
        struct series *series = atomic_load_explicit(&families[metric].series[i], memory_order_relaxed);
        if (row->type == HISTOGRAM) {
            write_histogram(text, row, series);
            continue;
        }
        buffer_append_text(text, row->name);
        write_labels(text, row, series, NULL);
        buffer_format(text, " %" PRId64 "\n", atomic_load(&series->value));
    }
}

void metrics_write(struct buffer *text)
{
    for (int metric = 0; metric < METRIC_COUNT; metric++)
        write_family(text, (enum metric)metric);
}
