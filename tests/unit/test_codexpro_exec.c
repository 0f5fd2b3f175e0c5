// The operator's programs over CodexPro's bash tool: argv as it is, three streams of any content, and their end. And what
// destroying a sandbox would lose.
#include "controller/base/buffer.h"
#include "controller/base/memory.h"
#include "tests/support/shell_rig.h"
#include <stdlib.h>
#include <string.h>

struct streams {
    struct buffer out, errors;
    int code;
};

static void streams_free(struct streams *streams)
{
    buffer_free(&streams->out);
    buffer_free(&streams->errors);
}

static void take(json_t *answer, const char *name, struct buffer *to)
{
    struct error err = ERROR_INIT;
    CLEANUP_FREE char *bytes = NULL;
    size_t len;
    assert_ok(json_decode_base64(json_get_text(answer, name), &bytes, &len, &err));
    buffer_append(to, bytes, len);
}

static bool read_once(struct shell_rig *rig, const char *id, struct streams *streams)
{
    CLEANUP_JSON json_t *answer = shell_rig_call(rig, "exec_read", json_pack("{s:s, s:i}", "exec_id", id, "wait_ms", 30000));
    assert_int_equal(json_object_size(answer), 4);
    take(answer, "stdout", &streams->out);
    take(answer, "stderr", &streams->errors);
    streams->code = (int)json_get_int(answer, "exit_code", -1);
    return json_is_true(json_object_get(answer, "exited"));
}

static struct streams read_all(struct shell_rig *rig, const char *id)
{
    struct streams streams = {.out = BUFFER_INIT(64 << 20), .errors = BUFFER_INIT(64 << 20)};
    while (!read_once(rig, id, &streams))
        ;
    return streams;
}

static void start(struct shell_rig *rig, const char *id, json_t *argv)
{
    json_decref(shell_rig_call(rig, "exec_start", json_pack("{s:s, s:o}", "exec_id", id, "argv", argv)));
}

static void write_bytes(struct shell_rig *rig, const char *id, const char *bytes, size_t len, bool eof)
{
    json_decref(shell_rig_call(rig, "exec_write", json_pack("{s:s, s:o, s:b}", "exec_id", id, "data", json_encode_base64(bytes, len), "eof", eof)));
}

static void end(struct shell_rig *rig, const char *id)
{
    json_decref(shell_rig_call(rig, "exec_end", json_pack("{s:s}", "exec_id", id)));
    shell_rig_fail(rig, "exec_read", json_pack("{s:s}", "exec_id", id), ERROR_NOT_FOUND);
}

static void expect_run(struct shell_rig *rig, json_t *argv, int code, const char *out, const char *errors)
{
    static int number;
    CLEANUP_FREE char *id = mem_format("exec_%d", ++number);
    start(rig, id, argv);
    CLEANUP(streams_free) struct streams streams = read_all(rig, id);
    assert_string_equal(buffer_text(&streams.out), out);
    assert_string_equal(buffer_text(&streams.errors), errors);
    assert_int_equal(streams.code, code);
    end(rig, id);
}

static void arguments_reach_the_program_as_they_are(void **state)
{
    expect_run(*state,
               json_pack("[s,s,s,s,s,s,s,s,s,s,s,s]", "printf", "<%s>", "", "a b", "-e", "--", "'", "\"", "two\nlines\n", "é☃", "$HOME `id` *", "\\"), 0,
               "<><a b><-e><--><'><\"><two\nlines\n><é☃><$HOME `id` *><\\>", "");
    CLEANUP_FREE char *longest = mem_alloc(131072);
    memset(longest, 'y', 131071);
    CLEANUP_FREE char *command = mem_format("%s", "echo ${#1}; echo ${#2} >&2; exit 5");
    expect_run(*state, json_pack("[s,s,s,s,s,s]", "/bin/bash", "-c", command, "x", longest, longest), 5, "131071\n", "131071\n");
}

