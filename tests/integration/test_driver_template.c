// The debian-12 template, built from the network: minutes and 500 MB, so only with CHAT2SHELL_TEST_LONG=1.
#include "controller/base/buffer.h"
#include "controller/base/cleanup.h"
#include "controller/base/fs.h"
#include "controller/base/memory.h"
#include "reconcilers/drivers/templates.h"
#include "tests/support/driver_bench.h"
#include <libgen.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static struct driver_bench bench;
static char output[256 * 1024];

// What the build mounts must not be the host's: a build that is killed would leave it there.
static void assert_no_mounts_of_the_build(void)
{
    CLEANUP(buffer_free) struct buffer mounts = BUFFER_INIT(4 * 1024 * 1024);
    CLEANUP_FREE char *templates = mem_format("%s/templates/", bench.dir);
    assert_int_equal(fs_read_file("/proc/self/mounts", &mounts, NULL), 0);
    buffer_append_char(&mounts, '\0');
    assert_null(strstr(mounts.data, templates));
}

static void on_line(void *arg, const char *line)
{
    assert_no_mounts_of_the_build();
    ++*(int *)arg;
    printf("# %s\n", line);
    fflush(stdout);
}

static void build_template(void)
{
    struct error err = ERROR_INIT;
    int lines = 0;
    CLEANUP_FREE char *programs = support_program_dir();
    struct template_build build = {bench.spawner, programs, bench.dir, on_line, &lines};
    assert_ok(template_build(&build, &err));
    assert_true(template_is_built(bench.dir));
    assert_true(lines > 1);
    lines = 0;
    assert_ok(template_build(&build, &err)); // again: nothing to do
    assert_int_equal(lines, 1);
}

static void assert_shell(struct bench_session *session, const char *command, const char *expected)
{
    int code = bench_shell(session, command, output, sizeof(output));
    if (code != 0 || !strstr(output, expected))
        fail_msg("%s: exit code %d, printed: %s", command, code, output);
}

static void the_debian_template_is_the_default_once_built_and_installs_packages(void **state)
{
    (void)state;
    const char *is_long = getenv("CHAT2SHELL_TEST_LONG");
    if (is_long == NULL || strcmp(is_long, "1") != 0)
        skip();
    bench_open(&bench, NULL);
    build_template();
    CLEANUP_FREE char *root = bench_workspace(&bench, "ws");
    struct driver_spec spec = {.runtime_name = bench_name(), .sandbox_uid = "sbx_test", .workspace_root = root, .has_network = true};
    struct bench_created created = bench_create(&bench, &spec);
    if (created.result < 0)
        fail_msg("create failed: %s (%s)", created.err.message, created.err.hint);
    assert_string_equal(created.template_name, "debian-12");
    assert_string_equal(created.broken, "");
    struct bench_session session = bench_session(&bench, bench_name());
    assert_shell(&session, "sudo apt-get update 2>&1 && sudo apt-get install -y hello 2>&1 && hello", "Hello, world!");
    assert_shell(&session, "gcc --version && git --version && python3 --version && rg --version && ctags --version", "Universal Ctags");
    assert_shell(&session, "touch /usr/here && mkdir /new && ls -ld /new", "root root");
    bench_session_close(&session);
    struct error err = ERROR_INIT;
    assert_ok(bench_remove(&bench, bench_name(), &err));
    assert_int_equal(bench_list_count(&bench), 0);
    if (getenv("CHAT2SHELL_TEST_KEEP") == NULL)
        bench_destroy(&bench);
    else
        bench_close(&bench);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_debian_template_is_the_default_once_built_and_installs_packages),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
