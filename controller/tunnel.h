// The embedded tunnel: the tunnel client as a child of the daemon, started again when it ends, whatever sandboxes do. Its
// key is passed by path: nothing here opens it. Lines that the client prints are not logged: they may hold what is secret.
//
// Is it ready? The client writes the address of its health endpoint into a file (inotify tells when), and /readyz there says
// it. That is asked after each start, with a growing pause until the answer is yes, and then only when somebody wants to
// know (tunnel_ask): nothing in the daemon depends on the answer, a dead client is seen by its process, and an idle daemon
// stays idle.
#pragma once
#include "controller/config.h"
#include "controller/loop.h"
#include "controller/spawn.h"

#define TUNNEL_BACKOFF_MIN_MS 1000
#define TUNNEL_BACKOFF_MAX_MS 60000
#define TUNNEL_STEADY_MS 60000 // a run of this length forgets the backoff
#define TUNNEL_ASK_MIN_MS 250  // first pause between two questions whether it is ready
#define TUNNEL_ASK_MAX_MS 60000
#define TUNNEL_BWRAP "/usr/bin/bwrap"

// Before anything is started: the program, SECRET_DIR/key and SECRET_DIR/tunnel-id are there. ERROR_STATE naming each that
// is missing or wrong, and the switch. *ret_id: what tunnel-id holds; the caller owns it.
int tunnel_check(const struct config *config, char **ret_id, struct error *err);
// What the client shows to an endpoint that asks for a token: SECRET_DIR/mcp-authorization; NULL where there is no such file, or
// where the endpoint asks for none. The caller's; looked at, never opened.
char *tunnel_authorization_path(const struct config *config);
char *tunnel_key_path(const struct config *config); // the caller's; looked at, never opened

struct tunnel;
struct tunnel_options {
    const struct config *config; // must outlive the tunnel
    struct clock *clock;
    struct loop *loop;
    struct spawner *spawner;
    const char *bwrap; // the program that confines it; NULL: not confined. Where it cannot, the client runs without, and the status says so
    int mcp_port;
};
int tunnel_start(const struct tunnel_options *options, struct tunnel **ret, struct error *err);
// Ends the client and waits for its end (SIGTERM, SIGKILL after 2 s); whoever asked is answered first. NULL allowed; before loop_stop.
void tunnel_stop(struct tunnel *tunnel);

enum tunnel_state {
    TUNNEL_STARTING,  // it runs and has not told its health address
    TUNNEL_READY,
    TUNNEL_NOT_READY, // reason: what it says, or why it cannot be asked
    TUNNEL_ENDED,     // reason; it is started again in restart_in_ms
};
const char *tunnel_state_word(enum tunnel_state state); // "starting", "ready", "not ready", "ended"
struct tunnel_status { // texts valid in the callback only
    enum tunnel_state state;
    const char *reason;       // NULL: none
    const char *not_confined; // why the client runs without confinement; NULL: it is confined
    pid_t pid;                // 0: none
    int64_t starts;           // since the daemon's start
    int64_t for_ms;           // since its last start
    int64_t restart_in_ms;    // ENDED only
    int exit_code;            // of the last run that ended; -1: none did
};
typedef void (*tunnel_status_fn)(void *arg, const struct tunnel_status *status);
// Loop thread. done runs there, once: at once, or when the client has said whether it is ready (within TUNNEL_PROBE_MS).
void tunnel_ask(struct tunnel *tunnel, tunnel_status_fn done, void *arg);
