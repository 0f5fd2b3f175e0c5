// The bubblewrap driver with real sandboxes, as the user that runs the test (tests/run runs it as root and as another user).
#include "controller/base/cleanup.h"
#include "controller/base/memory.h"
#include "reconcilers/drivers/bubblewrap/bubblewrap.h"
#include "tests/support/driver_bench.h"
#include <arpa/inet.h>
#include <dirent.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static struct driver_bench bench;
static char output[256 * 1024];

static int setup(void **state)
{
    (void)state;
    bench_open(&bench, NULL);
    return 0;
}
static int teardown(void **state)
{
    (void)state;
    bench_destroy(&bench);
    return 0;
}

// A running sandbox named bench_name() with its session.
static struct bench_session start(const char *root)
{
    struct bench_created created = bench_create_simple(&bench, bench_name(), root);
    if (created.result < 0)
        fail_msg("create failed: %s (%s)", created.err.message, created.err.hint);
    struct bench_session session = bench_session(&bench, bench_name());
    assert_int_equal(session.result, 0);
    return session;
}
static void stop(struct bench_session *session)
{
    struct error err = ERROR_INIT;
    bench_session_close(session);
    assert_ok(bench_remove(&bench, bench_name(), &err));
    assert_int_equal(bench_list_count(&bench), 0);
}
#define assert_shell(session, command, expected)                                                                       \
    do {                                                                                                               \
        int code_ = bench_shell(session, command, output, sizeof(output));                                             \
        if (code_ != 0 || !strstr(output, expected))                                                                   \
            fail_msg("%s: exit code %d, printed: %s", command, code_, output);                                         \
    } while (0)

static void a_sandbox_runs_commands_in_its_workspace_as_root_inside(void **state)
{
    (void)state;
    CLEANUP_FREE char *root = bench_workspace(&bench, "ws");
    CLEANUP_FREE char *file = mem_format("%s/made", root);
    struct bench_session session = start(root);
    assert_shell(&session, "id -u", "0");
    assert_shell(&session, "pwd", root);
    assert_shell(&session, "echo hello > made && sudo cat made && sudo id -un", "hello\nroot");
    stop(&session);
    struct stat info;
    assert_int_equal(stat(file, &info), 0);
    assert_int_equal(info.st_uid, geteuid());
}

static void every_hard_rule_holds(void **state)
{
    (void)state;
    CLEANUP_FREE char *root = bench_workspace(&bench, "ws");
    struct bench_created created = bench_create_simple(&bench, bench_name(), root);
    assert_int_equal(created.result, 0);
    assert_string_equal(created.broken, "");
    assert_string_equal(created.template_name, "host");
    struct error err = ERROR_INIT;
    assert_ok(bench_remove(&bench, bench_name(), &err));
}

static void copy_probe(const char *root)
{
    char path[4096];
    ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 1);
    assert_true(n > 0);
    path[n] = '\0';
    *strrchr(path, '/') = '\0';
    CLEANUP_FREE char *command = mem_format("cp %s/sandbox_probe %s/probe", path, root);
    assert_int_equal(system(command), 0);
}

static void nothing_that_the_probe_tries_inside_succeeds(void **state)
{
    (void)state;
    CLEANUP_FREE char *root = bench_workspace(&bench, "ws");
    copy_probe(root);
    struct bench_session session = start(root);
    int code = bench_shell(&session, "./probe", output, sizeof(output));
    if (code != 0 || strstr(output, "BROKEN"))
        fail_msg("exit code %d: %s", code, output);
    stop(&session);
}

