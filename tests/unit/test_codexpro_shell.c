// Bash sessions over CodexPro's bash tool: what the guest's sessions do, they do. The tool is a real bash with that server's
// limits, killing and masking.
#include "controller/base/buffer.h"
#include "controller/base/memory.h"
#include "tests/support/shell_rig.h"
#include "reconcilers/session/codexpro/shell_state.h"
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void expect(json_t *answer, const char *status, int code, const char *output, bool has_more)
{
    assert_int_equal(json_object_size(answer), 5);
    assert_string_equal(json_get_text(answer, "output"), output);
    assert_string_equal(json_get_text(answer, "status"), status);
    if (code < 0)
        assert_true(json_is_null(json_object_get(answer, "exit_code")));
    else
        assert_int_equal(json_get_int(answer, "exit_code", -1), code);
    assert_int_equal(json_is_true(json_object_get(answer, "has_more_output")), has_more);
    json_decref(answer);
}

static char *run(struct shell_rig *rig, const char *command, int *code)
{
    static int number;
    CLEANUP_FREE char *id = mem_format("run_%d", ++number);
    shell_rig_start(rig, id, command);
    return shell_rig_drain(rig, id, NULL, code);
}

static void expect_run(struct shell_rig *rig, const char *command, int code, const char *output)
{
    int got = -1;
    CLEANUP_FREE char *text = run(rig, command, &got);
    assert_string_equal(text, output);
    assert_int_equal(got, code);
}

// ---- what a command is given and gives -----------------------------------------------------------------------------

static void both_streams_and_the_exit_code_arrive(void **state)
{
    expect_run(*state, "echo out; echo err >&2; exit 3", 3, "out\nerr\n");
    expect_run(*state, "kill -9 $$", 137, "");
    expect_run(*state, "exit 255", 255, "");
    expect_run(*state, "no-such-program-anywhere 2>/dev/null", 127, "");
}

static void a_command_runs_as_the_tool_itself_would_run_it(void **state)
{
    struct shell_rig *rig = *state;
    CLEANUP_FREE char *expected = mem_format("%s\n0022\n0\n", rig->workspace);
    expect_run(rig, "pwd; umask; v=$(grep SigIgn /proc/self/status); echo $((0x${v#*:?} & 0x7fffffff))", 0, expected);
    expect_run(rig, "[[ $(cat) == '' ]] && [[ -c /dev/stdin ]] && echo 'nothing to read'", 0, "nothing to read\n");
    expect_run(rig, "[[ $(ps -o pid= -o pgid= -o sid= -p $$ | tr -s ' ') == *\"$$ $$ $$\" ]] && echo own session", 0, "own session\n");
    static const char list[] = "env | sort | grep -v '^_='";
    CLEANUP_FREE char *compare = mem_format("[[ $(%s) == \"$(env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=%s USER=root "
                                            "SHELL=/bin/bash TMPDIR=/tmp TERM=dumb NO_COLOR=1 CI=1 /bin/bash -lc \"%s\")\" ]] && echo same",
                                            list, rig->home, list);
    expect_run(rig, compare, 0, "same\n");
    expect_run(rig, "for fd in /proc/$$/fd/*; do [[ $(readlink $fd) == */.chat2shell-* ]] && echo ${fd##*/}; done; true", 0, "1\n2\n");
}

static void quotes_newlines_and_any_character_reach_bash_unchanged(void **state)
{
    expect_run(*state, "printf '%s|' \"a'b\" '\\n' $'x\\ty' \"$(printf 'l1\nl2')\" é☃😀 '`' '$HOME' '!' \\\\ ; echo; # '", 0,
               "a'b|\\n|x\ty|l1\nl2|é☃😀|`|$HOME|!|\\|\n");
}

static void opening_stdout_or_stderr_anew_does_not_lose_what_was_printed(void **state)
{
    expect_run(*state, "echo one; echo two >/dev/stdout; echo three | tee /dev/stderr >/dev/null; echo four", 0, "one\ntwo\nthree\nfour\n");
}

