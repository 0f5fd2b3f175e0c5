// What the files of api/operator share. Not for others.
//
// Life of a call: made when its request is complete, routed to a handler, ended by exactly one of
// operator_answer, operator_fail and their kin, which frees it. A call belongs to one thread at a time: the
// HTTP thread inside its handler, then whoever it was handed to (a store transaction, a request's callback,
// the loop). Nothing here writes or blocks on an HTTP thread.
#pragma once
#include "api/http/http.h"
#include "api/operator/operator.h"
#include "api/operator/rendering.h"
#include "controller/base/json.h"
#include <pthread.h>
#include <stdatomic.h>

#define FIELD_MANAGER_DEFAULT "chat2shell"
#define FIELD_MANAGER_MAX_BYTES 128
#define ANNOTATIONS_OWN_PREFIX API_GROUP "/" // the server's own annotations: no caller sets them

#define CAUSE_REPEATED "FieldDuplicate"            // ours: the body's text has a member of an object more than once

struct execs;
struct listener;
struct watch_hub;
struct operator_server {
    struct world *world;
    struct http_server *http;
    struct wall_time started_at;
    struct execs *execs;
    size_t forward_count; // loop thread: connections of port-forward
    struct watch_hub *watches;
    struct listener *listener;
    uid_t uid;
    _Atomic int mcp_port; // 0 = not listening
    struct tunnel *tunnel; // loop thread; NULL = off
    pthread_mutex_t lock; // guards refs
    pthread_cond_t ended;
    size_t refs; // the owner's, and one a call
};
void operator_server_ref(struct operator_server *server);
void operator_server_unref(struct operator_server *server);
// ---- server.c: of every listener's front
bool operator_check_route(struct http_request *request, struct http_refusal *refusal); // false: nothing is there
char *operator_error_body(void *arg, int status, const struct error *err, const char *body, size_t len);

// ---- routes.c
// ----------------------------------------------------------------------------------------------------
enum body_form {
    BODY_NONE, // ignored
    BODY_OPTIONAL,
    BODY_OBJECT, // a JSON object is required
    BODY_PATCH,  // of the media types of PATCH
    BODY_REVIEW, // as BODY_OBJECT, or Kubernetes' protobuf
};
struct call;
struct route {
    const char *method, *pattern; // segments in braces: {kind} a plural, {name}, {id}
    void (*handle)(struct call *call);
    enum body_form body;
};
struct route_match {
    const struct route *route; // NULL: nothing has this path, or (allow set) not with this method
    const char *allow;         // methods that the path has, static text
    enum kind kind;
    char *name, *id; // the caller's
};
void route_match_clear(struct route_match *match);
void route_find(const char *method, const char *path, struct route_match *ret);
const struct route *route_table(size_t *ret_count);

// ---- call.c
// ------------------------------------------------------------------------------------------------------
enum query {
    QUERY_DRY_RUN,
    QUERY_FIELD_MANAGER,
    QUERY_FIELD_VALIDATION,
    QUERY_FORCE,
    QUERY_LABEL_SELECTOR,
    QUERY_FIELD_SELECTOR,
    QUERY_WATCH,
    QUERY_CONTINUE,
    QUERY_INCLUDE_OBJECT,
    QUERY_RESOURCE_VERSION,
    QUERY_RESOURCE_VERSION_MATCH,
    QUERY_SEND_INITIAL_EVENTS,
    QUERY_ALLOW_BOOKMARKS,
    QUERY_TIMEOUT_SECONDS,
    QUERY_LIMIT,
    QUERY_VERBOSE,
    QUERY_EXCLUDE,
    QUERY_PROPAGATION,
    QUERY_ORPHAN,
    QUERY_COUNT
};
enum patch_form { PATCH_MERGE, PATCH_JSON, PATCH_APPLY }; // by the body's media type
struct call {
    struct operator_server *server;
    struct world *world;
    struct http_request *http;
    struct route_match match;
    char *query[QUERY_COUNT]; // NULL = absent
    char *accept, *content_type;
    json_t *body;     // NULL = none; an object, of JSON patches an array
    json_t *repeated; // paths that the body's text has more than once; NULL = none
    enum patch_form patch;
    char *principal;
    char *agent; // the client's program; NULL = not stated
    const char *manager;
    bool is_dry_run, is_lenient; // lenient: unknown fields are dropped; repeated ones count as they stand last
    bool is_warning;             // and the client is told so
    json_t *warnings;            // array of texts; NULL = none
    unsigned applies; // how often an apply began again
    // A call that waits (operator_wait_on_loop): loop thread only
    void (*start)(struct call *call);
    void (*cancel)(struct call *call);
    bool is_gone;
    void *state; // of the handler; freed by it
};
// principal: who asks; taken.
void operator_call_start(struct operator_server *server, struct http_request *request, char *principal);
// From here on the call lives on the loop thread: start runs there (also if the client left at once), and
// cancel (NULL allowed) when the client hung up or the server stops. Both must see to it that the call is
// answered in the end, on the loop thread. In handlers only.
void operator_wait_on_loop(struct call *call, void (*start)(struct call *call),
                           void (*cancel)(struct call *call));
