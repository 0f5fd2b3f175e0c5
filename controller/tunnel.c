#include "controller/tunnel.h"
#include "controller/base/fs.h"
#include "controller/base/memory.h"
#include "controller/log.h"
#include "controller/operation.h"
#include "controller/thread.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define ID_MAX_BYTES 128
#define OUTPUT_KEEP_BYTES 1024
#define CLIENT_DEADLINE_MS (365LL * 24 * 3600 * 1000) // then it is started anew
#define SWITCH_HINT "put them there, or switch the tunnel off with CHAT2SHELL_ENABLE_TUNNEL=0"

// What the client needs to know of our environment: where it lives, and the way out of this network.
static const char *const passed_on[] = {"HOME",        "HTTPS_PROXY", "https_proxy", "HTTP_PROXY",   "http_proxy",
                                        "ALL_PROXY",   "all_proxy",   "NO_PROXY",    "no_proxy",     "SSL_CERT_FILE",
                                        "SSL_CERT_DIR"};

// Everything but the lock and `is_ended` belongs to the loop thread once started.
struct tunnel {
    const struct config *config;
    struct clock *clock;
    struct loop *loop;
    struct spawner *spawner;
    char *id, *url, *key_argument, *url_file;
    char *environment[ARRAY_LEN(passed_on) + 2]; // NULL-terminated
    struct operation *operation;
    struct loop_timer *timer;
    struct boot_time started_at;
    int64_t backoff_ms;
    bool is_stopping;
    pthread_mutex_t lock; // guards is_ended
    pthread_cond_t ended;
    bool is_ended;
};

// ---- what must be there ---------------------------------------------------------------------------------------------------------
static void add_problem(struct buffer *problems, const char *what, const char *path, const char *why)
{
    buffer_format(problems, "%s%s %s %s", problems->len ? "; " : "", what, path, why);
}

static void check_program(const struct config *config, struct buffer *problems)
{
    struct stat info;
    if (stat(config->tunnel_client, &info) < 0)
        add_problem(problems, "the tunnel client", config->tunnel_client, errno == ENOENT ? "is missing" : strerrordesc_np(errno));
    else if (!S_ISREG(info.st_mode) || access(config->tunnel_client, X_OK) < 0)
        add_problem(problems, "the tunnel client", config->tunnel_client, "cannot be run");
}

// Looked at from outside only.
static void check_key(const char *path, struct buffer *problems)
{
    struct stat info;
    if (stat(path, &info) < 0)
        add_problem(problems, "the key", path, errno == ENOENT ? "is missing" : strerrordesc_np(errno));
    else if (!S_ISREG(info.st_mode) || info.st_size == 0)
        add_problem(problems, "the key", path, "is not a file with something in it");
    else if (info.st_mode & 077)
        add_problem(problems, "the key", path, "may be read by others (chmod 600 it)");
}

static bool is_id(const char *text)
{
    size_t len = strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-");
    return len > 0 && text[0] != '-' && !text[len];
}

static char *read_id(const char *path, struct buffer *problems)
{
    CLEANUP(buffer_free) struct buffer text = BUFFER_INIT(ID_MAX_BYTES);
    struct stat info;
    if (stat(path, &info) < 0 && errno == ENOENT) {
        add_problem(problems, "the tunnel's id", path, "is missing");
        return NULL;
    }
    if (!S_ISREG(info.st_mode) || fs_read_file(path, &text, NULL) < 0) {
        add_problem(problems, "the tunnel's id", path, "cannot be read, or is too long");
        return NULL;
    }
    while (text.len && strchr(" \t\r\n", text.data[text.len - 1]))
        text.data[--text.len] = '\0';
    if (is_id(buffer_text(&text)) && strlen(buffer_text(&text)) == text.len)
        return buffer_take_string(&text);
    add_problem(problems, "the tunnel's id", path, "does not hold an id like tunnel_0123abcd");
    return NULL;
}

static char *key_path(const struct config *config)
{
    return mem_format("%s/key", config->secret_dir);
}

int tunnel_check(const struct config *config, char **ret_id, struct error *err)
{
    CLEANUP(buffer_free) struct buffer problems = BUFFER_INIT(900);
    CLEANUP_FREE char *key = key_path(config), *id_path = mem_format("%s/tunnel-id", config->secret_dir);
    check_program(config, &problems);
    check_key(key, &problems);
    CLEANUP_FREE char *id = read_id(id_path, &problems);
    if (problems.len || problems.is_over)
        return error_set(err, ERROR_STATE, SWITCH_HINT, "the tunnel cannot be started: %s", buffer_text(&problems));
    *ret_id = TAKE_PTR(id);
    return 0;
}

// ---- its life: loop thread ------------------------------------------------------------------------------------------------------
static void start_client(void *arg);

static void tell_ended(struct tunnel *tunnel)
{
    pthread_mutex_lock(&tunnel->lock);
    tunnel->is_ended = true;
    pthread_cond_signal(&tunnel->ended);
    pthread_mutex_unlock(&tunnel->lock);
}