static void a_command_as_long_as_linux_takes_runs(void **state)
{
    struct shell_rig *rig = *state;
    CLEANUP_FREE char *command = mem_alloc(131073);
    memset(command, 'x', 131072);
    memcpy(command, "A=", 2);
    memcpy(command + 131071 - 10, ";echo ${#A", 10);
    command[131070] = '}';
    memcpy(command + 131071 - 11, ";echo ${#A}", 11);
    command[131071] = '\0';
    expect_run(rig, command, 0, "131058\n");
    command[131070] = ' ';
    command[131071] = ' ';
    struct error err = shell_rig_fail(rig, "bash_start", json_pack("{s:s, s:s}", "session_id", "long", "command", command), ERROR_INVALID);
    assert_non_null(strstr(err.message, "131071"));
}

// ---- byte-exact ----------------------------------------------------------------------------------------------------

#define SECRETS_AT_ONCE 7

static const char *const secrets[] = {
    "sk-0123456789abcdefABCDEF",
    "sk-ant-api03-0123456789abcdef",
    "ghp_0123456789abcdefghijABCDEFGHIJ",
    "gho_0123456789abcdefghijABCDEFGHIJ",
    "ghs_0123456789abcdefghijABCDEFGHIJ",
    "ghr_0123456789abcdefghijABCDEFGHIJ",
    "ghu_0123456789abcdefghijABCDEFGHIJ",
    "github_pat_0123456789abcdefghijABCDEFGHIJ",
    "npm_0123456789abcdefghijABCDEFGHIJ",
    "Authorization: Bearer abcdef0123456789",
    "curl --token abcdef0123456789",
    "curl --access-token=abcdef0123456789",
    "curl --auth-token abcdef0123456789",
    "curl --api-key abcdef0123456789",
    "curl --authtoken abcdef0123456789",
    "http://h/?token=abcdef0123456789&x=1",
    "http://h/?x=1&access_token=abcdef0123456789",
    "http://h/?auth_token=abcdef0123456789",
    "http://h/?api_key=abcdef0123456789",
    "http://h/?codexpro_token=abcdef0123456789",
    "MY_API_KEY=abcdefghijklmnopqrstuvwxyz",
    "github_token: abcdefghijklmnopqrstuvwxyz",
    "client_secret = \"abcdefghijklmnop\"",
    "DB_PASSWORD='abcdefghijklmnop'",
    "PRIVATE_KEY=`abcdefghijklmnop`",
    "{\"password\": \"abcdefghijklmnop\"}",
    "TOKEN=aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa==",
    "[REDACTED_SECRET]",
};

static void every_masked_shape_is_one_that_the_tool_masks(void **state)
{
    (void)state;
    for (size_t i = 0; i + 1 < ARRAY_LEN(secrets); i++) {
        CLEANUP_FREE char *masked = raw_bash_mask(mem_strdup(secrets[i]));
        if (!strstr(masked, "[REDACTED_SECRET]"))
            fail_msg("%s is not masked: this row says nothing", secrets[i]);
    }
}

// Some in each command: to start one takes two dozen processes.
static void secrets_that_are_printed_or_in_the_command_come_back_unchanged(void **state)
{
    for (size_t first = 0; first < ARRAY_LEN(secrets); first += SECRETS_AT_ONCE) {
        CLEANUP(buffer_free) struct buffer output = BUFFER_INIT(4096);
        for (size_t i = first; i < first + SECRETS_AT_ONCE && i < ARRAY_LEN(secrets); i++)
            buffer_format(&output, "%s\n", secrets[i]);
        CLEANUP_FREE char *command = mem_format("cat <<'END'\n%sEND\n", buffer_text(&output)), *id = mem_format("secret_%zu", first);
        shell_rig_start(*state, id, command);
        expect(shell_rig_read(*state, id, "exit", 60000), "exited", 0, buffer_text(&output), false);
    }
}