// Somebody swaps the approved directory for a link to a secret one while sandboxes are made: what is mounted is the
// approved directory, or nothing.
static void a_race_on_the_path_never_mounts_another_directory(void **state)
{
    (void)state;
    CLEANUP_FREE char *root = bench_workspace(&bench, "ws");
    CLEANUP_FREE char *secret = bench_workspace(&bench, "secret");
    CLEANUP_FREE char *parked = mem_format("%s/parked", bench.dir);
    CLEANUP_FREE char *prepare = mem_format("echo key > %s/key", secret);
    assert_int_equal(system(prepare), 0);
    struct stat info;
    stat(root, &info);
    pid_t racer = fork();
    if (racer == 0)
        for (;;) {
            rename(root, parked);
            if (symlink(secret, root) == 0)
                unlink(root);
            rename(parked, root);
        }
    for (int i = 0; i < 20; i++) {
        struct driver_spec spec = {.runtime_name = bench_name(), .sandbox_uid = "sbx_test", .workspace_root = root, .device = (int64_t)info.st_dev,
                                   .inode = (int64_t)info.st_ino, .template_name = "host"};
        struct bench_created created = bench_create(&bench, &spec);
        struct error err = ERROR_INIT;
        if (created.result == 0) {
            struct bench_session session = bench_session(&bench, bench_name());
            bench_shell(&session, "ls -A", output, sizeof(output));
            assert_null(strstr(output, "key"));
            bench_session_close(&session);
        }
        assert_ok(bench_remove(&bench, bench_name(), &err));
    }
    kill(racer, SIGKILL);
    waitpid(racer, NULL, 0);
    unlink(root);
    rename(parked, root);
}

static void removing_an_absent_runtime_succeeds(void **state)
{
    (void)state;
    struct error err = ERROR_INIT;
    assert_ok(bench_remove(&bench, "never-made", &err));
}

static void a_replaced_directory_is_refused(void **state)
{
    (void)state;
    CLEANUP_FREE char *root = bench_workspace(&bench, "ws");
    CLEANUP_FREE char *other = bench_workspace(&bench, "other");
    struct stat info;
    stat(other, &info);
    struct driver_spec spec = {.runtime_name = bench_name(), .sandbox_uid = "sbx_test", .workspace_root = root, .device = (int64_t)info.st_dev,
                               .inode = (int64_t)info.st_ino, .template_name = "host"};
    struct bench_created created = bench_create(&bench, &spec);
    assert_int_equal(created.result, -1);
    assert_int_equal(created.err.code, ERROR_REFUSED);
    struct error err = ERROR_INIT;
    assert_ok(bench_remove(&bench, bench_name(), &err));
}

static void a_symbolic_link_in_the_path_is_refused(void **state)
{
    (void)state;
    CLEANUP_FREE char *root = bench_workspace(&bench, "ws");
    CLEANUP_FREE char *link = mem_format("%s/link", bench.dir);
    assert_int_equal(symlink(root, link), 0);
    struct driver_spec spec = {.runtime_name = bench_name(), .sandbox_uid = "sbx_test", .workspace_root = link, .template_name = "host"};
    struct bench_created created = bench_create(&bench, &spec);
    assert_int_equal(created.err.code, ERROR_REFUSED);
    struct error err = ERROR_INIT;
    assert_ok(bench_remove(&bench, bench_name(), &err));
}

static void an_unknown_template_is_named(void **state)
{
    (void)state;
    CLEANUP_FREE char *root = bench_workspace(&bench, "ws");
    struct driver_spec spec = {.runtime_name = bench_name(), .sandbox_uid = "sbx_test", .workspace_root = root, .template_name = "plan9"};
    struct bench_created created = bench_create(&bench, &spec);
    assert_int_equal(created.err.code, ERROR_INVALID);
    assert_non_null(strstr(created.err.message, "plan9"));
}

static void a_session_that_it_cannot_start_is_refused(void **state)
{
    (void)state;
    CLEANUP_FREE char *root = bench_workspace(&bench, "ws");
    struct driver_spec spec = {.runtime_name = bench_name(), .sandbox_uid = "sbx_test", .workspace_root = root, .session = SESSION_CODEXPRO};
    struct bench_created created = bench_create(&bench, &spec);
    assert_int_equal(created.err.code, ERROR_UNSUPPORTED);
    assert_non_null(strstr(created.err.message, "codexpro"));
}