static void start_later(struct tunnel *tunnel)
{
    bool was_steady = clock_boot(tunnel->clock).ms - tunnel->started_at.ms >= TUNNEL_STEADY_MS;
    int64_t next_ms = tunnel->backoff_ms * 2 < TUNNEL_BACKOFF_MAX_MS ? tunnel->backoff_ms * 2 : TUNNEL_BACKOFF_MAX_MS;
    tunnel->backoff_ms = was_steady || !tunnel->backoff_ms ? TUNNEL_BACKOFF_MIN_MS : next_ms;
    tunnel->timer = loop_after(tunnel->loop, tunnel->backoff_ms, start_client, tunnel);
}

static void client_ended(void *arg, const struct operation_result *result)
{
    struct tunnel *tunnel = arg;
    tunnel->operation = NULL;
    if (tunnel->is_stopping) {
        tell_ended(tunnel);
        return;
    }
    start_later(tunnel);
    log_warning("the tunnel client ended with exit code %d; it is started again in %lld s", result->exit_code, (long long)(tunnel->backoff_ms / 1000));
}

static int spawn_client(struct tunnel *tunnel, struct error *err)
{
    const char *const argv[] = {tunnel->config->tunnel_client, "run", "--control-plane.tunnel-id", tunnel->id, "--control-plane.api-key", tunnel->key_argument,
                                "--mcp.server-url", tunnel->url, "--health.listen-addr", "127.0.0.1:0", "--health.url-file", tunnel->url_file, NULL};
    const struct spawn_options options = {.path = argv[0], .argv = argv, .environment = (const char *const *)tunnel->environment, .dies_with_us = true};
    return operation_start(tunnel->loop, tunnel->spawner, &options, CLIENT_DEADLINE_MS, OUTPUT_KEEP_BYTES, client_ended, tunnel, &tunnel->operation, err);
}

static void start_client(void *arg)
{
    struct tunnel *tunnel = arg;
    struct error err = ERROR_INIT;
    tunnel->timer = NULL;
    tunnel->started_at = clock_boot(tunnel->clock);
    if (spawn_client(tunnel, &err) == 0) {
        log_info("the tunnel client was started");
        return;
    }
    start_later(tunnel);
    log_warning("the tunnel client: %s; it is tried again in %lld s", err.message, (long long)(tunnel->backoff_ms / 1000));
}

static void stop_client(void *arg)
{
    struct tunnel *tunnel = arg;
    tunnel->is_stopping = true;
    loop_cancel(TAKE_PTR(tunnel->timer));
    if (tunnel->operation)
        operation_cancel(tunnel->operation);
    else
        tell_ended(tunnel);
}

// ---- start and stop --------------------------------------------------------------------------------------------------------------
static void do_nothing(void *arg)
{
    (void)arg;
}

static void fill_environment(struct tunnel *tunnel)
{
    size_t count = 0;
    tunnel->environment[count++] = mem_strdup("PATH=/usr/local/bin:/usr/bin:/bin");
    for (size_t i = 0; i < ARRAY_LEN(passed_on); i++)
        if (getenv(passed_on[i]))
            tunnel->environment[count++] = mem_format("%s=%s", passed_on[i], getenv(passed_on[i]));
}

int tunnel_start(const struct tunnel_options *options, struct tunnel **ret, struct error *err)
{
    (void)err;
    const struct config *config = options->config;
    CLEANUP_FREE char *key = key_path(config);
    struct tunnel *tunnel = mem_alloc(sizeof(*tunnel));
    *tunnel = (struct tunnel){.config = config, .clock = options->clock, .loop = options->loop, .spawner = options->spawner, .id = mem_strdup(options->id)};
    tunnel->url = mem_format("http://%s:%d/mcp", config->host, options->mcp_port);
    tunnel->key_argument = mem_format("file:%s", key);
    tunnel->url_file = mem_format("%s/tunnel-health-url", config->state_dir);
    fill_environment(tunnel);
    pthread_mutex_init(&tunnel->lock, NULL);
    thread_cond_init(&tunnel->ended);
    loop_call(tunnel->loop, start_client, tunnel);
    *ret = tunnel;
    return 0;
}

static void tunnel_free(struct tunnel *tunnel)
{
    char *texts[] = {tunnel->id, tunnel->url, tunnel->key_argument, tunnel->url_file};
    for (size_t i = 0; i < ARRAY_LEN(texts); i++)
        free(texts[i]);
    for (size_t i = 0; tunnel->environment[i]; i++)
        free(tunnel->environment[i]);
    pthread_cond_destroy(&tunnel->ended);
    pthread_mutex_destroy(&tunnel->lock);
    free(tunnel);
}

void tunnel_stop(struct tunnel *tunnel)
{
    if (!tunnel)
        return;
    loop_call(tunnel->loop, stop_client, tunnel);
    pthread_mutex_lock(&tunnel->lock);
    while (!tunnel->is_ended)
        pthread_cond_wait(&tunnel->ended, &tunnel->lock);
    pthread_mutex_unlock(&tunnel->lock);
    loop_call(tunnel->loop, do_nothing, NULL); // the callback that told it has returned
    tunnel_free(tunnel);
}