// The base64 of these bytes is a name, or begins as a token does.
static void output_whose_encoding_looks_like_a_secret_comes_back_unchanged(void **state)
{
    static const char *const printers[] = {"echo -n TOKENTOKTOKENTOKTOKENTOKTOKENTOK | base64 -d", "echo -n ghpX0123456789012345678901234567 | base64 -d"};
    for (size_t i = 0; i < ARRAY_LEN(printers); i++) {
        CLEANUP_FREE char *command = mem_format("(%s) | base64 -w0; echo -n '|'; %s | od -An -v -tx1 | tr -d ' \\n'", printers[i], printers[i]);
        int code = -1;
        CLEANUP_FREE char *text = run(*state, command, &code);
        assert_non_null(strstr(text, i ? "ghpX0123456789012345678901234567|" : "TOKENTOKTOKENTOKTOKENTOKTOKENTOK|"));
    }
}

static void binary_output_of_any_size_arrives_byte_for_byte(void **state)
{
    struct shell_rig *rig = *state;
    shell_rig_start(rig, "big", "for i in $(seq 20000); do printf '%d \\0 \\x01 é ☃ 😀 sk-aaaaaaaaaaaaaaaa%d\\n' $i $i; done");
    size_t len;
    int code;
    CLEANUP_FREE char *all = shell_rig_drain(rig, "big", &len, &code);
    char *at = all;
    for (int i = 1; i <= 20000; i++) {
        char line[128];
        int n = snprintf(line, sizeof(line), "%d %c \x01 é ☃ 😀 sk-aaaaaaaaaaaaaaaa%d\n", i, '\0', i);
        if (at + n > all + len || memcmp(at, line, (size_t)n) != 0)
            fail_msg("line %d is wrong", i);
        at += n;
    }
    assert_ptr_equal(at, all + len);
    assert_int_equal(code, 0);
}

static void bad_bytes_become_one_replacement_each_maximal_piece(void **state)
{
    expect_run(*state, "printf 'a\\xffb\\xe2\\x98c\\xf0\\x9f\\x98'", 0, "a\xef\xbf\xbd"
                                                                      "b\xef\xbf\xbd"
                                                                      "c\xef\xbf\xbd");
}

static void a_character_that_is_not_complete_is_held_back(void **state)
{
    struct shell_rig *rig = *state;
    shell_rig_start(rig, "held", "printf 'a\\xe2'; read -t 1 <> <(:); touch half; until [[ -e go ]]; do sleep 0.05; done; printf '\\x98\\x83b'; touch end; sleep 1000");
    expect(shell_rig_read(rig, "held", "output", 60000), "running", -1, "a", false);
    expect(shell_rig_read(rig, "held", "output", 300), "running", -1, "", false); // half a character is no news
    shell_rig_put(rig->workspace, "go", "");
    expect(shell_rig_read(rig, "held", "output", 60000), "running", -1, "☃b", false);
}

static void an_answer_has_60000_bytes_and_says_when_there_is_more(void **state)
{
    struct shell_rig *rig = *state;
    shell_rig_start(rig, "much", "head -c 59999 /dev/zero | tr '\\0' x; printf '☃'; head -c 9998 /dev/zero | tr '\\0' y");
    CLEANUP_JSON json_t *first = shell_rig_read(rig, "much", "exit", 30000);
    assert_int_equal(json_string_length(json_object_get(first, "output")), 59999);
    assert_true(json_is_true(json_object_get(first, "has_more_output")));
    CLEANUP_JSON json_t *second = shell_rig_read(rig, "much", "none", 0);
    assert_int_equal(json_string_length(json_object_get(second, "output")), 10001);
    assert_false(json_is_true(json_object_get(second, "has_more_output")));
    json_t *tiny;
    shell_rig_start(rig, "tiny", "printf '☃é'");
    json_decref(shell_rig_read(rig, "tiny", "exit", 0));
    tiny = shell_rig_call(rig, "bash_read", json_pack("{s:s, s:s, s:i, s:i}", "session_id", "tiny", "wait", "exit", "wait_ms", 20000, "max_bytes", 1));
    json_decref(tiny);
}

// ---- waiting ---------------------------------------------------------------------------------------------------------

