// A full disk: what frees space still commits, nothing acknowledged is lost, creates wait until there is room.
#include "tests/support/store_fixture.h"
#include "controller/base/memory.h"
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <unistd.h>

#define DISK_BYTES (16 << 20)
#define RESERVE_BYTES (2 << 20)

// A file system of its own, in a mount namespace that ends with this process.
static int setup(void **state)
{
    if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0) {
        *state = NULL;
        return 0;
    }
    struct error err = ERROR_INIT;
    struct store_fixture *fixture = store_fixture_open();
    store_close(fixture->store);
    CLEANUP_FREE char *options = mem_format("size=%d,mode=700", DISK_BYTES);
    assert_int_equal(mount("tmpfs", fixture->state_dir, "tmpfs", 0, options), 0);
    fixture->options.reserve_bytes = RESERVE_BYTES;
    fixture->options.disk_floor_bytes = 1 << 20;
    assert_ok(store_open(&fixture->options, &fixture->store, &err));
    *state = fixture;
    return 0;
}

static int teardown(void **state)
{
    struct store_fixture *fixture = *state;
    if (!fixture)
        return 0;
    store_close(fixture->store);
    fixture->store = NULL;
    umount2(fixture->state_dir, MNT_DETACH);
    store_fixture_close(fixture);
    return 0;
}

static struct store_fixture *need_mount(void **state)
{
    if (!*state) {
        print_message("[  REASON  ] mounting a small file system needs root\n");
        skip();
    }
    return *state;
}

static void fill_disk(struct store_fixture *fixture)
{
    CLEANUP_FREE char *path = mem_format("%s/filler", fixture->state_dir);
    CLEANUP_CLOSE int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    static const char block[4096] = "full";
    assert_true(fd >= 0);
    while (write(fd, block, sizeof(block)) > 0)
        ;
    assert_int_equal(errno, ENOSPC);
}

static void free_disk(struct store_fixture *fixture)
{
    CLEANUP_FREE char *path = mem_format("%s/filler", fixture->state_dir);
    assert_int_equal(unlink(path), 0);
}

static void a_full_disk_gives_up_the_reserve_and_deletes_still_commit(void **state)
{
    struct store_fixture *fixture = need_mount(state);
    struct error err = ERROR_INIT;
    CLEANUP_RECORD struct record *workspace = store_fixture_create(fixture, store_fixture_workspace("dev"));
    for (int i = 0; i < 50; i++)
        record_free(store_fixture_create(fixture, store_fixture_workspace(NULL)));
    assert_false(store_is_low_on_disk(fixture->store));
    fill_disk(fixture);
    assert_true(store_is_low_on_disk(fixture->store));
    CLEANUP_RECORD struct record *refused = store_fixture_workspace("refused");
    assert_error(store_fixture_try_create(fixture->store, refused, &err), ERROR_DISK);
    assert_true(err.hint[0]);
    struct record_list list;
    assert_ok(store_list(fixture->store, KIND_WORKSPACE, &list, NULL, &err));
    for (size_t i = 0; i < list.count; i++)
        assert_ok(store_fixture_delete(fixture->store, KIND_WORKSPACE, list.items[i]->meta.uid, &err));
    record_list_free(&list);
    CLEANUP_FREE char *reserve = mem_format("%s/reserve", fixture->state_dir);
    assert_true(access(reserve, F_OK) < 0); // it was needed
    free_disk(fixture);
    assert_true(store_is_low_on_disk(fixture->store)); // until the reserve is back
    assert_ok(store_upkeep(fixture->store, &err));
    assert_int_equal(access(reserve, F_OK), 0);
    assert_false(store_is_low_on_disk(fixture->store));
    store_fixture_create(fixture, refused);
}

static int write_label(struct store_fixture *fixture, const struct record *record, int i, struct error *err)
{
    CLEANUP_RECORD struct record *fresh = store_fixture_get(fixture, record);
    CLEANUP_FREE char *value = mem_format("%0*d", 4000, i);
    text_map_set(&fresh->meta.annotations, "count", value);
    return store_fixture_write_meta(fixture->store, fresh, err);
}

static void without_a_reserve_left_writes_fail_in_words_and_the_store_recovers(void **state)
{
    struct store_fixture *fixture = need_mount(state);
    struct error err = ERROR_INIT;
    CLEANUP_RECORD struct record *workspace = store_fixture_create(fixture, store_fixture_workspace("dev"));
    fill_disk(fixture);
    int last = -1, r = 0;
    for (int i = 0; i < 10000 && (r = write_label(fixture, workspace, i, &err)) == 0; i++) {
        last = i;
        if (i % 10 == 0)
            fill_disk(fixture); // what the reserve left is taken, too
    }
    assert_true(r < 0);
    assert_int_equal(err.code, ERROR_DISK);
    assert_non_null(strstr(err.message, "not stored"));
    CLEANUP_RECORD struct record *fresh = store_fixture_get(fixture, workspace); // reads go on
    if (last >= 0)
        assert_int_equal(atol(text_map_get(&fresh->meta.annotations, "count")), last);
    int64_t revision = store_revision(fixture->store);
    assert_int_equal(fresh->meta.resource_version, revision);
    free_disk(fixture);
    assert_ok(write_label(fixture, workspace, 77, &err));
    assert_int_equal(store_revision(fixture->store), revision + 1);
    store_fixture_reopen(fixture);
    CLEANUP_RECORD struct record *after = store_fixture_get(fixture, workspace);
    assert_int_equal(atol(text_map_get(&after->meta.annotations, "count")), 77);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_full_disk_gives_up_the_reserve_and_deletes_still_commit),
        TEST(without_a_reserve_left_writes_fail_in_words_and_the_store_recovers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
