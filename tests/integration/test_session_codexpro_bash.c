// Bash sessions and execs through a lane whose tool server is the stand-in for CodexPro (tests/fakes/codexpro): what the guest
// program's sessions do, they do, over a bash tool that masks, ends what runs long and kills what prints much.
#include "controller/base/memory.h"
#include "tests/support/http_site.h"
#include "tests/support/lane_rig.h"
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define TOKEN "a-token-of-the-bash-tests-that-nobody-else-has"

struct world {
    struct rig *rig;
    pid_t pid;
    int port;
    char *root, *home;
    struct heard ready, died;
};

// ---- fixture -------------------------------------------------------------------------------------------------------

static void run_program(struct world *world, const struct server *stdio)
{
    CLEANUP_FREE char *dir = support_program_dir(), *guest = mem_format("CODEXPRO_STANDIN_GUEST=%s/chat2shell-guest", dir);
    CLEANUP_FREE char *home = mem_format("HOME=%s", world->home), *tmp = mem_format("TMPDIR=%s", world->home);
    CLEANUP_FREE char *faults = mem_format("CODEXPRO_STANDIN_FAULT_FILE=%s/faults", world->home), *port = mem_format("%d", world->port);
    char *argv[] = {TEST_SOURCE_DIR "/tests/fakes/codexpro", "--root", world->root, "--allow-root", world->root, "--host",
                    "127.0.0.1", "--port", port, "--bash", "full", "--write", "workspace", "--tool-mode", "standard", NULL};
    char *environment[] = {"PATH=/usr/local/bin:/usr/bin:/bin", "CODEXPRO_HTTP_TOKEN=" TOKEN, guest, home, tmp, faults, NULL};
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, stdio->input_fd, 0);
    posix_spawn_file_actions_adddup2(&actions, stdio->output_fd, 1);
    posix_spawn_file_actions_adddup2(&actions, stdio->error_fd, 2);
    assert_int_equal(posix_spawn(&world->pid, argv[0], &actions, NULL, argv, environment), 0);
    posix_spawn_file_actions_destroy(&actions);
}

static void set_faults(const struct world *world, const char *faults)
{
    CLEANUP_FREE char *path = mem_format("%s/faults", world->home), *next = mem_format("%s.next", path);
    FILE *file = fopen(next, "we");
    assert_non_null(file);
    fputs(faults, file);
    fclose(file);
    assert_int_equal(rename(next, path), 0);
}

static int setup(void **state)
{
    struct world *world = mem_alloc(sizeof(*world));
    rig_setup_real((void **)&world->rig);
    world->port = site_reserve_port();
    world->root = support_make_dir();
    world->home = support_make_dir();
    set_faults(world, "");
    struct server stdio;
    struct driver_session session;
    server_pipes(&stdio, &session);
    run_program(world, &stdio);
    server_close(&stdio);
    session.port = world->port;
    session.token = mem_strdup(TOKEN);
    rig_open_session(world->rig, RIG_SANDBOX, &session, &world->ready, &world->died);
    heard_wait(&world->ready);
    if (world->ready.result < 0)
        fail_msg("not ready: %s", world->ready.error.message);
    *state = world;
    return 0;
}

// Programs that still run: each has its files below the directory for temporary ones.
static void end_programs(const struct world *world)
{
    CLEANUP_FREE char *command = mem_format("for f in %s/.chat2shell-*/*/{pid,supervisor}; do [ -e $f ] && kill -9 -$(cat $f) 2>/dev/null; done", world->home);
    char *argv[] = {"bash", "-c", command, NULL};
    pid_t pid;
    assert_int_equal(posix_spawnp(&pid, "bash", NULL, NULL, argv, NULL), 0);
    waitpid(pid, NULL, 0);
}

static int teardown(void **state)
{
    struct world *world = *state;
    lane_drop(world->rig->lanes, RIG_SANDBOX);
    kill(world->pid, SIGKILL);
    waitpid(world->pid, NULL, 0);
    end_programs(world);
    support_remove_dir(world->root);
    support_remove_dir(world->home);
    heard_clear(&world->ready);
    heard_clear(&world->died);
    rig_teardown((void **)&world->rig);
    free(world);
    return 0;
}

// ---- calls ---------------------------------------------------------------------------------------------------------

static void bash(struct world *world, const char *command, int64_t yield_ms, struct heard *heard)
{
    *heard = (struct heard){0};
    lane_bash(world->rig->lanes, RIG_SANDBOX, command, NULL, yield_ms, 0, heard_answer, heard);
}

static void poll_session(struct world *world, const char *id, int64_t yield_ms, struct heard *heard)
{
    *heard = (struct heard){0};
    lane_bash_poll(world->rig->lanes, RIG_SANDBOX, id, yield_ms, heard_answer, heard);
}

