// A process that is killed: every acknowledged write is there, the database is whole, nothing half done is.
#include "tests/support/store_fixture.h"
#include "controller/base/memory.h"
#include "controller/base/random.h"
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *state_dir;

// ---- the child that dies ------------------------------------------------------------------------------------------

struct pair {
    struct record *workspace, *sandbox;
    int fd;
};

// Both or none must be found afterwards.
static int create_pair(struct store_tx *tx, void *arg, struct error *err)
{
    struct pair *pair = arg;
    pair->workspace = store_fixture_workspace(NULL);
    if (tx_create(tx, &store_fixture_operator, pair->workspace, err) < 0)
        return -1;
    pair->sandbox = store_fixture_sandbox(NULL, pair->workspace);
    return tx_create(tx, &store_fixture_operator, pair->sandbox, err);
}

static void acknowledge(void *arg, int result, const struct error *err)
{
    (void)err;
    struct pair *pair = arg;
    if (result == 0 && dprintf(pair->fd, "%s\n", pair->sandbox->meta.uid) < 0)
        _exit(2);
    record_free(pair->workspace);
    record_free(pair->sandbox);
    free(pair);
}

static struct clock *real_clock;

static struct store *open_store(void)
{
    struct error err = ERROR_INIT;
    if (!real_clock)
        real_clock = clock_new_real();
    struct store_options options = {.state_dir = state_dir, .clock = real_clock, .disk_floor_bytes = 1};
    struct store *store = NULL;
    if (store_open(&options, &store, &err) < 0)
        dprintf(2, "child: %s\n", err.message);
    return store;
}

static void write_until_killed(int fd, int writes)
{
    struct store *store = open_store();
    if (!store)
        _exit(3);
    for (int i = 0; i < writes; i++) {
        struct pair *pair = mem_alloc(sizeof(*pair));
        pair->fd = fd;
        store_submit(store, create_pair, acknowledge, pair);
        if (i % 50 == 49)
            usleep(1000);
    }
    store_close(store);
    _exit(0);
}

struct child {
    pid_t pid;
    int fd;
};

static struct child start_child(int writes, const char *fault)
{
    int fds[2];
    assert_int_equal(pipe(fds), 0);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) { // a program of its own: fault points read their plan once a process
        close(fds[0]);
        if (fault)
            setenv("CHAT2SHELL_FAULT", fault, 1);
        char fd[16], count[16];
        snprintf(fd, sizeof(fd), "%d", fds[1]);
        snprintf(count, sizeof(count), "%d", writes);
        execl("/proc/self/exe", "child", state_dir, fd, count, (char *)NULL);
        _exit(4);
    }
    close(fds[1]);
    return (struct child){pid, fds[0]};
}

static char *read_to_end(int fd)
{
    size_t len = 0, room = 1 << 16;
    char *text = mem_alloc(room);
    ssize_t n;
    while ((n = read(fd, text + len, room - len - 1)) > 0 || (n < 0 && errno == EINTR)) {
        len += n > 0 ? (size_t)n : 0;
        if (room - len < 4096)
            text = mem_realloc(text, room *= 2);
    }
    text[len] = '\0';
    close(fd);
    return text;
}

static void wait_for_output(int fd)
{
    struct pollfd at = {.fd = fd, .events = POLLIN};
    assert_int_equal(poll(&at, 1, SUPPORT_PATIENCE_MS), 1);
}

// ---- what must hold afterwards --------------------------------------------------------------------------------------