static void a_program_that_cannot_start_ends_as_in_a_shell(void **state)
{
    struct shell_rig *rig = *state;
    expect_run(rig, json_pack("[s]", "no-such-program"), 127, "", "no-such-program: command not found\n");
    expect_run(rig, json_pack("[s]", ""), 127, "", ": command not found\n");
    expect_run(rig, json_pack("[s]", "./nothing"), 127, "", "./nothing: command not found\n");
    shell_rig_put(rig->workspace, "plain", "text");
    start(rig, "plain", json_pack("[s]", "./plain"));
    CLEANUP(streams_free) struct streams streams = read_all(rig, "plain");
    assert_int_equal(streams.code, 126);
    assert_non_null(strstr(buffer_text(&streams.errors), "Permission denied"));
}

static void env_and_cwd_are_the_callers(void **state)
{
    struct shell_rig *rig = *state;
    json_decref(shell_rig_call(rig, "exec_start",
                               json_pack("{s:s, s:[s,s,s], s:{s:s, s:s}, s:s}", "exec_id", "e", "argv", "/bin/bash", "-c",
                                         "pwd; echo \"$A|$PATH\"; tr '\\0' '\\n' </proc/$$/environ | grep -c '^odd.name=x y$'", "env", "A", "one\ntwo", "odd.name",
                                         "x y", "cwd", "/usr/bin")));
    CLEANUP(streams_free) struct streams streams = read_all(rig, "e");
    assert_string_equal(buffer_text(&streams.out), "/usr/bin\none\ntwo|/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin\n1\n");
    struct error err = shell_rig_fail(rig, "exec_start", json_pack("{s:s, s:[s], s:s}", "exec_id", "f", "argv", "true", "cwd", "nowhere"), ERROR_INVALID);
    assert_non_null(strstr(err.message, "cannot work in nowhere: No such file or directory"));
}

// 300 kB of every byte, out of order.
static char *make_bytes(size_t len)
{
    char *bytes = mem_alloc(len + 1);
    for (size_t i = 0; i < len; i++)
        bytes[i] = (char)(i * 131 >> 7 ^ i);
    return bytes;
}

static void input_and_both_outputs_are_byte_exact_at_any_size(void **state)
{
    struct shell_rig *rig = *state;
    size_t len = 300000;
    CLEANUP_FREE char *bytes = make_bytes(len);
    start(rig, "cat", json_pack("[s,s,s]", "/bin/bash", "-c", "tee /dev/stderr; exit 9"));
    struct shell_heard heard;
    shell_rig_send(rig, "exec_write", json_pack("{s:s, s:o, s:b}", "exec_id", "cat", "data", json_encode_base64(bytes, len), "eof", 1), &heard);
    CLEANUP(streams_free) struct streams streams = read_all(rig, "cat");
    shell_rig_wait(&heard);
    assert_non_null(heard.result);
    json_decref(heard.result);
    assert_int_equal(streams.out.len, len);
    assert_int_equal(streams.errors.len, len);
    assert_memory_equal(streams.out.data, bytes, len);
    assert_memory_equal(streams.errors.data, bytes, len);
    assert_int_equal(streams.code, 9);
    shell_rig_fail(rig, "exec_write", json_pack("{s:s, s:s}", "exec_id", "cat", "data", "eA=="), ERROR_UNAVAILABLE);
}

static void input_may_come_in_pieces_and_empty_ones(void **state)
{
    struct shell_rig *rig = *state;
    start(rig, "p", json_pack("[s]", "cat"));
    write_bytes(rig, "p", "one ", 4, false);
    write_bytes(rig, "p", "", 0, false);
    struct streams streams = {.out = BUFFER_INIT(100), .errors = BUFFER_INIT(100)};
    assert_false(read_once(rig, "p", &streams));
    assert_string_equal(buffer_text(&streams.out), "one ");
    streams_free(&streams);
    write_bytes(rig, "p", "two", 3, false);
    write_bytes(rig, "p", "", 0, true);
    CLEANUP(streams_free) struct streams rest = read_all(rig, "p");
    assert_string_equal(buffer_text(&rest.out), "two");
    assert_int_equal(rest.code, 0);
}

static void a_program_that_does_not_read_is_said_so(void **state)
{
    struct shell_rig *rig = *state;
    CLEANUP_FREE char *bytes = make_bytes(200000);
    start(rig, "deaf", json_pack("[s,s,s]", "/bin/bash", "-c", "exec <&-; echo closed; exec sleep 1000"));
    struct streams streams = {.out = BUFFER_INIT(100), .errors = BUFFER_INIT(100)};
    assert_false(read_once(rig, "deaf", &streams));
    streams_free(&streams);
    shell_rig_fail(rig, "exec_write", json_pack("{s:s, s:o}", "exec_id", "deaf", "data", json_encode_base64(bytes, 200000)), ERROR_UNAVAILABLE);
    end(rig, "deaf");
}

