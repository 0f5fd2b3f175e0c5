#include "tests/support/operator_rig.h"
#include "controller/base/buffer.h"
#include "controller/base/memory.h"
#include "controller/base/socket.h"
#include "tests/support/http_client.h"
#include <poll.h>
#include <string.h>
#include <sys/socket.h>

#define WAIT_MS SUPPORT_PATIENCE_MS
#define JSON_TYPE "Content-Type: application/json\r\n"
#define MERGE_TYPE "Content-Type: application/merge-patch+json\r\n"

static int setup_over(struct world_fixture *fixture, void **state)
{
    struct operator_rig *rig = mem_alloc(sizeof(*rig));
    struct error err = ERROR_INIT;
    rig->fixture = fixture;
    assert_ok(operator_server_start(&rig->fixture->world, &rig->server, &err));
    *state = rig;
    return 0;
}

int operator_rig_setup(void **state)
{
    return setup_over(world_open(), state);
}

int operator_rig_setup_busy(void **state)
{
    return setup_over(world_open_busy(), state);
}

int operator_rig_teardown(void **state)
{
    struct operator_rig *rig = *state;
    operator_server_stop(rig->server);
    world_close(rig->fixture);
    free(rig);
    return 0;
}

int operator_rig_connect(const struct operator_rig *rig)
{
    struct error err = ERROR_INIT;
    CLEANUP_FREE char *path = mem_format("%s/" OPERATOR_SOCKET_NAME, rig->fixture->config.state_dir);
    int fd = socket_connect_path(path, SOCK_STREAM, SUPPORT_PATIENCE_MS, &err);
    assert_ok(fd);
    return fd;
}

static void ask(int fd, const char *method, const char *path, const char *headers, const char *body)
{
    CLEANUP_FREE char *text =
        mem_format("%s %s HTTP/1.1\r\nHost: localhost\r\nContent-Length: %zu\r\n%s\r\n%s", method, path,
                   strlen(body), headers, body);
    http_client_send_text(fd, text);
}

static struct http_answer exchange(const struct operator_rig *rig, const char *method, const char *path,
                                   const char *headers, const char *body, int expected)
{
    struct http_answer answer;
    int fd = operator_rig_connect(rig);
    ask(fd, method, path, headers, body);
    http_client_read(fd, &answer, WAIT_MS);
    close(fd);
    if (answer.status != expected)
        fail_msg("%s %s: expected %d, got %d: %.1000s", method, path, expected, answer.status, answer.body);
    return answer;
}

json_t *operator_rig_call(const struct operator_rig *rig, const char *method, const char *path,
                          const char *headers, const char *body, int expected)
{
    struct http_answer answer = exchange(rig, method, path, headers, body, expected);
    json_t *json = http_answer_json(&answer);
    http_answer_clear(&answer);
    return json;
}

char *operator_rig_text(const struct operator_rig *rig, const char *path, int expected)
{
    struct http_answer answer = exchange(rig, "GET", path, "", "", expected);
    char *text = mem_strdup(answer.body ? answer.body : "");
    http_answer_clear(&answer);
    return text;
}

void operator_rig_make_workspace(const struct operator_rig *rig, const char *name, const char *labels_json)
{
    CLEANUP_FREE char *body =
        mem_format("{\"metadata\": {\"name\": \"%s\", \"labels\": %s}}", name, labels_json);
    json_decref(operator_rig_call(rig, "POST", OPERATOR_KINDS "/workspaces", JSON_TYPE, body, 201));
}

void operator_rig_label(const struct operator_rig *rig, const char *workspace, const char *labels_json)
{
    CLEANUP_FREE char *path = mem_format(OPERATOR_KINDS "/workspaces/%s", workspace);
    CLEANUP_FREE char *body = mem_format("{\"metadata\": {\"labels\": %s}}", labels_json);
    json_decref(operator_rig_call(rig, "PATCH", path, MERGE_TYPE, body, 200));
}

void operator_rig_remove(const struct operator_rig *rig, const char *workspace)
{
    CLEANUP_FREE char *path = mem_format(OPERATOR_KINDS "/workspaces/%s", workspace);
    json_decref(operator_rig_call(rig, "DELETE", path, "", "", 200));
    world_settle(rig->fixture);
}

