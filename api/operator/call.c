// One request: what it asks for, taken out of the HTTP request once, and its one answer.
#include "api/operator/internal.h"
#include "api/operator/stream.h"
#include "controller/base/memory.h"
#include "controller/base/utf8.h"
#include "controller/ids.h"
#include <stdarg.h>
#include <string.h>

static const char *const query_names[QUERY_COUNT] = {
    [QUERY_DRY_RUN] = "dryRun",
    [QUERY_FIELD_MANAGER] = "fieldManager",
    [QUERY_FIELD_VALIDATION] = "fieldValidation",
    [QUERY_FORCE] = "force",
    [QUERY_LABEL_SELECTOR] = "labelSelector",
    [QUERY_FIELD_SELECTOR] = "fieldSelector",
    [QUERY_WATCH] = "watch",
    [QUERY_CONTINUE] = "continue",
    [QUERY_INCLUDE_OBJECT] = "includeObject",
    [QUERY_RESOURCE_VERSION] = "resourceVersion",
    [QUERY_RESOURCE_VERSION_MATCH] = "resourceVersionMatch",
    [QUERY_SEND_INITIAL_EVENTS] = "sendInitialEvents",
    [QUERY_ALLOW_BOOKMARKS] = "allowWatchBookmarks",
    [QUERY_TIMEOUT_SECONDS] = "timeoutSeconds",
    [QUERY_LIMIT] = "limit",
    [QUERY_VERBOSE] = "verbose",
    [QUERY_EXCLUDE] = "exclude",
    [QUERY_PROPAGATION] = "propagationPolicy",
    [QUERY_ORPHAN] = "orphanDependents",
};

static void call_free(struct call *call)
{
    struct operator_server *server = call->server;
    for (size_t i = 0; i < QUERY_COUNT; i++)
        free(call->query[i]);
    route_match_clear(&call->match);
    free(call->accept);
    free(call->content_type);
    free(call->principal);
    json_decref(call->body);
    json_decref(call->repeated);
    json_decref(call->warnings);
    free(call->agent);
    free(call);
    operator_server_unref(server);
}

// ---- ends
// ---------------------------------------------------------------------------------------------------------
static void answer_text(struct call *call, int status, const char *content_type, char *text, size_t len)
{
    CLEANUP_FREE char *warnings = warnings_to_header(call);
    struct http_reply reply = {.status = status, .content_type = content_type};
    if (warnings)
        reply.headers[0] = (struct http_header){"Warning", warnings};
    http_respond(call->http, &reply, text, len);
    call_free(call);
}

void operator_answer_as(struct call *call, int status, const char *content_type, json_t *body)
{
    char *text = json_to_text(body);
    json_decref(body);
    answer_text(call, status, content_type, text, strlen(text));
}

void operator_answer_json_text(struct call *call, int status, char *text, size_t len)
{
    answer_text(call, status, "application/json", text, len);
}

void operator_answer(struct call *call, int status, json_t *body)
{
    operator_answer_as(call, status, "application/json", body);
}

struct http_stream *operator_answer_stream(struct call *call, const struct http_stream_options *options)
{
    struct http_stream *stream = http_stream_start(
        call->http, &(struct http_reply){.status = 200, .content_type = "application/json"}, options);
    call_free(call);
    return stream;
}

void operator_answer_upgrade(struct call *call, const struct http_upgrade_options *options)
{
    http_upgrade(call->http, options);
    call_free(call);
}

void operator_answer_bytes(struct call *call, int status, const char *content_type, const void *bytes,
                           size_t len)
{
    char *copy = mem_alloc(len + 1);
    memcpy(copy, bytes, len);
    http_respond(call->http, &(struct http_reply){.status = status, .content_type = content_type}, copy, len);
    call_free(call);
}

void operator_answer_copy(struct call *call, int status, const char *content_type, const char *text)
{
    operator_answer_bytes(call, status, content_type, text, strlen(text));
}

void operator_answer_text(struct call *call, int status, const char *text)
{
    operator_answer_copy(call, status, "text/plain; charset=utf-8", text);
}

static void fail(struct call *call, int http_status, const struct error *err, const json_t *causes,
                 const char *next)
{
    bool is_of_kind = call->match.route && strstr(call->match.route->pattern, "{kind}");
    const char *created = is_of_kind && !call->match.name ? json_get_text(json_object_get(call->body, "metadata"), "name") : NULL;
    struct status_about about = {.name = created ? created : call->match.name, // a POST names its object in the body
                                 .kind = is_of_kind ? kind_info(call->match.kind)->plural : NULL,
                                 .kind_name = is_of_kind ? kind_info(call->match.kind)->name : NULL,
                                 .causes = causes,
                                 .next = next};
    int status;
    json_t *body = status_to_json(http_status, err, &about, &status);
    operator_answer(call, status, body);
}

void operator_fail(struct call *call, const struct error *err)
{
    fail(call, 0, err, NULL, NULL);
}

void operator_fail_with(struct call *call, const struct error *err, const json_t *causes)
{
    fail(call, 0, err, causes, NULL);
}

void operator_fail_expired(struct call *call, const struct error *err, const char *next)
{
    fail(call, 0, err, NULL, next);
}

void operator_fail_as(struct call *call, int status, enum error_code code, const char *hint,
                      const char *format, ...)
{
    struct error error = ERROR_INIT;
    va_list args;
    va_start(args, format);
    CLEANUP_FREE char *message = mem_vformat(format, args);
    va_end(args);
    error_set(&error, code, hint, "%s", message);
    fail(call, status, &error, NULL, NULL);
}

