// Lanes against the real tool server: chat2shell-guest as a child process over pipes, real clock, real commands.
#include "tests/support/support.h"
#include "controller/base/buffer.h"
#include "controller/base/json.h"
#include "controller/base/memory.h"
#include "controller/spawn.h"
#include "reconcilers/session/session.h"
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define SANDBOX "sbx_aaaaaaaaaaaaaaaaaaaaaaaaaa"
#define WORKSPACE "ws_cccccccccccccccccccccccccc"

struct world {
    char *state_dir, *root;
    struct clock *clock;
    struct loop *loop;
    struct store *store;
    struct spawner *spawner;
    struct lanes *lanes;
    int pidfd; // of the guest
};

// One call's answer, or ready, or died. The mutex guards it.
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
struct said {
    bool is_there;
    int result;
    json_t *answer;
    struct error error;
    char *reason;
};
static struct said ready, died;

static void say(struct said *said, int result, json_t *answer, const struct error *err, const char *reason)
{
    pthread_mutex_lock(&mutex);
    assert_false(said->is_there);
    said->is_there = true;
    said->result = result;
    said->answer = json_deep_copy(answer);
    said->reason = mem_strdup_or_null(reason);
    if (err)
        said->error = *err;
    pthread_cond_broadcast(&cond);
    pthread_mutex_unlock(&mutex);
}

static void on_answer(void *arg, int result, json_t *answer, const struct error *err)
{
    say(arg, result, answer, err, NULL);
}

static void on_ready(void *arg, int result, const struct lane_hello *hello, const struct error *err)
{
    (void)arg;
    say(&ready, result, NULL, err, hello ? hello->server_name : NULL);
}

static void on_died(void *arg, const char *sandbox_uid, const char *reason, const struct text_list *last_lines)
{
    (void)arg, (void)sandbox_uid, (void)last_lines;
    say(&died, 0, NULL, NULL, reason);
}

static void wait_for(struct said *said)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += SUPPORT_PATIENCE_MS / 1000;
    pthread_mutex_lock(&mutex);
    while (!said->is_there)
        if (pthread_cond_timedwait(&cond, &mutex, &until) != 0)
            fail_msg("no answer within 60 s");
    pthread_mutex_unlock(&mutex);
}

static bool is_there(struct said *said)
{
    pthread_mutex_lock(&mutex);
    bool is = said->is_there;
    pthread_mutex_unlock(&mutex);
    return is;
}

static void clear(struct said *said)
{
    json_decref(said->answer);
    free(said->reason);
    *said = (struct said){0};
}

// ---- fixture -------------------------------------------------------------------------------------------------------

static char *guest_path(void)
{
    char self[4096];
    ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
    assert_true(n > 0);
    self[n] = '\0';
    for (int i = 0; i < 2; i++) // build/tests/program
        *strrchr(self, '/') = '\0';
    return mem_format("%s/chat2shell-guest", self);
}

static void start_guest(struct world *world, struct driver_session *session)
{
    struct error err = ERROR_INIT;
    int in[2], out[2], errors[2];
    assert_int_equal(pipe2(in, O_CLOEXEC) | pipe2(out, O_CLOEXEC) | pipe2(errors, O_CLOEXEC), 0);
    CLEANUP_FREE char *path = guest_path();
    const char *const argv[] = {path, "--root", world->root, "--stdio", NULL};
    const char *const environment[] = {"PATH=/usr/bin:/bin", "HOME=/tmp", NULL};
    pid_t pid;
    assert_ok(spawn_process(world->spawner,
                            &(struct spawn_options){.path = path,
                                                    .argv = argv,
                                                    .environment = environment,
                                                    .fds = {{in[0], 0}, {out[1], 1}, {errors[1], 2}},
                                                    .fd_count = 3,
                                                    .dies_with_us = true},
                            &pid, &world->pidfd, &err));
    close(in[0]);
    close(out[1]);
    close(errors[1]);
    *session = (struct driver_session){in[1], out[0], errors[0]};
}