static int connect_to(int port)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr = {htonl(INADDR_LOOPBACK)}};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (connect(fd, (struct sockaddr *)&at, sizeof(at)) < 0) {
        close(fd);
        return -1;
    }
    return fd;
}

static void a_published_port_reaches_a_server_on_loopback_inside(void **state)
{
    (void)state;
    CLEANUP_FREE char *root = bench_workspace(&bench, "ws");
    struct bench_session session = start(root);
    struct error err = ERROR_INIT;
    int host_port = 0, again = 0;
    assert_error(bench_probe_port(&bench, bench_name(), 8123, &err), ERROR_UNAVAILABLE);
    assert_shell(&session, "echo works > index.html; setsid python3 -m http.server --bind 127.0.0.1 8123 >/dev/null 2>&1 & "
                           "for i in $(seq 100); do (echo > /dev/tcp/127.0.0.1/8123) 2>/dev/null && exec echo up; sleep 0.1; done; exit 1", "up");
    assert_ok(bench_probe_port(&bench, bench_name(), 8123, &err));
    assert_ok(bench_publish(&bench, bench_name(), 8123, &host_port, &err));
    assert_ok(bench_publish(&bench, bench_name(), 8123, &again, &err));
    assert_int_equal(host_port, again);
    int fd = connect_to(host_port);
    assert_true(fd >= 0);
    dprintf(fd, "GET /index.html HTTP/1.0\r\n\r\n");
    char text[4096];
    size_t len = 0;
    for (ssize_t n; (n = read(fd, text + len, sizeof(text) - 1 - len)) > 0;)
        len += (size_t)n;
    text[len] = '\0';
    close(fd);
    assert_non_null(strstr(text, "works"));
    assert_ok(bench_unpublish(&bench, bench_name(), 8123, &err));
    assert_int_equal(connect_to(host_port), -1);
    stop(&session);
}

static void the_way_out_is_the_proxy_and_denied_names_get_a_sentence(void **state)
{
    (void)state;
    CLEANUP_FREE char *root = bench_workspace(&bench, "ws");
    struct bench_session session = start(root);
    assert_shell(&session, "curl -s -o - -w '%{http_code}' http://openrouter.ai/ | tail -c 400", "403");
    assert_shell(&session, "! timeout 5 bash -c 'echo > /dev/tcp/1.1.1.1/80' 2>&1; echo cut", "unreachable");
    stop(&session);
}

static void the_end_of_the_tool_server_is_reported(void **state)
{
    (void)state;
    CLEANUP_FREE char *root = bench_workspace(&bench, "ws");
    struct bench_session session = start(root);
    char reason[512];
    bench_shell(&session, "kill -9 $(pgrep -o chat2shell-gues || echo 2)", output, sizeof(output));
    assert_true(bench_wait_died(&bench, SUPPORT_PATIENCE_MS, reason, sizeof(reason)));
    assert_non_null(strstr(reason, "ended"));
    stop(&session);
}

// The pid of the process whose command line starts with name and which has the bench's directory as a part of nothing:
// found through /proc, as root of the tree below us.
static pid_t find_child(const char *name)
{
    char command[256];
    snprintf(command, sizeof(command), "pgrep -P %d -x %s", getpid(), name);
    FILE *pipe = popen(command, "r");
    int pid = -1;
    if (pipe == NULL || fscanf(pipe, "%d", &pid) != 1)
        pid = -1;
    if (pipe)
        pclose(pipe);
    return pid;
}

static void killing_the_shim_ends_the_sandbox_and_is_reported(void **state)
{
    (void)state;
    CLEANUP_FREE char *root = bench_workspace(&bench, "ws");
    struct bench_session session = start(root);
    char reason[512], byte;
    pid_t shim = find_child("chat2shell-shim");
    assert_true(shim > 0);
    kill(shim, SIGKILL);
    assert_true(bench_wait_died(&bench, SUPPORT_PATIENCE_MS, reason, sizeof(reason)));
    assert_int_equal(read(session.session.output_fd, &byte, 1), 0); // nobody inside holds the stream any more
    stop(&session);
}

