#include "reconcilers/session/codexpro/farewell.h"
#include "controller/base/cleanup.h"
#include "controller/base/memory.h"
#include <stdlib.h>
#include <sys/queue.h>

struct farewell {
    LIST_ENTRY(farewell) link;
    struct http *http;
    struct loop *loop;
    struct loop_timer *end; // it is said; what is left goes with nothing of libcurl on the stack
};
struct farewells {
    struct loop *loop;
    LIST_HEAD(, farewell) all;
};

static void farewell_free(struct farewell *farewell)
{
    LIST_REMOVE(farewell, link);
    loop_cancel(farewell->end);
    http_free(farewell->http);
    free(farewell);
}

static void on_end(void *arg)
{
    struct farewell *farewell = arg;
    farewell->end = NULL;
    farewell_free(farewell);
}

static bool on_body(void *arg, const struct http_answer *head, const char *bytes, size_t len)
{
    (void)arg, (void)head, (void)bytes, (void)len;
    return false;
}

static void on_done(void *arg, const struct http_answer *answer)
{
    struct farewell *farewell = arg;
    (void)answer;
    farewell->end = loop_after(farewell->loop, 0, on_end, farewell);
}

void farewells_send(struct farewells *farewells, struct http *http, const char *session_id)
{
    static const struct http_events events = {on_body, on_done};
    const struct http_request request = {.method = "DELETE", .path = "/mcp", .session_id = session_id, .deadline_ms = FAREWELL_MS};
    struct farewell *farewell = mem_alloc(sizeof(*farewell));
    *farewell = (struct farewell){.http = http, .loop = farewells->loop};
    LIST_INSERT_HEAD(&farewells->all, farewell, link);
    http_send(http, &request, &events, farewell);
}

struct farewells *farewells_new(struct loop *loop)
{
    struct farewells *farewells = mem_alloc(sizeof(*farewells));
    farewells->loop = loop;
    LIST_INIT(&farewells->all);
    return farewells;
}

void farewells_free(struct farewells *farewells)
{
    if (!farewells)
        return;
    while (!LIST_EMPTY(&farewells->all))
        farewell_free(LIST_FIRST(&farewells->all));
    free(farewells);
}