static int setup(void **state)
{
    struct error err = ERROR_INIT;
    struct world *world = mem_alloc(sizeof(*world));
    world->state_dir = support_make_dir();
    world->root = support_make_dir();
    world->clock = clock_new_real();
    assert_ok(store_open(&(struct store_options){.state_dir = world->state_dir, .clock = world->clock}, &world->store, &err));
    assert_ok(loop_start(world->clock, &world->loop, &err));
    assert_ok(spawner_start(&world->spawner, &err));
    world->lanes = lanes_new(world->loop, world->store);
    struct driver_session session;
    start_guest(world, &session);
    lane_open(world->lanes, SANDBOX, WORKSPACE, &session, on_ready, on_died, NULL);
    wait_for(&ready);
    if (ready.result < 0)
        fail_msg("%s", ready.error.message);
    *state = world;
    return 0;
}

static int teardown(void **state)
{
    struct world *world = *state;
    lanes_free(world->lanes); // end-of-file ends the guest
    struct pollfd end = {.fd = world->pidfd, .events = POLLIN};
    assert_int_equal(poll(&end, 1, SUPPORT_PATIENCE_MS), 1);
    siginfo_t info;
    waitid(P_PIDFD, (id_t)world->pidfd, &info, WEXITED);
    close(world->pidfd);
    spawner_stop(world->spawner);
    loop_stop(world->loop);
    store_close(world->store);
    clock_free(world->clock);
    support_remove_dir(world->state_dir);
    support_remove_dir(world->root);
    free(world);
    clear(&ready);
    clear(&died);
    return 0;
}

// ---- calls ---------------------------------------------------------------------------------------------------------

static void expect_ok(struct said *said)
{
    wait_for(said);
    if (said->result < 0)
        fail_msg("%s", said->error.message);
}

static void call(struct world *world, const char *tool, json_t *arguments, struct said *said)
{
    lane_call_tool(world->lanes, SANDBOX, tool, arguments, on_answer, said);
}

static const char *text_of(const struct said *said)
{
    return json_get_text(json_array_get(json_object_get(said->answer, "content"), 0), "text");
}

static void bash(struct world *world, const char *command, int64_t yield_ms, struct said *said)
{
    lane_bash(world->lanes, SANDBOX, command, NULL, yield_ms, 0, on_answer, said);
}

// Under the lock that the callback takes: so the handle is valid.
static bool hang_up(struct lane_call *handle, struct said *said)
{
    pthread_mutex_lock(&mutex);
    bool has_left = !said->is_there && lane_call_cancel(handle);
    pthread_mutex_unlock(&mutex);
    return has_left;
}

static const char *output_of(const struct said *said)
{
    return json_get_text(said->answer, "output");
}

static void files_are_written_and_read_under_the_public_workspace_id(void **state)
{
    struct said said = {0};
    assert_string_equal(ready.reason, "chat2shell-guest");
    call(*state, "write", json_pack("{s:s, s:s}", "path", "a.txt", "content", "one\ntwo\n"), &said);
    expect_ok(&said);
    assert_false(json_get_bool(said.answer, "isError", false));
    assert_string_equal(json_get_text(json_object_get(said.answer, "structuredContent"), "workspace_id"), WORKSPACE);
    clear(&said);
    call(*state, "read", json_pack("{s:s}", "path", "a.txt"), &said);
    expect_ok(&said);
    assert_non_null(strstr(text_of(&said), "two"));
    clear(&said);
    call(*state, "open_current_workspace", json_object(), &said);
    expect_ok(&said);
    assert_string_equal(json_get_text(json_object_get(said.answer, "structuredContent"), "selected_workspace_id"), WORKSPACE);
    char *all = json_dumps(said.answer, 0);
    assert_non_null(strstr(all, WORKSPACE));
    free(all);
    clear(&said);
}

static void a_short_command_answers_with_its_output_and_code(void **state)
{
    struct said said = {0};
    bash(*state, "echo out; echo err >&2; exit 3", 10000, &said);
    expect_ok(&said);
    assert_string_equal(json_get_text(said.answer, "status"), "exited");
    assert_int_equal(json_get_int(said.answer, "exit_code", -1), 3);
    assert_string_equal(output_of(&said), "out\nerr\n");
    clear(&said);
}