// ---- a watch
struct watch_client {
    int fd;
    struct buffer raw, lines; // lines: without the chunks' frames
    bool is_ended, is_clean;
};

struct watch_client *watch_client_on(int fd, const char *path, const char *headers)
{
    struct watch_client *client = mem_alloc(sizeof(*client));
    client->fd = fd;
    client->raw = client->lines = (struct buffer)BUFFER_INIT(64 << 20);
    ask(client->fd, "GET", path, headers, "");
    return client;
}

struct watch_client *watch_client_open(const struct operator_rig *rig, const char *path, const char *headers)
{
    return watch_client_on(operator_rig_connect(rig), path, headers);
}

void watch_client_close(struct watch_client *client)
{
    close(client->fd);
    buffer_free(&client->raw);
    buffer_free(&client->lines);
    free(client);
}

int watch_client_fd(const struct watch_client *client)
{
    return client->fd;
}

bool watch_client_is_ended(const struct watch_client *client)
{
    return client->is_ended;
}

bool watch_client_is_clean(const struct watch_client *client)
{
    return client->is_clean && !client->lines.len;
}

static bool skip_head(struct watch_client *client)
{
    const char *text = buffer_text(&client->raw), *end = strstr(text, "\r\n\r\n");
    if (strncmp(text, "HTTP/", 5) != 0)
        return true;
    if (!end)
        return false;
    if (strncmp(text, "HTTP/1.1 200", 12) != 0)
        fail_msg("a watch was answered: %.600s", text);
    buffer_consume(&client->raw, (size_t)(end - text) + 4);
    return true;
}

static void unframe(struct watch_client *client)
{
    while (skip_head(client)) {
        const char *text = buffer_text(&client->raw), *line_end = strstr(text, "\r\n");
        if (!line_end)
            return;
        size_t size = strtoul(text, NULL, 16), head = (size_t)(line_end - text) + 2;
        if (client->raw.len < head + size + 2)
            return;
        buffer_append(&client->lines, text + head, size);
        buffer_consume(&client->raw, head + size + 2);
        if (!size) {
            client->is_ended = client->is_clean = true;
            return;
        }
    }
}

static bool receive(struct watch_client *client, int wait_ms)
{
    struct pollfd wait = {.fd = client->fd, .events = POLLIN};
    if (client->is_ended || poll(&wait, 1, wait_ms) <= 0)
        return false;
    char *room = buffer_reserve(&client->raw, 65536);
    ssize_t n = recv(client->fd, room, 65535, 0);
    if (n <= 0)
        client->is_ended = true;
    else
        client->raw.len += (size_t)n;
    client->raw.data[client->raw.len] = '\0';
    unframe(client);
    return true;
}

json_t *watch_client_wait(struct watch_client *client, int ms)
{
    char *end;
    while (!(end = strchr(buffer_text(&client->lines), '\n')))
        if (client->is_ended || !receive(client, ms))
            return NULL;
    size_t len = (size_t)(end - client->lines.data);
    json_t *event = json_loadb(client->lines.data, len, 0, NULL);
    assert_non_null(event);
    buffer_consume(&client->lines, len + 1);
    return event;
}

json_t *watch_client_next(struct watch_client *client)
{
    json_t *event = watch_client_wait(client, WAIT_MS);
    if (!event && !client->is_ended)
        fail_msg("no event of the watch came in time");
    return event;
}

bool watch_client_is_quiet(struct watch_client *client, int ms)
{
    return !strchr(buffer_text(&client->lines), '\n') && !receive(client, ms);
}

json_t *watch_client_expect(struct watch_client *client, const char *type, const char *name)
{
    json_t *event = watch_client_next(client);
    if (!event)
        fail_msg("the watch ended instead of %s %s", type, name);
    const json_t *metadata = json_object_get(json_object_get(event, "object"), "metadata");
    const char *got = json_get_text(metadata, "name");
    CLEANUP_FREE char *text = json_to_text(event);
    if (strcmp(json_get_text(event, "type"), type) != 0 || (*name && (!got || strcmp(got, name) != 0)))
        fail_msg("expected %s %s, got %.1000s", type, name, text);
    return event;
}
