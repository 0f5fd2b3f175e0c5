// Many workspaces, running sandboxes and watchers at once, on the daemon's workers and the real clock: all converge, each watcher's cache
// is the list at the end, nothing is written at rest, and a mass delete leaves nothing. Each sandbox has a tool server of its own, a
// real process, but no namespaces: the driver is the tests' own. The full size with CHAT2SHELL_TEST_LONG=1, which also prints what it
// took; else one that suits the sanitizers.
#include "controller/base/fs.h"
#include "controller/base/memory.h"
#include "tests/support/operator_rig.h"
#include <glob.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#define BATCH 250            // records of one transaction
#define IN_FLIGHT 64         // requests for sandboxes that were not answered yet
#define DESCRIPTORS 16384    // the daemon's, the clients' and those of the tool servers' pipes
#define STANDSTILL_MS 120000 // without any write while something is missing
#define WATCHERS_MAX_HERE 50
#define MERGE "Content-Type: application/merge-patch+json\r\n"

struct size {
    int workspaces, sandboxes, watchers;
};
static const struct size small = {300, 20, 10}, full = {10000, 2000, WATCHERS_MAX_HERE};

static bool is_long(void)
{
    const char *word = getenv("CHAT2SHELL_TEST_LONG");
    return word && strcmp(word, "1") == 0;
}

// ---- what there is --------------------------------------------------------------------------------------------------
struct making {
    int first, end, parts;
};

static int make_workspaces_in_tx(struct store_tx *tx, void *arg, struct error *err)
{
    static const struct store_actor actor = {"operator:uid=0", "test"};
    const struct making *making = arg;
    for (int i = making->first; i < making->end; i++) {
        CLEANUP_RECORD struct record *workspace = record_new(KIND_WORKSPACE);
        CLEANUP_FREE char *part = mem_format("p%d", i % making->parts);
        workspace->meta.name = mem_format("w-%05d", i);
        workspace->spec.workspace.mode = WORKSPACE_MANAGED;
        text_map_set(&workspace->meta.labels, "part", part);
        text_list_add(&workspace->meta.finalizers, FINALIZER_TRASH);
        if (tx_create(tx, &actor, workspace, err) < 0)
            return -1;
    }
    return 0;
}

static void make_workspaces(struct world_fixture *fixture, const struct size *size)
{
    struct error err = ERROR_INIT;
    for (int at = 0; at < size->workspaces; at += BATCH) {
        struct making making = {at, at + BATCH < size->workspaces ? at + BATCH : size->workspaces, size->watchers};
        assert_ok(store_transact(fixture->world.store, make_workspaces_in_tx, &making, &err));
    }
}

static void on_made(void *arg, int result, enum sandbox_outcome outcome, struct record *record, const struct error *err)
{
    if (result < 0)
        print_message("a sandbox was refused: %s\n", err->message);
    (void)outcome; // a refusal is missed later
    record_free(record);
    sem_post(arg);
}

// Each of the first workspaces gets one.
static void make_sandboxes(struct world_fixture *fixture, int count)
{
    sem_t room;
    sem_init(&room, 0, IN_FLIGHT);
    for (int i = 0; i < count; i++) {
        CLEANUP_FREE char *name = mem_format("box-%d", i), *workspace = mem_format("w-%05d", i);
        const struct sandbox_request request = {.principal = "operator:uid=0", .manager = "test", .name = name, .workspace_name = workspace};
        sem_wait(&room);
        request_sandbox(&fixture->world, &request, on_made, &room);
    }
    for (int i = 0; i < IN_FLIGHT; i++)
        sem_wait(&room);
    sem_destroy(&room);
}

struct counting {
    const char *phase; // NULL: any
    int64_t count;
};

static void count_one(void *arg, const char *phase, int64_t count)
{
    struct counting *counting = arg;
    if (!counting->phase || strcmp(counting->phase, phase) == 0)
        counting->count += count;
}

