// Terminals of the real guest: what a program finds, what hostile parameters do, and that nothing is left.
#include "controller/base/buffer.h"
#include "controller/base/cleanup.h"
#include "controller/base/guest_protocol.h"
#include "tests/support/guest_rig.h"
#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define INVALID_PARAMS (-32602)

static void start(struct guest_rig *rig, const char *id, const char *script, json_t *tty)
{
    json_decref(guest_rig_call(rig, "chat2shell/exec_start",
                               json_pack("{s:s, s:[s,s,s], s:o}", "exec_id", id, "argv", "/bin/sh", "-c", script, "tty", tty)));
}

static void type(struct guest_rig *rig, const char *id, const char *keys)
{
    json_decref(guest_rig_call(rig, "chat2shell/exec_write",
                               json_pack("{s:s, s:o}", "exec_id", id, "data", json_encode_base64(keys, strlen(keys)))));
}

static void end(struct guest_rig *rig, const char *id)
{
    json_decref(guest_rig_call(rig, "chat2shell/exec_end", json_pack("{s:s}", "exec_id", id)));
}

// Reads until the screen shows `until` (NULL: the end); returns the exit code, -1 while it runs.
static int see(struct guest_rig *rig, const char *id, const char *until, struct buffer *screen)
{
    for (int code = -1;;) {
        CLEANUP_JSON json_t *answer =
            guest_rig_call(rig, "chat2shell/exec_read", json_pack("{s:s, s:i}", "exec_id", id, "wait_ms", 30000));
        CLEANUP_FREE char *bytes = NULL;
        size_t len = 0;
        assert_int_equal(json_decode_base64(json_get_text(answer, "stdout"), &bytes, &len, NULL), 0);
        buffer_append(screen, bytes, len);
        if (json_get_bool(answer, "exited", false))
            code = (int)json_get_int(answer, "exit_code", -1);
        if (code >= 0 || (until && strstr(buffer_text(screen), until)))
            return code;
    }
}

static void a_program_has_a_terminal_of_its_own_with_its_size_and_name(void **state)
{
    struct guest_rig *rig = *state;
    CLEANUP(buffer_free) struct buffer screen = BUFFER_INIT(10000);
    start(rig, "t", "tty; stty size; echo $TERM ${CI-none}; ps -o sid= -p $$ | tr -d ' ' | grep -qx $$ && echo leader; exit 7",
          json_pack("{s:i, s:i, s:s}", "columns", 100, "rows", 33, "term", "vt220"));
    assert_int_equal(see(rig, "t", NULL, &screen), 7);
    assert_non_null(strstr(buffer_text(&screen), "/dev/pts/"));
    assert_non_null(strstr(buffer_text(&screen), "33 100\r\nvt220 none\r\nleader\r\n"));
    end(rig, "t");
}

static void any_window_size_is_taken_and_nothing_else(void **state)
{
    struct guest_rig *rig = *state;
    static const json_int_t bad[] = {-1, 65536, 1LL << 40};
    CLEANUP(buffer_free) struct buffer screen = BUFFER_INIT(10000);
    start(rig, "t", "read x; stty size", json_pack("{s:i, s:i}", "columns", 0, "rows", 65535));
    json_decref(guest_rig_call(rig, "chat2shell/exec_resize", json_pack("{s:s, s:i, s:i}", "exec_id", "t", "columns", 65535, "rows", 0)));
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        assert_int_equal(guest_rig_call_code(rig, "chat2shell/exec_resize",
                                             json_pack("{s:s, s:I, s:i}", "exec_id", "t", "columns", bad[i], "rows", 1)),
                         INVALID_PARAMS);
    type(rig, "t", "\n");
    assert_int_equal(see(rig, "t", NULL, &screen), 0);
    assert_non_null(strstr(buffer_text(&screen), "0 65535"));
    end(rig, "t");
}