static void the_input_of_a_program_that_ended_unread_can_be_closed(void **state)
{
    struct shell_rig *rig = *state;
    start(rig, "gone", json_pack("[s]", "true"));
    CLEANUP(streams_free) struct streams streams = read_all(rig, "gone");
    assert_int_equal(streams.code, 0);
    write_bytes(rig, "gone", "", 0, true);
    end(rig, "gone");
}

static void a_signal_ends_it_and_end_kills_the_rest(void **state)
{
    struct shell_rig *rig = *state;
    start(rig, "s", json_pack("[s,s]", "sleep", "1000"));
    json_decref(shell_rig_call(rig, "exec_signal", json_pack("{s:s, s:i}", "exec_id", "s", "signal", 2)));
    CLEANUP(streams_free) struct streams streams = read_all(rig, "s");
    assert_int_equal(streams.code, 130);
    start(rig, "t", json_pack("[s,s,s]", "/bin/bash", "-c", "echo $$; exec sleep 1000"));
    CLEANUP(streams_free) struct streams pid = {.out = BUFFER_INIT(100), .errors = BUFFER_INIT(100)};
    assert_false(read_once(rig, "t", &pid));
    struct shell_heard heard;
    shell_rig_send(rig, "exec_read", json_pack("{s:s, s:i}", "exec_id", "t", "wait_ms", 60000), &heard);
    end(rig, "t");
    shell_rig_wait(&heard);
    assert_int_equal(heard.error.code, ERROR_CANCELLED);
    CLEANUP_FREE char *path = mem_format("/proc/%d", atoi(pid.out.data));
    expect_run(rig, json_pack("[s,s,s,s]", "/bin/bash", "-c", "until ! [[ -e $0 ]]; do sleep 0.02; done; echo gone", path), 0, "gone\n", "");
}

static void a_cancelled_read_loses_nothing(void **state)
{
    struct shell_rig *rig = *state;
    start(rig, "c", json_pack("[s,s,s]", "/bin/bash", "-c", "for i in {1..40}; do echo $i; sleep 0.01; done"));
    for (int i = 0; i < 5; i++) {
        struct shell_heard heard;
        shell_rig_cancel(rig, shell_rig_send(rig, "exec_read", json_pack("{s:s, s:i}", "exec_id", "c", "wait_ms", 60000), &heard));
        shell_rig_wait(&heard);
        assert_int_equal(heard.error.code, ERROR_CANCELLED);
    }
    CLEANUP(streams_free) struct streams streams = read_all(rig, "c");
    assert_string_equal(buffer_text(&streams.out), "1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11\n12\n13\n14\n15\n16\n17\n18\n19\n20\n21\n22\n23\n24\n25\n26\n27\n28\n"
                                                   "29\n30\n31\n32\n33\n34\n35\n36\n37\n38\n39\n40\n");
}

// 2 MB that nobody reads at first: the program waits, nothing is dropped.
static void a_program_that_nobody_reads_waits(void **state)
{
    struct shell_rig *rig = *state;
    start(rig, "w", json_pack("[s,s,s]", "/bin/bash", "-c", "head -c 2000000 /dev/zero; echo end >&2"));
    CLEANUP_FREE char *dir = raw_bash_directory(rig->raw);
    CLEANUP_FREE char *watch = mem_format("until (($(stat -c %%s %s/x1/out.log) > 1000000)); do sleep 0.05; done; sleep 0.3; echo $(($(stat -c %%s %s/x1/out.log) < 1500000))", dir, dir);
    expect_run(rig, json_pack("[s,s,s]", "/bin/bash", "-c", watch), 0, "1\n", "");
    CLEANUP(streams_free) struct streams streams = read_all(rig, "w");
    assert_int_equal(streams.out.len, 2000000);
    assert_string_equal(buffer_text(&streams.errors), "end\n");
}