static void a_wait_for_output_ends_with_the_output_and_one_for_exit_does_not(void **state)
{
    struct shell_rig *rig = *state;
    struct shell_heard exit_wait;
    shell_rig_start(rig, "w", "until [[ -e 1 ]]; do sleep 0.05; done; echo one; until [[ -e 2 ]]; do sleep 0.05; done; echo two; exit 7");
    struct shell_heard output_wait;
    shell_rig_send(rig, "bash_read", json_pack("{s:s, s:s, s:i}", "session_id", "w", "wait", "output", "wait_ms", 60000), &output_wait);
    shell_rig_put(rig->workspace, "1", "");
    shell_rig_wait(&output_wait);
    expect(output_wait.result, "running", -1, "one\n", false);
    shell_rig_send(rig, "bash_read", json_pack("{s:s, s:s, s:i}", "session_id", "w", "wait", "exit", "wait_ms", 60000), &exit_wait);
    shell_rig_put(rig->workspace, "2", "");
    shell_rig_wait(&exit_wait);
    expect(exit_wait.result, "exited", 7, "two\n", false);
    expect(shell_rig_read(rig, "w", "output", 60000), "exited", 7, "", false);
}

static void a_cancelled_wait_loses_no_output(void **state)
{
    struct shell_rig *rig = *state;
    shell_rig_start(rig, "c", "mkfifo quiet; exec 9<>quiet; for i in $(seq 200); do echo $i; read -t 0.01 -u 9; done");
    CLEANUP_FREE char *expected = run(rig, "seq 200", NULL);
    struct shell_heard heard;
    for (int i = 0; i < 10; i++) {
        int64_t id =
            shell_rig_send(rig, "bash_read", json_pack("{s:s, s:s, s:i}", "session_id", "c", "wait", i % 2 ? "exit" : "output", "wait_ms", 60000), &heard);
        shell_rig_cancel(rig, id);
        shell_rig_wait(&heard);
        assert_int_equal(heard.error.code, ERROR_CANCELLED);
    }
    CLEANUP_FREE char *all = shell_rig_drain(rig, "c", NULL, NULL);
    assert_string_equal(all, expected);
}

static void reads_of_one_session_queue_and_each_byte_is_given_once(void **state)
{
    struct shell_rig *rig = *state;
    struct shell_heard heard[3];
    size_t total = 0;
    shell_rig_start(rig, "q", "until [[ -e go ]]; do sleep 0.05; done; head -c 150000 /dev/zero | tr '\\0' z");
    for (size_t i = 0; i < 3; i++)
        shell_rig_send(rig, "bash_read", json_pack("{s:s, s:s, s:i}", "session_id", "q", "wait", "output", "wait_ms", 60000), &heard[i]);
    shell_rig_put(rig->workspace, "go", "");
    for (size_t i = 0; i < 3; i++) {
        shell_rig_wait(&heard[i]);
        assert_non_null(heard[i].result);
        total += json_string_length(json_object_get(heard[i].result, "output"));
        json_decref(heard[i].result);
    }
    size_t len;
    CLEANUP_FREE char *rest = shell_rig_drain(rig, "q", &len, NULL);
    assert_int_equal(total + len, 150000);
}

static void output_of_a_child_that_outlives_the_command_still_comes(void **state)
{
    struct shell_rig *rig = *state;
    shell_rig_start(rig, "bg", "(until [[ -e go ]]; do sleep 0.05; done; echo late) & echo early");
    expect(shell_rig_read(rig, "bg", "exit", 60000), "exited", 0, "early\n", false);
    shell_rig_put(rig->workspace, "go", "");
    for (int i = 0;; i++) {
        CLEANUP_JSON json_t *answer = shell_rig_read(rig, "bg", "output", 1000);
        if (*json_get_text(answer, "output")) {
            expect(TAKE_PTR(answer), "exited", 0, "late\n", false);
            break;
        }
        assert_true(i < SUPPORT_PATIENCE_MS / 20);
        usleep(20000);
    }
}

// ---- ends ------------------------------------------------------------------------------------------------------------

static json_t *stop(struct shell_rig *rig, const char *id)
{
    return shell_rig_call(rig, "bash_stop", json_pack("{s:s}", "session_id", id));
}