static void wrong_terminals_are_refused_and_strange_names_become_the_default(void **state)
{
    struct guest_rig *rig = *state;
    CLEANUP(buffer_free) struct buffer screen = BUFFER_INIT(10000);
    const char *const texts[] = {"[]", "1", "{\"columns\":\"80\"}", "{\"rows\":-1}", "{\"rows\":65536}"};
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        json_t *tty = json_loads(texts[i], JSON_DECODE_ANY, NULL);
        assert_int_equal(guest_rig_call_code(rig, "chat2shell/exec_start",
                                             json_pack("{s:s, s:[s], s:o}", "exec_id", "bad", "argv", "true", "tty", tty)),
                         INVALID_PARAMS);
    }
    start(rig, "t", "echo $TERM", json_pack("{s:s}", "term", "../../etc/passwd"));
    assert_int_equal(see(rig, "t", NULL, &screen), 0);
    assert_string_equal(buffer_text(&screen), "xterm\r\n");
    end(rig, "t");
}

static void a_program_without_a_terminal_has_no_window(void **state)
{
    struct guest_rig *rig = *state;
    json_decref(guest_rig_call(rig, "chat2shell/exec_start", json_pack("{s:s, s:[s]}", "exec_id", "p", "argv", "cat")));
    assert_int_equal(guest_rig_call_code(rig, "chat2shell/exec_resize", json_pack("{s:s, s:i, s:i}", "exec_id", "p", "columns", 1, "rows", 1)),
                     INVALID_PARAMS);
    end(rig, "p");
}

static void control_keys_are_signals(void **state)
{
    struct guest_rig *rig = *state;
    CLEANUP(buffer_free) struct buffer screen = BUFFER_INIT(10000);
    start(rig, "t", "trap 'echo caught; exit 9' INT; echo ready; while :; do sleep 0.05; done", json_object());
    see(rig, "t", "ready", &screen);
    type(rig, "t", "\x03");
    assert_int_equal(see(rig, "t", NULL, &screen), 9);
    assert_non_null(strstr(buffer_text(&screen), "caught"));
    end(rig, "t");
}

static size_t count_fds(pid_t pid)
{
    char path[64];
    snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
    DIR *dir = opendir(path);
    size_t count = 0;
    while (dir && readdir(dir))
        count++;
    if (dir)
        closedir(dir);
    return count;
}

static bool is_alive(long pid)
{
    return pid > 0 && kill((pid_t)pid, 0) == 0;
}

static void the_end_hangs_up_and_leaves_neither_processes_nor_descriptors(void **state)
{
    struct guest_rig *rig = *state;
    CLEANUP(buffer_free) struct buffer screen = BUFFER_INIT(10000);
    size_t before = count_fds(rig->pid);
    long shell = 0, child = 0;
    start(rig, "t", "trap '' HUP; sleep 1000 & echo pids $$ $! ready; wait; sleep 1000", json_object());
    see(rig, "t", "ready", &screen);
    assert_int_equal(sscanf(strstr(buffer_text(&screen), "pids"), "pids %ld %ld", &shell, &child), 2);
    end(rig, "t");
    assert_int_equal(guest_rig_call_code(rig, "chat2shell/exec_read", json_pack("{s:s}", "exec_id", "t")), GUEST_ERROR_UNKNOWN_SESSION);
    assert_true(support_await(10, !is_alive(shell) && !is_alive(child)));
    assert_true(support_await(10, count_fds(rig->pid) == before)); // the guest hears of its end in its own time
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_program_has_a_terminal_of_its_own_with_its_size_and_name, guest_rig_setup, guest_rig_teardown),
        cmocka_unit_test_setup_teardown(any_window_size_is_taken_and_nothing_else, guest_rig_setup, guest_rig_teardown),
        cmocka_unit_test_setup_teardown(wrong_terminals_are_refused_and_strange_names_become_the_default, guest_rig_setup, guest_rig_teardown),
        cmocka_unit_test_setup_teardown(a_program_without_a_terminal_has_no_window, guest_rig_setup, guest_rig_teardown),
        cmocka_unit_test_setup_teardown(control_keys_are_signals, guest_rig_setup, guest_rig_teardown),
        cmocka_unit_test_setup_teardown(the_end_hangs_up_and_leaves_neither_processes_nor_descriptors, guest_rig_setup, guest_rig_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
