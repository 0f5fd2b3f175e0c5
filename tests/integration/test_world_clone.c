// Private clones: what is lost is said, and what can be saved at expiry is saved.
#include "controller/base/fs.h"
#include "controller/base/memory.h"
#include "controller/policy.h"
#include "tests/support/world_fixture.h"
#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>

static int git(const char *dir, const char *const *arguments)
{
    const char *argv[16] = {"git", "-C", dir, "-c", "user.name=t", "-c", "user.email=t@t"};
    size_t count = 7;
    for (size_t i = 0; arguments[i] && count < 15; i++)
        argv[count++] = arguments[i];
    pid_t pid = fork();
    if (pid == 0) {
        execv("/usr/bin/git", (char *const *)argv);
        _exit(127);
    }
    int status = -1;
    waitpid(pid, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}
#define GIT(dir, ...) assert_int_equal(git(dir, (const char *const[]){__VA_ARGS__, NULL}), 0)

// A repository with one commit, approved for clone mode, and a running sandbox on it.
static struct record *clone_running(struct world_fixture *fx)
{
    CLEANUP_FREE char *repo = world_make_host_dir(fx, "repo");
    GIT(repo, "init", "-q", "-b", "main");
    GIT(repo, "commit", "-q", "--allow-empty", "-m", "one");
    CLEANUP_RECORD struct record *approval = NULL, *sandbox = NULL;
    struct error err = ERROR_INIT;
    assert_ok(world_create(fx, REQUEST_MCP(.workspace_path = repo), NULL, &approval, &err));
    assert_ok(world_decide(fx, approval->meta.uid, "approved", 0, &err));
    assert_ok(world_create(fx, REQUEST_MCP(.workspace_path = repo), NULL, &sandbox, &err));
    world_settle_until(fx, sandbox->meta.uid, "running");
    return world_get_record(fx, KIND_SANDBOX, sandbox->meta.uid);
}

static void destroying_a_clone_reports_uncommitted_and_unexported_work(void **state)
{
    struct world_fixture *fx = *state;
    CLEANUP_RECORD struct record *sandbox = clone_running(fx);
    const char *root = sandbox->status.sandbox.workspace_root;
    CLEANUP_FREE char *file = mem_format("%s/new", root);
    CLEANUP_JSON json_t *unsaved = NULL;
    struct error err = ERROR_INIT;
    GIT(root, "commit", "-q", "--allow-empty", "-m", "two");
    fclose(fopen(file, "w"));
    assert_ok(world_destroy_unsaved(fx, sandbox->meta.uid, &unsaved, &err));
    assert_int_equal(json_get_int(unsaved, "changed_files", -1), 1);
    assert_int_equal(json_get_int(unsaved, "unexported_commits", -1), 1);
    world_settle(fx);
    assert_string_equal(world_word(fx, sandbox->meta.uid), "destroyed");
}

static char *only_file_in(const char *dir)
{
    DIR *list = opendir(dir);
    char *found = NULL;
    for (struct dirent *entry; list && (entry = readdir(list));)
        if (entry->d_name[0] != '.' && !found)
            found = mem_format("%s/%s", dir, entry->d_name);
    if (list)
        closedir(list);
    return found;
}

static void at_expiry_a_clones_branches_are_bundled_first(void **state)
{
    struct world_fixture *fx = *state;
    CLEANUP_RECORD struct record *sandbox = clone_running(fx);
    GIT(sandbox->status.sandbox.workspace_root, "commit", "-q", "--allow-empty", "-m", "work");
    clock_advance(fx->world.clock, SANDBOX_IDLE_MS + 60 * 1000);
    world_settle_until(fx, sandbox->meta.uid, "destroyed");
    CLEANUP_FREE char *dir = mem_format("%s/bundles", fx->config.data_root);
    CLEANUP_FREE char *bundle = only_file_in(dir);
    assert_non_null(bundle);
    CLEANUP_FREE char *copy = mem_format("%s/copy", fx->dir);
    GIT(fx->dir, "clone", "-q", "-b", "main", bundle, copy);
    GIT(copy, "rev-parse", "--verify", "-q", ":/work");
}

static void a_clone_whose_bundle_fails_expires_all_the_same(void **state)
{
    struct world_fixture *fx = *state;
    CLEANUP_RECORD struct record *sandbox = clone_running(fx);
    CLEANUP_FREE char *git_dir = mem_format("%s/.git", sandbox->status.sandbox.workspace_root);
    CLEANUP_FREE char *aside = mem_format("%s/no-git", sandbox->status.sandbox.workspace_root);
    assert_int_equal(rename(git_dir, aside), 0);
    clock_advance(fx->world.clock, SANDBOX_IDLE_MS + 60 * 1000);
    world_settle_until(fx, sandbox->meta.uid, "destroyed");
}

#define CLONE_TEST(name) cmocka_unit_test_setup_teardown(name, world_setup, world_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CLONE_TEST(destroying_a_clone_reports_uncommitted_and_unexported_work),
        CLONE_TEST(at_expiry_a_clones_branches_are_bundled_first),
        CLONE_TEST(a_clone_whose_bundle_fails_expires_all_the_same),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
