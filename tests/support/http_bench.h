// An HTTP front under test, with a handler that does what the path says:
//     /keep     stays unanswered until bench_answer_kept
//     /stream   is a stream: bench_stream
//     /big      an answer of 4 MiB
//     others    "LENGTH BODY" of what came
#pragma once
#include "api/http/http.h"
#include "tests/support/http_client.h"
#include "tests/support/support.h"

#define BENCH_SOON_MS SUPPORT_PATIENCE_MS
#define BENCH_BIG_BYTES (4 * 1024 * 1024)

int http_bench_set_up(void **state);            // on real time
int http_bench_set_up_fake_clock(void **state); // on bench_clock's
int http_bench_tear_down(void **state);
int bench_port(void);
struct clock *bench_clock(void);
struct http_server *bench_server(void);
int bench_handed(void); // requests that reached the handler
int bench_gone(void);   // hang-ups told
size_t bench_kept(void);
struct http_stream *bench_stream(void); // waits for one
void bench_answer_kept(void);           // all of them
// Waits until it is true, with failure after some seconds.
void bench_wait(bool (*is_true)(void));
bool bench_is_quiet(void); // no connection and no byte of a body is there
// A plain request on a connection of its own is answered 200.
void bench_check_served(void);
