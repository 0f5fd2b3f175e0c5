// Many Bash sessions in one guest, and what one of them leaves behind.
#include "controller/base/fs.h"
#include "controller/base/guest_protocol.h"
#include "controller/base/memory.h"
#include "tests/support/guest_rig.h"
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#define MANY 1000
#define ENDED_MAX (GUEST_MAX_BASH_SESSIONS + 20)
#define FEW_DESCRIPTORS 400
#define MAX_MEMORY_KIB (32 * 1024) // of a guest without sanitizers

static int start(void **state)
{
    struct guest_rig *rig = mem_alloc(sizeof(*rig));
    guest_rig_start(rig);
    *state = rig;
    return 0;
}

// As where the limit of open files is low and cannot be raised.
static int start_with_few_descriptors(void **state)
{
    static const struct rlimit few = {FEW_DESCRIPTORS, FEW_DESCRIPTORS};
    start(state);
    struct guest_rig *rig = *state;
    json_decref(guest_rig_call(rig, "ping", NULL));
    assert_int_equal(prlimit(rig->pid, RLIMIT_NOFILE, &few, NULL), 0);
    return 0;
}

static int stop(void **state)
{
    int status = guest_rig_stop(*state);
    free(*state);
    return status;
}

static json_t *start_params(int number, const char *command)
{
    CLEANUP_FREE char *id = mem_format("s%d", number);
    return json_pack("{s:s s:s}", "session_id", id, "command", command);
}

static json_t *read_session(struct guest_rig *rig, int number, const char *wait)
{
    CLEANUP_FREE char *id = mem_format("s%d", number);
    return guest_rig_call(rig, "chat2shell/bash_read",
                          json_pack("{s:s s:s s:i}", "session_id", id, "wait", wait, "wait_ms", 50000));
}

static void a_wait_for_the_end_says_what_was_printed_if_asked(void **state)
{
    struct guest_rig *rig = *state;
    json_decref(
        guest_rig_call(rig, "chat2shell/bash_start",
                       start_params(1, "printf 12345; until [ -e go ]; do sleep 0.05; done; printf 678")));
    json_t *params = json_pack("{s:s s:s s:i s:{s:s}}", "session_id", "s1", "wait", "exit", "wait_ms", 60000,
                               "_meta", "progressToken", "t");
    int64_t id = guest_rig_send(rig, "chat2shell/bash_read", params);
    json_t *said = guest_rig_receive(rig);
    assert_string_equal(json_get_text(said, "method"), "notifications/progress");
    assert_string_equal(json_get_text(json_object_get(said, "params"), "progressToken"), "t");
    assert_int_equal(json_get_int(json_object_get(said, "params"), "progress", 0), 5);
    json_decref(said);
    guest_rig_put_text(rig, "go", "");
    json_t *answer = guest_rig_receive(rig); // at most once a second: the end comes before
    while (json_object_get(answer, "method")) {
        json_decref(answer);
        answer = guest_rig_receive(rig);
    }
    assert_int_equal(json_get_int(answer, "id", 0), id);
    assert_string_equal(json_get_text(json_object_get(answer, "result"), "output"), "12345678");
    json_decref(answer);
}

static long status_value(pid_t pid, const char *name)
{
    struct error err = ERROR_INIT;
    CLEANUP(buffer_free) struct buffer text = BUFFER_INIT(16384);
    CLEANUP_FREE char *path = mem_format("/proc/%d/status", (int)pid);
    assert_ok(fs_read_file(path, &text, &err));
    const char *at = strstr(buffer_text(&text), name);
    assert_non_null(at);
    return strtol(at + strlen(name), NULL, 10);
}

static void assert_other_work_goes_on(struct guest_rig *rig)
{
    guest_rig_put(rig, "dir/file.txt", "needle\n", 7);
    CLEANUP_JSON json_t *read = guest_rig_tool(rig, "read", json_pack("{s:s}", "path", "dir/file.txt"));
    assert_string_equal(json_get_text(read, "text"), "1 | needle\n2 | ");
    CLEANUP_JSON json_t *found = guest_rig_tool(rig, "search", json_pack("{s:s}", "query", "needle"));
    assert_int_equal(json_array_size(json_object_get(found, "matches")), 1);
    CLEANUP_JSON json_t *ran = guest_rig_tool(rig, "bash", json_pack("{s:s}", "command", "echo ran"));
    assert_string_equal(json_get_text(ran, "stdout"), "ran\n");
}

