// Inside of the CodexPro session: one rpc over HTTP (MCP's streamable HTTP, revision 2025-06-18) to the server in a
// sandbox, through the loopback port that is published for it.
//
//   codexpro.c   the rpc's operations, who answers what: tools/call goes to CodexPro, the extension methods to the shell
//   handshake.c  waiting for the server, initialize, and initialize again when it has forgotten the session
//   post.c       one POST until it has its answer: repeated once after 404, waiting after 429
//
// A post that CodexPro may have executed is never sent twice: 404 and 429 say that it was not.
#pragma once
#include "reconcilers/session/codexpro/farewell.h"
#include "reconcilers/session/codexpro/foreground.h"
#include "reconcilers/session/codexpro/http.h"
#include "reconcilers/session/codexpro/mcp_answer.h"
#include "reconcilers/session/codexpro/shell.h"
#include "reconcilers/session/rpc_transport.h"

#define CODEXPRO_VERSION_ASKED "2025-06-18"
#define CODEXPRO_START_MS 60000       // as LANE_HANDSHAKE_MS: from the start of the process to the end of the handshake
#define CODEXPRO_TRY_MS 5000          // one look whether it listens
#define CODEXPRO_RETRY_MIN_MS 50      // between two looks, doubling …
#define CODEXPRO_RETRY_MAX_MS 500     // … up to
#define CODEXPRO_POST_MS 610000       // hard end of a call, 10 s after its lane gave it up
#define CODEXPRO_NOTICE_MS 10000      // a notification
#define CODEXPRO_RATE_WAITS_MAX 3     // 429 to one call …
#define CODEXPRO_RATE_WAIT_MAX_MS 10000 // … each with at most this wait; longer ones fail at once
#define CODEXPRO_BACKLOG_BYTES (GUEST_MESSAGE_MAX_BYTES + 8 * 1024 * 1024) // of all requests under way
#define CODEXPRO_POSTS_MAX (2 * RPC_PENDING_MAX)

struct codexpro {
    struct rpc base;
    struct loop *loop;
    struct farewells *farewells;
    struct http *http; // NULL: none could be made, or it is gone
    struct foreground *foreground;
    struct shell *shell;
    char *unavailable; // why there is no http
    struct loop_timer *unavailable_timer;
    // handshake.c
    char *session_id;    // NULL = none (yet)
    unsigned generation; // of the session id
    bool is_greeting;    // initialize is under way: posts wait
    struct loop_timer *start_deadline, *start_retry;
    int64_t start_retry_ms;
    const char *start_trouble; // words: the last look's
    struct http_exchange *look, *probe;
    json_t *hello_params; // of initialize, for the next time
    int64_t hello_id;     // the rpc's request that waits for the first one
    // post.c
    LIST_HEAD(, post) posts;
    size_t post_count, out_bytes, held_bytes;
    int64_t last_post_id;
    LIST_HEAD(, shell_call) shell_calls;
};

// ---- post.c --------------------------------------------------------------------------------------------------------
enum post_kind { POST_CALL, POST_HELLO, POST_NOTICE };
struct post {
    LIST_ENTRY(post) link;
    struct codexpro *codexpro;
    enum post_kind kind;
    int64_t id;     // JSON-RPC id on the wire, also its handle; never used twice in a session
    int64_t rpc_id; // answers that request of the rpc; 0: fn
    rpc_answer_fn fn;
    void *arg;
    char *body;
    size_t body_len;
    struct boot_time deadline;
    struct http_exchange *exchange; // NULL: waits for the session, or for its time
    struct loop_timer *wait;
    struct mcp_answer answer;
    unsigned generation; // of the session it was sent in
    bool is_repeated;
    int rate_waits;
    char session_id[HTTP_SESSION_BYTES]; // POST_HELLO: the new one
};
// Returns the post's id, or -1: ERROR_TOO_LARGE, ERROR_LIMIT. params: borrowed. POST_HELLO does not wait for the session.
// Exactly one of rpc_id and fn, none for a notice; fn is called once unless the post is dropped.
int64_t post_send(struct codexpro *codexpro, const struct post *wanted, const char *method, json_t *params, int64_t deadline_ms,
                  struct error *err);
void post_drop(struct codexpro *codexpro, int64_t id); // unknown id: nothing
void post_drop_rpc(struct codexpro *codexpro, int64_t rpc_id);
void posts_drop_all(struct codexpro *codexpro);
void posts_go(struct codexpro *codexpro);                             // the session is there: what waits for it is sent
void posts_fail_waiting(struct codexpro *codexpro, const struct error *err); // it could not be had
// ---- handshake.c ---------------------------------------------------------------------------------------------------
void handshake_start(struct codexpro *codexpro, int64_t rpc_id, json_t *params /* borrowed */);
void handshake_again(struct codexpro *codexpro); // CodexPro forgot the session
void handshake_stop(struct codexpro *codexpro);
bool codexpro_ok_status(const struct http_answer *answer); // 2xx
#define CODEXPRO_REFUSED "it refused the session's token (HTTP 401)"