// ---- what several handlers share
// -----------------------------------------------------------------------------------
void operator_answer_image(struct call *call, int status, const struct rendering *rendering, const struct resource *resource,
                           struct json_span image)
{
    struct buffer text = BUFFER_INIT(SIZE_MAX / 4);
    rendering_put_one(&text, rendering, resource, image, clock_wall(call->world->clock), true);
    size_t len = text.len;
    operator_answer_json_text(call, status, buffer_take_string(&text), len);
}

void operator_answer_record(struct call *call, int status, const struct record *record)
{
    struct rendering rendering;
    rendering_read(call->accept, call->query[QUERY_INCLUDE_OBJECT], &rendering);
    CLEANUP_JSON json_t *json = record_to_json(record);
    CLEANUP_FREE char *image = json_to_text(json);
    operator_answer_image(call, status, &rendering, resource_of_kind(record->kind), (struct json_span){image, strlen(image)});
}

struct record *operator_resolve(struct call *call, enum kind kind)
{
    struct record *record = NULL;
    struct error err = ERROR_INIT;
    if (store_resolve(call->world->store, kind, call->match.name, &record, &err) == 0)
        return record;
    operator_fail(call, &err);
    return NULL;
}

struct record *operator_resolve_to_read(struct call *call, enum kind kind)
{
    struct record *record = NULL;
    struct error err = ERROR_INIT, ignored = ERROR_INIT;
    const char *text = call->match.name;
    if (store_resolve(call->world->store, kind, text, &record, &err) == 0 ||
        (err.code == ERROR_NOT_FOUND && id_is_of(kind, text) && store_get_uid(call->world->store, kind, text, &record, &ignored) == 0))
        return record;
    operator_fail(call, &err);
    return NULL;
}

// ---- waiting
// --------------------------------------------------------------------------------------------------------
static void on_gone(void *arg)
{
    struct call *call = arg;
    call->is_gone = true;
    if (call->cancel)
        call->cancel(call);
}

static void run_start(void *arg)
{
    struct call *call = arg;
    call->start(call); // also for a client that left at once: what it asked for is done
}

void operator_wait_on_loop(struct call *call, void (*start)(struct call *call),
                           void (*cancel)(struct call *call))
{
    call->start = start;
    call->cancel = cancel;
    http_request_on_gone(call->http, on_gone, call);
    loop_post(call->world->loop, run_start, call);
}

// ---- start
// ----------------------------------------------------------------------------------------------------------
static int check_manager(const char *manager, struct error *err)
{
    size_t len = strlen(manager);
    bool is_printable = utf8_is_valid(manager, len);
    for (const unsigned char *c = (const unsigned char *)manager; is_printable && *c; c++)
        is_printable = *c >= 0x20 && *c != 0x7f;
    if (len > FIELD_MANAGER_MAX_BYTES)
        return error_set(err, ERROR_INVALID, NULL, "fieldManager: may not be more than %d bytes", FIELD_MANAGER_MAX_BYTES);
    return is_printable ? 0 : error_set(err, ERROR_INVALID, NULL, "fieldManager: should only contain printable characters");
}

// Who does not say who manages its fields is known by its program: "kubectl" of "kubectl/v1.32.0 (linux/amd64)".
static void take_agent(struct call *call, struct http_request *request)
{
    CLEANUP_FREE char *header = http_request_header(request, "User-Agent");
    size_t len = header ? strcspn(header, "/ ") : 0;
    struct error ignored = ERROR_INIT;
    if (!len || len > FIELD_MANAGER_MAX_BYTES)
        return;
    call->agent = mem_strndup(header, len);
    if (check_manager(call->agent, &ignored) < 0) {
        free(call->agent);
        call->agent = NULL;
    }
}

static const char *manager_of(const struct call *call)
{
    const char *given = call->query[QUERY_FIELD_MANAGER];
    if (given && *given)
        return given;
    return call->agent ? call->agent : FIELD_MANAGER_DEFAULT;
}

static int read_options(struct call *call, struct error *err)
{
    const char *dry = call->query[QUERY_DRY_RUN], *validation = call->query[QUERY_FIELD_VALIDATION];
    if (call->query[QUERY_FIELD_MANAGER] && check_manager(call->query[QUERY_FIELD_MANAGER], err) < 0)
        return -1;
    call->manager = manager_of(call);
    if (dry && *dry && strcmp(dry, "All") != 0)
        return error_set(err, ERROR_USAGE, "use dryRun=All", "dryRun '%.64s' is unknown", dry);
    call->is_dry_run = dry && *dry;
    if (validation && *validation && strcmp(validation, "Strict") != 0 && strcmp(validation, "Warn") != 0 &&
        strcmp(validation, "Ignore") != 0)
        return error_set(err, ERROR_USAGE, "use Strict, Warn or Ignore",
                         "fieldValidation '%.64s' is unknown", validation);
    call->is_lenient = validation && *validation && strcmp(validation, "Strict") != 0;
    call->is_warning = validation && strcmp(validation, "Warn") == 0;
    return 0;
}

void operator_call_start(struct operator_server *server, struct http_request *request, char *principal)
{
    struct call *call = mem_alloc(sizeof(*call));
    operator_server_ref(server);
    *call = (struct call){.server = server,
                          .world = server->world,
                          .http = request,
                          .principal = principal};
    route_find(http_request_method(request), http_request_path(request), &call->match);
    for (size_t i = 0; i < QUERY_COUNT; i++)
        call->query[i] = mem_strdup_or_null(http_request_query(request, query_names[i]));
    call->accept = http_request_header(request, "Accept");
    call->content_type = http_request_header(request, "Content-Type");
    take_agent(call, request);
    struct error err = ERROR_INIT;
    if (read_options(call, &err) < 0)
        fail(call, err.code == ERROR_INVALID ? 422 : 400, &err, NULL, NULL);
    else if (operator_read_body(call))
        call->match.route->handle(call);
}
