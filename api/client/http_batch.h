// Many exchanges with our own daemon at once, over a few connections that are kept: for one program with nothing else to do
// meanwhile. What is asked is asked in order; answers come in any order. Each exchange has a deadline of its own.
//
//     const struct http_batch batch = {.target = &target, .count = n, .ask = ask, .answered = answered, .arg = &state};
//     if (http_batch_run(&batch, err) < 0) return -1;   // the daemon does not answer; what was answered was told
#pragma once
#include "api/client/http.h"

#define HTTP_BATCH_CONNECTIONS 32 // so many writes share the daemon's commits: 1,000 take half as long as with 8

struct http_batch {
    const struct http_target *target;
    size_t count;
    // Fills in the i-th ask; what it points to must live until `answered` was called with i, which happens once for each.
    void (*ask)(void *arg, size_t i, struct http_ask *ret);
    // answer: NULL where there is none, which `failure` says. What is in it may be taken.
    void (*answered)(void *arg, size_t i, struct http_answered *answer, const struct error *failure);
    void *arg;
};
// -1 only if nothing listens; every other failure is told to `answered`.
int http_batch_run(const struct http_batch *batch, struct error *err);
