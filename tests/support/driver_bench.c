#include "tests/support/driver_bench.h"
#include "controller/base/buffer.h"
#include "controller/base/cleanup.h"
#include "controller/base/fs.h"
#include "controller/base/json.h"
#include "controller/base/memory.h"
#include "controller/spawn.h"
#include "tests/support/sbx_client.h"
#include <libgen.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

// ---- waiting for callbacks ---------------------------------------------------------------------------------------------

struct waiter {
    pthread_mutex_t lock;
    pthread_cond_t is_done_cond;
    bool is_done;
    int result, port;
    struct error err;
    void *output;
};
static struct waiter waiter_new(void *output)
{
    return (struct waiter){.lock = PTHREAD_MUTEX_INITIALIZER, .is_done_cond = PTHREAD_COND_INITIALIZER, .output = output};
}
static void waiter_wake(struct waiter *waiter)
{
    pthread_mutex_lock(&waiter->lock);
    waiter->is_done = true;
    pthread_cond_broadcast(&waiter->is_done_cond);
    pthread_mutex_unlock(&waiter->lock);
}
static void waiter_wait(struct waiter *waiter)
{
    pthread_mutex_lock(&waiter->lock);
    while (!waiter->is_done)
        pthread_cond_wait(&waiter->is_done_cond, &waiter->lock);
    pthread_mutex_unlock(&waiter->lock);
}

static pthread_mutex_t death_lock = PTHREAD_MUTEX_INITIALIZER;
static char death_reason[1024];

static void on_died(void *arg, const char *name, const char *reason)
{
    (void)arg;
    (void)name;
    pthread_mutex_lock(&death_lock);
    snprintf(death_reason, sizeof(death_reason), "%s", reason);
    pthread_mutex_unlock(&death_lock);
}

bool bench_wait_died(struct driver_bench *bench, int timeout_ms, char *reason, size_t size)
{
    (void)bench;
    for (int waited_ms = 0; waited_ms <= timeout_ms; waited_ms += 10) {
        pthread_mutex_lock(&death_lock);
        bool has_died = death_reason[0] != '\0';
        snprintf(reason, size, "%s", death_reason);
        pthread_mutex_unlock(&death_lock);
        if (has_died)
            return true;
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    }
    return false;
}

// ---- life --------------------------------------------------------------------------------------------------------------

void bench_open(struct driver_bench *bench, const char *dir)
{
    struct error err = ERROR_INIT;
    death_reason[0] = '\0';
    CLEANUP_FREE char *programs = support_program_dir();
    *bench = (struct driver_bench){.clock = clock_new_real(), .dir = dir ? mem_strdup(dir) : support_make_dir()};
    CLEANUP_FREE char *state = mem_format("%s/state", bench->dir);
    assert_ok(fs_make_private_dir(state, NULL, &err));
    assert_ok(spawner_start(&bench->spawner, &err));
    assert_ok(loop_start(bench->clock, &bench->loop, &err));
    struct driver_options options = {bench->clock, bench->loop, bench->spawner, programs, state, bench->dir};
    assert_ok(driver_bubblewrap_new(&options, &bench->driver, &err));
}

void bench_open_sbx(struct driver_bench *bench, const char *dir)
{
    struct error err = ERROR_INIT;
    death_reason[0] = '\0';
    const char *sbx = sbx_client_program(); // while there is one thread
    CLEANUP_FREE char *programs = support_program_dir();
    *bench = (struct driver_bench){.clock = clock_new_real(), .dir = dir ? mem_strdup(dir) : support_make_dir()};
    CLEANUP_FREE char *state = mem_format("%s/state", bench->dir);
    CLEANUP_FREE char *home = mem_format("%s/home", bench->dir);
    assert_ok(fs_make_private_dir(state, NULL, &err));
    assert_ok(fs_make_private_dir(home, NULL, &err));
    setenv("HOME", home, 1); // where the stand-in keeps its state and finds its faults
    assert_ok(spawner_start(&bench->spawner, &err));
    assert_ok(loop_start(bench->clock, &bench->loop, &err));
    struct driver_options options = {bench->clock, bench->loop, bench->spawner, programs, state, bench->dir, BENCH_INSTANCE,
                                     sbx};
    assert_ok(driver_sbx_new(&options, &bench->driver, &err));
}

