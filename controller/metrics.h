// What the process counts about itself: a table of families, each with a few labels, in the Prometheus text format on
// request. Counting is a few atomic additions; nothing happens while nothing is counted. Any thread.
//
//     metrics_count(METRIC_MCP_CALLS, tool->name, "ok");
//     metrics_time(METRIC_STORE_WRITE, NULL, NULL, boot_time_us() - began_us);
#pragma once
#include "controller/base/buffer.h"
#include "controller/base/time.h"

enum metric { // rows in metrics.c
    METRIC_QUEUE_WAIT,   // reconciler; seconds
    METRIC_RECONCILE,    // reconciler, result; seconds
    METRIC_DRIVER_CALL,  // command, result; seconds
    METRIC_MCP_CALLS,    // tool, result
    METRIC_LANE_WAIT,    // seconds
    METRIC_STORE_WRITE,  // result; seconds
    METRIC_CONNECTIONS,  // listener; gauge
    METRIC_COUNT
};
#define METRICS_SERIES_MAX 160    // of one family; what comes later is counted under "other"
#define METRICS_TEXT_MAX (1 << 20)
#define METRICS_LABEL_MAX 64

// a, b: values of the family's labels, NULL where it has none; copied, cut to METRICS_LABEL_MAX.
void metrics_count(enum metric metric, const char *a, const char *b);
void metrics_move(enum metric metric, const char *a, int64_t by); // gauges
void metrics_time(enum metric metric, const char *a, const char *b, int64_t us);
void metrics_write(struct buffer *text);

// For gauges that are looked at only when somebody asks.
void metrics_write_head(struct buffer *text, const char *name, const char *type, const char *help);
void metrics_write_value(struct buffer *text, const char *name, const char *label, const char *value, int64_t number);
