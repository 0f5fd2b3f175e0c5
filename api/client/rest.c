#include "api/client/rest.h"
#include "api/client/http_batch.h"
#include "controller/base/frames.h"
#include "controller/base/memory.h"
#include <string.h>

void rest_init(struct rest *rest, const char *state_dir)
{
    *rest = (struct rest){.socket_path = mem_format("%s/operator.sock", state_dir)};
}

void rest_clear(struct rest *rest)
{
    free(rest->socket_path);
    *rest = (struct rest){0};
}

char *rest_path(const struct kind_info *info, const char *name)
{
    if (!name)
        return mem_format(REST_API "/%s", info->plural);
    CLEANUP_FREE char *escaped = http_escape(name);
    return mem_format(REST_API "/%s/%s", info->plural, escaped);
}

// ---- failures -------------------------------------------------------------------------------------------------------
// By our own word for the code where the answer has it; else by its reason, else by HTTP status.
static enum error_code find_code(int http_status, const char *name, const char *reason)
{
    for (int code = ERROR_NONE + 1; name && code < ERROR_CODE_COUNT; code++)
        if (strcmp(error_meaning((enum error_code)code)->name, name) == 0)
            return (enum error_code)code;
    for (int code = ERROR_NONE + 1; reason && code < ERROR_CODE_COUNT; code++)
        if (strcmp(error_meaning((enum error_code)code)->reason, reason) == 0 && error_meaning((enum error_code)code)->http_status == http_status)
            return (enum error_code)code;
    for (int code = ERROR_NONE + 1; code < ERROR_CODE_COUNT; code++)
        if (error_meaning((enum error_code)code)->http_status == http_status)
            return (enum error_code)code;
    return http_status < 500 ? ERROR_INVALID : ERROR_INTERNAL;
}

int rest_status_to_error(int http_status, const json_t *status, struct error *err)
{
    const json_t *details = json_object_get(status, "details");
    const char *message = json_get_text(status, "message");
    const char *hint = json_get_text(details, "hint");
    const char *name = json_get_text(details, "code");
    enum error_code code = find_code(http_status, name, json_get_text(status, "reason"));
    if (message)
        return error_set(err, code, hint, "%s", message);
    return error_set(err, code, "look at the daemon's log", "the daemon answered with HTTP status %d", http_status);
}

static int take_failure(int http_status, const json_t *answer, json_t **ret_causes, struct error *err)
{
    json_t *causes = json_object_get(json_object_get(answer, "details"), "causes");
    if (ret_causes && json_is_array(causes))
        *ret_causes = json_incref(causes);
    return rest_status_to_error(http_status, answer, err);
}

// ---- calls ----------------------------------------------------------------------------------------------------------
// body: what became of ask->body, or NULL. headers: room for two.
static struct http_ask ask_of(const struct rest *rest, const struct rest_ask *ask, const char *body, const char **headers)
{
    bool sends_body = body || strcmp(ask->method, "POST") == 0;
    headers[0] = ask->accept ? ask->accept : "Accept: application/json";
    headers[1] = NULL;
    return (struct http_ask){.method = ask->method, .path = ask->path, .headers = headers, .body = body ? body : "", .body_len = body ? strlen(body) : 0,
                             .timeout_ms = rest->timeout_ms ? rest->timeout_ms : REST_TIMEOUT_MS,
                             .content_type = !sends_body ? NULL : ask->content_type ? ask->content_type : "application/json"};
}

static int take_answer(const struct rest *rest, const struct http_answered *answer, json_t **ret, int *ret_status, json_t **ret_causes, struct error *err)
{
    CLEANUP_JSON json_t *json = NULL;
    struct error ignored = ERROR_INIT;
    if (answer->warnings && rest->warn)
        rest_read_warnings(answer->warnings, rest->warn);
    bool is_json = answer->body_len && json_parse_with_nul(answer->body, answer->body_len, &json, &ignored) == 0;
    if (answer->status >= 300)
        return take_failure(answer->status, json, ret_causes, err);
    if (answer->body_len && !is_json)
        return error_set(err, ERROR_INTERNAL, "is the daemon of another version?", "the daemon's answer is not JSON: %s", ignored.message);
    if (ret_status)
        *ret_status = answer->status;
    if (ret)
        *ret = json ? TAKE_PTR(json) : json_object();
    return 0;
}

