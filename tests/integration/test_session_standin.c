// Lanes against the stand-in for CodexPro (tests/fakes/codexpro): a real HTTP server in a process of its own, real tools
// and real commands, and the faults it can be told to have.
#include "tests/support/lane_rig.h"
#include "tests/support/http_site.h"
#include "controller/base/fs.h"
#include "controller/base/memory.h"
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define TOKEN "a-token-of-the-stand-in-that-nobody-else-has"

struct standin {
    pid_t pid;
    int port;
    char *root;
    struct heard died, ready;
};

static void put_file(const struct standin *standin, const char *name, const char *text)
{
    struct error err = ERROR_INIT;
    CLEANUP_CLOSE int dir_fd = open(standin->root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_ok(fs_replace_file(dir_fd, name, text, strlen(text), 0600, &err));
}

static void set_faults(const struct standin *standin, const char *faults)
{
    put_file(standin, ".codexpro-standin-faults", faults);
}

static void run_program(struct standin *standin, const struct server *stdio)
{
    CLEANUP_FREE char *dir = support_program_dir(), *guest = mem_format("CODEXPRO_STANDIN_GUEST=%s/chat2shell-guest", dir);
    CLEANUP_FREE char *home = mem_format("HOME=%s", standin->root), *tmp = mem_format("TMPDIR=%s", standin->root), *port = mem_format("%d", standin->port);
    char *argv[] = {TEST_SOURCE_DIR "/tests/fakes/codexpro", "--root", standin->root, "--allow-root", standin->root, "--host",
                    "127.0.0.1", "--port", port, "--bash", "full", "--write", "workspace", "--tool-mode", "standard", NULL};
    char *environment[] = {"PATH=/usr/local/bin:/usr/bin:/bin", "CODEXPRO_HTTP_TOKEN=" TOKEN, guest, home, tmp, NULL};
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, stdio->input_fd, 0);
    posix_spawn_file_actions_adddup2(&actions, stdio->output_fd, 1);
    posix_spawn_file_actions_adddup2(&actions, stdio->error_fd, 2);
    assert_int_equal(posix_spawn(&standin->pid, argv[0], &actions, NULL, argv, environment), 0);
    posix_spawn_file_actions_destroy(&actions);
}

static void start(struct rig *rig, struct standin *standin, const char *faults)
{
    struct server stdio;
    struct driver_session session;
    *standin = (struct standin){.port = site_reserve_port(), .root = support_make_dir()};
    set_faults(standin, faults);
    server_pipes(&stdio, &session);
    run_program(standin, &stdio);
    server_close(&stdio);
    session.port = standin->port;
    session.token = mem_strdup(TOKEN);
    rig_open_session(rig, RIG_SANDBOX, &session, &standin->ready, &standin->died);
    heard_wait(&standin->ready);
    if (standin->ready.result < 0)
        fail_msg("not ready: %s", standin->ready.error.message);
}

static void end(struct rig *rig, struct standin *standin)
{
    lane_drop(rig->lanes, RIG_SANDBOX);
    kill(standin->pid, SIGKILL);
    waitpid(standin->pid, NULL, 0);
    support_remove_dir(standin->root);
    heard_clear(&standin->ready);
    heard_clear(&standin->died);
}

static void call(struct rig *rig, const char *tool, json_t *arguments, struct heard *heard)
{
    *heard = (struct heard){0};
    lane_call_tool(rig->lanes, RIG_SANDBOX, tool, arguments, heard_answer, heard);
    heard_wait(heard);
}

static const json_t *structured(const struct heard *heard)
{
    if (heard->result < 0)
        fail_msg("the call failed: %s", heard->error.message);
    return json_object_get(heard->answer, "structuredContent");
}

static bool goes_on(struct rig *rig)
{
    struct heard heard;
    call(rig, "tree", json_object(), &heard);
    bool is = heard.result == 0;
    heard_clear(&heard);
    return is;
}

// ---- tools ---------------------------------------------------------------------------------------------------------

