// The tunnel client as a child of the daemon; the client here is a small script.
#include "controller/tunnel.h"
#include "controller/base/fs.h"
#include "controller/base/memory.h"
#include "tests/support/support.h"
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct fixture {
    char *dir;
    struct config config;
    struct clock *clock;
    struct loop *loop;
    struct spawner *spawner;
};

static void put_file(const struct fixture *it, const char *name, const char *text, mode_t mode)
{
    CLEANUP_FREE char *path = mem_format("%s/%s", it->dir, name);
    CLEANUP_CLOSE int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    struct error err = ERROR_INIT;
    assert_true(fd >= 0);
    assert_ok(fs_write_all(fd, text, strlen(text), &err));
    fchmod(fd, mode);
}

// Notes its arguments and lives until it is told to end; or ends at once.
static const char staying_client[] = "#!/bin/sh\nprintf '%s\\n' \"$@\" >\"$(dirname \"$0\")/arguments\"\n"
                                     "echo $$ >>\"$(dirname \"$0\")/starts\"\nexec sleep 60\n";
static const char ending_client[] = "#!/bin/sh\necho $$ >>\"$(dirname \"$0\")/starts\"\nexit 3\n";

static int set_up(void **state)
{
    struct error err = ERROR_INIT;
    struct fixture *it = mem_alloc(sizeof(*it));
    it->dir = support_make_dir();
    it->config = (struct config){.host = "127.0.0.1", .secret_dir = it->dir, .state_dir = it->dir, .tunnel_client = mem_format("%s/client", it->dir)};
    it->clock = clock_new_fake((struct wall_time){1});
    assert_ok(spawner_start(&it->spawner, &err));
    assert_ok(loop_start(it->clock, &it->loop, &err));
    *state = it;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *it = *state;
    loop_stop(it->loop);
    spawner_stop(it->spawner);
    clock_free(it->clock);
    free(it->config.tunnel_client);
    support_remove_dir(it->dir);
    free(it);
    return 0;
}

static void put_all(const struct fixture *it, const char *client)
{
    put_file(it, "client", client, 0700);
    put_file(it, "key", "secret", 0600);
    put_file(it, "tunnel-id", "tunnel_0123\n", 0600);
}

static void assert_missing(const struct fixture *it, const char *const *words, size_t count)
{
    struct error err = ERROR_INIT;
    char *id = NULL;
    assert_error(tunnel_check(&it->config, &id, &err), ERROR_STATE);
    assert_null(id);
    for (size_t i = 0; i < count; i++)
        if (!strstr(err.message, words[i]))
            fail_msg("'%s' is not in '%s'", words[i], err.message);
    assert_non_null(strstr(err.hint, "CHAT2SHELL_ENABLE_TUNNEL=0"));
}

static void each_missing_piece_is_named_with_the_switch(void **state)
{
    const struct fixture *it = *state;
    assert_missing(it, (const char *[]){"/client is missing", "/key is missing", "/tunnel-id is missing"}, 3);
    put_all(it, staying_client);
    put_file(it, "client", "x", 0600);
    assert_missing(it, (const char *[]){"/client cannot be run"}, 1);
    put_all(it, staying_client);
    put_file(it, "key", "secret", 0644);
    assert_missing(it, (const char *[]){"/key may be read by others"}, 1);
    put_file(it, "key", "", 0600);
    assert_missing(it, (const char *[]){"/key is not a file with something in it"}, 1);
    put_all(it, staying_client);
    put_file(it, "tunnel-id", "--control-plane.evil\n", 0600);
    assert_missing(it, (const char *[]){"/tunnel-id does not hold an id"}, 1);
    put_file(it, "tunnel-id", "a b", 0600);
    assert_missing(it, (const char *[]){"/tunnel-id does not hold an id"}, 1);
}

static void the_key_is_not_opened(void **state)
{
    const struct fixture *it = *state;
    struct error err = ERROR_INIT;
    put_all(it, staying_client);
    CLEANUP_FREE char *key = mem_format("%s/key", it->dir), *id = NULL;
    struct stat before, after;
    struct timespec old[2] = {{.tv_sec = 1000}, {.tv_sec = 2000}}; // atime before mtime: any read would show
    assert_int_equal(utimensat(AT_FDCWD, key, old, 0), 0);
    assert_int_equal(stat(key, &before), 0);
    assert_ok(tunnel_check(&it->config, &id, &err));
    assert_int_equal(stat(key, &after), 0);
    assert_int_equal(before.st_atim.tv_sec, after.st_atim.tv_sec);
    assert_string_equal(id, "tunnel_0123");
}

