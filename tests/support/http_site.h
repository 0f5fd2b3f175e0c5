// A scripted HTTP server on loopback that can be as wrong as it likes: real sockets, one thread a connection. By default it
// is a well-behaved CodexPro: it wants its token, answers /healthz, makes a session, takes notifications. The test decides
// what a tools/call is answered with, byte for byte, and reads the counts.
#pragma once
#include "controller/base/buffer.h"
#include "controller/base/json.h"
#include "tests/support/support.h"
#include <pthread.h>
#include <stdatomic.h>

#define SITE_TOKEN "token-of-a-scripted-server-0123456789"
#define SITE_VISITS_MAX 512

struct site;
struct visit { // one request, on its connection's own thread
    struct site *site;
    int fd;
    struct buffer head, body; // head: all lines
    json_t *message;          // the body, or NULL
    int64_t id;               // its JSON-RPC id
    const char *tool;         // of tools/call
};
typedef void (*visit_fn)(struct visit *visit);

struct site {
    int listen_fd, port;
    pthread_t thread, visitors[SITE_VISITS_MAX];
    int fds[SITE_VISITS_MAX]; // open ones, else -1; guarded by mutex
    size_t visit_count;
    pthread_mutex_t mutex;
    atomic_bool is_stopping;
    _Atomic(visit_fn) call, health, initialize; // NULL: as it should be
    atomic_int initializes, initializeds, calls, healths, deletes, refused;
    atomic_int session; // number in the session id: a request with another one gets 404
    char last_head[8192]; // of the newest tools/call; guarded by mutex
};
struct site *site_new(void);
int site_reserve_port(void);                 // free a moment ago
struct site *site_new_at(int port);
void site_free(struct site *site);           // ends all visits
bool site_waits(const struct visit *visit, int ms); // false: the site is being stopped
char *site_last_head(struct site *site);

void visit_say(struct visit *visit, const char *bytes, size_t len);
void visit_say_text(struct visit *visit, const char *text);
char *visit_result(const struct visit *visit, const char *text); // the JSON-RPC answer with a tool result; the caller's
void visit_answer(struct visit *visit, const char *status, const char *type, const char *fields, const char *body);
void visit_answer_json(struct visit *visit, const char *text);   // 200 application/json, a tool result
void visit_answer_events(struct visit *visit, const char *text); // 200 text/event-stream, as CodexPro does
