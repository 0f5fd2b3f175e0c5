// Programs that decide approvals: what counts as a word, and that a run ends whatever the program does.
#include "cli/approval_hooks.h"
#include "controller/base/cleanup.h"
#include "controller/base/memory.h"
#include "controller/base/time.h"
#include "tests/support/support.h"
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>

// ---- the word -------------------------------------------------------------------------------------------------------------
static void only_the_exact_words_decide(void **state)
{
    (void)state;
    static const struct {
        const char *output;
        enum hook_word word;
        const char *reason; // NULL: none
    } rows[] = {
        {"approve\n", HOOK_APPROVE, NULL},
        {"approve", HOOK_APPROVE, NULL},
        {"approve\r\n", HOOK_APPROVE, NULL},
        {"approve\nreject\n", HOOK_APPROVE, NULL}, // the first line counts
        {"reject\n", HOOK_REJECT, NULL},
        {"reject not today\nmore\n", HOOK_REJECT, "not today"},
        {"reject \x1b[31mred\n", HOOK_REJECT, "\\u001B[31mred"},
        {"reject \n", HOOK_NOTHING, "neither"},
        {"", HOOK_NOTHING, "said nothing"},
        {"\napprove\n", HOOK_NOTHING, "said nothing"},
        {" approve\n", HOOK_NOTHING, "neither"},
        {"approve \n", HOOK_NOTHING, "neither"},
        {"Approve\n", HOOK_NOTHING, "neither"},
        {"approved\n", HOOK_NOTHING, "neither"},
        {"rejected\n", HOOK_NOTHING, "neither"},
        {"yes\n", HOOK_NOTHING, "neither"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        CLEANUP(hook_verdict_clear) struct hook_verdict verdict = {0};
        hook_read_word(rows[i].output, strlen(rows[i].output), &verdict);
        if (verdict.word != rows[i].word || !verdict.reason != !rows[i].reason || (rows[i].reason && !strcasestr(verdict.reason, rows[i].reason)))
            fail_msg("row %zu: %d, %s", i, verdict.word, verdict.reason ? verdict.reason : "no reason");
    }
}

static void a_line_without_an_end_or_with_a_nul_byte_decides_nothing(void **state)
{
    (void)state;
    CLEANUP_FREE char *endless = mem_alloc(HOOK_OUTPUT_MAX);
    CLEANUP(hook_verdict_clear) struct hook_verdict verdict = {0};
    memset(endless, 'x', HOOK_OUTPUT_MAX);
    memcpy(endless, "reject ", 7);
    hook_read_word(endless, HOOK_OUTPUT_MAX, &verdict);
    assert_int_equal(verdict.word, HOOK_NOTHING);
    hook_verdict_clear(&verdict);
    hook_read_word("approve\0", 8, &verdict);
    assert_int_equal(verdict.word, HOOK_NOTHING);
    hook_verdict_clear(&verdict);
    hook_read_word("reject a\0b\n", 11, &verdict);
    assert_int_equal(verdict.word, HOOK_NOTHING);
}

// ---- a run ----------------------------------------------------------------------------------------------------------------
struct bench {
    struct spawner *spawner;
    int stop_fd;
    char *dir;
    json_t *approval;
};

static int setup(void **state)
{
    struct bench *bench = mem_alloc(sizeof(*bench));
    struct error err = ERROR_INIT;
    *bench = (struct bench){.stop_fd = eventfd(0, EFD_CLOEXEC), .dir = support_make_dir()};
    assert_ok(spawner_start(&bench->spawner, &err));
    bench->approval = json_pack("{s:{s:s, s:s, s:s}, s:{s:s, s:s, s:s}}", "metadata", "uid", "approval_a", "name", "a", "resourceVersion", "7", "spec", "path",
                                "/r/demo", "mode", "clone", "requester", "mcp");
    *state = bench;
    return 0;
}

static int teardown(void **state)
{
    struct bench *bench = *state;
    spawner_stop(bench->spawner);
    close(bench->stop_fd);
    support_remove_dir(bench->dir);
    json_decref(bench->approval);
    free(bench);
    return 0;
}

static void run(struct bench *bench, const char *script, int timeout_ms, struct hook_verdict *ret)
{
    const char *argv[] = {"hook", "-c", script, NULL};
    const struct hook_options options = {.path = "/bin/sh", .argv = argv, .directory = bench->dir, .parallel = 1, .timeout_ms = timeout_ms};
    hook_run(&options, bench->spawner, bench->approval, bench->stop_fd, ret);
}

static void check(struct bench *bench, const char *script, enum hook_word word, const char *reason)
{
    CLEANUP(hook_verdict_clear) struct hook_verdict verdict = {0};
    run(bench, script, SUPPORT_PATIENCE_MS, &verdict);
    if (verdict.word != word || (reason && (!verdict.reason || !strstr(verdict.reason, reason))))
        fail_msg("%s: %d, %s", script, verdict.word, verdict.reason ? verdict.reason : "no reason");
}

static void the_program_has_the_approval_and_decides_by_its_first_line(void **state)
{
    struct bench *bench = *state;
    check(bench, "read -r line; case $line in *'\"path\":\"/r/demo\"'*) echo approve;; esac", HOOK_APPROVE, NULL);
    check(bench, "echo reject $CHAT2SHELL_APPROVAL_ID $CHAT2SHELL_APPROVAL_NAME $CHAT2SHELL_APPROVAL_PATH $CHAT2SHELL_APPROVAL_MODE "
                 "$CHAT2SHELL_APPROVAL_REQUESTER $CHAT2SHELL_APPROVAL_RESOURCE_VERSION",
          HOOK_REJECT, "approval_a a /r/demo clone mcp 7");
    check(bench, "echo approve; head -c 1000000 /dev/zero", HOOK_APPROVE, NULL); // what follows is read and dropped
    check(bench, "exec <&-; echo approve; exec >&-", HOOK_APPROVE, NULL);
    setenv("CHAT2SHELL_APPROVAL_PATH", "/of/somebody/else", 1);
    check(bench, "echo reject $(env | grep -c ^CHAT2SHELL_APPROVAL_PATH=) $CHAT2SHELL_APPROVAL_PATH", HOOK_REJECT, "1 /r/demo");
    unsetenv("CHAT2SHELL_APPROVAL_PATH");
}

static void a_program_that_fails_decides_nothing_whatever_it_said(void **state)
{
    struct bench *bench = *state;
    check(bench, "echo approve; exit 1", HOOK_NOTHING, "status 1");
    check(bench, "echo approve; kill -SEGV $$", HOOK_NOTHING, "signal 11");
    check(bench, "echo approve; kill -KILL $$", HOOK_NOTHING, "signal 9");
    check(bench, "echo reject; exit 2", HOOK_NOTHING, "status 2");
    check(bench, "exec /nowhere/at/all", HOOK_NOTHING, "status 127");
    const char *argv[] = {"hook", NULL};
    const struct hook_options options = {.path = "/nowhere/at/all", .argv = argv, .directory = bench->dir, .parallel = 1, .timeout_ms = 1000};
    CLEANUP(hook_verdict_clear) struct hook_verdict verdict = {0};
    hook_run(&options, bench->spawner, bench->approval, bench->stop_fd, &verdict);
    assert_int_equal(verdict.word, HOOK_NOTHING);
    assert_non_null(strstr(verdict.reason, "cannot start"));
}

static void a_program_that_takes_too_long_is_ended_even_if_it_will_not(void **state)
{
    struct bench *bench = *state;
    CLEANUP(hook_verdict_clear) struct hook_verdict verdict = {0};
    run(bench, "trap '' TERM; echo approve; while :; do sleep 1; done", 200, &verdict);
    assert_int_equal(verdict.word, HOOK_NOTHING);
    assert_non_null(strstr(verdict.reason, "longer than"));
}

static void a_program_that_never_stops_writing_is_ended_all_the_same(void **state)
{
    struct bench *bench = *state;
    CLEANUP(hook_verdict_clear) struct hook_verdict late = {0}, stopped = {0};
    run(bench, "trap '' TERM; echo approve; exec cat /dev/zero", 200, &late);
    assert_int_equal(late.word, HOOK_NOTHING);
    assert_non_null(strstr(late.reason, "longer than"));
    assert_int_equal(eventfd_write(bench->stop_fd, 1), 0);
    run(bench, "echo approve; exec cat /dev/zero", 600000, &stopped);
    assert_int_equal(stopped.word, HOOK_NOTHING);
    assert_non_null(strstr(stopped.reason, "ended with the watch"));
}

static void what_a_program_leaves_behind_is_ended_and_not_waited_for(void **state)
{
    struct bench *bench = *state;
    CLEANUP_FREE char *file = mem_format("%s/pid", bench->dir);
    CLEANUP_FREE char *script = mem_format("sleep 1000 & echo $! >%s; echo approve", file);
    check(bench, script, HOOK_APPROVE, NULL);
    FILE *from = fopen(file, "r");
    int pid = 0;
    assert_int_equal(fscanf(from, "%d", &pid), 1);
    fclose(from);
    for (int i = 0; i < SUPPORT_PATIENCE_MS / 10 && kill(pid, 0) == 0; i++) { // init reaps it in its own time
        CLEANUP_FREE char *path = mem_format("/proc/%d/stat", pid);
        char line[256] = "";
        FILE *stat = fopen(path, "r");
        bool is_dead = !stat || !fgets(line, sizeof(line), stat) || strstr(line, ") Z ");
        if (stat)
            fclose(stat);
        if (is_dead)
            return;
        usleep(10000);
    }
    assert_int_not_equal(kill(pid, 0), 0);
}

static void a_stop_ends_what_runs(void **state)
{
    struct bench *bench = *state;
    CLEANUP(hook_verdict_clear) struct hook_verdict verdict = {0};
    assert_int_equal(eventfd_write(bench->stop_fd, 1), 0);
    run(bench, "echo approve; sleep 1000", 600000, &verdict);
    assert_int_equal(verdict.word, HOOK_NOTHING);
    assert_non_null(strstr(verdict.reason, "ended with the watch"));
}

#define HOOK_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_the_exact_words_decide),
        cmocka_unit_test(a_line_without_an_end_or_with_a_nul_byte_decides_nothing),
        HOOK_TEST(the_program_has_the_approval_and_decides_by_its_first_line),
        HOOK_TEST(a_program_that_fails_decides_nothing_whatever_it_said),
        HOOK_TEST(a_program_that_takes_too_long_is_ended_even_if_it_will_not),
        HOOK_TEST(a_program_that_never_stops_writing_is_ended_all_the_same),
        HOOK_TEST(what_a_program_leaves_behind_is_ended_and_not_waited_for),
        HOOK_TEST(a_stop_ends_what_runs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