static int count_phase(struct world_fixture *fixture, enum kind kind, const char *phase)
{
    struct error err = ERROR_INIT;
    struct counting counting = {phase, 0};
    assert_ok(store_count_phases(fixture->world.store, kind, count_one, &counting, &err));
    return (int)counting.count;
}

static void rest_ms(long ms)
{
    nanosleep(&(struct timespec){ms / 1000, ms % 1000 * 1000000}, NULL);
}

static void wait_for_count(struct world_fixture *fixture, enum kind kind, const char *phase, int wanted)
{
    int64_t revision = 0, moved_ms = boot_time_now().ms;
    for (int count; (count = count_phase(fixture, kind, phase)) != wanted;) {
        if (store_revision(fixture->world.store) != revision)
            moved_ms = boot_time_now().ms;
        else if (boot_time_now().ms - moved_ms > STANDSTILL_MS)
            fail_msg("%d of %d records of kind %s are %s, and nothing moves", count, wanted, kind_info(kind)->name, phase ? phase : "left");
        revision = store_revision(fixture->world.store);
        rest_ms(is_long() ? 200 : 5);
    }
}

static void check_all_ready(struct world_fixture *fixture, enum kind kind, int wanted)
{
    struct record_list list;
    struct error err = ERROR_INIT;
    int ready = 0;
    assert_ok(store_list(fixture->world.store, kind, &list, NULL, &err));
    for (size_t i = 0; i < list.count; i++)
        ready += record_is_true(list.items[i], CONDITION_READY);
    assert_int_equal(list.count, wanted);
    assert_int_equal(ready, wanted);
    record_list_free(&list);
}

// ---- watchers ---------------------------------------------------------------------------------------------------------
// Each follows on a thread of its own, as clients do, until it saw the mark on `marks` objects.
struct follower {
    struct watch_client *client;
    pthread_t thread;
    char *path, *query;
    int marks;
    int64_t events;
    json_t *cache; // {name: resourceVersion}
    const char *trouble;
};

static _Atomic int64_t give_up_ms; // when a follower has waited long enough

static void note(struct follower *follower, const json_t *event)
{
    const json_t *metadata = json_object_get(json_object_get(event, "object"), "metadata");
    const char *type = json_get_text(event, "type"), *name = json_get_text(metadata, "name");
    bool is_known = name && json_object_get(follower->cache, name);
    if (strcmp(type, "ERROR") == 0)
        follower->trouble = "it was ended by the server";
    else if (is_known == (strcmp(type, "ADDED") == 0))
        follower->trouble = "an object came twice, or changed without having come";
    else if (strcmp(type, "DELETED") == 0)
        json_object_del(follower->cache, name);
    else
        json_set_text(follower->cache, name, json_get_text(metadata, "resourceVersion"));
    follower->marks -= json_get_text(json_object_get(metadata, "labels"), "mark") != NULL;
    follower->events++;
}

static void *follow(void *arg)
{
    struct follower *follower = arg;
    while (follower->marks > 0 && !follower->trouble) {
        CLEANUP_JSON json_t *event = watch_client_wait(follower->client, 1000);
        if (event)
            note(follower, event);
        else if (watch_client_is_ended(follower->client))
            follower->trouble = "its stream ended";
        else if (boot_time_now().ms > give_up_ms)
            follower->trouble = "what was written last did not come";
    }
    return NULL;
}

// One in five sees all sandboxes, one in five all workspaces, the others their part of the workspaces.
static void start_follower(struct operator_rig *rig, struct follower *follower, int i, const struct size *size)
{
    const char *kind = i % 5 == 0 ? "sandboxes" : "workspaces";
    follower->query = i % 5 > 1 ? mem_format("labelSelector=part%%3Dp%d", i) : mem_strdup("");
    follower->path = mem_format(OPERATOR_KINDS "/%s", kind);
    follower->marks = i % 5 == 1 ? size->watchers : 1;
    follower->cache = json_object();
    CLEANUP_FREE char *path = mem_format("%s?watch=true&%s", follower->path, follower->query);
    follower->client = watch_client_open(rig, path, "");
    assert_int_equal(pthread_create(&follower->thread, NULL, follow, follower), 0);
}