static void stop_ends_the_group_and_kills_what_ignores_it(void **state)
{
    struct shell_rig *rig = *state;
    shell_rig_start(rig, "meek", "echo begin; sleep 1000");
    expect(shell_rig_read(rig, "meek", "output", 60000), "running", -1, "begin\n", false);
    expect(stop(rig, "meek"), "exited", 143, "", false);
    expect(stop(rig, "meek"), "exited", 143, "", false);
    shell_rig_start(rig, "stubborn", "trap '' TERM; echo begin; while :; do sleep 1000; done");
    expect(shell_rig_read(rig, "stubborn", "output", 60000), "running", -1, "begin\n", false);
    expect(stop(rig, "stubborn"), "exited", 137, "", false);
}

static void a_timeout_is_124_and_137_for_what_ignores_it(void **state)
{
    struct shell_rig *rig = *state;
    json_decref(shell_rig_call(rig, "bash_start", json_pack("{s:s, s:s, s:i}", "session_id", "a", "command", "echo x; sleep 1000", "timeout_ms", 6000)));
    json_decref(shell_rig_call(rig, "bash_start",
                               json_pack("{s:s, s:s, s:i}", "session_id", "b", "command", "trap '' TERM; while :; do sleep 1000; done", "timeout_ms", 6000)));
    json_decref(shell_rig_call(rig, "bash_start", json_pack("{s:s, s:s, s:I}", "session_id", "c", "command", "echo y", "timeout_ms", (json_int_t)1 << 60)));
    expect(shell_rig_read(rig, "a", "exit", 60000), "exited", 124, "x\n", false);
    expect(shell_rig_read(rig, "b", "exit", 60000), "exited", 137, "", false);
    expect(shell_rig_read(rig, "c", "exit", 60000), "exited", 0, "y\n", false);
}

static void a_killed_supervisor_is_an_end_and_not_a_hang(void **state)
{
    struct shell_rig *rig = *state;
    shell_rig_start(rig, "k", "echo begin; sleep 1000");
    expect(shell_rig_read(rig, "k", "output", 60000), "running", -1, "begin\n", false);
    struct shell_heard heard;
    shell_rig_send(rig, "bash_read", json_pack("{s:s, s:s, s:i}", "session_id", "k", "wait", "exit", "wait_ms", 60000), &heard);
    CLEANUP_FREE char *dir = raw_bash_directory(rig->raw), *command = mem_format("kill -9 $(<%s/s1/supervisor)", dir);
    expect_run(rig, command, 0, "");
    shell_rig_wait(&heard);
    expect(heard.result, "exited", 137, "", false);
}

// ---- refusals --------------------------------------------------------------------------------------------------------

static void wrong_arguments_are_refused_with_the_guests_codes(void **state)
{
    struct shell_rig *rig = *state;
    static const struct {
        const char *method, *params;
        enum error_code code;
    } table[] = {
        {"bash_start", "{\"session_id\": \"a\", \"command\": \" \\n\"}", ERROR_INVALID},
        {"bash_start", "{\"session_id\": \"A\", \"command\": \"true\"}", ERROR_INVALID},
        {"bash_start", "{\"session_id\": \"a\", \"command\": \"true\", \"timeout_ms\": 999}", ERROR_INVALID},
        {"bash_start", "{\"session_id\": \"a\"}", ERROR_INVALID},
        {"bash_start", "{\"session_id\": \"a\", \"command\": \"true\", \"cwd\": \"/etc\"}", ERROR_INVALID},
        {"bash_start", "{\"session_id\": \"a\", \"command\": \"true\", \"cwd\": \"../x\"}", ERROR_INVALID},
        {"bash_start", "{\"session_id\": \"a\", \"command\": \"true\", \"cwd\": \"nowhere\"}", ERROR_INVALID},
        {"bash_start", "{\"session_id\": \"a\", \"command\": \"true\", \"cwd\": 1}", ERROR_INVALID},
        {"bash_read", "{\"session_id\": \"nobody\", \"wait\": \"none\"}", ERROR_NOT_FOUND},
        {"bash_read", "{\"session_id\": \"nobody\", \"wait\": \"ever\"}", ERROR_INVALID},
        {"bash_read", "{\"session_id\": \"nobody\", \"wait\": \"exit\", \"wait_ms\": 60001}", ERROR_INVALID},
        {"bash_read", "{\"session_id\": \"nobody\", \"wait\": \"exit\", \"max_bytes\": 0}", ERROR_INVALID},
        {"bash_stop", "{\"session_id\": \"nobody\"}", ERROR_NOT_FOUND},
        {"bash_stop", "{}", ERROR_INVALID},
    };
    for (size_t i = 0; i < ARRAY_LEN(table); i++)
        shell_rig_fail(rig, table[i].method, json_loads(table[i].params, 0, NULL), table[i].code);
    shell_rig_start(rig, "twice", "true");
    shell_rig_fail(rig, "bash_start", json_pack("{s:s, s:s}", "session_id", "twice", "command", "true"), ERROR_INVALID);
    shell_rig_start(rig, "a", "true"); // a failed start leaves the name free
    struct error err = shell_rig_fail(rig, "bash_read", json_pack("{s:s, s:s}", "session_id", "b", "wait", "none"), ERROR_NOT_FOUND);
    assert_string_equal(err.message, "Unknown Bash session: b");
}