static void assert_runs_to_its_end(struct guest_rig *rig, int number)
{
    json_decref(guest_rig_call(rig, "chat2shell/bash_start", start_params(number, "true")));
    CLEANUP_JSON json_t *snapshot = read_session(rig, number, "exit");
    assert_int_equal(json_get_int(snapshot, "exit_code", -1), 0);
}

// A killed process may be a zombie for a moment.
static void assert_ends(pid_t pid)
{
    for (int i = 0; i < SUPPORT_PATIENCE_MS / 10; i++) {
        CLEANUP_FREE char *path = mem_format("/proc/%d/stat", (int)pid);
        CLEANUP(buffer_free) struct buffer text = BUFFER_INIT(4096);
        if (fs_read_file(path, &text, NULL) < 0 || strstr(buffer_text(&text), ") Z "))
            return;
        nanosleep(&(struct timespec){.tv_nsec = 10 * 1000 * 1000}, NULL);
    }
    fail_msg("process %d goes on", (int)pid);
}

static void assert_is_full(struct guest_rig *rig)
{
    assert_int_equal(guest_rig_call_code(rig, "chat2shell/bash_start", start_params(MANY * 2, "true")),
                     GUEST_ERROR_LIMIT);
}

static int count_pids(struct guest_rig *rig)
{
    struct error err = ERROR_INIT;
    CLEANUP(buffer_free) struct buffer text = BUFFER_INIT(65536);
    CLEANUP_FREE char *path = mem_format("%s/pids", rig->dir);
    int lines = 0;
    assert_ok(fs_read_file(path, &text, &err));
    for (size_t i = 0; i < text.len; i++)
        lines += text.data[i] == '\n';
    return lines;
}

// From outside: nobody asks the guest about them.
static void kill_all_that_wrote_their_pid(struct guest_rig *rig, int count)
{
    CLEANUP_FREE char *path = mem_format("%s/pids", rig->dir);
    FILE *file = fopen(path, "re");
    assert_non_null(file);
    int killed = 0, pid;
    for (; fscanf(file, "%d", &pid) == 1; killed++)
        assert_int_equal(kill(pid, SIGKILL), 0);
    assert_int_equal(killed, count);
    rewind(file);
    while (fscanf(file, "%d", &pid) == 1)
        assert_true(support_await(10, kill(pid, 0) != 0)); // reaped
    fclose(file);
}

static void a_thousand_sessions_leave_room_for_other_work_and_ended_ones_for_new_ones(void **state)
{
    struct guest_rig *rig = *state;
    for (int i = 0; i < MANY; i++)
        json_decref(guest_rig_call(rig, "chat2shell/bash_start",
                                   start_params(i, "echo $$ >>pids; echo $$; exec sleep 1000")));
    assert_other_work_goes_on(rig);
    for (int i = 0; i < MANY; i += 111) {
        CLEANUP_JSON json_t *snapshot = read_session(rig, i, "output");
        assert_string_equal(json_get_text(snapshot, "status"), "running");
        assert_true(strtol(json_get_text(snapshot, "output"), NULL, 10) > 0);
    }
    assert_true(status_value(rig->pid, "Threads:") <= 6);
#ifndef __SANITIZE_ADDRESS__
    assert_true(status_value(rig->pid, "VmHWM:") < MAX_MEMORY_KIB);
#endif
    for (int i = MANY; i < ENDED_MAX; i++) // those that have ended make room for new ones
        assert_runs_to_its_end(rig, i);
    for (int i = ENDED_MAX; i < ENDED_MAX + GUEST_MAX_BASH_SESSIONS - MANY; i++)
        json_decref(
            guest_rig_call(rig, "chat2shell/bash_start", start_params(i, "echo $$ >>pids; exec sleep 1000")));
    assert_is_full(rig);
    assert_other_work_goes_on(rig);
    assert_true(support_await(10, count_pids(rig) >= GUEST_MAX_BASH_SESSIONS));
    kill_all_that_wrote_their_pid(rig, GUEST_MAX_BASH_SESSIONS);
    for (int i = ENDED_MAX * 2; i < ENDED_MAX * 2 + 50; i++) // and those that nobody read when they ended
        json_decref(guest_rig_call(rig, "chat2shell/bash_start", start_params(i, "true")));
    CLEANUP_JSON json_t *last = read_session(rig, ENDED_MAX * 2 + 49, "exit");
    assert_int_equal(json_get_int(last, "exit_code", -1), 0);
}

