#include "tests/support/guest_rig.h"
#include "controller/base/buffer.h"
#include "controller/base/fs.h"
#include "controller/base/memory.h"
#include <errno.h>
#include <libgen.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define PATIENCE_MS SUPPORT_PATIENCE_MS

char *guest_rig_program(void)
{
    const char *build = getenv("CHAT2SHELL_BUILD_DIR");
    if (build)
        return mem_format("%s/chat2shell-guest", build);
    char path[4096];
    ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 1);
    assert_true(n > 0);
    path[n] = '\0';
    return mem_format("%s/../chat2shell-guest", dirname(path));
}

static void become_guest(const char *program, const char *dir, const int in[2], const int out[2])
{
    dup2(in[0], STDIN_FILENO);
    dup2(out[1], STDOUT_FILENO);
    setenv("HOME", dir, 1);
    setenv("http_proxy", "http://127.0.0.1:3128", 1);
    setenv("HTTPS_PROXY", "http://127.0.0.1:3128", 1);
    setenv("CANARY", "must not be seen", 1);
    execl(program, program, "--root", dir, "--stdio", NULL);
    _exit(127);
}

static void start_in(struct guest_rig *rig, char *top, char *dir)
{
    int in[2], out[2];
    CLEANUP_FREE char *program = guest_rig_program();
    *rig = (struct guest_rig){.top = top, .dir = dir, .unclaimed = json_array()};
    signal(SIGPIPE, SIG_IGN);
    assert_int_equal(pipe2(in, O_CLOEXEC), 0);
    assert_int_equal(pipe2(out, O_CLOEXEC), 0);
    rig->pid = fork();
    if (rig->pid == 0)
        become_guest(program, rig->dir, in, out);
    close(in[0]);
    close(out[1]);
    rig->in = in[1];
    rig->out = out[0];
}

void guest_rig_start(struct guest_rig *rig)
{
    char *dir = support_make_dir();
    start_in(rig, dir, dir);
}

void guest_rig_start_in_repository(struct guest_rig *rig)
{
    char *top = support_make_dir();
    CLEANUP_FREE char *command = mem_format("git init -q -b main %s && mkdir %s/sub", top, top);
    assert_int_equal(system(command), 0);
    start_in(rig, top, mem_format("%s/sub", top));
}