// Nothing is written any more: lists are the same whoever asks, and asked for once.
static const json_t *list_for(struct operator_rig *rig, const struct follower *follower, json_t *lists)
{
    CLEANUP_FREE char *path = mem_format("%s?%s", follower->path, follower->query);
    if (!json_object_get(lists, path))
        json_object_set_new(lists, path, operator_rig_call(rig, "GET", path, "", "", 200));
    return json_object_get(lists, path);
}

static void check_is_list(const struct follower *follower, const json_t *list)
{
    const json_t *items = json_object_get(list, "items"), *item;
    size_t i;
    assert_int_equal(json_array_size(items), json_object_size(follower->cache));
    json_array_foreach(items, i, item)
    {
        const json_t *metadata = json_object_get(item, "metadata");
        const char *known = json_get_text(follower->cache, json_get_text(metadata, "name"));
        assert_non_null(known);
        assert_string_equal(known, json_get_text(metadata, "resourceVersion"));
    }
}

static void mark(struct operator_rig *rig, const char *kind, const char *name)
{
    CLEANUP_FREE char *path = mem_format(OPERATOR_KINDS "/%s/%s", kind, name);
    json_decref(operator_rig_call(rig, "PATCH", path, MERGE, "{\"metadata\": {\"labels\": {\"mark\": \"end\"}}}", 200));
}

// The last change that each is to see: an object of every part, and a sandbox.
static void mark_all(struct operator_rig *rig, const struct size *size)
{
    for (int i = 0; i < size->watchers; i++) {
        CLEANUP_FREE char *name = mem_format("w-%05d", i);
        mark(rig, "workspaces", name);
    }
    mark(rig, "sandboxes", "box-0");
    give_up_ms = boot_time_now().ms + STANDSTILL_MS;
}

static int64_t end_follower(struct operator_rig *rig, struct follower *follower, json_t *lists)
{
    pthread_join(follower->thread, NULL);
    if (follower->trouble)
        fail_msg("the watch of %s?%s: %s after %lld events", follower->path, follower->query, follower->trouble, (long long)follower->events);
    check_is_list(follower, list_for(rig, follower, lists));
    watch_client_close(follower->client);
    json_decref(follower->cache);
    free(follower->path);
    free(follower->query);
    return follower->events;
}

// ---- figures ------------------------------------------------------------------------------------------------------------
static int64_t cpu_ms(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000 + (usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1000;
}

static int64_t memory_kib(const char *process)
{
    CLEANUP(buffer_free) struct buffer text = BUFFER_INIT(64 << 10);
    CLEANUP_FREE char *path = mem_format("/proc/%s/smaps_rollup", process);
    const char *at = fs_read_file(path, &text, NULL) == 0 ? strstr(buffer_text(&text), "\nPss:") : NULL;
    return at ? strtoll(at + 5, NULL, 10) : 0;
}

struct step {
    int64_t began_ms, cpu_ms;
};

static void report(struct step *step, const char *what)
{
    int64_t now_ms = boot_time_now().ms, now_cpu_ms = cpu_ms();
    if (is_long() && what)
        print_message("  %-60s %7.1f s, of that on the processors %6.1f s; memory %lld MiB (clients included)\n", what,
                      (double)(now_ms - step->began_ms) / 1e3, (double)(now_cpu_ms - step->cpu_ms) / 1e3, (long long)memory_kib("self") / 1024);
    *step = (struct step){now_ms, now_cpu_ms};
}

// ---- the end -----------------------------------------------------------------------------------------------------------
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
    wait_for_count(fixture, kind, NULL, 0);
}