static void expect(struct heard *heard, const char *status, int code, const char *output)
{
    heard_wait(heard);
    if (heard->result < 0)
        fail_msg("%s", heard->error.message);
    assert_string_equal(json_get_text(heard->answer, "output"), output);
    assert_string_equal(json_get_text(heard->answer, "status"), status);
    assert_int_equal(json_get_int(heard->answer, "exit_code", -1), code);
}

static char *session_of(const struct heard *heard)
{
    return mem_strdup(json_get_text(heard->answer, "session_id"));
}

static void a_short_command_answers_with_its_output_and_code(void **state)
{
    struct heard heard;
    bash(*state, "echo out; echo err >&2; exit 3", 20000, &heard);
    expect(&heard, "exited", 3, "out\nerr\n");
    heard_clear(&heard);
}

static void poll_and_stop_go_through_while_a_command_runs(void **state)
{
    struct world *world = *state;
    struct heard started, polled, stopped = {0}, again = {0}, tool = {0};
    bash(world, "echo begin; sleep 1000", 2000, &started);
    rig_call(world->rig, RIG_SANDBOX, "tree", &tool); // the wait for exit does not hold it up
    heard_wait(&tool);
    heard_wait(&started);
    CLEANUP_FREE char *id = session_of(&started);
    poll_session(world, id, 60000, &polled);
    lane_bash_stop(world->rig->lanes, RIG_SANDBOX, id, heard_answer, &stopped);
    heard_wait(&polled);
    heard_wait(&stopped);
    expect(&stopped, "exited", 143, json_get_text(stopped.answer, "output"));
    lane_bash_stop(world->rig->lanes, RIG_SANDBOX, id, heard_answer, &again);
    expect(&again, "exited", 143, "");
    struct heard *all[] = {&started, &polled, &stopped, &again, &tool};
    for (size_t i = 0; i < ARRAY_LEN(all); i++)
        heard_clear(all[i]);
}

// More than twice what makes the tool kill a command, with bytes of every kind, in polls that are hung up now and then.
static void no_byte_is_lost_or_given_twice(void **state)
{
    struct world *world = *state;
    struct heard heard;
    size_t total = 0, at = 0;
    bash(world, "for i in $(seq 30); do head -c 9990 /dev/zero | tr '\\0' x; printf '%09d\\0' $i; done", 0, &heard);
    heard_wait(&heard);
    CLEANUP_FREE char *id = session_of(&heard);
    CLEANUP_FREE char *all = mem_alloc(400000);
    for (int round = 0;; round++) {
        const json_t *output = json_object_get(heard.answer, "output");
        assert_true(at + json_string_length(output) < 400000);
        memcpy(all + at, json_string_value(output), json_string_length(output));
        at += json_string_length(output);
        bool is_done = strcmp(json_get_text(heard.answer, "status"), "exited") == 0 && !json_get_bool(heard.answer, "has_more_output", true);
        heard_clear(&heard);
        if (is_done)
            break;
        if (round % 2) {
            struct heard hung_up = {0};
            struct lane_call *call = lane_bash_poll(world->rig->lanes, RIG_SANDBOX, id, 1000, heard_answer, &hung_up);
            if (!heard_leave(&hung_up, call)) { // it was faster
                heard_wait(&hung_up);
                heard = hung_up;
                continue;
            }
        }
        poll_session(world, id, 20000, &heard);
        heard_wait(&heard);
        if (heard.result < 0)
            fail_msg("%s", heard.error.message);
    }
    for (int i = 1; i <= 30; i++, total += 10000) {
        char mark[16];
        snprintf(mark, sizeof(mark), "x%09d", i);
        assert_memory_equal(all + total + 9989, mark, 11);
    }
    assert_int_equal(at, 300000);
}

// The stand-in's masker is the real one's: each of these would come back as [REDACTED_SECRET] from its bash tool.
static void secrets_come_back_unchanged(void **state)
{
    static const char text[] = "sk-0123456789abcdefABCDEF\nsk-ant-api03-0123456789abcdef\nghp_0123456789abcdefghijABCDEFGHIJ\n"
                               "gho_0123456789abcdefghijABCDEFGHIJ ghs_0123456789abcdefghijABCDEFGHIJ ghr_0123456789abcdefghijABCDEFGHIJ\n"
                               "ghu_0123456789abcdefghijABCDEFGHIJ github_pat_0123456789abcdefghijABCDEFGHIJ npm_0123456789abcdefghijABCDEFGHIJ\n"
                               "Authorization: Bearer abcdef0123456789\n--token abcdef0123456789 --access-token=abcdef0123456789\n"
                               "--auth-token abcdef0123456789 --api-key abcdef0123456789 --authtoken abcdef0123456789\n"
                               "http://h/?token=abcdef0123456789&access_token=abcdef0123456789&auth_token=abcdef0123456789\n"
                               "http://h/?api_key=abcdef0123456789&codexpro_token=abcdef0123456789\nMY_API_KEY=abcdefghijklmnopqrstuvwxyz\n"
                               "github_token: abcdefghijklmnopqrstuvwxyz\nclient_secret = \"abcdefghijklmnop\"\nDB_PASSWORD='abcdefghijklmnop'\n"
                               "PRIVATE_KEY=`abcdefghijklmnop`\ncodexpro_token=abcdefgh\n[REDACTED_SECRET]\n";
    CLEANUP_FREE char *command = mem_format("cat <<'END'\n%sEND\n", text);
    struct heard heard;
    bash(*state, command, 20000, &heard);
    expect(&heard, "exited", 0, text);
    heard_clear(&heard);
}

