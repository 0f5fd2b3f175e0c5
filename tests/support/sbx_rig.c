#include "tests/support/sbx_rig.h"
#include "controller/base/cleanup.h"
#include "controller/base/fs.h"
#include "controller/base/json.h"
#include "controller/base/memory.h"
#include "reconcilers/drivers/sbx/sbx.h"
#include "tests/support/sbx_client.h"
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#define SANDBOXES_DIR "home/.local/state/sandboxes"

static void write_file(const struct driver_bench *bench, const char *name, const char *text)
{
    struct error err = ERROR_INIT;
    CLEANUP_FREE char *dir = mem_format("%s/" SANDBOXES_DIR, bench->dir);
    CLEANUP_CLOSE int fd = -1;
    assert_ok(fs_make_private_dir(dir, &fd, &err));
    assert_ok(fs_replace_file(fd, name, text, strlen(text), 0600, &err));
}

void sbx_rig_set(const struct driver_bench *bench, const char *settings, const char *faults)
{
    CLEANUP_FREE char *one = mem_format("{%s}", settings);
    CLEANUP_FREE char *two = mem_format("{\"faults\": [%s]}", faults);
    write_file(bench, "standin.json", one);
    write_file(bench, "standin-faults.json", two);
}

static void run_child(int write_fd, const char *const *args)
{
    const char *argv[16] = {sbx_client_program()};
    for (size_t i = 0; args[i] && i + 2 < ARRAY_LEN(argv); i++)
        argv[i + 1] = args[i];
    int null_fd = open("/dev/null", O_RDONLY);
    dup2(null_fd, STDIN_FILENO);
    dup2(write_fd, STDOUT_FILENO);
    dup2(write_fd, STDERR_FILENO);
    execv(argv[0], (char *const *)argv);
    _exit(126);
}

int sbx_rig_run(const struct driver_bench *bench, char *output, size_t size, const char *const *args)
{
    int ends[2], status = 0;
    struct error err = ERROR_INIT;
    CLEANUP(buffer_free) struct buffer text = BUFFER_INIT(1 << 20);
    (void)bench; // its home is in our environment
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    pid_t pid = fork();
    if (pid == 0)
        run_child(ends[1], args);
    close(ends[1]);
    assert_ok(fs_read_all(ends[0], &text, &err));
    close(ends[0]);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    if (output)
        snprintf(output, size, "%s", buffer_text(&text));
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static bool begins_with(const json_t *argv, const char *words)
{
    CLEANUP(buffer_free) struct buffer text = BUFFER_INIT(1 << 20);
    size_t i;
    const json_t *word;
    json_array_foreach ((json_t *)argv, i, word)
        buffer_format(&text, "%s ", json_string_value(word));
    return strncmp(buffer_text(&text), words, strlen(words)) == 0;
}

// The recorded calls whose argv begins with these words.
static size_t visit_calls(const struct driver_bench *bench, const char *words, int *ret_newest_pid)
{
    CLEANUP_FREE char *path = mem_format("%s/" SANDBOXES_DIR "/sandboxes/sandboxd/calls.jsonl", bench->dir);
    FILE *file = fopen(path, "re");
    char *line = NULL;
    size_t size = 0, count = 0;
    while (file && getline(&line, &size, file) > 0) {
        CLEANUP_JSON json_t *call = NULL;
        const char *event = json_parse(line, strlen(line), &call, NULL) == 0 ? json_get_text(call, "event") : NULL;
        if (!event || strcmp(event, "start") != 0 || !begins_with(json_object_get(call, "argv"), words))
            continue;
        count++;
        *ret_newest_pid = (int)json_get_int(call, "client_pid", 0);
    }
    free(line);
    if (file)
        fclose(file);
    return count;
}

size_t sbx_rig_count_calls(const struct driver_bench *bench, const char *words)
{
    int pid;
    return visit_calls(bench, words, &pid);
}

int sbx_rig_client_pid(const struct driver_bench *bench, const char *words)
{
    int pid = 0;
    visit_calls(bench, words, &pid);
    return pid;
}

void sbx_rig_hurry(struct driver_bench *bench)
{
    sbx_of(bench->driver)->deadlines = (struct sbx_deadlines){.create_ms = SUPPORT_PATIENCE_MS, .create_call_ms = SUPPORT_PATIENCE_MS,
        .remove_call_ms = SUPPORT_PATIENCE_MS, .call_ms = SUPPORT_PATIENCE_MS, .session_ms = SUPPORT_PATIENCE_MS, .second_look_ms = 500};
}

bool sbx_rig_has(const struct driver_bench *bench, const char *name)
{
    static char output[1 << 16];
    sbx_rig_run(bench, output, sizeof(output), (const char *const[]){"ls", "-q", NULL});
    return strstr(output, name) != NULL;
}

void sbx_rig_stop(const struct driver_bench *bench)
{
    sbx_rig_run(bench, NULL, 0, (const char *const[]){"daemon", "stop", NULL});
}

void sbx_rig_init(const struct driver_bench *bench)
{
    assert_int_equal(sbx_rig_run(bench, NULL, 0, (const char *const[]){"policy", "init", "balanced", NULL}), 0);
}