static void cwd_is_a_directory_of_the_workspace(void **state)
{
    struct shell_rig *rig = *state;
    expect_run(rig, "mkdir sub", 0, "");
    json_decref(shell_rig_call(rig, "bash_start", json_pack("{s:s, s:s, s:s}", "session_id", "d", "command", "basename $PWD", "cwd", "sub")));
    expect(shell_rig_read(rig, "d", "exit", 60000), "exited", 0, "sub\n", false);
}

// ---- hostile and unlucky sandboxes -------------------------------------------------------------------------------------

// A masker that takes every long word: only the encoding of the second attempt gets through.
static char *mask_long_words(void *arg, char *text)
{
    (void)arg;
    char *at = text;
    while (*at) {
        size_t len = strcspn(at, " \n");
        if (len > 24)
            memset(at, '*', len);
        at += len + (at[len] != '\0');
    }
    return text;
}

// Each answer is cut in the middle, every other time.
static char *cut_every_other(void *arg, char *text)
{
    if (++*(int *)arg % 2)
        text[strlen(text) / 2] = '\0';
    return text;
}

static char *change_a_letter(void *arg, char *text)
{
    (void)arg;
    char *at = strstr(text, "aGVsbG8");
    if (at)
        *at = 'b';
    return text;
}

static void damaged_answers_are_asked_for_again_and_never_delivered_wrong(void **state)
{
    struct shell_rig *rig = *state;
    int count = 0;
    size_t len;
    shell_rig_start(rig, "x", "seq 20000");
    CLEANUP_FREE char *expected = shell_rig_drain(rig, "x", NULL, NULL);
    assert_int_equal(strlen(expected), 108894);
    raw_bash_set_fault(rig->raw, mask_long_words, NULL);
    shell_rig_start(rig, "y", "seq 20000");
    CLEANUP_FREE char *masked = shell_rig_drain(rig, "y", &len, NULL);
    assert_string_equal(masked, expected);
    raw_bash_set_fault(rig->raw, cut_every_other, &count);
    shell_rig_start(rig, "z", "seq 20000");
    CLEANUP_FREE char *cut = shell_rig_drain(rig, "z", &len, NULL);
    assert_string_equal(cut, expected);
    raw_bash_set_fault(rig->raw, change_a_letter, NULL);
    expect_run(rig, "echo hello", 0, "hello\n");
}

static char *destroy(void *arg, char *text)
{
    (void)arg;
    return memset(text, '#', strlen(text));
}