void bench_close(struct driver_bench *bench)
{
    bench->driver->ops->free(bench->driver);
    loop_stop(bench->loop);
    spawner_stop(bench->spawner);
    clock_free(bench->clock);
}

void bench_destroy(struct driver_bench *bench)
{
    bench_close(bench);
    support_remove_dir(bench->dir);
}

char *bench_workspace(struct driver_bench *bench, const char *name)
{
    char *path = mem_format("%s/%s", bench->dir, name);
    mkdir(path, 0700);
    return path;
}

// ---- driver calls ------------------------------------------------------------------------------------------------------

static void join(char *to, size_t size, const struct text_list *list)
{
    to[0] = '\0';
    for (size_t i = 0; i < list->count; i++) {
        size_t len = strlen(to);
        snprintf(to + len, size - len, "%s%s", i ? "; " : "", list->items[i]);
    }
}

static void on_created(void *arg, int result, const struct driver_facts *facts, const struct error *err)
{
    struct waiter *waiter = arg;
    struct bench_created *created = waiter->output;
    created->result = result;
    if (err)
        created->err = *err;
    if (facts) {
        snprintf(created->template_name, sizeof(created->template_name), "%s", facts->template_name);
        snprintf(created->isolation, sizeof(created->isolation), "%s", facts->isolation);
        snprintf(created->root, sizeof(created->root), "%s", facts->workspace_root ? facts->workspace_root : "");
        join(created->limits, sizeof(created->limits), &facts->limits);
        join(created->missing, sizeof(created->missing), &facts->missing_limits);
        join(created->warnings, sizeof(created->warnings), &facts->warnings);
        join(created->broken, sizeof(created->broken), &facts->broken_rules);
    }
    waiter_wake(waiter);
}

struct bench_created bench_create(struct driver_bench *bench, const struct driver_spec *spec)
{
    struct bench_created created = {0};
    struct waiter *waiter = mem_alloc(sizeof(*waiter)); // died may name it long after
    *waiter = waiter_new(&created);
    bench->driver->ops->create(bench->driver, spec, on_created, on_died, waiter);
    waiter_wait(waiter);
    free(waiter);
    return created;
}

static char program_name[32];

__attribute__((constructor)) static void name_program(void) // before it forks: its children use the same name
{
    snprintf(program_name, sizeof(program_name), "t%d", (int)getpid());
}

const char *bench_name(void)
{
    return program_name;
}

struct bench_created bench_create_simple(struct driver_bench *bench, const char *name, const char *root)
{
    struct stat info;
    assert_int_equal(stat(root, &info), 0);
    struct driver_spec spec = {.runtime_name = name, .sandbox_uid = "sbx_test", .workspace_root = root, .device = (int64_t)info.st_dev,
                               .inode = (int64_t)info.st_ino, .template_name = "host", .has_network = true};
    return bench_create(bench, &spec);
}

static void on_session(void *arg, int result, const struct driver_session *session, const struct error *err)
{
    struct waiter *waiter = arg;
    struct bench_session *to = waiter->output;
    to->result = result;
    if (err)
        to->err = *err;
    if (session)
        to->session = *session;
    waiter_wake(waiter);
}

struct bench_session bench_session(struct driver_bench *bench, const char *name)
{
    struct bench_session session = {0};
    struct waiter waiter = waiter_new(&session);
    bench->driver->ops->start_session(bench->driver, name, on_session, &waiter);
    waiter_wait(&waiter);
    return session;
}

static void on_done(void *arg, int result, const struct error *err)
{
    struct waiter *waiter = arg;
    waiter->result = result;
    if (err)
        waiter->err = *err;
    waiter_wake(waiter);
}

static void on_port(void *arg, int result, int host_port, const struct error *err)
{
    ((struct waiter *)arg)->port = host_port;
    on_done(arg, result, err);
}

static int settle(struct waiter *waiter, struct error *err)
{
    waiter_wait(waiter);
    return waiter->result < 0 ? error_copy(err, &waiter->err) : 0;
}

int bench_remove(struct driver_bench *bench, const char *name, struct error *err)
{
    struct waiter waiter = waiter_new(NULL);
    bench->driver->ops->remove(bench->driver, name, on_done, &waiter);
    return settle(&waiter, err);
}