int guest_rig_stop(struct guest_rig *rig)
{
    int status = 0;
    if (rig->in >= 0)
        close(rig->in);
    close(rig->out);
    assert_int_equal(waitpid(rig->pid, &status, 0), rig->pid);
    json_decref(rig->unclaimed);
    free(rig->input);
    if (rig->dir != rig->top)
        free(rig->dir);
    support_remove_dir(rig->top);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

void guest_rig_send_text(struct guest_rig *rig, const char *text, size_t len)
{
    struct error err = ERROR_INIT;
    assert_ok(fs_write_all(rig->in, text, len, &err));
}

static void read_more(struct guest_rig *rig)
{
    struct pollfd item = {.fd = rig->out, .events = POLLIN};
    if (poll(&item, 1, PATIENCE_MS) <= 0)
        fail_msg("no answer in time");
    rig->input = mem_realloc(rig->input, rig->input_len + 65536);
    ssize_t n = read(rig->out, rig->input + rig->input_len, 65536);
    if (n <= 0)
        fail_msg("the guest ended");
    rig->input_len += (size_t)n;
}

json_t *guest_rig_receive(struct guest_rig *rig)
{
    struct error err = ERROR_INIT;
    char *end;
    size_t looked = 0;
    while (!rig->input_len || !(end = memchr(rig->input + looked, '\n', rig->input_len - looked))) {
        looked = rig->input_len;
        read_more(rig);
    }
    json_t *answer = NULL;
    size_t len = (size_t)(end - rig->input);
    assert_ok(json_parse_with_nul(rig->input, len, &answer, &err));
    rig->input_len -= len + 1;
    memmove(rig->input, end + 1, rig->input_len);
    return answer;
}

int64_t guest_rig_send(struct guest_rig *rig, const char *method, json_t *params)
{
    CLEANUP_JSON json_t *message =
        json_pack("{s:s s:I s:s}", "jsonrpc", "2.0", "id", (json_int_t)++rig->last_id, "method", method);
    if (params)
        json_object_set_new(message, "params", params);
    CLEANUP_FREE char *text = json_to_text(message);
    CLEANUP_FREE char *line = mem_format("%s\n", text);
    guest_rig_send_text(rig, line, strlen(line));
    return rig->last_id;
}

static json_t *take_unclaimed(struct guest_rig *rig, int64_t id)
{
    for (size_t i = 0; i < json_array_size(rig->unclaimed); i++) {
        json_t *answer = json_array_get(rig->unclaimed, i);
        if (json_get_int(answer, "id", -1) == id) {
            json_incref(answer);
            json_array_remove(rig->unclaimed, i);
            return answer;
        }
    }
    return NULL;
}

json_t *guest_rig_wait(struct guest_rig *rig, int64_t id)
{
    json_t *answer = take_unclaimed(rig, id);
    while (!answer) {
        json_array_append_new(rig->unclaimed, guest_rig_receive(rig));
        answer = take_unclaimed(rig, id);
    }
    return answer;
}

json_t *guest_rig_call(struct guest_rig *rig, const char *method, json_t *params)
{
    CLEANUP_JSON json_t *answer = guest_rig_wait(rig, guest_rig_send(rig, method, params));
    json_t *result = json_object_get(answer, "result");
    if (!result)
        fail_msg("%s failed: %s", method, json_get_text(json_object_get(answer, "error"), "message"));
    return json_incref(result);
}

int guest_rig_call_code(struct guest_rig *rig, const char *method, json_t *params)
{
    CLEANUP_JSON json_t *answer = guest_rig_wait(rig, guest_rig_send(rig, method, params));
    json_t *error = json_object_get(answer, "error");
    assert_non_null(error);
    assert_true(strlen(json_get_text(error, "message")) > 5);
    return (int)json_get_int(error, "code", 0);
}

static const char *first_text(const json_t *result)
{
    return json_get_text(json_array_get(json_object_get(result, "content"), 0), "text");
}

json_t *guest_rig_tool(struct guest_rig *rig, const char *name, json_t *args)
{
    CLEANUP_JSON json_t *result =
        guest_rig_call(rig, "tools/call", json_pack("{s:s s:o}", "name", name, "arguments", args));
    if (json_get_bool(result, "isError", false))
        fail_msg("%s: %s", name, first_text(result));
    assert_non_null(first_text(result));
    return json_incref(json_object_get(result, "structuredContent"));
}

char *guest_rig_tool_error(struct guest_rig *rig, const char *name, json_t *args)
{
    CLEANUP_JSON json_t *result =
        guest_rig_call(rig, "tools/call", json_pack("{s:s s:o}", "name", name, "arguments", args));
    if (!json_get_bool(result, "isError", false))
        fail_msg("%s did not fail", name);
    const json_t *structured = json_object_get(result, "structuredContent");
    if (structured)
        assert_string_equal(json_get_text(structured, "error"), first_text(result));
    return mem_strdup(first_text(result));
}

void guest_rig_put(struct guest_rig *rig, const char *path, const char *text, size_t len)
{
    struct error err = ERROR_INIT;
    CLEANUP_FREE char *full = mem_format("%s/%s", rig->dir, path);
    for (char *slash = full + strlen(rig->dir) + 1; (slash = strchr(slash, '/')); slash++) {
        *slash = '\0';
        mkdir(full, 0755);
        *slash = '/';
    }
    CLEANUP_CLOSE int fd = open(full, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    assert_true(fd >= 0);
    assert_ok(fs_write_all(fd, text, len, &err));
}

void guest_rig_put_text(struct guest_rig *rig, const char *path, const char *text)
{
    guest_rig_put(rig, path, text, strlen(text));
}

static int set_up(void **state, void (*start)(struct guest_rig *rig))
{
    struct guest_rig *rig = mem_alloc(sizeof(*rig));
    start(rig);
    *state = rig;
    return 0;
}

int guest_rig_setup(void **state)
{
    return set_up(state, guest_rig_start);
}

int guest_rig_setup_in_repository(void **state)
{
    return set_up(state, guest_rig_start_in_repository);
}

int guest_rig_teardown(void **state)
{
    int status = guest_rig_stop(*state);
    free(*state);
    return status;
}