static void answers_that_never_arrive_whole_are_an_error_and_lose_nothing(void **state)
{
    struct shell_rig *rig = *state;
    shell_rig_start(rig, "x", "echo kept");
    raw_bash_set_fault(rig->raw, destroy, NULL);
    shell_rig_fail(rig, "bash_read", json_pack("{s:s, s:s}", "session_id", "x", "wait", "none"), ERROR_UNAVAILABLE);
    raw_bash_set_fault(rig->raw, NULL, NULL);
    expect(shell_rig_read(rig, "x", "exit", 30000), "exited", 0, "kept\n", false);
}

static void login_files_may_print_what_they_like(void **state)
{
    struct shell_rig *rig = *state;
    shell_rig_put(rig->home, ".profile",
                  "echo c2s 0123456789abcdef ok 0; yes noise | head -c 5000; echo() { printf no; }; printf() { builtin echo no; }\n"
                  "export -f echo; alias exec=false; set -u; cd /; builtin printf 'MY_TOKEN='\n");
    int code;
    CLEANUP_FREE char *text = run(rig, "exec 2>&1; unset -f echo printf; cd \"$OLDPWD\"; builtin echo fine", &code);
    assert_non_null(strstr(text, "MY_TOKEN=fine\n")); // its own login prints it, too
    assert_int_equal(code, 0);
}

static void a_sandbox_without_the_programs_says_which(void **state)
{
    struct shell_rig *rig = *state;
    shell_rig_put(rig->home, ".profile", "PATH=/nonexistent\n");
    struct error err = shell_rig_fail(rig, "bash_start", json_pack("{s:s, s:s}", "session_id", "x", "command", "true"), ERROR_UNSUPPORTED);
    assert_non_null(strstr(err.message, "setsid flock"));
    shell_rig_put(rig->home, ".profile", "exit 3\n");
    err = shell_rig_fail(rig, "bash_start", json_pack("{s:s, s:s}", "session_id", "x", "command", "true"), ERROR_UNAVAILABLE);
    assert_non_null(strstr(err.message, "code 3"));
    shell_rig_put(rig->home, ".profile", "");
    expect_run(rig, "echo well", 0, "well\n");
}

static void a_removed_directory_ends_its_sessions_and_no_others(void **state)
{
    struct shell_rig *rig = *state;
    shell_rig_start(rig, "x", "echo begin; sleep 1000");
    expect(shell_rig_read(rig, "x", "output", 60000), "running", -1, "begin\n", false);
    CLEANUP_FREE char *dir = raw_bash_directory(rig->raw), *command = mem_format("until [[ -e go ]]; do sleep 0.02; done; kill -9 -$(<%s/s1/pid); rm -rf %s", dir, dir);
    shell_rig_start(rig, "y", command);
    shell_rig_put(rig->workspace, "go", "");
    assert_true(support_await(10, access(dir, F_OK) != 0));
    shell_rig_fail(rig, "bash_read", json_pack("{s:s, s:s}", "session_id", "x", "wait", "none"), ERROR_NOT_FOUND);
    expect_run(rig, "echo anew", 0, "anew\n");
    shell_rig_fail(rig, "bash_read", json_pack("{s:s, s:s}", "session_id", "x", "wait", "none"), ERROR_NOT_FOUND);
}

// Somebody in the sandbox put another script there: it answers at once what should have been waited for.
static void answers_to_waits_that_come_at_once_do_not_make_us_spin(void **state)
{
    static const char script[] = "r=$'ok - 0 0 0 0 0\\n\\n'; n=$1; read -r c l _ < <(printf %s \"$r\" | cksum)\n"
                                 "printf '\\nc2s %s %sc2s %s end %s %s\\n' \"$n\" \"$r\" \"$n\" \"$c\" \"$l\"\n";
    struct shell_rig *rig = *state;
    shell_rig_start(rig, "x", "sleep 1000");
    CLEANUP_FREE char *dir = raw_bash_directory(rig->raw);
    shell_rig_put(dir, "run", script);
    int before = raw_bash_calls(rig->raw);
    expect(shell_rig_read(rig, "x", "output", 2000), "running", -1, "", false);
    assert_in_range(raw_bash_calls(rig->raw) - before, 2, 2000 / SHELL_PAUSE_MS + 3);
}

