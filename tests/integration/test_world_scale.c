// Many workspaces, sandboxes and watchers at once: all converge, every watcher's cache is the list at the end, and a mass delete
// leaves nothing. The full size with CHAT2SHELL_TEST_LONG=1; else one that suits the sanitizers.
#include "controller/base/memory.h"
#include "tests/support/operator_rig.h"
#include <stdlib.h>
#include <string.h>

#define BATCH 250 // records of one transaction

struct size {
    int workspaces, sandboxes, watchers;
};
static const struct size small = {300, 10, 5}, full = {10000, 200, 50};

static struct size size_of_test(void)
{
    const char *is_long = getenv("CHAT2SHELL_TEST_LONG");
    return is_long && strcmp(is_long, "1") == 0 ? full : small;
}

struct making {
    int first, end, parts;
    const char *prefix;
};

static int make_workspaces_in_tx(struct store_tx *tx, void *arg, struct error *err)
{
    static const struct store_actor actor = {"operator:uid=0", "test"};
    const struct making *making = arg;
    for (int i = making->first; i < making->end; i++) {
        CLEANUP_RECORD struct record *workspace = record_new(KIND_WORKSPACE);
        CLEANUP_FREE char *part = mem_format("p%d", i % making->parts);
        workspace->meta.name = mem_format("%s%05d", making->prefix, i);
        workspace->spec.workspace.mode = WORKSPACE_MANAGED;
        text_map_set(&workspace->meta.labels, "part", part);
        text_list_add(&workspace->meta.finalizers, FINALIZER_TRASH);
        if (tx_create(tx, &actor, workspace, err) < 0)
            return -1;
    }
    return 0;
}

static void make_workspaces(struct world_fixture *fixture, const char *prefix, int count, int parts)
{
    struct error err = ERROR_INIT;
    for (int at = 0; at < count; at += BATCH) {
        struct making making = {at, at + BATCH < count ? at + BATCH : count, parts, prefix};
        assert_ok(store_transact(fixture->world.store, make_workspaces_in_tx, &making, &err));
    }
}

static void make_sandboxes(struct world_fixture *fixture, int count)
{
    for (int i = 0; i < count; i++) {
        struct error err = ERROR_INIT;
        CLEANUP_FREE char *name = mem_format("box-%d", i);
        CLEANUP_RECORD struct record *sandbox = NULL;
        const struct sandbox_request request = {.principal = "operator:uid=0", .manager = "test", .name = name};
        assert_ok(world_create(fixture, &request, NULL, &sandbox, &err));
    }
}

static int count_phase(struct world_fixture *fixture, enum kind kind, const char *phase)
{
    struct record_list list;
    struct error err = ERROR_INIT;
    int count = 0;
    assert_ok(store_list(fixture->world.store, kind, &list, NULL, &err));
    for (size_t i = 0; i < list.count; i++)
        count += !phase || (list.items[i]->status.workspace.phase && strcmp(list.items[i]->status.workspace.phase, phase) == 0); // third of every status
    record_list_free(&list);
    return count;
}

// Reads the watch until its own last workspace came; the cache: {name: resourceVersion}.
static json_t *follow(struct watch_client *client)
{
    json_t *cache = json_object();
    for (bool is_last = false; !is_last;) {
        CLEANUP_JSON json_t *event = watch_client_next(client);
        assert_non_null(event);
        const json_t *metadata = json_object_get(json_object_get(event, "object"), "metadata");
        const char *name = json_get_text(metadata, "name");
        if (strcmp(json_get_text(event, "type"), "DELETED") == 0)
            json_object_del(cache, name);
        else
            json_set_text(cache, name, json_get_text(metadata, "resourceVersion"));
        is_last = strncmp(name, "last", 4) == 0;
    }
    return cache;
}

static void assert_is_list(struct operator_rig *rig, int part, const json_t *cache)
{
    CLEANUP_FREE char *path = mem_format(OPERATOR_KINDS "/workspaces?labelSelector=part%%3Dp%d", part);
    CLEANUP_JSON json_t *list = operator_rig_call(rig, "GET", path, "", "", 200);
    const json_t *items = json_object_get(list, "items"), *item;
    size_t i;
    assert_int_equal(json_array_size(items), json_object_size(cache));
    json_array_foreach(items, i, item)
    {
        const json_t *metadata = json_object_get(item, "metadata");
        assert_string_equal(json_get_text(cache, json_get_text(metadata, "name")), json_get_text(metadata, "resourceVersion"));
    }
}

static int delete_all_in_tx(struct store_tx *tx, void *arg, struct error *err)
{
    static const struct store_actor actor = {"operator:uid=0", "test"};
    struct record_list all = {0};
    enum kind kind = *(const enum kind *)arg;
    if (tx_list(tx, kind, &all, err) < 0)
        return -1;
    int r = 0;
    for (size_t i = 0; i < all.count && r == 0; i++)
        r = tx_delete(tx, &actor, kind, all.items[i]->meta.uid, err);
    record_list_free(&all);
    return r;
}

static void delete_all(struct world_fixture *fixture, enum kind kind)
{
    struct error err = ERROR_INIT;
    assert_ok(store_transact(fixture->world.store, delete_all_in_tx, &kind, &err));
    world_settle(fixture);
    assert_int_equal(count_phase(fixture, kind, NULL), 0);
}

static void all_converge_each_cache_is_the_list_and_a_mass_delete_leaves_nothing(void **state)
{
    struct operator_rig *rig = *state;
    struct world_fixture *fixture = rig->fixture;
    const struct size size = size_of_test();
    struct watch_client *clients[50];
    fixture->config.max_sandboxes = size.sandboxes;
    for (int i = 0; i < size.watchers; i++) {
        CLEANUP_FREE char *path = mem_format(OPERATOR_KINDS "/workspaces?watch=true&labelSelector=part%%3Dp%d", i);
        clients[i] = watch_client_open(rig, path, "");
    }
    make_workspaces(fixture, "w", size.workspaces, size.watchers);
    make_sandboxes(fixture, size.sandboxes);
    world_settle(fixture);
    assert_int_equal(count_phase(fixture, KIND_SANDBOX, "running"), size.sandboxes);
    assert_int_equal(fake_driver_runtimes(fixture->world.driver), size.sandboxes);
    make_workspaces(fixture, "last", size.watchers, size.watchers);
    for (int i = 0; i < size.watchers; i++) {
        CLEANUP_JSON json_t *cache = follow(clients[i]);
        assert_is_list(rig, i, cache);
        watch_client_close(clients[i]);
    }
    delete_all(fixture, KIND_SANDBOX);
    assert_int_equal(fake_driver_runtimes(fixture->world.driver), 0);
    delete_all(fixture, KIND_WORKSPACE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(all_converge_each_cache_is_the_list_and_a_mass_delete_leaves_nothing, operator_rig_setup, operator_rig_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
