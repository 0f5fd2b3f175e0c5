#include "tests/support/api_rig.h"
#include "controller/base/memory.h"
#include "controller/base/socket.h"
#include "tests/support/http_client.h"
#include <string.h>
#include <unistd.h>

#define WAIT_MS SUPPORT_PATIENCE_MS

int api_rig_setup(void **state)
{
    struct api_rig *api = mem_alloc(sizeof(*api));
    struct error err = ERROR_INIT;
    api->fixture = world_open();
    assert_ok(operator_server_start(&api->fixture->world, &api->server, &err));
    *state = api;
    return 0;
}

int api_rig_teardown(void **state)
{
    struct api_rig *api = *state;
    operator_server_stop(api->server);
    world_close(api->fixture);
    free(api);
    return 0;
}

static int ask(const struct api_rig *api, const char *method, const char *path, const char *type, const char *body)
{
    struct error err = ERROR_INIT;
    CLEANUP_FREE char *socket_path = mem_format("%s/" OPERATOR_SOCKET_NAME, api->fixture->config.state_dir);
    int fd = socket_connect_path(socket_path, SOCK_STREAM, SUPPORT_PATIENCE_MS, &err);
    assert_ok(fd);
    CLEANUP_FREE char *text = mem_format("%s %s HTTP/1.1\r\nHost: localhost\r\nContent-Length: %zu\r\n%s%s%s\r\n%s", method, path, strlen(body),
                                         type ? "Content-Type: " : "", type ? type : "", type ? "\r\n" : "", body);
    http_client_send_text(fd, text);
    return fd;
}

static void keep_warning(struct api_rig *api, const struct http_answer *answer)
{
    CLEANUP_FREE char *value = http_answer_header(answer, "Warning");
    snprintf(api->warning, sizeof(api->warning), "%s", value ? value : "");
}

json_t *api_call(struct api_rig *api, const char *method, const char *path, const char *type, const char *body, int expected)
{
    int fd = ask(api, method, path, type, body);
    struct http_answer answer;
    world_settle(api->fixture);
    http_client_read(fd, &answer, WAIT_MS);
    close(fd);
    world_settle(api->fixture); // a request that came late may have given work to the reconcilers
    keep_warning(api, &answer);
    int status = answer.status;
    json_t *json = http_answer_json(&answer);
    http_answer_clear(&answer);
    if (status != expected) {
        CLEANUP_FREE char *text = json ? json_to_pretty_text(json) : mem_strdup("(no JSON)");
        fail_msg("%s %s: expected %d, got %d: %s", method, path, expected, status, text);
    }
    return json;
}

void api_check(struct api_rig *api, const char *method, const char *path, const char *type, const char *body, int expected)
{
    json_decref(api_call(api, method, path, type, body, expected));
}

json_t *api_at(const json_t *json, const char *path)
{
    const json_t *at = json;
    while (at && *path) {
        size_t len = strcspn(path, "/");
        CLEANUP_FREE char *name = mem_strndup(path, len);
        at = json_is_array(at) ? json_array_get(at, (size_t)atoi(name)) : json_object_get(at, name);
        path += len + (path[len] == '/');
    }
    return (json_t *)at;
}

const char *api_text(const json_t *json, const char *path)
{
    const char *text = json_string_value(api_at(json, path));
    return text ? text : "";
}

void api_assert_status(const json_t *status, const char *reason, const char *words)
{
    assert_string_equal(api_text(status, "kind"), "Status");
    assert_string_equal(api_text(status, "reason"), reason);
    if (!strstr(api_text(status, "message"), words))
        fail_msg("the message \"%s\" does not say \"%s\"", api_text(status, "message"), words);
}

bool api_has_cause(const json_t *status, const char *field, const char *reason)
{
    size_t i;
    json_t *cause;
    json_array_foreach(api_at(status, "details/causes"), i, cause)
    {
        if (strcmp(api_text(cause, "field"), field) == 0 && (!reason || strcmp(api_text(cause, "reason"), reason) == 0))
            return true;
    }
    return false;
}

json_t *api_owned(const json_t *object, const char *manager, const char *operation)
{
    size_t i;
    json_t *entry;
    json_array_foreach(api_at(object, "metadata/managedFields"), i, entry)
    {
        if (strcmp(api_text(entry, "manager"), manager) == 0 && strcmp(api_text(entry, "operation"), operation) == 0)
            return json_object_get(entry, "fieldsV1");
    }
    return NULL;
}