static void a_broken_answer_costs_no_output(void **state)
{
    static const char *const faults[] = {"BODY=truncated", "BODY=reset", "BODY=error", "BODY=empty"};
    struct world *world = *state;
    struct heard heard;
    for (size_t i = 0; i < ARRAY_LEN(faults); i++) {
        bash(world, "echo kept", 0, &heard);
        heard_wait(&heard);
        CLEANUP_FREE char *id = session_of(&heard);
        CLEANUP_FREE char *first = mem_strdup(json_get_text(heard.answer, "output"));
        heard_clear(&heard);
        set_faults(world, faults[i]);
        poll_session(world, id, 1000, &heard);
        heard_wait(&heard);
        assert_int_equal(heard.result, -1);
        heard_clear(&heard);
        set_faults(world, "");
        while (!*first) {
            poll_session(world, id, 20000, &heard);
            heard_wait(&heard);
            free(first);
            first = mem_strdup(json_get_text(heard.answer, "output"));
            heard_clear(&heard);
        }
        assert_string_equal(first, "kept\n");
    }
}

static void a_bad_cwd_is_the_tool_servers_error(void **state)
{
    struct world *world = *state;
    struct heard heard = {0};
    lane_bash(world->rig->lanes, RIG_SANDBOX, "true", "/etc", 1000, 0, heard_answer, &heard);
    heard_wait(&heard);
    assert_int_equal(heard.error.code, ERROR_INVALID);
    assert_non_null(strstr(heard.error.message, "Path escapes workspace root"));
}

static void request(struct world *world, const char *method, json_t *params, struct heard *heard)
{
    *heard = (struct heard){0};
    lane_request(world->rig->lanes, RIG_SANDBOX, method, params, 60000, heard_answer, heard);
    heard_wait(heard);
    if (heard->result < 0)
        fail_msg("%s: %s", method, heard->error.message);
}

static void an_exec_has_three_streams(void **state)
{
    struct world *world = *state;
    struct heard heard;
    request(world, "chat2shell/exec_start", json_pack("{s:s, s:[s,s,s]}", "exec_id", "e", "argv", "/bin/bash", "-c", "cat; echo err >&2; exit 4"), &heard);
    heard_clear(&heard);
    request(world, "chat2shell/exec_write", json_pack("{s:s, s:s, s:b}", "exec_id", "e", "data", "aGVsbG8=", "eof", 1), &heard);
    heard_clear(&heard);
    bool has_out = false, has_err = false;
    for (bool is_done = false; !is_done;) {
        request(world, "chat2shell/exec_read", json_pack("{s:s, s:i}", "exec_id", "e", "wait_ms", 20000), &heard);
        has_out |= strcmp(json_get_text(heard.answer, "stdout"), "aGVsbG8=") == 0;
        has_err |= strcmp(json_get_text(heard.answer, "stderr"), "ZXJyCg==") == 0;
        is_done = json_get_bool(heard.answer, "exited", false);
        if (is_done)
            assert_int_equal(json_get_int(heard.answer, "exit_code", -1), 4);
        heard_clear(&heard);
    }
    assert_true(has_out && has_err);
    request(world, "chat2shell/exec_end", json_pack("{s:s}", "exec_id", "e"), &heard);
    heard_clear(&heard);
}

#define STANDIN_TEST(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(int argc, char **argv)
{
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    const struct CMUnitTest tests[] = {
        STANDIN_TEST(a_short_command_answers_with_its_output_and_code),
        STANDIN_TEST(poll_and_stop_go_through_while_a_command_runs),
        STANDIN_TEST(no_byte_is_lost_or_given_twice),
        STANDIN_TEST(secrets_come_back_unchanged),
        STANDIN_TEST(a_broken_answer_costs_no_output),
        STANDIN_TEST(a_bad_cwd_is_the_tool_servers_error),
        STANDIN_TEST(an_exec_has_three_streams),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