static int64_t children_kib(const char *task, int64_t *count)
{
    CLEANUP(buffer_free) struct buffer text = BUFFER_INIT(1 << 20);
    int64_t kib = 0;
    char *rest = NULL;
    if (fs_read_file(task, &text, NULL) < 0 || !text.len)
        return 0;
    for (char *pid = strtok_r(text.data, " ", &rest); pid; pid = strtok_r(NULL, " ", &rest), ++*count)
        kib += memory_kib(pid);
    return kib;
}

// The tool servers': processes of their own, which share the pages of their program.
static void report_processes(void)
{
    glob_t tasks;
    int64_t kib = 0, count = 0;
    if (!is_long() || glob("/proc/self/task/*/children", 0, NULL, &tasks) != 0)
        return;
    for (size_t i = 0; i < tasks.gl_pathc; i++)
        kib += children_kib(tasks.gl_pathv[i], &count);
    globfree(&tasks);
    print_message("  %lld tool servers, %lld MiB together (proportional)\n", (long long)count, (long long)kib / 1024);
}

static void check_rests(struct world_fixture *fixture, struct step *step)
{
    int64_t revision = store_revision(fixture->world.store);
    rest_ms(is_long() ? 20000 : 200);
    assert_int_equal(store_revision(fixture->world.store), revision);
    report(step, "at rest, nothing written");
}

static void raise_limit(void)
{
    struct rlimit limit;
    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
    if (is_long() && limit.rlim_max < DESCRIPTORS) {
        print_message("skipped: the hard limit on open files (ulimit -Hn) is %llu, and %d are needed\n", (unsigned long long)limit.rlim_max, DESCRIPTORS);
        skip();
    }
}

static void all_converge_each_cache_is_the_list_and_a_mass_delete_leaves_nothing(void **state)
{
    struct operator_rig *rig = *state;
    struct world_fixture *fixture = rig->fixture;
    const struct size *size = is_long() ? &full : &small;
    struct follower followers[WATCHERS_MAX_HERE] = {0};
    struct step step;
    int64_t events = 0;
    raise_limit();
    report(&step, NULL);
    fixture->config.max_sandboxes = size->sandboxes;
    give_up_ms = INT64_MAX;
    for (int i = 0; i < size->watchers; i++)
        start_follower(rig, &followers[i], i, size);
    make_workspaces(fixture, size);
    make_sandboxes(fixture, size->sandboxes);
    report(&step, "workspaces and sandboxes asked for");
    wait_for_count(fixture, KIND_SANDBOX, "running", size->sandboxes);
    report(&step, "all sandboxes run");
    wait_for_count(fixture, KIND_WORKSPACE, "approved", size->sandboxes);
    wait_for_count(fixture, KIND_WORKSPACE, "retained", size->workspaces - size->sandboxes);
    report(&step, "all workspaces settled");
    check_all_ready(fixture, KIND_WORKSPACE, size->workspaces);
    check_all_ready(fixture, KIND_SANDBOX, size->sandboxes);
    assert_int_equal(fake_driver_runtimes(fixture->world.driver), size->sandboxes);
    mark_all(rig, size);
    CLEANUP_JSON json_t *lists = json_object();
    for (int i = 0; i < size->watchers; i++)
        events += end_follower(rig, &followers[i], lists);
    report(&step, "each watcher has the list");
    if (is_long())
        print_message("  %lld events to %d watchers\n", (long long)events, size->watchers);
    check_rests(fixture, &step);
    report_processes();
    delete_all(fixture, KIND_SANDBOX);
    assert_int_equal(fake_driver_runtimes(fixture->world.driver), 0);
    report(&step, "all sandboxes deleted");
    delete_all(fixture, KIND_WORKSPACE);
    report(&step, "all workspaces deleted");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(all_converge_each_cache_is_the_list_and_a_mass_delete_leaves_nothing, operator_rig_setup_busy,
                                        operator_rig_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
