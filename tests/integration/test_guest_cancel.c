// Cancelling tools in chat2shell-guest: their child processes are gone soon, their walks end, and files are changed as asked or not at all.
#include "controller/base/fs.h"
#include "controller/base/guest_protocol.h"
#include "controller/base/memory.h"
#include "tests/support/guest_rig.h"
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SOON_MS SUPPORT_PATIENCE_MS

// A git that never ends, and a child of its that does not either. Their pids are in the file "pids" beside it.
static char *make_programs(void)
{
    char *dir = support_make_dir();
    CLEANUP_FREE char *path = mem_format("%s/git", dir);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fprintf(file, "#!/bin/sh\nsleep 1000 &\necho $$ $! > '%s/pids.new'\nmv '%s/pids.new' '%s/pids'\nwait\n", dir, dir, dir);
    fclose(file);
    chmod(path, 0755);
    return dir;
}

struct place {
    struct guest_rig rig;
    char *programs, *path;
};

static int start(void **state)
{
    struct place *place = mem_alloc(sizeof(*place));
    place->programs = make_programs();
    place->path = mem_strdup(getenv("PATH"));
    CLEANUP_FREE char *path = mem_format("%s:%s", place->programs, place->path);
    setenv("PATH", path, 1);
    guest_rig_start(&place->rig);
    setenv("PATH", place->path, 1);
    *state = place;
    return 0;
}

static int stop(void **state)
{
    struct place *place = *state;
    int status = guest_rig_stop(&place->rig);
    support_remove_dir(place->programs);
    free(place->path);
    free(place);
    return status;
}

static void wait_for_pids(const struct place *place, pid_t pids[2])
{
    CLEANUP_FREE char *path = mem_format("%s/pids", place->programs);
    FILE *file = NULL;
    for (int i = 0; i < SOON_MS && !(file = fopen(path, "r")); i++)
        usleep(1000);
    assert_non_null(file);
    assert_int_equal(fscanf(file, "%d %d", &pids[0], &pids[1]), 2);
    fclose(file);
    unlink(path);
}

static void expect_gone(pid_t pid)
{
    for (int i = 0; i < SOON_MS && (kill(pid, 0) == 0 || errno != ESRCH); i++)
        usleep(1000);
    assert_int_equal(kill(pid, 0), -1);
}

static void cancel(struct guest_rig *rig, int64_t id)
{
    CLEANUP_FREE char *line = mem_format(
        "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":{\"requestId\":%lld}}\n", (long long)id);
    guest_rig_send_text(rig, line, strlen(line));
}

static void expect_cancelled(struct guest_rig *rig, int64_t id)
{
    CLEANUP_JSON json_t *answer = guest_rig_wait(rig, id);
    assert_int_equal(json_get_int(json_object_get(answer, "error"), "code", 0), GUEST_ERROR_CANCELLED);
}

static int64_t send_tool(struct guest_rig *rig, const char *name, json_t *args)
{
    return guest_rig_send(rig, "tools/call", json_pack("{s:s, s:o}", "name", name, "arguments", args));
}

static void a_cancelled_tool_leaves_no_process_behind(void **state)
{
    struct place *place = *state;
    static const char *const tools[] = {"show_changes", "open_current_workspace", "export_pro_context"};
    for (size_t i = 0; i < sizeof(tools) / sizeof(tools[0]); i++) {
        pid_t pids[2];
        int64_t id = send_tool(&place->rig, tools[i], json_object());
        wait_for_pids(place, pids);
        cancel(&place->rig, id);
        expect_cancelled(&place->rig, id);
        expect_gone(pids[0]);
        expect_gone(pids[1]);
    }
    CLEANUP_FREE char *bundle = mem_format("%s/.ai-bridge/pro-context.md", place->rig.dir);
    assert_int_equal(access(bundle, F_OK), -1); // not half a one either
    json_decref(guest_rig_call(&place->rig, "ping", NULL));
}

static const char patch[] = "diff --git a/a.txt b/b.txt\nsimilarity index 50%\nrename from a.txt\nrename to b.txt\n"
                            "--- a/a.txt\n+++ b/b.txt\n@@ -1 +1 @@\n-one\n+two\n";

static void a_cancelled_patch_changes_nothing(void **state)
{
    struct place *place = *state;
    guest_rig_put_text(&place->rig, "a.txt", "one\n");
    pid_t pids[2];
    int64_t id = send_tool(&place->rig, "apply_patch", json_pack("{s:s}", "patch", patch));
    wait_for_pids(place, pids);
    cancel(&place->rig, id);
    expect_cancelled(&place->rig, id);
    expect_gone(pids[0]);
    expect_gone(pids[1]);
    CLEANUP_FREE char *old = mem_format("%s/a.txt", place->rig.dir), *new = mem_format("%s/b.txt", place->rig.dir);
    assert_int_equal(access(old, F_OK), 0);
    assert_int_equal(access(new, F_OK), -1);
}

// Whenever the cancel comes: all of the new text, or all of the old one.
static void a_cancelled_write_is_whole_or_nothing(void **state)
{
    struct place *place = *state;
    enum { LEN = 400000, ROUNDS = 40 };
    char *texts[2] = {mem_alloc(LEN + 1), mem_alloc(LEN + 1)};
    memset(texts[0], 'a', LEN);
    memset(texts[1], 'b', LEN);
    guest_rig_put_text(&place->rig, "f.txt", texts[0]);
    CLEANUP_FREE char *path = mem_format("%s/f.txt", place->rig.dir);
    for (int i = 0; i < ROUNDS; i++) {
        int64_t id = send_tool(&place->rig, "write", json_pack("{s:s, s:s}", "path", "f.txt", "content", texts[i % 2]));
        usleep((useconds_t)i * 100);
        cancel(&place->rig, id);
        json_decref(guest_rig_wait(&place->rig, id));
        struct stat status;
        assert_int_equal(stat(path, &status), 0);
        assert_int_equal(status.st_size, LEN);
        FILE *file = fopen(path, "r");
        CLEANUP_FREE char *text = mem_alloc(LEN + 1);
        assert_int_equal(fread(text, 1, LEN, file), LEN);
        fclose(file);
        assert_true(strcmp(text, texts[0]) == 0 || strcmp(text, texts[1]) == 0);
    }
    free(texts[0]);
    free(texts[1]);
}

#define WITH_GUEST(name) cmocka_unit_test_setup_teardown(name, start, stop)
int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_GUEST(a_cancelled_tool_leaves_no_process_behind),
        WITH_GUEST(a_cancelled_patch_changes_nothing),
        WITH_GUEST(a_cancelled_write_is_whole_or_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