// ---- with a client -----------------------------------------------------------------------------------------------------------

static char *read_text(const struct fixture *it, const char *name)
{
    CLEANUP_FREE char *path = mem_format("%s/%s", it->dir, name);
    CLEANUP(buffer_free) struct buffer text = BUFFER_INIT(65536);
    fs_read_file(path, &text, NULL);
    return buffer_take_string(&text);
}

static size_t count_lines(const char *text)
{
    size_t count = 0;
    for (; *text; text++)
        count += *text == '\n';
    return count;
}

// Waits for real work (processes); the clock of the tunnel stands still meanwhile.
static void wait_for_lines(const struct fixture *it, const char *name, size_t wanted)
{
    for (int i = 0; i < 500; i++) {
        CLEANUP_FREE char *text = read_text(it, name);
        if (count_lines(text) >= wanted)
            return;
        usleep(10 * 1000);
    }
    fail_msg("%s never had %zu lines", name, wanted);
}

static struct tunnel *start(struct fixture *it)
{
    struct error err = ERROR_INIT;
    struct tunnel *tunnel = NULL;
    const struct tunnel_options options = {.config = &it->config, .clock = it->clock, .loop = it->loop, .spawner = it->spawner, .id = "tunnel_0123", .mcp_port = 4711};
    assert_ok(tunnel_start(&options, &tunnel, &err));
    return tunnel;
}

static void the_client_gets_its_arguments_and_ends_with_the_tunnel(void **state)
{
    struct fixture *it = *state;
    put_all(it, staying_client);
    struct tunnel *tunnel = start(it);
    wait_for_lines(it, "starts", 1);
    wait_for_lines(it, "arguments", 11);
    CLEANUP_FREE char *arguments = read_text(it, "arguments"), *starts = read_text(it, "starts");
    CLEANUP_FREE char *wanted = mem_format("run\n--control-plane.tunnel-id\ntunnel_0123\n--control-plane.api-key\nfile:%s/key\n--mcp.server-url\n"
                                           "http://127.0.0.1:4711/mcp\n--health.listen-addr\n127.0.0.1:0\n--health.url-file\n%s/tunnel-health-url\n",
                                           it->dir, it->dir);
    assert_string_equal(arguments, wanted);
    pid_t pid = (pid_t)strtol(starts, NULL, 10);
    assert_int_equal(kill(pid, 0), 0);
    tunnel_stop(tunnel);
    assert_int_equal(kill(pid, 0), -1);
}

static void noop(void *arg)
{
    (void)arg;
}

// Moves the clock until the client was started `wanted` times, and tells by how much.
static int64_t advance_until(const struct fixture *it, size_t wanted, int64_t step_ms)
{
    for (int64_t moved_ms = 0; moved_ms <= 2 * TUNNEL_BACKOFF_MAX_MS; moved_ms += step_ms) {
        for (int i = 0; i < 20; i++) {
            CLEANUP_FREE char *text = read_text(it, "starts");
            if (count_lines(text) >= wanted)
                return moved_ms;
            usleep(5 * 1000);
        }
        clock_advance(it->clock, step_ms);
        loop_call(it->loop, noop, NULL);
    }
    fail_msg("the client was not started %zu times", wanted);
    return 0;
}

static void a_client_that_dies_is_started_again_later_and_later(void **state)
{
    struct fixture *it = *state;
    put_all(it, ending_client);
    struct tunnel *tunnel = start(it);
    wait_for_lines(it, "starts", 1);
    int64_t waited_ms[4];
    for (size_t i = 0; i < ARRAY_LEN(waited_ms); i++)
        waited_ms[i] = advance_until(it, i + 2, 500);
    tunnel_stop(tunnel);
    assert_in_range(waited_ms[0], 500, 1500);
    assert_in_range(waited_ms[1], 1500, 2500);
    assert_in_range(waited_ms[2], 3500, 4500);
    assert_in_range(waited_ms[3], 7500, 8500);
}

static void a_client_that_vanished_is_tried_again(void **state)
{
    struct fixture *it = *state;
    struct tunnel *tunnel = start(it); // there is no such program
    put_all(it, staying_client);
    advance_until(it, 1, 500);
    tunnel_stop(tunnel);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(each_missing_piece_is_named_with_the_switch, set_up, tear_down),
        cmocka_unit_test_setup_teardown(the_key_is_not_opened, set_up, tear_down),
        cmocka_unit_test_setup_teardown(the_client_gets_its_arguments_and_ends_with_the_tunnel, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_client_that_dies_is_started_again_later_and_later, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_client_that_vanished_is_tried_again, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