static void poll_and_stop_go_through_while_a_command_runs(void **state)
{
    struct world *world = *state;
    struct said started = {0}, polled = {0}, stopped = {0}, again = {0}, read = {0};
    bash(world, "echo begin; sleep 1000", 300, &started);
    call(world, "tree", json_object(), &read); // the wait for exit does not hold it up
    expect_ok(&read);
    expect_ok(&started);
    assert_string_equal(json_get_text(started.answer, "status"), "running");
    assert_string_equal(output_of(&started), "begin\n");
    const char *id = json_get_text(started.answer, "session_id");
    lane_bash_poll(world->lanes, SANDBOX, id, 60000, on_answer, &polled);
    lane_bash_stop(world->lanes, SANDBOX, id, on_answer, &stopped);
    expect_ok(&stopped);
    expect_ok(&polled);
    assert_string_equal(json_get_text(stopped.answer, "status"), "exited");
    assert_int_equal(json_get_int(stopped.answer, "exit_code", -1), 143);
    lane_bash_stop(world->lanes, SANDBOX, id, on_answer, &again);
    expect_ok(&again);
    assert_int_equal(json_get_int(again.answer, "exit_code", -1), 143);
    clear(&started);
    clear(&polled);
    clear(&stopped);
    clear(&again);
    clear(&read);
}

static void a_timeout_ends_a_command_with_124(void **state)
{
    struct world *world = *state;
    struct said said = {0};
    lane_bash(world->lanes, SANDBOX, "sleep 1000", NULL, 20000, 1000, on_answer, &said);
    expect_ok(&said);
    assert_int_equal(json_get_int(said.answer, "exit_code", -1), 124);
    clear(&said);
}

// 300,000 bytes with NULs, read by polls of which every third caller hangs up: all bytes arrive, once, in order.
static void no_byte_is_lost_or_given_twice_when_callers_hang_up(void **state)
{
    struct world *world = *state;
    struct said said = {0};
    bash(world, "for i in $(seq 30); do head -c 9990 /dev/zero | tr '\\0' x; printf '%09d\\0' $i; sleep 0.01; done", 0, &said);
    expect_ok(&said);
    CLEANUP_FREE char *id = mem_strdup(json_get_text(said.answer, "session_id"));
    struct buffer all = BUFFER_INIT(1024 * 1024);
    bool is_done = false;
    for (int i = 0; !is_done && i < 2000; i++) {
        const json_t *output = json_object_get(said.answer, "output");
        buffer_append(&all, json_string_value(output), json_string_length(output));
        is_done = strcmp(json_get_text(said.answer, "status"), "exited") == 0 && !json_get_bool(said.answer, "has_more_output", true);
        clear(&said);
        struct said hung_up = {0};
        if (i % 3 == 0) {
            struct lane_call *handle = lane_bash_poll(world->lanes, SANDBOX, id, 1000, on_answer, &hung_up);
            lane_is_open(world->lanes, SANDBOX); // it is under way, or answered
            if (!hang_up(handle, &hung_up)) {
                expect_ok(&hung_up);
                said = hung_up;
                continue;
            }
        }
        lane_bash_poll(world->lanes, SANDBOX, id, 1000, on_answer, &said);
        expect_ok(&said);
    }
    clear(&said);
    assert_int_equal(all.len, 300000);
    for (int i = 0; i < 30; i++)
        assert_int_equal(atoi(all.data + i * 10000 + 9990), i + 1);
    buffer_free(&all);
}

struct caller {
    struct world *world;
    int number;
};

static void *call_often(void *arg)
{
    struct caller *caller = arg;
    for (int i = 0; i < 125; i++) {
        struct said said = {0};
        CLEANUP_FREE char *path = mem_format("dir%d/file%d", caller->number, i);
        call(caller->world, "write", json_pack("{s:s, s:s}", "path", path, "content", path), &said);
        wait_for(&said);
        assert_int_equal(said.result, 0);
        clear(&said);
    }
    return NULL;
}