static void tools_work_and_their_results_have_the_public_workspace_id(void **state)
{
    struct rig *rig = *state;
    struct standin standin;
    struct heard heard;
    start(rig, &standin, "");
    put_file(&standin, "hello.txt", "hello\n");
    assert_true(standin.ready.has_sessions);
    assert_string_equal(standin.ready.server_name, "CodexPro 0.30.0");
    call(rig, "open_current_workspace", json_object(), &heard);
    assert_string_equal(json_get_text(structured(&heard), "workspace_id"), RIG_WORKSPACE);
    heard_clear(&heard);
    call(rig, "read", json_pack("{s:s}", "path", "hello.txt"), &heard);
    CLEANUP_FREE char *text = json_to_text(heard.answer);
    assert_non_null(strstr(text, "hello"));
    heard_clear(&heard);
    call(rig, "read", json_pack("{s:s}", "path", "absent.txt"), &heard);
    assert_true(json_get_bool(heard.answer, "isError", false));
    heard_clear(&heard);
    end(rig, &standin);
}

static char *run(struct rig *rig, const char *command, int64_t yield_ms, char **ret_session)
{
    struct heard heard = {0};
    lane_bash(rig->lanes, RIG_SANDBOX, command, NULL, yield_ms, 0, heard_answer, &heard);
    heard_wait(&heard);
    if (heard.result < 0)
        fail_msg("bash failed: %s", heard.error.message);
    char *output = mem_strdup(json_get_text(heard.answer, "output"));
    if (ret_session)
        *ret_session = mem_strdup(json_get_text(heard.answer, "session_id"));
    heard_clear(&heard);
    return output;
}

static void a_commands_output_is_not_masked(void **state)
{
    struct rig *rig = *state;
    struct standin standin;
    start(rig, &standin, "");
    CLEANUP_FREE char *output = run(rig, "echo API_KEY=sk-abcdefghijklmnopqrstuvwxyz012345; printf '\\303\\251'", 20000, NULL);
    assert_string_equal(output, "API_KEY=sk-abcdefghijklmnopqrstuvwxyz012345\n\xc3\xa9");
    end(rig, &standin);
}

static void a_waiting_command_does_not_hold_up_tools_and_can_be_stopped(void **state)
{
    struct rig *rig = *state;
    struct standin standin;
    struct heard polled = {0}, stopped = {0};
    CLEANUP_FREE char *session = NULL;
    start(rig, &standin, "");
    CLEANUP_FREE char *output = run(rig, "echo begun; sleep 600", 1000, &session);
    lane_bash_poll(rig->lanes, RIG_SANDBOX, session, 60000, heard_answer, &polled);
    assert_true(goes_on(rig));
    lane_bash_stop(rig->lanes, RIG_SANDBOX, session, heard_answer, &stopped);
    heard_wait(&stopped);
    assert_string_equal(json_get_text(stopped.answer, "status"), "exited");
    assert_int_equal(json_get_int(stopped.answer, "exit_code", -1), 143);
    heard_wait(&polled);
    heard_clear(&polled);
    heard_clear(&stopped);
    end(rig, &standin);
}

static void git_says_what_is_unsaved(void **state)
{
    struct rig *rig = *state;
    struct standin standin;
    struct heard heard = {0};
    start(rig, &standin, "");
    free(run(rig, "git init -q . && echo x > file", 20000, NULL));
    lane_request(rig->lanes, RIG_SANDBOX, "chat2shell/git_unsaved", json_object(), 60000, heard_answer, &heard);
    heard_wait(&heard);
    if (heard.result < 0)
        fail_msg("git_unsaved failed: %s", heard.error.message);
    assert_true(json_get_bool(heard.answer, "is_repository", false));
    heard_clear(&heard);
    end(rig, &standin);
}

// ---- faults --------------------------------------------------------------------------------------------------------

static void every_framing_it_may_use_is_understood(void **state)
{
    static const char *const framings[] = {"PLAIN_JSON=1", "BODY=crlf", "BODY=cr", "BODY=split", "BODY=no_space",
                                           "BODY=bom",     "BODY=preamble", "BODY=twice", "BODY=short", "TRICKLE_MS=1\nTRICKLE_BYTES=97"};
    struct rig *rig = *state;
    struct standin standin;
    start(rig, &standin, "");
    for (size_t i = 0; i < ARRAY_LEN(framings); i++) {
        set_faults(&standin, framings[i]);
        if (!goes_on(rig))
            fail_msg("%s", framings[i]);
    }
    end(rig, &standin);
}

