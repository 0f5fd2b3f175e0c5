// The operator API as JSON: one request, one object; failures of kind Status come back as errors with their code.
#pragma once
#include "api/client/http.h"
#include "controller/base/json.h"
#include "controller/record.h"

#define REST_TIMEOUT_MS 60000
#define REST_OWN "/chat2shell/v1"
#define REST_API "/apis/" API_GROUP "/" API_VERSION
#define REST_AS_TABLE "Accept: application/json;as=Table;v=v1;g=meta.k8s.io"

struct rest {
    char *socket_path;
    int timeout_ms; // 0 = REST_TIMEOUT_MS
    void (*warn)(const char *text); // told each warning (299) that comes with an answer, good or bad; NULL = nobody
};
void rest_init(struct rest *rest, const char *state_dir);
void rest_clear(struct rest *rest);

struct rest_ask {
    const char *method, *path;
    const char *content_type;   // NULL = application/json
    const char *accept;         // a whole header line, or NULL
    const json_t *body;         // borrowed; NULL = none
};
// *ret (NULL allowed): the answer, a new reference. *ret_status (NULL allowed): the HTTP status (200, 201 …).
// *ret_causes (NULL allowed): details.causes of a Status, or untouched; a new reference.
int rest_call(const struct rest *rest, const struct rest_ask *ask, json_t **ret, int *ret_status, json_t **ret_causes, struct error *err);

// One of many calls. answer, causes: new references, NULL if there are none; err.code is ERROR_NONE where it went well.
struct rest_job {
    struct rest_ask ask; // path and body are the caller's
    json_t *answer, *causes;
    int status;
    struct error err;
};
void rest_job_clear(struct rest_job *job); // what came, not what was asked
// All at once, over a few connections; they begin in order. -1: the daemon does not answer at all, and no job has an answer.
int rest_call_all(const struct rest *rest, struct rest_job *jobs, size_t count, struct error *err);
int rest_get(const struct rest *rest, const char *path, json_t **ret, struct error *err);
int rest_post(const struct rest *rest, const char *path, const json_t *body, json_t **ret, struct error *err);

// A POST (GET without a body) whose connection becomes a stream of frames (controller/base/frames.h). *ret_fd is the caller's;
// early: what came of it already.
int rest_open_stream(const struct rest *rest, const char *path, const json_t *body, int *ret_fd, struct buffer *early, struct error *err);

// "/apis/…/sandboxes" or "/apis/…/sandboxes/NAME". The caller owns it.
char *rest_path(const struct kind_info *info, const char *name);
// Tells each warning of a Warning header's value (299 - "TEXT", …) to warn; what is not of that form is left out.
void rest_read_warnings(const char *header, void (*warn)(const char *text));
// Turns a Status object (or any other failure body) into err. Always -1.
int rest_status_to_error(int http_status, const json_t *status, struct error *err);
