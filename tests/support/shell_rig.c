#include "tests/support/shell_rig.h"
#include "controller/base/buffer.h"
#include "controller/base/fs.h"
#include "controller/base/memory.h"
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define PATIENCE_S (SUPPORT_PATIENCE_MS / 1000)
#define OUTPUT_MAX (256 * 1024 * 1024)

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER; // guards every struct shell_heard
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;

struct order {
    struct shell_rig *rig;
    const char *method;
    json_t *params;
    struct shell_heard *heard;
    int64_t id;
    struct error error;
};

static void make_shell(void *arg)
{
    struct shell_rig *rig = arg;
    struct shell_host host = raw_bash_host(rig->raw);
    rig->shell = shell_new(&host);
}

static void free_shell(void *arg)
{
    struct shell_rig *rig = arg;
    shell_free(TAKE_PTR(rig->shell));
}

int shell_rig_setup(void **state)
{
    struct error err = ERROR_INIT;
    signal(SIGPIPE, SIG_IGN);
    struct shell_rig *rig = mem_alloc(sizeof(*rig));
    rig->clock = clock_new_real();
    assert_ok(loop_start(rig->clock, &rig->loop, &err));
    rig->workspace = support_make_dir();
    rig->home = support_make_dir();
    rig->raw = raw_bash_new(rig->loop, rig->workspace, rig->home);
    loop_call(rig->loop, make_shell, rig);
    *state = rig;
    return 0;
}

int shell_rig_teardown(void **state)
{
    struct shell_rig *rig = *state;
    loop_call(rig->loop, free_shell, rig);
    raw_bash_free(rig->raw);
    loop_stop(rig->loop);
    clock_free(rig->clock);
    support_remove_dir(rig->workspace);
    support_remove_dir(rig->home);
    free(rig);
    return 0;
}

void shell_rig_put(const char *dir, const char *name, const char *text)
{
    CLEANUP_FREE char *path = mem_format("%s/%s", dir, name);
    FILE *file = fopen(path, "we");
    assert_non_null(file);
    assert_int_equal(fwrite(text, 1, strlen(text), file), strlen(text));
    fclose(file);
}

static void hear(void *arg, json_t *result, const struct error *err)
{
    struct shell_heard *heard = arg;
    json_t *copy = json_deep_copy(result);
    pthread_mutex_lock(&mutex);
    heard->count++;
    heard->result = copy;
    if (err)
        heard->error = *err;
    pthread_cond_broadcast(&cond);
    pthread_mutex_unlock(&mutex);
}

static void send(void *arg)
{
    struct order *order = arg;
    order->id = shell_request(order->rig->shell, order->method, order->params, hear, order->heard, &order->error);
}

static void cancel(void *arg)
{
    struct order *order = arg;
    shell_cancel(order->rig->shell, order->id);
}

int64_t shell_rig_send(struct shell_rig *rig, const char *method, json_t *params, struct shell_heard *heard)
{
    CLEANUP_FREE char *name = mem_format("chat2shell/%s", method);
    *heard = (struct shell_heard){0};
    struct order order = {.rig = rig, .method = name, .params = params, .heard = heard};
    loop_call(rig->loop, send, &order);
    if (order.id < 0)
        fail_msg("%s", order.error.message);
    return order.id;
}

void shell_rig_cancel(struct shell_rig *rig, int64_t id)
{
    loop_call(rig->loop, cancel, &(struct order){.rig = rig, .id = id});
}

bool shell_rig_heard(struct shell_heard *heard)
{
    pthread_mutex_lock(&mutex);
    bool is = heard->count > 0;
    pthread_mutex_unlock(&mutex);
    return is;
}

void shell_rig_wait(struct shell_heard *heard)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += PATIENCE_S;
    int r = 0;
    pthread_mutex_lock(&mutex);
    while (!heard->count && r == 0)
        r = pthread_cond_timedwait(&cond, &mutex, &until);
    int count = heard->count;
    pthread_mutex_unlock(&mutex);
    if (count != 1)
        fail_msg("%d answers within %d s", count, PATIENCE_S);
}

json_t *shell_rig_call(struct shell_rig *rig, const char *method, json_t *params)
{
    struct shell_heard heard;
    shell_rig_send(rig, method, params, &heard);
    shell_rig_wait(&heard);
    if (!heard.result)
        fail_msg("%s: %s (%s)", method, heard.error.message, heard.error.hint);
    return heard.result;
}

struct error shell_rig_fail(struct shell_rig *rig, const char *method, json_t *params, enum error_code code)
{
    struct shell_heard heard;
    shell_rig_send(rig, method, params, &heard);
    shell_rig_wait(&heard);
    if (heard.result)
        fail_msg("%s succeeded", method);
    if (heard.error.code != code)
        fail_msg("%s: code %d instead of %d: %s", method, heard.error.code, code, heard.error.message);
    assert_true(heard.error.message[0] != '\0');
    return heard.error;
}

void shell_rig_start(struct shell_rig *rig, const char *id, const char *command)
{
    json_decref(shell_rig_call(rig, "bash_start", json_pack("{s:s, s:s}", "session_id", id, "command", command)));
}

json_t *shell_rig_read(struct shell_rig *rig, const char *id, const char *wait, int wait_ms)
{
    return shell_rig_call(rig, "bash_read", json_pack("{s:s, s:s, s:i}", "session_id", id, "wait", wait, "wait_ms", wait_ms));
}

char *shell_rig_drain(struct shell_rig *rig, const char *id, size_t *ret_len, int *ret_code)
{
    struct buffer all = BUFFER_INIT(OUTPUT_MAX);
    for (bool is_done = false; !is_done;) {
        CLEANUP_JSON json_t *answer = shell_rig_read(rig, id, "output", 20000);
        const json_t *output = json_object_get(answer, "output");
        assert_true(json_string_length(output) <= 60003);
        buffer_append(&all, json_string_value(output), json_string_length(output));
        is_done = strcmp(json_get_text(answer, "status"), "exited") == 0 && !json_is_true(json_object_get(answer, "has_more_output"));
        if (is_done && ret_code)
            *ret_code = (int)json_get_int(answer, "exit_code", -1);
    }
    if (ret_len)
        *ret_len = all.len;
    return buffer_take_string(&all);
}
