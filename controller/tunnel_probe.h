// One question to the tunnel client: is it ready? GET /readyz on its loopback health address, on the loop, with a deadline
// and a bound on the answer. HTTP/1.0, so that the answer is the body and the end of the connection.
#pragma once
#include "controller/loop.h"
#include <netinet/in.h>

#define TUNNEL_PROBE_MS 2000
#define TUNNEL_PROBE_MAX_BYTES 4096 // of the answer; more is not read

struct tunnel_probe;
// is_ready: status 200. said: the first line of the body, or why there is none; printable, valid in the callback only.
typedef void (*tunnel_probe_fn)(void *arg, bool is_ready, const char *said);
// Loop thread. done runs once, later, on the loop thread, unless the probe is cancelled before.
struct tunnel_probe *tunnel_probe_start(struct loop *loop, const struct sockaddr_in *address, tunnel_probe_fn done, void *arg);
void tunnel_probe_cancel(struct tunnel_probe *probe); // loop thread; frees it; NULL allowed