static bool is_refused_by_the_proxy(struct bench_session *session)
{
    bench_shell(session, "curl -s -o /dev/null -w '%{http_code}' http://openrouter.ai/", output, sizeof(output));
    return strstr(output, "403") != NULL;
}

static void a_killed_egress_process_is_replaced_and_ports_come_back(void **state)
{
    (void)state;
    CLEANUP_FREE char *root = bench_workspace(&bench, "ws");
    struct bench_session session = start(root);
    struct error err = ERROR_INIT;
    int host_port;
    assert_ok(bench_publish(&bench, bench_name(), 9, &host_port, &err));
    pid_t egress = find_child("chat2shell-egre");
    assert_true(egress > 0);
    kill(egress, SIGKILL);
    assert_true(support_await(100, is_refused_by_the_proxy(&session)));
    int fd;
    assert_true(support_await(10, (fd = connect_to(host_port)) >= 0));
    close(fd);
    stop(&session);
}

static size_t count_descriptors(void)
{
    size_t count = 0;
    DIR *dir = opendir("/proc/self/fd");
    assert_non_null(dir);
    while (readdir(dir))
        count++;
    closedir(dir);
    return count;
}

// Something may be on its way still: a pipe of a process that starts, a descriptor of one that is reaped.
static void assert_descriptors(size_t expected)
{
    size_t count;
    support_await(10, (count = count_descriptors()) == expected);
    assert_int_equal(count, expected);
}

#define FEW 3
static void a_sandbox_at_rest_takes_six_open_files_of_the_daemon_and_gives_them_back(void **state)
{
    (void)state;
    CLEANUP_FREE char *root = bench_workspace(&bench, "ws");
    char *names[FEW];
    struct bench_session sessions[FEW];
    struct error err = ERROR_INIT;
    size_t before = count_descriptors();
    for (size_t i = 0; i < FEW; i++) {
        names[i] = mem_format("%s-%zu", bench_name(), i);
        assert_int_equal(bench_create_simple(&bench, names[i], root).result, 0);
        sessions[i] = bench_session(&bench, names[i]);
        assert_int_equal(sessions[i].result, 0);
    }
    assert_int_equal(BUBBLEWRAP_DESCRIPTORS, 6);
    assert_descriptors(before + FEW * BUBBLEWRAP_DESCRIPTORS);
    pid_t egress = find_child("chat2shell-egre"); // of any of them: the process that replaces it takes no more
    assert_true(egress > 0);
    kill(egress, SIGKILL);
    for (size_t i = 0; i < FEW; i++)
        assert_shell(&sessions[i], "for i in $(seq 100); do curl -s -o /dev/null -w '%{http_code}' http://openrouter.ai/ && exit; sleep 0.1; done; exit 1", "403");
    assert_descriptors(before + FEW * BUBBLEWRAP_DESCRIPTORS);
    for (size_t i = 0; i < FEW; i++) {
        bench_session_close(&sessions[i]);
        assert_ok(bench_remove(&bench, names[i], &err));
        free(names[i]);
    }
    assert_descriptors(before);
}

static void set_descriptor_limit(rlim_t limit)
{
    struct rlimit limits;
    getrlimit(RLIMIT_NOFILE, &limits);
    limits.rlim_cur = limit;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limits), 0);
}

static void the_end_of_shim_and_egress_is_seen_although_no_descriptor_was_free_then(void **state)
{
    (void)state;
    CLEANUP_FREE char *root = bench_workspace(&bench, "ws");
    struct bench_session session = start(root);
    struct rlimit limits;
    char reason[512];
    pid_t shim = find_child("chat2shell-shim"), egress = find_child("chat2shell-egre");
    assert_true(shim > 0 && egress > 0);
    getrlimit(RLIMIT_NOFILE, &limits);
    set_descriptor_limit(3);
    kill(egress, SIGKILL);
    kill(shim, SIGKILL);
    assert_false(bench_wait_died(&bench, 500, reason, sizeof(reason)));
    set_descriptor_limit(limits.rlim_cur);
    assert_true(bench_wait_died(&bench, SUPPORT_PATIENCE_MS, reason, sizeof(reason)));
    stop(&session);
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1); // and all were reaped
}