static void every_fault_of_an_answer_is_a_sentence(void **state)
{
    static const char *const faults[] = {"BODY=garbage",   "BODY=empty",     "BODY=html",  "BODY=not_json",  "BODY=not_utf8",
                                         "BODY=deep",      "BODY=nothing",   "BODY=truncated", "BODY=reset",
                                         "BODY=oversized", "BODY=endless",   "BODY=endless_comments", "BODY=endless_headers",
                                         "BODY=wrong_id",  "BODY=no_result", "BODY=error", "BODY=result_array", "FORGET_ALWAYS=1",
                                         "STATUS=500",     "STATUS=429"};
    struct rig *rig = *state;
    struct standin standin;
    start(rig, &standin, "");
    for (size_t i = 0; i < ARRAY_LEN(faults); i++) { // fewer of them are garbled than a session survives
        struct heard heard;
        set_faults(&standin, faults[i]);
        call(rig, "tree", json_object(), &heard);
        if (heard.result == 0 || !*heard.error.message)
            fail_msg("%s: no sentence", faults[i]);
        heard_clear(&heard);
        set_faults(&standin, "");
        if (!goes_on(rig))
            fail_msg("%s: the lane does not go on", faults[i]);
    }
    end(rig, &standin);
}

static void a_forgotten_session_is_made_again(void **state)
{
    struct rig *rig = *state;
    struct standin standin;
    start(rig, &standin, "");
    set_faults(&standin, "FORGET=1");
    assert_true(goes_on(rig));
    set_faults(&standin, "");
    assert_true(goes_on(rig));
    end(rig, &standin);
}

static void a_stall_of_3_s_is_survived(void **state)
{
    struct rig *rig = *state;
    struct standin standin;
    start(rig, &standin, "");
    set_faults(&standin, "STALL_MS=3000");
    assert_true(goes_on(rig));
    assert_true(goes_on(rig));
    assert_false(heard_yet(&standin.died));
    end(rig, &standin);
}

static void a_hang_is_found(void **state)
{
    struct rig *rig = *state;
    struct standin standin;
    start(rig, &standin, "");
    set_faults(&standin, "HANG=1");
    assert_false(goes_on(rig));
    heard_wait(&standin.died);
    assert_non_null(strstr(standin.died.reason, "hangs"));
    end(rig, &standin);
}

static void a_death_is_told_with_its_last_words(void **state)
{
    struct rig *rig = *state;
    struct standin standin;
    start(rig, &standin, "");
    set_faults(&standin, "DIE=1\nLAST_WORDS=FATAL: out of memory");
    assert_false(goes_on(rig));
    heard_wait(&standin.died);
    assert_non_null(strstr(standin.died.last_lines, "FATAL: out of memory"));
    assert_null(strstr(standin.died.last_lines, TOKEN));
    end(rig, &standin);
}

int main(void)
{
#define STANDIN_TEST(test) cmocka_unit_test_setup_teardown(test, rig_setup_real, rig_teardown)
    const struct CMUnitTest tests[] = {
        STANDIN_TEST(tools_work_and_their_results_have_the_public_workspace_id),
        STANDIN_TEST(a_commands_output_is_not_masked),
        STANDIN_TEST(a_waiting_command_does_not_hold_up_tools_and_can_be_stopped),
        STANDIN_TEST(git_says_what_is_unsaved),
        STANDIN_TEST(every_framing_it_may_use_is_understood),
        STANDIN_TEST(every_fault_of_an_answer_is_a_sentence),
        STANDIN_TEST(a_forgotten_session_is_made_again),
        STANDIN_TEST(a_stall_of_3_s_is_survived),
        STANDIN_TEST(a_hang_is_found),
        STANDIN_TEST(a_death_is_told_with_its_last_words),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
