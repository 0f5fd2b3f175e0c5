#include "api/guest/request.h"
#include "controller/base/memory.h"
#include <string.h>

static char *line_text(const json_t *id, const char *key, json_t *value)
{
    CLEANUP_JSON json_t *line = json_object();
    json_object_set_new(line, "jsonrpc", json_string("2.0"));
    json_object_set_new(line, "id", id ? json_incref((json_t *)id) : json_null());
    json_object_set_new(line, key, value);
    return json_to_text(line);
}

char *rpc_error_text(const json_t *id, int code, const char *message)
{
    json_t *error = json_object();
    json_object_set_new(error, "code", json_integer(code));
    json_object_set_new(error, "message", json_from_text(message));
    return line_text(id, "error", error);
}

char *rpc_result_text(const json_t *id, json_t *result)
{
    char *text = line_text(id, "result", result);
    if (strlen(text) <= GUEST_MESSAGE_MAX_BYTES)
        return text;
    free(text);
    return rpc_error_text(id, RPC_INTERNAL_ERROR,
                          "the answer is larger than one message may be: ask for less");
}

static void send_text(struct guest *guest, char *text)
{
    size_t len = strlen(text);
    guest_note_message(guest, len);
    output_send(&guest->output, text, len);
}

void rpc_send_error(struct guest *guest, const json_t *id, int code, const char *message)
{
    send_text(guest, rpc_error_text(id, code, message));
}

void rpc_send_notification(struct guest *guest, const char *method, json_t *params)
{
    CLEANUP_JSON json_t *line = json_pack("{s:s, s:s, s:o}", "jsonrpc", "2.0", "method", method, "params", params);
    send_text(guest, json_to_text(line));
}

static void finish(struct request *request, char *text)
{
    struct guest *guest = request->guest;
    send_text(guest, text);
    if (request->prev)
        request->prev->next = request->next;
    else
        guest->requests = request->next;
    if (request->next)
        request->next->prev = request->prev;
    guest->request_count--;
    json_decref(request->args);
    json_decref(request->message);
    free(request->answer);
    free(request);
}

void request_answer(struct request *request, json_t *result)
{
    finish(request, rpc_result_text(request->id, result));
}

void request_fail(struct request *request, int code, const struct error *err)
{
    CLEANUP_FREE char *text =
        err->hint[0] ? mem_format("%s: %s", err->message, err->hint) : mem_strdup(err->message);
    finish(request, rpc_error_text(request->id, code, text));
}

void request_fail_cancelled(struct request *request)
{
    finish(request, rpc_error_text(request->id, GUEST_ERROR_CANCELLED, "the request was cancelled"));
}

static void run_job(struct job *job)
{
    struct request *request = CONTAINER_OF(job, struct request, job);
    if (!atomic_load(&request->is_cancelled))
        request->work(request);
}

static void job_done(struct job *job)
{
    struct request *request = CONTAINER_OF(job, struct request, job);
    guest_watch_map(request->guest);
    if (atomic_load(&request->is_cancelled) || !request->answer)
        request_fail_cancelled(request);
    else
        finish(request, TAKE_PTR(request->answer));
}

void request_submit(struct request *request, void (*work)(struct request *request))
{
    request->work = work;
    request->job = (struct job){.run = run_job, .done = job_done};
    workers_submit(&request->guest->workers, &request->job);
}