static void a_sandbox_can_be_removed_while_it_is_starting(void **state)
{
    (void)state;
    for (int i = 0; i < 5; i++) {
        CLEANUP_FREE char *root = bench_workspace(&bench, "ws");
        struct error err = ERROR_INIT;
        struct bench_created created = bench_create_simple(&bench, bench_name(), root);
        assert_int_equal(created.result, 0);
        assert_ok(bench_remove(&bench, bench_name(), &err));
    }
    assert_int_equal(bench_list_count(&bench), 0);
}

static void leftovers_of_an_earlier_daemon_are_removed_by_name(void **state)
{
    (void)state;
    CLEANUP_FREE char *root = bench_workspace(&bench, "ws");
    struct bench_session session = start(root);
    bench_session_close(&session);
    CLEANUP_FREE char *dir = mem_strdup(bench.dir);
    bench_close(&bench);
    free(bench.dir);
    bench_open(&bench, dir);
    assert_int_equal(bench_list_count(&bench), 1);
    struct error err = ERROR_INIT;
    assert_ok(bench_remove(&bench, bench_name(), &err));
    assert_int_equal(bench_list_count(&bench), 0);
}

static void a_private_clone_holds_the_commits_and_leaves_the_checkout_alone(void **state)
{
    (void)state;
    CLEANUP_FREE char *source = bench_workspace(&bench, "checkout");
    CLEANUP_FREE char *place = driver_clone_dir_name(bench_name());
    CLEANUP_FREE char *root = mem_format("%s/clones/%s/checkout", bench.dir, place);
    CLEANUP_FREE char *command = mem_format("cd %s && git init -q . && echo text > file && git add . && "
                                            "git -c user.name=a -c user.email=a@b commit -qm first && "
                                            "printf '#!/bin/sh\\ntouch /tmp/hook-ran' > .git/hooks/post-checkout && chmod +x .git/hooks/*",
                                            source);
    assert_int_equal(system(command), 0);
    struct stat info;
    stat(source, &info);
    struct driver_spec spec = {.runtime_name = bench_name(), .sandbox_uid = "sbx_test", .workspace_root = root, .mode = WORKSPACE_CLONE,
                               .clone_source = source, .source_device = (int64_t)info.st_dev, .source_inode = (int64_t)info.st_ino,
                               .template_name = "host", .has_network = true};
    struct bench_created created = bench_create(&bench, &spec);
    if (created.result < 0)
        fail_msg("create failed: %s (%s)", created.err.message, created.err.hint);
    struct bench_session session = bench_session(&bench, bench_name());
    assert_shell(&session, "cat file && git log --oneline && git status --porcelain && ls .git/hooks 2>/dev/null; ls /tmp", "first");
    assert_null(strstr(output, "hook"));
    stop(&session);
    assert_int_equal(access(root, F_OK), -1);
    assert_int_equal(access(source, F_OK), 0);
}

static void a_clone_that_fails_says_what_git_said(void **state)
{
    (void)state;
    CLEANUP_FREE char *source = bench_workspace(&bench, "checkout");
    CLEANUP_FREE char *place = driver_clone_dir_name(bench_name());
    CLEANUP_FREE char *root = mem_format("%s/clones/%s/checkout", bench.dir, place);
    struct driver_spec spec = {.runtime_name = bench_name(), .sandbox_uid = "sbx_test", .workspace_root = root, .mode = WORKSPACE_CLONE,
                               .clone_source = source, .template_name = "host"};
    struct bench_created created = bench_create(&bench, &spec);
    assert_int_equal(created.result, -1);
    if (!strstr(created.err.message, "does not exist"))
        fail_msg("the message is: %s", created.err.message);
    struct error err = ERROR_INIT;
    assert_ok(bench_remove(&bench, bench_name(), &err));
}

