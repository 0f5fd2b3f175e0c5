// Trees that a sandbox could leave to hinder its removal.
#include "controller/base/cleanup.h"
#include "controller/base/fs.h"
#include "controller/base/memory.h"
#include "tests/support/support.h"
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

static int setup(void **state)
{
    *state = support_make_dir();
    return 0;
}

static int teardown(void **state)
{
    support_remove_dir(*state);
    return 0;
}

static void make_chain(int fd, int levels, mode_t mode)
{
    int at = dup(fd);
    for (int i = 0; i < levels; i++) {
        assert_int_equal(mkdirat(at, "d", 0700), 0);
        int next = openat(at, "d", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        int file = openat(next, "file", O_WRONLY | O_CREAT | O_CLOEXEC, 0);
        assert_true(next >= 0 && file >= 0);
        close(file);
        close(at);
        at = next;
    }
    // From the bottom up: one that is closed already could not be entered.
    for (int i = 0; i < levels; i++) {
        int up = openat(at, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        assert_int_equal(fchmod(at, mode), 0);
        close(at);
        at = up;
    }
    close(at);
}

static void assert_is_removed(int dir_fd, const char *name)
{
    struct error err = ERROR_INIT;
    struct stat st;
    assert_ok(fs_remove_tree(dir_fd, name, &err));
    assert_int_equal(fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW), -1);
}

static void a_tree_of_any_depth_is_removed(void **state)
{
    CLEANUP_CLOSE int dir_fd = open(*state, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_int_equal(mkdirat(dir_fd, "tree", 0700), 0);
    int fd = openat(dir_fd, "tree", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    make_chain(fd, 3000, 0700);
    close(fd);
    assert_is_removed(dir_fd, "tree");
}

static void directories_that_nobody_may_enter_are_removed(void **state)
{
    static const mode_t modes[] = {0, 0600, 0300, 0500, 0100};
    CLEANUP_CLOSE int dir_fd = open(*state, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    for (size_t i = 0; i < ARRAY_LEN(modes); i++) {
        assert_int_equal(mkdirat(dir_fd, "tree", 0700), 0);
        int fd = openat(dir_fd, "tree", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        make_chain(fd, 80, modes[i]);
        assert_int_equal(fchmod(fd, modes[i]), 0);
        close(fd);
        assert_is_removed(dir_fd, "tree");
    }
}

static void a_link_is_removed_and_what_it_names_stays(void **state)
{
    CLEANUP_CLOSE int dir_fd = open(*state, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    struct stat st;
    assert_int_equal(mkdirat(dir_fd, "other", 0700), 0);
    assert_int_equal(mkdirat(dir_fd, "other/inner", 0700), 0);
    assert_int_equal(mkdirat(dir_fd, "tree", 0700), 0);
    assert_int_equal(symlinkat("../other", dir_fd, "tree/link"), 0);
    assert_int_equal(mkfifoat(dir_fd, "tree/pipe\n", 0600), 0);
    assert_is_removed(dir_fd, "tree");
    assert_int_equal(fstatat(dir_fd, "other/inner", &st, 0), 0);
}

static void what_is_absent_counts_as_removed(void **state)
{
    CLEANUP_CLOSE int dir_fd = open(*state, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_is_removed(dir_fd, "nothing");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_tree_of_any_depth_is_removed, setup, teardown),
        cmocka_unit_test_setup_teardown(directories_that_nobody_may_enter_are_removed, setup, teardown),
        cmocka_unit_test_setup_teardown(a_link_is_removed_and_what_it_names_stays, setup, teardown),
        cmocka_unit_test_setup_teardown(what_is_absent_counts_as_removed, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
