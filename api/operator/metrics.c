// /metrics in the Prometheus text format: what was counted, and what is so now.
#include "controller/metrics.h"
#include "api/operator/internal.h"
#include "api/operator/watch.h"
#include <string.h>

#define QUEUES_MAX 16
#define TEXT_TYPE "text/plain; version=0.0.4; charset=utf-8"

static void write_one(struct buffer *text, const char *name, const char *type, const char *help,
                      int64_t number)
{
    metrics_write_head(text, name, type, help);
    metrics_write_value(text, name, NULL, NULL, number);
}

static void write_queues(struct buffer *text, struct manager *manager)
{
    struct manager_stats stats[QUEUES_MAX];
    size_t count = manager_get_stats(manager, stats, QUEUES_MAX);
    count = count < QUEUES_MAX ? count : QUEUES_MAX;
    metrics_write_head(text, "chat2shell_queue_depth", "gauge", "Records that wait for their reconciler.");
    for (size_t i = 0; i < count; i++)
        metrics_write_value(text, "chat2shell_queue_depth", "reconciler", stats[i].name,
                            (int64_t)stats[i].depth);
    metrics_write_head(text, "chat2shell_reconcile_retries_total", "counter",
                       "Reconciles that were put back for another try.");
    for (size_t i = 0; i < count; i++)
        metrics_write_value(text, "chat2shell_reconcile_retries_total", "reconciler", stats[i].name,
                            stats[i].retries);
}

static void write_store(struct buffer *text, struct store *store)
{
    struct store_stats stats;
    if (store_stats(store, &stats, NULL) < 0)
        return;
    write_one(text, "chat2shell_store_size_bytes", "gauge", "Size of the database file.",
              stats.database_bytes);
    write_one(text, "chat2shell_store_free_bytes", "gauge", "Free space of its file system.",
              store_free_bytes(store));
    write_one(text, "chat2shell_store_revision", "gauge", "Revision of the newest write.", stats.revision);
    write_one(text, "chat2shell_store_feed_rows", "gauge", "Changes that watches can go back to.",
              stats.feed_rows);
    metrics_write_head(text, "chat2shell_objects", "gauge", "Live objects.");
    for (int kind = 0; kind < KIND_COUNT; kind++)
        metrics_write_value(text, "chat2shell_objects", "kind", kind_info((enum kind)kind)->name,
                            stats.live[kind]);
}

void metrics_show(struct call *call)
{
    CLEANUP(buffer_free) struct buffer text = BUFFER_INIT(METRICS_TEXT_MAX);
    metrics_write(&text);
    write_queues(&text, call->world->manager);
    write_store(&text, call->world->store);
    write_one(&text, "chat2shell_watches", "gauge", "Watches that are served.",
              (int64_t)watch_hub_count(call->server->watches));
    operator_answer_copy(call, 200, TEXT_TYPE, buffer_text(&text));
}