static void a_thousand_calls_of_eight_threads_are_each_answered(void **state)
{
    struct world *world = *state;
    pthread_t threads[8];
    struct caller callers[8];
    for (int i = 0; i < 8; i++) {
        callers[i] = (struct caller){world, i};
        pthread_create(&threads[i], NULL, call_often, &callers[i]);
    }
    for (int i = 0; i < 8; i++)
        pthread_join(threads[i], NULL);
    CLEANUP_FREE char *last = mem_format("%s/dir7/file124", world->root);
    assert_int_equal(access(last, R_OK), 0);
}

static void programs_run_through_requests_beside_the_turn(void **state)
{
    struct world *world = *state;
    struct said said = {0};
    lane_request(world->lanes, SANDBOX, "chat2shell/exec_start", json_pack("{s:s, s:[s,s]}", "exec_id", "e1", "argv", "echo", "hello"), 5000,
                 on_answer, &said);
    expect_ok(&said);
    clear(&said);
    lane_request(world->lanes, SANDBOX, "chat2shell/exec_read", json_pack("{s:s, s:i}", "exec_id", "e1", "wait_ms", 5000), 10000, on_answer,
                 &said);
    expect_ok(&said);
    assert_string_equal(json_get_text(said.answer, "stdout"), "aGVsbG8K");
    clear(&said);
    lane_request(world->lanes, SANDBOX, "chat2shell/exec_end", json_pack("{s:s}", "exec_id", "e1"), 5000, on_answer, &said);
    expect_ok(&said);
    clear(&said);
    lane_request(world->lanes, SANDBOX, "chat2shell/nonsense", NULL, 5000, on_answer, &said);
    wait_for(&said);
    assert_int_equal(said.error.code, ERROR_UNSUPPORTED);
    clear(&said);
}

static void an_abandoned_wait_does_not_break_the_server(void **state)
{
    struct world *world = *state;
    struct said started = {0}, left = {0}, said = {0};
    bash(world, "sleep 1000", 0, &started);
    expect_ok(&started);
    struct lane_call *handle =
        lane_bash_poll(world->lanes, SANDBOX, json_get_text(started.answer, "session_id"), 60000, on_answer, &left);
    lane_is_open(world->lanes, SANDBOX);
    assert_true(hang_up(handle, &left));
    lane_bash_stop(world->lanes, SANDBOX, json_get_text(started.answer, "session_id"), on_answer, &said);
    expect_ok(&said);
    assert_false(is_there(&left) || is_there(&died));
    clear(&started);
    clear(&said);
}

static void a_killed_guest_is_told_and_answers_its_calls(void **state)
{
    struct world *world = *state;
    struct said said = {0};
    bash(world, "sleep 1000", 60000, &said);
    struct said tree = {0};
    call(world, "tree", json_object(), &tree);
    expect_ok(&tree);
    assert_int_equal(syscall(424 /* pidfd_send_signal */, world->pidfd, SIGKILL, NULL, 0), 0);
    wait_for(&died);
    wait_for(&said);
    assert_int_equal(said.error.code, ERROR_UNAVAILABLE);
    assert_true(died.reason[0]);
    clear(&said);
    clear(&tree);
}

int main(void)
{
#define GUEST_TEST(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
    const struct CMUnitTest tests[] = {
        GUEST_TEST(files_are_written_and_read_under_the_public_workspace_id),
        GUEST_TEST(a_short_command_answers_with_its_output_and_code),
        GUEST_TEST(poll_and_stop_go_through_while_a_command_runs),
        GUEST_TEST(a_timeout_ends_a_command_with_124),
        GUEST_TEST(no_byte_is_lost_or_given_twice_when_callers_hang_up),
        GUEST_TEST(a_thousand_calls_of_eight_threads_are_each_answered),
        GUEST_TEST(programs_run_through_requests_beside_the_turn),
        GUEST_TEST(an_abandoned_wait_does_not_break_the_server),
        GUEST_TEST(a_killed_guest_is_told_and_answers_its_calls),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