// The ends. body: taken.
void operator_answer(struct call *call, int status, json_t *body);
void operator_answer_text(struct call *call, int status, const char *text);
void operator_answer_bytes(struct call *call, int status, const char *content_type, const void *bytes,
                           size_t len);
void operator_answer_copy(struct call *call, int status, const char *content_type, const char *text);
void operator_fail(struct call *call, const struct error *err);
void operator_fail_with(struct call *call, const struct error *err, const json_t *causes);
void operator_fail_as(struct call *call, int status, enum error_code code, const char *hint,
                      const char *format, ...) __attribute__((format(printf, 5, 6)));
// A failure of a list that went on from a lost position: `next` begins again behind what was shown.
void operator_fail_expired(struct call *call, const struct error *err, const char *next);
// The answer becomes a stream of JSON: the call ends here, the stream is the caller's.
struct http_stream *operator_answer_stream(struct call *call, const struct http_stream_options *options);
void operator_answer_as(struct call *call, int status, const char *content_type, json_t *body); // body: taken
// Said to the client beside the answer (header Warning, which kubectl prints). The same text once.
void operator_warn(struct call *call, const char *format, ...) __attribute__((format(printf, 2, 3)));
// The same with text of JSON: taken.
void operator_answer_json_text(struct call *call, int status, char *text, size_t len);
void operator_answer_image(struct call *call, int status, const struct rendering *rendering, const struct resource *resource,
                           struct json_span image);
// Answers with one object (or its Table).
void operator_answer_record(struct call *call, int status, const struct record *record);
// The live record that the path names; on failure the call is answered and NULL returned.
struct record *operator_resolve(struct call *call, enum kind kind);
// The same for reading: a whole uid finds a removed record, too, for as long as that is kept.
struct record *operator_resolve_to_read(struct call *call, enum kind kind);

// ---- call_body.c
// ----------------------------------------------------------------------------------------------------
bool operator_read_body(struct call *call); // false: the call is answered

// ---- warnings.c
// -----------------------------------------------------------------------------------------------------
char *warnings_to_header(const struct call *call); // NULL = none; the caller owns it

// ---- status.c
// ----------------------------------------------------------------------------------------------------
struct status_about { // all may be NULL
    const char *name, *kind; // kind: the plural
    const char *kind_name;   // which a 422 names instead
    const json_t *causes;
    const char *next; // continue token that would work
};
// A failure as Kubernetes' Status. http_status 0: by the error's code; unknown fields among the causes make
// it 400.
json_t *status_to_json(int http_status, const struct error *err, const struct status_about *about,
                       int *ret_http_status);

// An object that is gone now.
json_t *status_of_success(const struct record *record);

// ---- tunnel.c
// ----------------------------------------------------------------------------------------------------
// done runs on the loop thread, once, within TUNNEL_PROBE_MS. tunnel: {state, message, reason?, pid?, starts, lastExitCode?,
// restartInMs?, isConfined}; borrowed. Any thread.
void operator_ask_tunnel(struct call *call, void (*done)(struct call *call, json_t *tunnel));

// ---- handlers
// ----------------------------------------------------------------------------------------------------
void objects_list(struct call *call);
void objects_get(struct call *call);
void objects_create(struct call *call);
void objects_replace(struct call *call);
void objects_patch(struct call *call);
void objects_delete(struct call *call);
void objects_delete_collection(struct call *call);
void events_list(struct call *call);
void events_get(struct call *call);
void namespaces_list(struct call *call);
void namespaces_get(struct call *call);
void status_show(struct call *call);
void doctor_show(struct call *call);
void stop_daemon(struct call *call);
void workspaces_add(struct call *call);
void tokens_list(struct call *call);
void tokens_create(struct call *call);
void tokens_revoke(struct call *call);
void kubeconfig_show(struct call *call);
void kubeconfig_open(struct call *call);
void kubeconfig_close(struct call *call);
void unsaved_show(struct call *call);
void ports_connect(struct call *call);
void logs_show(struct call *call);
void usage_show(struct call *call);
void operator_exec_start(struct call *call);
void operator_exec_write(struct call *call);
void operator_exec_read(struct call *call);
void operator_exec_signal(struct call *call);
void operator_exec_end(struct call *call);
void version_show(struct call *call);
void health_show(struct call *call);
void health_check_show(struct call *call);
void discovery_core(struct call *call);
void discovery_groups_list(struct call *call);
void discovery_group(struct call *call);
void discovery_resources(struct call *call);
void openapi_index(struct call *call);
void openapi_document(struct call *call);
void openapi_v2(struct call *call);
void access_review(struct call *call);
void access_rules(struct call *call);
void metrics_show(struct call *call);