static void a_fork_bomb_stays_inside(void **state)
{
    (void)state;
    CLEANUP_FREE char *root = bench_workspace(&bench, "ws");
    struct bench_created created = bench_create_simple(&bench, bench_name(), root);
    assert_int_equal(created.result, 0);
    if (!strstr(created.limits, "pids")) {
        struct error err = ERROR_INIT;
        assert_ok(bench_remove(&bench, bench_name(), &err));
        skip();
    }
    struct bench_session session = bench_session(&bench, bench_name());
    CLEANUP_FREE char *script = mem_format("%s/bomb.py", root);
    FILE *file = fopen(script, "w");
    fputs("import os, time\n"
          "count = 0\n"
          "try:\n"
          "    while count < 5000:\n"
          "        if os.fork() == 0:\n"
          "            time.sleep(60)\n"
          "            os._exit(0)\n"
          "        count += 1\n"
          "except OSError as error:\n"
          "    print('stopped at', count, error, flush=True)\n",
          file);
    fclose(file);
    bench_shell(&session, "python3 bomb.py", output, sizeof(output));
    assert_non_null(strstr(output, "stopped at"));
    assert_null(strstr(output, "stopped at 5000"));
    stop(&session);
}

static void a_memory_hog_dies_alone(void **state)
{
    (void)state;
    CLEANUP_FREE char *root = bench_workspace(&bench, "ws");
    struct driver_spec spec = {.runtime_name = bench_name(), .sandbox_uid = "sbx_test", .workspace_root = root, .template_name = "host",
                               .memory_bytes = 256 << 20};
    struct bench_created created = bench_create(&bench, &spec);
    assert_int_equal(created.result, 0);
    struct error err = ERROR_INIT;
    if (!strstr(created.limits, "memory")) {
        assert_ok(bench_remove(&bench, bench_name(), &err));
        skip();
    }
    struct bench_session session = bench_session(&bench, bench_name());
    int code = bench_shell(&session, "python3 -c 'x = bytearray(1 << 30); print(len(x))'", output, sizeof(output));
    assert_int_not_equal(code, 0);
    assert_null(strstr(output, "1073741824"));
    stop(&session);
}

int main(int argc, char **argv)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(a_sandbox_runs_commands_in_its_workspace_as_root_inside),
        TEST(every_hard_rule_holds),
        TEST(nothing_that_the_probe_tries_inside_succeeds),
        TEST(a_race_on_the_path_never_mounts_another_directory),
        TEST(removing_an_absent_runtime_succeeds),
        TEST(a_replaced_directory_is_refused),
        TEST(a_symbolic_link_in_the_path_is_refused),
        TEST(an_unknown_template_is_named),
        TEST(a_session_that_it_cannot_start_is_refused),
        TEST(a_published_port_reaches_a_server_on_loopback_inside),
        TEST(the_way_out_is_the_proxy_and_denied_names_get_a_sentence),
        TEST(the_end_of_the_tool_server_is_reported),
        TEST(killing_the_shim_ends_the_sandbox_and_is_reported),
        TEST(a_killed_egress_process_is_replaced_and_ports_come_back),
        TEST(a_sandbox_at_rest_takes_six_open_files_of_the_daemon_and_gives_them_back),
        TEST(the_end_of_shim_and_egress_is_seen_although_no_descriptor_was_free_then),
        TEST(a_sandbox_can_be_removed_while_it_is_starting),
        TEST(leftovers_of_an_earlier_daemon_are_removed_by_name),
        TEST(a_private_clone_holds_the_commits_and_leaves_the_checkout_alone),
        TEST(a_clone_that_fails_says_what_git_said),
        TEST(a_fork_bomb_stays_inside),
        TEST(a_memory_hog_dies_alone),
    };
    cmocka_set_test_filter(argc > 1 ? argv[1] : NULL);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
