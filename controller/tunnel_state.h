// Shared by the files of the tunnel only: what is known of its client, and what each of them does for tunnel.c, which starts
// and ends it. All on the loop thread.
#pragma once
#include "controller/base/buffer.h"
#include "controller/base/cleanup.h"
#include "controller/operation.h"
#include "controller/tunnel.h"
#include "controller/tunnel_command.h"
#include "controller/tunnel_probe.h"
#include <pthread.h>

#define TUNNEL_ASKERS_MAX 64

struct tunnel_asker {
    tunnel_status_fn done;
    void *arg;
};

// Everything but the lock and `has_ended` belongs to the loop thread once started.
struct tunnel {
    const struct config *config;
    struct clock *clock;
    struct loop *loop;
    struct spawner *spawner;
    char *mcp_url, *runtime_dir;
    const char *bwrap;   // NULL: not, or no longer, used
    char *not_confined;  // why
    // the run
    struct operation *operation;
    struct loop_timer *timer; // of the next start, or of the end's patience
    int status_fd, client_pidfd; // -1: none
    struct loop_source *status_source;
    struct buffer status_text;
    pid_t client_pid;
    bool was_confined; // this run's confinement stood
    struct boot_time started_at, restart_at;
    int64_t backoff_ms, starts;
    int exit_code;
    bool is_stopping;
    // its readiness
    int dir_fd, watch_fd;
    struct loop_source *watch_source;
    struct sockaddr_in health;
    bool has_health;
    struct tunnel_probe *probe;
    struct loop_timer *ask_timer;
    int64_t ask_ms;
    enum tunnel_state state;
    char *reason;
    struct tunnel_asker askers[TUNNEL_ASKERS_MAX];
    size_t asker_count;

    pthread_mutex_t lock; // guards has_ended
    pthread_cond_t ended;
    bool has_ended;
};

// ---- tunnel_ready.c: its readiness
void tunnel_set_state(struct tunnel *tunnel, enum tunnel_state state, const char *reason); // a change is logged
void tunnel_answer_askers(struct tunnel *tunnel);
void tunnel_forget_health(struct tunnel *tunnel);
int tunnel_watch_directory(struct tunnel *tunnel, struct error *err); // makes the runtime directory too

// ---- tunnel_confinement.c: bubblewrap's word about the process it made and whether the confinement stood
void tunnel_read_confinement(struct tunnel *tunnel);
void tunnel_watch_confinement(struct tunnel *tunnel);
// The client never ran: bubblewrap itself gave up, and says so in its own name.
bool tunnel_confinement_failed(const struct tunnel *tunnel, const struct operation_result *result);
void tunnel_go_without(struct tunnel *tunnel, const char *why); // from now on; its first line is logged and shown
