// Exposures: a port of a sandbox on a free port of every IPv4 interface of the host. The host port is chosen here, so that sbx
// keeps it when the sandbox starts again; what sbx then lists is what counts.
#include "controller/base/cleanup.h"
#include "controller/base/memory.h"
#include "reconcilers/drivers/sbx/sbx.h"
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

#define ANY_ADDRESS "0.0.0.0"
#define TRIES 5

struct port_call {
    struct sbx *sbx;
    char *name;
    int port, host_port, tries;
    char wrong_ip[64]; // where sbx published it instead
    driver_port_fn port_done;
    driver_done_fn done;
    void *arg;
};

static struct port_call *port_call_new(struct driver *driver, const char *name, int port, void *arg)
{
    struct port_call *call = mem_alloc(sizeof(*call));
    *call = (struct port_call){.sbx = sbx_of(driver), .name = mem_strdup(name), .port = port, .arg = arg};
    return call;
}

static struct runtime_port *find_port(struct runtime *runtime, int port)
{
    for (size_t i = 0; runtime && i < runtime->port_count; i++)
        if (runtime->ports[i].port == port)
            return &runtime->ports[i];
    return NULL;
}

static void forget_port(struct runtime *runtime, int port)
{
    struct runtime_port *at = find_port(runtime, port);
    if (at)
        *at = runtime->ports[--runtime->port_count];
}

static void port_call_end(struct port_call *call, const struct error *err)
{
    if (call->port_done)
        call->port_done(call->arg, err ? -1 : 0, err ? 0 : call->host_port, err);
    else
        call->done(call->arg, err ? -1 : 0, err);
    free(call->name);
    free(call);
}

void sbx_ports_ask(struct sbx *sbx, const char *name, call_done_fn done, void *arg, struct call **ret)
{
    struct call_options options = {.subject = name, .deadline_ms = sbx->deadlines.call_ms};
    sbx_words_add(&options.words, "ports");
    sbx_words_add(&options.words, "%s", name);
    sbx_words_add(&options.words, "--json");
    struct call *call = sbx_call_start(sbx, &options, done, arg);
    if (ret)
        *ret = call;
}

// ---- publish -----------------------------------------------------------------------------------------------------------

static void try_publish(struct port_call *call);

static void publish_failed(struct port_call *call, struct error *err)
{
    struct runtime *runtime = sbx_runtime_find(call->sbx, call->name);
    if (runtime)
        forget_port(runtime, call->port);
    error_context(err, "cannot publish the port");
    port_call_end(call, err);
}

static void ask_unpublish(struct port_call *call, const char *ip, call_done_fn done)
{
    bool is_ipv6 = strchr(ip, ':') != NULL;
    struct call_options options = {.subject = call->name, .deadline_ms = call->sbx->deadlines.call_ms};
    sbx_words_add(&options.words, "ports");
    sbx_words_add(&options.words, "%s", call->name);
    sbx_words_add(&options.words, "--unpublish");
    sbx_words_add(&options.words, is_ipv6 ? "[%s]:%d:%d" : "%s:%d:%d/tcp4", ip, call->host_port, call->port);
    sbx_call_start(call->sbx, &options, done, call);
}

static void on_wrong_unpublished(void *arg, const struct call_result *result)
{
    struct port_call *call = arg;
    struct error err = ERROR_INIT, why = ERROR_INIT;
    bool is_gone = sbx_call_judge(result, &why) == 0;
    error_set(&err, ERROR_REFUSED, "look at: sbx ports", "sbx published it on %s instead of every IPv4 interface%s%s", call->wrong_ip,
              is_gone ? "; that is undone" : ", and it could not be undone: ", is_gone ? "" : why.message);
    publish_failed(call, &err);
}

static const struct port_row *find_row(const struct port_row_list *rows, const struct port_call *call, bool is_right)
{
    for (size_t i = 0; i < rows->count; i++) {
        const struct port_row *row = &rows->items[i];
        if (row->host_port == call->host_port && row->sandbox_port == call->port && (strcmp(row->host_ip, ANY_ADDRESS) == 0) == is_right)
            return row;
    }
    return NULL;
}

static void note_published(struct port_call *call)
{
    struct error err = ERROR_INIT;
    struct runtime *runtime = sbx_runtime_find(call->sbx, call->name);
    struct runtime_port *port = find_port(runtime, call->port);
    if (port && sbx_runtime_runs(runtime)) {
        port->is_pending = false;
        port->host_port = call->host_port;
        port_call_end(call, NULL);
        return;
    }
    error_set(&err, ERROR_CANCELLED, NULL, "the sandbox ended meanwhile");
    publish_failed(call, &err);
}

static void on_checked(void *arg, const struct call_result *result)
{
    struct port_call *call = arg;
    struct error err = ERROR_INIT;
    CLEANUP_JSON json_t *json = NULL;
    CLEANUP_FREE struct port_row_list *rows = mem_alloc(sizeof(*rows));
    if (sbx_call_json(result, &json, &err) < 0 || sbx_port_rows_read(json, rows, &err) < 0) {
        publish_failed(call, &err);
        return;
    }
    const struct port_row *wrong = find_row(rows, call, false);
    if (wrong) {
        memcpy(call->wrong_ip, wrong->host_ip, sizeof(call->wrong_ip));
        ask_unpublish(call, call->wrong_ip, on_wrong_unpublished);
    } else if (find_row(rows, call, true)) {
        note_published(call);
    } else {
        error_set(&err, ERROR_UNAVAILABLE, "it is tried again; look at: sbx ports", "sbx published it and does not list it");
        publish_failed(call, &err);
    }
}