int bench_publish(struct driver_bench *bench, const char *name, int port, int *ret_host_port, struct error *err)
{
    struct waiter waiter = waiter_new(NULL);
    bench->driver->ops->publish(bench->driver, name, port, on_port, &waiter);
    int result = settle(&waiter, err);
    if (result == 0)
        *ret_host_port = waiter.port;
    return result;
}

int bench_unpublish(struct driver_bench *bench, const char *name, int port, struct error *err)
{
    struct waiter waiter = waiter_new(NULL);
    bench->driver->ops->unpublish(bench->driver, name, port, on_done, &waiter);
    return settle(&waiter, err);
}

int bench_probe_port(struct driver_bench *bench, const char *name, int port, struct error *err)
{
    struct waiter waiter = waiter_new(NULL);
    bench->driver->ops->probe_port(bench->driver, name, port, on_done, &waiter);
    return settle(&waiter, err);
}

static void on_list(void *arg, int result, const struct text_list *names, const struct error *err)
{
    struct waiter *waiter = arg;
    *(size_t *)waiter->output = names ? names->count : 0;
    on_done(waiter, result, err);
}

size_t bench_list_count(struct driver_bench *bench)
{
    size_t count = 0;
    struct waiter waiter = waiter_new(&count);
    bench->driver->ops->list(bench->driver, on_list, &waiter);
    waiter_wait(&waiter);
    return count;
}

// ---- the guest ---------------------------------------------------------------------------------------------------------

static bool read_line(int fd, char *line, size_t size)
{
    size_t len = 0;
    while (len + 1 < size) {
        struct pollfd at = {.fd = fd, .events = POLLIN};
        if (poll(&at, 1, SUPPORT_PATIENCE_MS) != 1 || read(fd, line + len, 1) != 1)
            return false;
        if (line[len++] == '\n') {
            line[len] = '\0';
            return true;
        }
    }
    return false;
}

static json_t *ask(struct bench_session *session, const char *method, json_t *params)
{
    static int id;
    CLEANUP_JSON json_t *request = json_pack("{s:s, s:i, s:s, s:o}", "jsonrpc", "2.0", "id", ++id, "method", method, "params", params);
    CLEANUP_FREE char *text = json_to_text(request);
    CLEANUP_FREE char *line = mem_format("%s\n", text);
    static char answer[1024 * 1024];
    struct error err = ERROR_INIT;
    if (fs_write_all(session->session.input_fd, line, strlen(line), &err) < 0 || !read_line(session->session.output_fd, answer, sizeof(answer)))
        return NULL;
    CLEANUP_JSON json_t *message = NULL;
    if (json_parse(answer, strlen(answer), &message, &err) < 0)
        return NULL;
    return json_incref(json_object_get(message, "result"));
}

static void add_stream(const json_t *result, const char *name, char *output, size_t size)
{
    const char *text = json_get_text(result, name);
    size_t len = strlen(output);
    CLEANUP_FREE char *bytes = NULL;
    size_t byte_count;
    if (text && json_decode_base64(text, &bytes, &byte_count, NULL) == 0)
        snprintf(output + len, size - len, "%.*s", (int)byte_count, bytes);
}

int bench_exec(struct bench_session *session, const char *const *argv, char *output, size_t size)
{
    json_t *words = json_array();
    for (size_t i = 0; argv[i]; i++)
        json_array_append_new(words, json_string(argv[i]));
    output[0] = '\0';
    json_decref(ask(session, "chat2shell/exec_start", json_pack("{s:s, s:o}", "exec_id", "exec_t", "argv", words)));
    for (;;) {
        CLEANUP_JSON json_t *result = ask(session, "chat2shell/exec_read", json_pack("{s:s, s:i}", "exec_id", "exec_t", "wait_ms", 20000));
        if (result == NULL)
            return -1;
        add_stream(result, "stdout", output, size);
        add_stream(result, "stderr", output, size);
        if (!json_get_bool(result, "exited", false))
            continue;
        json_decref(ask(session, "chat2shell/exec_end", json_pack("{s:s}", "exec_id", "exec_t")));
        return (int)json_get_int(result, "exit_code", -1);
    }
}

int bench_shell(struct bench_session *session, const char *command, char *output, size_t size)
{
    const char *const argv[] = {"/bin/bash", "-c", command, NULL};
    return bench_exec(session, argv, output, size);
}

void bench_session_close(struct bench_session *session)
{
    close(session->session.input_fd);
    close(session->session.output_fd);
    close(session->session.error_fd);
}
