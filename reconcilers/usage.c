// What the sandboxes use just now. Read by a worker, because it may be many files; nothing is measured while nobody asks.
#include "controller/base/memory.h"
#include "reconcilers/world.h"
#include <string.h>

struct ask {
    struct world *world;
    usage_request_fn done;
    void *arg;
};

static void set_number(json_t *item, const char *name, int64_t value)
{
    if (value >= 0)
        json_object_set_new(item, name, json_integer(value));
}

static void add_driver_numbers(struct world *world, const struct record *sandbox, json_t *item)
{
    struct driver_usage usage = DRIVER_USAGE_UNKNOWN;
    struct error err = ERROR_INIT;
    const char *name = sandbox->status.sandbox.runtime_name;
    if (!world->driver->ops->usage) {
        json_object_set_new(item, "note", json_sprintf("the driver %s does not tell what a sandbox uses", world->driver->ops->name));
    } else if (name && world->driver->ops->usage(world->driver, name, &usage, &err) == 0) {
        set_number(item, "cpuUs", usage.cpu_us);
        set_number(item, "memoryBytes", usage.memory_bytes);
        set_number(item, "memoryLimitBytes", usage.memory_limit_bytes);
        set_number(item, "processes", usage.processes);
    }
    json_object_set_new(item, "atUs", json_integer(boot_time_us()));
}

static json_t *item_of(struct world *world, struct record *sandbox)
{
    struct lane_load load = {0};
    json_t *item = json_pack("{s:s, s:s, s:s}", "name", sandbox->meta.name, "uid", sandbox->meta.uid, "phase", record_compute_phase(sandbox));
    add_driver_numbers(world, sandbox, item);
    if (lane_get_load(world->lanes, sandbox->meta.uid, &load)) {
        json_object_set_new(item, "callsRunning", json_integer((json_int_t)load.running));
        json_object_set_new(item, "callsWaiting", json_integer((json_int_t)load.waiting));
    }
    struct wall_time activity = sandbox->status.sandbox.last_activity_at;
    if (load.last_activity.ms > activity.ms)
        activity = load.last_activity;
    set_number(item, "idleMs", activity.ms ? clock_wall(world->clock).ms - activity.ms : -1);
    set_number(item, "expiresAtMs", sandbox->status.sandbox.expires_at.ms ? sandbox->status.sandbox.expires_at.ms : -1);
    return item;
}

static void look(void *arg)
{
    CLEANUP_FREE struct ask *ask = arg;
    struct record_list list = {0};
    struct error err = ERROR_INIT;
    if (store_list(ask->world->store, KIND_SANDBOX, &list, NULL, &err) < 0) {
        ask->done(ask->arg, NULL, &err);
        return;
    }
    json_t *items = json_array();
    for (size_t i = 0; i < list.count; i++)
        json_array_append_new(items, item_of(ask->world, list.items[i]));
    record_list_free(&list);
    ask->done(ask->arg, items, NULL);
}

void request_usage(struct world *world, usage_request_fn done, void *arg)
{
    struct ask *ask = mem_alloc(sizeof(*ask));
    *ask = (struct ask){world, done, arg};
    if (request_worker_add(world->reconcilers->looker, look, ask))
        return;
    struct error err = ERROR_INIT;
    error_set(&err, ERROR_LIMIT, "try again in a moment", "too many requests look at the sandboxes at once");
    free(ask);
    done(arg, NULL, &err);
}