static void wrong_arguments_are_refused_with_the_guests_codes(void **state)
{
    static const struct {
        const char *method, *params;
        enum error_code code;
    } table[] = {
        {"exec_start", "{\"exec_id\": \"\", \"argv\": [\"true\"]}", ERROR_INVALID},
        {"exec_start", "{\"exec_id\": \"a\", \"argv\": []}", ERROR_INVALID},
        {"exec_start", "{\"exec_id\": \"a\", \"argv\": [1]}", ERROR_INVALID},
        {"exec_start", "{\"exec_id\": \"a\", \"argv\": [\"true\"], \"env\": {\"A=B\": \"x\"}}", ERROR_INVALID},
        {"exec_start", "{\"exec_id\": \"a\", \"argv\": [\"true\"], \"env\": []}", ERROR_INVALID},
        {"exec_write", "{\"exec_id\": \"nobody\", \"data\": \"\"}", ERROR_NOT_FOUND},
        {"exec_read", "{\"exec_id\": \"nobody\"}", ERROR_NOT_FOUND},
        {"exec_signal", "{\"exec_id\": \"nobody\", \"signal\": 1}", ERROR_NOT_FOUND},
        {"exec_end", "{\"exec_id\": \"nobody\"}", ERROR_NOT_FOUND},
    };
    struct shell_rig *rig = *state;
    for (size_t i = 0; i < ARRAY_LEN(table); i++)
        shell_rig_fail(rig, table[i].method, json_loads(table[i].params, 0, NULL), table[i].code);
    start(rig, "a", json_pack("[s]", "cat"));
    shell_rig_fail(rig, "exec_signal", json_pack("{s:s, s:i}", "exec_id", "a", "signal", 65), ERROR_INVALID);
    shell_rig_fail(rig, "exec_signal", json_pack("{s:s}", "exec_id", "a"), ERROR_INVALID);
    shell_rig_fail(rig, "exec_write", json_pack("{s:s, s:s}", "exec_id", "a", "data", "!"), ERROR_INVALID);
    shell_rig_fail(rig, "exec_start", json_pack("{s:s, s:[s]}", "exec_id", "a", "argv", "cat"), ERROR_INVALID);
}

static void expect_unsaved(struct shell_rig *rig, bool is_repository, int files, int commits)
{
    CLEANUP_JSON json_t *answer = shell_rig_call(rig, "git_unsaved", NULL);
    assert_int_equal(json_is_true(json_object_get(answer, "is_repository")), is_repository);
    assert_int_equal(json_get_int(answer, "changed_files", -1), files);
    assert_int_equal(json_get_int(answer, "unexported_commits", -1), commits);
}

static void unsaved_work_is_counted(void **state)
{
    struct shell_rig *rig = *state;
    expect_unsaved(rig, false, 0, 0);
    expect_run(rig, json_pack("[s,s,s]", "/bin/bash", "-c", "git init -q . && touch a b"), 0, "", "");
    expect_unsaved(rig, true, 2, 0);
    expect_run(rig, json_pack("[s,s,s]", "/bin/bash", "-c", "git add a && git -c user.name=x -c user.email=x@y commit -qm one"), 0, "", "");
    expect_unsaved(rig, true, 1, 1);
}

#define SHELL_TEST(test) cmocka_unit_test_setup_teardown(test, shell_rig_setup, shell_rig_teardown)

int main(int argc, char **argv)
{
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    const struct CMUnitTest tests[] = {
        SHELL_TEST(arguments_reach_the_program_as_they_are),
        SHELL_TEST(a_program_that_cannot_start_ends_as_in_a_shell),
        SHELL_TEST(env_and_cwd_are_the_callers),
        SHELL_TEST(input_and_both_outputs_are_byte_exact_at_any_size),
        SHELL_TEST(input_may_come_in_pieces_and_empty_ones),
        SHELL_TEST(a_program_that_does_not_read_is_said_so),
        SHELL_TEST(the_input_of_a_program_that_ended_unread_can_be_closed),
        SHELL_TEST(a_signal_ends_it_and_end_kills_the_rest),
        SHELL_TEST(a_cancelled_read_loses_nothing),
        SHELL_TEST(a_program_that_nobody_reads_waits),
        SHELL_TEST(wrong_arguments_are_refused_with_the_guests_codes),
        SHELL_TEST(unsaved_work_is_counted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