static void check_integrity(void)
{
    CLEANUP_FREE char *path = mem_format("%s/" STORE_DATABASE_NAME, state_dir);
    sqlite3 *db = NULL;
    sqlite3_stmt *stmt = NULL;
    assert_int_equal(sqlite3_open_v2(path, &db, SQLITE_OPEN_READWRITE, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_prepare_v2(db, "PRAGMA integrity_check", -1, &stmt, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_step(stmt), SQLITE_ROW);
    assert_string_equal((const char *)sqlite3_column_text(stmt, 0), "ok");
    sqlite3_finalize(stmt);
    sqlite3_close(db);
}

static void check_feed(struct store *store)
{
    struct error err = ERROR_INIT;
    struct store_feed_row *rows;
    size_t count;
    struct store_stats stats;
    assert_ok(store_stats(store, &stats, &err));
    assert_ok(store_read_feed(store, 1, 1000000, &rows, &count, &err));
    assert_int_equal(count, stats.revision - 1);
    assert_int_equal(count, stats.live[KIND_WORKSPACE] + stats.live[KIND_SANDBOX]); // a row a create
    store_feed_free(rows, count);
}

static size_t check_acknowledged(char *uids)
{
    struct error err = ERROR_INIT;
    struct store *store = open_store();
    assert_non_null(store);
    size_t acknowledged = 0;
    char *rest = NULL;
    for (char *uid = strtok_r(uids, "\n", &rest); uid; uid = strtok_r(NULL, "\n", &rest), acknowledged++) {
        CLEANUP_RECORD struct record *sandbox = NULL;
        assert_ok(store_get_uid(store, KIND_SANDBOX, uid, &sandbox, &err));
    }
    struct store_stats stats;
    assert_ok(store_stats(store, &stats, &err));
    assert_int_equal(stats.live[KIND_WORKSPACE], stats.live[KIND_SANDBOX]);
    assert_true(stats.live[KIND_SANDBOX] >= (int64_t)acknowledged);
    check_feed(store);
    store_close(store);
    check_integrity();
    return acknowledged;
}

static void every_acknowledged_write_survives_a_kill(void **state)
{
    (void)state;
    size_t total = 0;
    for (int round = 0; round < 12; round++) {
        struct child child = start_child(3000, NULL);
        if (round % 3) // else somewhere while it opens
            wait_for_output(child.fd);
        usleep(random_below(60000));
        kill(child.pid, SIGKILL);
        CLEANUP_FREE char *uids = read_to_end(child.fd);
        int status;
        assert_int_equal(waitpid(child.pid, &status, 0), child.pid);
        assert_true(WIFSIGNALED(status) || (WIFEXITED(status) && WEXITSTATUS(status) == 0));
        total += check_acknowledged(uids);
    }
    assert_true(total > 0); // else nothing was tested
}

static void a_death_around_the_commit_leaves_all_or_nothing(void **state)
{
    (void)state;
#ifndef CHAT2SHELL_FAULTS
    print_message("[  REASON  ] fault points are compiled into test builds only (FAULTS=ON)\n");
    skip();
#endif
    static const char *const faults[] = {"store.migrate.step:1:exit", "store.migrate.commit:1:exit", "store.commit.before:1:exit",
                                         "store.commit.after:1:exit", "store.commit.before:3:exit",  "store.commit.after:4:exit"};
    for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++) {
        struct child child = start_child(2000, faults[i]);
        CLEANUP_FREE char *uids = read_to_end(child.fd);
        int status;
        assert_int_equal(waitpid(child.pid, &status, 0), child.pid);
        if (!WIFEXITED(status) || WEXITSTATUS(status) != 137)
            fail_msg("%s: the child ended with status %d", faults[i], status);
        if (strstr(faults[i], "migrate"))
            continue; // the next opens what this left
        check_acknowledged(uids);
    }
}

static void a_commit_that_fails_is_told_to_all_and_not_stored(void **state)
{
    (void)state;
#ifndef CHAT2SHELL_FAULTS
    skip();
#endif
    struct child child = start_child(500, "store.commit.before:2:error");
    CLEANUP_FREE char *uids = read_to_end(child.fd);
    int status;
    assert_int_equal(waitpid(child.pid, &status, 0), child.pid);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    size_t lines = 0;
    for (const char *at = uids; *at; at++)
        lines += *at == '\n';
    assert_true(lines > 0 && lines < 500); // some group failed
    struct store *store = open_store();
    struct error err = ERROR_INIT;
    struct store_stats stats;
    assert_ok(store_stats(store, &stats, &err));
    assert_int_equal(stats.live[KIND_SANDBOX], lines);
    check_feed(store);
    store_close(store);
}

static char *dir;

static int make_dir(void **state)
{
    (void)state;
    dir = support_make_dir();
    state_dir = mem_format("%s/state", dir);
    return 0;
}

static int remove_dir(void **state)
{
    (void)state;
    free((char *)state_dir);
    support_remove_dir(dir);
    return 0;
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make_dir, remove_dir)

int main(int argc, char **argv)
{
    if (argc == 4) { // start_child
        state_dir = argv[1];
        write_until_killed(atoi(argv[2]), atoi(argv[3]));
    }
    const struct CMUnitTest tests[] = {
        TEST(every_acknowledged_write_survives_a_kill),
        TEST(a_death_around_the_commit_leaves_all_or_nothing),
        TEST(a_commit_that_fails_is_told_to_all_and_not_stored),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    clock_free(real_clock);
    return failed;
}
