// The embedded tunnel: the tunnel client as a child of the daemon, started again when it ends. Its key is passed by path:
// nothing here opens it. Lines that the client prints are not logged: they may hold what is secret.
#pragma once
#include "controller/config.h"
#include "controller/loop.h"
#include "controller/spawn.h"

#define TUNNEL_BACKOFF_MIN_MS 1000
#define TUNNEL_BACKOFF_MAX_MS 60000
#define TUNNEL_STEADY_MS 60000 // a run of this length forgets the backoff

// Before anything is started: the program, SECRET_DIR/key and SECRET_DIR/tunnel-id are there. ERROR_STATE naming each that
// is missing or wrong, and the switch. *ret_id: what tunnel-id holds; the caller owns it.
int tunnel_check(const struct config *config, char **ret_id, struct error *err);

struct tunnel;
struct tunnel_options {
    const struct config *config; // must outlive the tunnel
    struct clock *clock;
    struct loop *loop;
    struct spawner *spawner;
    const char *id;
    int mcp_port;
};
int tunnel_start(const struct tunnel_options *options, struct tunnel **ret, struct error *err);
void tunnel_stop(struct tunnel *tunnel); // ends the client and waits for its end (SIGKILL after 2 s); NULL allowed; before loop_stop