static void with_few_descriptors_sessions_are_refused_before_files_are(void **state)
{
    struct guest_rig *rig = *state;
    int started = 0;
    for (int code = 0; !code && started < FEW_DESCRIPTORS; started += !code) {
        int64_t id = guest_rig_send(rig, "chat2shell/bash_start", start_params(started, "exec sleep 1000"));
        CLEANUP_JSON json_t *answer = guest_rig_wait(rig, id);
        code = (int)json_get_int(json_object_get(answer, "error"), "code", 0);
        if (code)
            assert_int_equal(code, GUEST_ERROR_LIMIT);
    }
    assert_true(started > 10 && started < FEW_DESCRIPTORS);
    assert_other_work_goes_on(rig);
    json_decref(guest_rig_call(rig, "chat2shell/bash_stop", json_pack("{s:s}", "session_id", "s0")));
    json_decref(guest_rig_call(rig, "chat2shell/bash_start", start_params(FEW_DESCRIPTORS, "true")));
}

static void stopping_ends_the_whole_process_group(void **state)
{
    struct guest_rig *rig = *state;
    const char *command = "trap '' TERM; sleep 1000 & a=$!; (sleep 1000 & echo $! > c; wait) & b=$!; "
                          "while [ ! -s c ]; do sleep 0.05; done; echo $a $b $(cat c); wait";
    json_decref(guest_rig_call(rig, "chat2shell/bash_start", start_params(1, command)));
    CLEANUP_JSON json_t *snapshot = read_session(rig, 1, "output");
    int pids[3];
    assert_int_equal(sscanf(json_get_text(snapshot, "output"), "%d %d %d", &pids[0], &pids[1], &pids[2]), 3);
    json_decref(guest_rig_call(rig, "chat2shell/bash_stop", json_pack("{s:s}", "session_id", "s1")));
    for (int i = 0; i < 3; i++)
        assert_ends(pids[i]);
}

static void who_waits_uses_no_processor(void **state)
{
    struct guest_rig *rig = *state;
    json_decref(
        guest_rig_call(rig, "chat2shell/bash_start", start_params(1, "sleep 3; echo late; sleep 1000")));
    json_decref(guest_rig_call(rig, "chat2shell/bash_start", start_params(2, "sleep 3; exit 7")));
    json_decref(guest_rig_call(rig, "ping", NULL));
    long before = status_value(rig->pid, "\nvoluntary_ctxt_switches:");
    CLEANUP_JSON json_t *woken = read_session(rig, 1, "output");
    assert_string_equal(json_get_text(woken, "output"), "late\n");
    CLEANUP_JSON json_t *ended = read_session(rig, 2, "exit");
    assert_int_equal(json_get_int(ended, "exit_code", -1), 7);
    assert_true(status_value(rig->pid, "\nvoluntary_ctxt_switches:") - before < 40);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(
            a_thousand_sessions_leave_room_for_other_work_and_ended_ones_for_new_ones, start, stop),
        cmocka_unit_test_setup_teardown(with_few_descriptors_sessions_are_refused_before_files_are,
                                        start_with_few_descriptors, stop),
        cmocka_unit_test_setup_teardown(a_wait_for_the_end_says_what_was_printed_if_asked, start, stop),
        cmocka_unit_test_setup_teardown(stopping_ends_the_whole_process_group, start, stop),
        cmocka_unit_test_setup_teardown(who_waits_uses_no_processor, start, stop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