static void on_published(void *arg, const struct call_result *result)
{
    struct port_call *call = arg;
    struct error err = ERROR_INIT;
    if (sbx_call_judge(result, &err) == 0)
        sbx_ports_ask(call->sbx, call->name, on_checked, call, NULL);
    else if (sbx_call_says_port_taken(result) && ++call->tries < TRIES)
        try_publish(call);
    else
        publish_failed(call, &err);
}

// A port that is free now; somebody may take it before sbx does.
static int pick_host_port(struct error *err)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_ANY)}};
    socklen_t size = sizeof(at);
    CLEANUP_CLOSE int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || bind(fd, (struct sockaddr *)&at, size) < 0 || getsockname(fd, (struct sockaddr *)&at, &size) < 0)
        return error_errno(err, errno, NULL, "there is no free port on the host");
    return ntohs(at.sin_port);
}

static void try_publish(struct port_call *call)
{
    struct error err = ERROR_INIT;
    call->host_port = pick_host_port(&err);
    if (call->host_port < 0) {
        publish_failed(call, &err);
        return;
    }
    struct call_options options = {.subject = call->name, .deadline_ms = call->sbx->deadlines.call_ms};
    sbx_words_add(&options.words, "ports");
    sbx_words_add(&options.words, "%s", call->name);
    sbx_words_add(&options.words, "--publish");
    sbx_words_add(&options.words, ANY_ADDRESS ":%d:%d/tcp4", call->host_port, call->port);
    sbx_call_start(call->sbx, &options, on_published, call);
}

static int check_publish(const struct runtime *runtime, int port, const struct runtime_port *known, struct error *err)
{
    if (runtime == NULL || !sbx_runtime_runs(runtime))
        return error_set(err, ERROR_STATE, NULL, "the sandbox is not running");
    if (port == SBX_CODEXPRO_PORT && runtime->session == SESSION_CODEXPRO)
        return error_set(err, ERROR_REFUSED, "let the server listen on another port", "port %d is the sandbox's own tool server", port);
    if (known && known->is_pending)
        return error_set(err, ERROR_STATE, "try again in a moment", "the port is just being published");
    if (known == NULL && runtime->port_count == SBX_MAX_PORTS)
        return error_set(err, ERROR_LIMIT, "unpublish one", "a sandbox can publish at most %d ports", SBX_MAX_PORTS);
    return 0;
}

static void publish_on_loop(void *arg)
{
    struct port_call *call = arg;
    struct error err = ERROR_INIT;
    struct runtime *runtime = sbx_runtime_find(call->sbx, call->name);
    const struct runtime_port *known = find_port(runtime, call->port);
    if (check_publish(runtime, call->port, known, &err) < 0) {
        port_call_end(call, &err);
    } else if (known) {
        call->host_port = known->host_port;
        port_call_end(call, NULL);
    } else {
        runtime->ports[runtime->port_count++] = (struct runtime_port){.port = call->port, .is_pending = true};
        try_publish(call);
    }
}

void sbx_ports_publish(struct driver *driver, const char *name, int port, driver_port_fn done, void *arg)
{
    struct port_call *call = port_call_new(driver, name, port, arg);
    call->port_done = done;
    loop_post(call->sbx->loop, publish_on_loop, call);
}

// ---- unpublish ---------------------------------------------------------------------------------------------------------

static void unpublished(struct port_call *call)
{
    struct runtime *runtime = sbx_runtime_find(call->sbx, call->name);
    if (runtime)
        forget_port(runtime, call->port);
    port_call_end(call, NULL);
}

// After a failure: what is not listed any more is unpublished all the same.
static void on_left(void *arg, const struct call_result *result)
{
    struct port_call *call = arg;
    struct error err = ERROR_INIT;
    CLEANUP_JSON json_t *json = NULL;
    CLEANUP_FREE struct port_row_list *rows = mem_alloc(sizeof(*rows));
    if (sbx_call_says_absent(result)) {
        unpublished(call);
        return;
    }
    if (sbx_call_json(result, &json, &err) == 0 && sbx_port_rows_read(json, rows, &err) == 0) {
        if (find_row(rows, call, true) == NULL) {
            unpublished(call);
            return;
        }
        error_set(&err, ERROR_UNAVAILABLE, "it is tried again; look at: sbx ports", "sbx still lists it");
    }
    error_context(&err, "cannot unpublish the port");
    port_call_end(call, &err);
}

static void on_unpublished(void *arg, const struct call_result *result)
{
    struct port_call *call = arg;
    if (sbx_call_judge(result, NULL) == 0 || sbx_call_says_absent(result))
        unpublished(call);
    else
        sbx_ports_ask(call->sbx, call->name, on_left, call, NULL);
}

// Gone with its sandbox is unpublished as well.
static void unpublish_on_loop(void *arg)
{
    struct port_call *call = arg;
    struct runtime *runtime = sbx_runtime_find(call->sbx, call->name);
    const struct runtime_port *known = find_port(runtime, call->port);
    struct error err = ERROR_INIT;
    if (known && known->is_pending) {
        error_set(&err, ERROR_STATE, "try again in a moment", "the port is just being published");
        port_call_end(call, &err);
    } else if (known == NULL) {
        port_call_end(call, NULL);
    } else {
        call->host_port = known->host_port;
        ask_unpublish(call, ANY_ADDRESS, on_unpublished);
    }
}

void sbx_ports_unpublish(struct driver *driver, const char *name, int port, driver_done_fn done, void *arg)
{
    struct port_call *call = port_call_new(driver, name, port, arg);
    call->done = done;
    loop_post(call->sbx->loop, unpublish_on_loop, call);
}