// 70 MB that nobody reads: the oldest go, a line says how many, what is left is in one piece.
static void output_that_nobody_reads_is_bounded(void **state)
{
    struct shell_rig *rig = *state;
    shell_rig_start(rig, "flood", "head -c 70000000 /dev/zero | tr '\\0' f; echo; echo last");
    json_decref(shell_rig_read(rig, "flood", "none", 0));
    struct shell_heard heard;
    CLEANUP_JSON json_t *answer = NULL;
    for (int i = 0; i < 20; i++) { // waits without reading
        shell_rig_cancel(rig, shell_rig_send(rig, "bash_read", json_pack("{s:s, s:s, s:i}", "session_id", "flood", "wait", "exit", "wait_ms", 1000), &heard));
        shell_rig_wait(&heard);
        json_decref(heard.result);
    }
    CLEANUP_FREE char *dir = raw_bash_directory(rig->raw);
    CLEANUP_FREE char *watch = mem_format("until [[ -e %s/s1/exit ]]; do sleep 0.05; done; echo $(($(stat -c %%b*512 %s/s1/out.log) < 70000000))", dir, dir);
    expect_run(rig, watch, 0, "1\n");
    answer = shell_rig_read(rig, "flood", "none", 0);
    assert_non_null(strstr(json_get_text(answer, "output"), "bytes of older output were dropped here"));
    assert_int_equal(json_string_length(json_object_get(answer, "output")), 60000);
    assert_true(json_is_true(json_object_get(answer, "has_more_output")));
}

#define SHELL_TEST(test) cmocka_unit_test_setup_teardown(test, shell_rig_setup, shell_rig_teardown)

int main(int argc, char **argv)
{
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    const struct CMUnitTest tests[] = {
        SHELL_TEST(both_streams_and_the_exit_code_arrive),
        SHELL_TEST(a_command_runs_as_the_tool_itself_would_run_it),
        SHELL_TEST(quotes_newlines_and_any_character_reach_bash_unchanged),
        SHELL_TEST(opening_stdout_or_stderr_anew_does_not_lose_what_was_printed),
        SHELL_TEST(a_command_as_long_as_linux_takes_runs),
        SHELL_TEST(every_masked_shape_is_one_that_the_tool_masks),
        SHELL_TEST(secrets_that_are_printed_or_in_the_command_come_back_unchanged),
        SHELL_TEST(output_whose_encoding_looks_like_a_secret_comes_back_unchanged),
        SHELL_TEST(binary_output_of_any_size_arrives_byte_for_byte),
        SHELL_TEST(bad_bytes_become_one_replacement_each_maximal_piece),
        SHELL_TEST(a_character_that_is_not_complete_is_held_back),
        SHELL_TEST(an_answer_has_60000_bytes_and_says_when_there_is_more),
        SHELL_TEST(a_wait_for_output_ends_with_the_output_and_one_for_exit_does_not),
        SHELL_TEST(a_cancelled_wait_loses_no_output),
        SHELL_TEST(reads_of_one_session_queue_and_each_byte_is_given_once),
        SHELL_TEST(output_of_a_child_that_outlives_the_command_still_comes),
        SHELL_TEST(stop_ends_the_group_and_kills_what_ignores_it),
        SHELL_TEST(a_timeout_is_124_and_137_for_what_ignores_it),
        SHELL_TEST(a_killed_supervisor_is_an_end_and_not_a_hang),
        SHELL_TEST(wrong_arguments_are_refused_with_the_guests_codes),
        SHELL_TEST(cwd_is_a_directory_of_the_workspace),
        SHELL_TEST(damaged_answers_are_asked_for_again_and_never_delivered_wrong),
        SHELL_TEST(answers_that_never_arrive_whole_are_an_error_and_lose_nothing),
        SHELL_TEST(login_files_may_print_what_they_like),
        SHELL_TEST(a_sandbox_without_the_programs_says_which),
        SHELL_TEST(a_removed_directory_ends_its_sessions_and_no_others),
        SHELL_TEST(answers_to_waits_that_come_at_once_do_not_make_us_spin),
        SHELL_TEST(output_that_nobody_reads_is_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