int rest_call(const struct rest *rest, const struct rest_ask *ask, json_t **ret, int *ret_status, json_t **ret_causes, struct error *err)
{
    CLEANUP(http_answered_clear) struct http_answered answer = {0};
    CLEANUP_FREE char *body = ask->body ? json_to_text(ask->body) : NULL;
    const char *headers[2];
    const struct http_ask http = ask_of(rest, ask, body, headers);
    if (http_exchange(&(struct http_target){.socket_path = rest->socket_path}, &http, &answer, err) < 0)
        return -1;
    return take_answer(rest, &answer, ret, ret_status, ret_causes, err);
}

// ---- many calls -----------------------------------------------------------------------------------------------------
struct calling {
    const struct rest *rest;
    struct rest_job *jobs;
    struct sending {
        char *body;
        const char *headers[2];
    } *sending; // one a job
};

static void ask_job(void *arg, size_t i, struct http_ask *ret)
{
    struct calling *calling = arg;
    const struct rest_ask *ask = &calling->jobs[i].ask;
    struct sending *sending = &calling->sending[i];
    sending->body = ask->body ? json_to_text(ask->body) : NULL;
    *ret = ask_of(calling->rest, ask, sending->body, sending->headers);
}

static void take_job(void *arg, size_t i, struct http_answered *answer, const struct error *failure)
{
    struct calling *calling = arg;
    struct rest_job *job = &calling->jobs[i];
    free(calling->sending[i].body);
    if (!answer)
        error_copy(&job->err, failure);
    else
        take_answer(calling->rest, answer, &job->answer, &job->status, &job->causes, &job->err);
}

int rest_call_all(const struct rest *rest, struct rest_job *jobs, size_t count, struct error *err)
{
    CLEANUP_FREE struct sending *sending = mem_alloc((count + 1) * sizeof(*sending));
    struct calling calling = {.rest = rest, .jobs = jobs, .sending = sending};
    const struct http_target target = {.socket_path = rest->socket_path};
    const struct http_batch batch = {.target = &target, .count = count, .ask = ask_job, .answered = take_job, .arg = &calling};
    return http_batch_run(&batch, err);
}

void rest_job_clear(struct rest_job *job)
{
    json_decref(job->answer);
    json_decref(job->causes);
    job->answer = job->causes = NULL;
}

int rest_get(const struct rest *rest, const char *path, json_t **ret, struct error *err)
{
    return rest_call(rest, &(struct rest_ask){.method = "GET", .path = path}, ret, NULL, NULL, err);
}

int rest_post(const struct rest *rest, const char *path, const json_t *body, json_t **ret, struct error *err)
{
    return rest_call(rest, &(struct rest_ask){.method = "POST", .path = path, .body = body}, ret, NULL, NULL, err);
}

int rest_open_stream(const struct rest *rest, const char *path, const json_t *body, int *ret_fd, struct buffer *early, struct error *err)
{
    CLEANUP_FREE char *text = body ? json_to_text(body) : NULL;
    CLEANUP(http_answered_clear) struct http_answered answer = {0};
    const char *headers[2];
    struct http_ask http = ask_of(rest, &(struct rest_ask){.method = body ? "POST" : "GET", .path = path}, text, headers);
    int fd = -1;
    http.upgrade = STREAM_PROTOCOL;
    if (http_upgrade_ask(&(struct http_target){.socket_path = rest->socket_path}, &http, &fd, early, &answer, err) < 0)
        return -1;
    if (fd < 0 && take_answer(rest, &answer, NULL, NULL, NULL, err) < 0)
        return -1;
    if (fd < 0)
        return error_set(err, ERROR_INTERNAL, "is the daemon of another version?", "the daemon did not open a stream");
    *ret_fd = fd;
    return 0;
}
