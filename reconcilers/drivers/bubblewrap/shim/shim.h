// One sandbox's supervisor: state that start.c builds, serve.c works with and finish.c takes apart.
#pragma once
#include "reconcilers/drivers/bubblewrap/shim/config.h"
#include "reconcilers/drivers/bubblewrap/shim/identity.h"
#include "reconcilers/drivers/bubblewrap/shim/limits.h"
#include "reconcilers/drivers/bubblewrap/shim/net.h"
#include "reconcilers/drivers/bubblewrap/shim/stage.h"

enum shim_state { SHIM_STARTING, SHIM_RUNNING, SHIM_ENDING };
#define SHIM_MAX_CLIENTS 4

struct shim {
    struct shim_config config;
    struct identity identity;
    struct limits limits;
    struct net_helper net;
    enum shim_state state;
    int controller_fd, listen_fd, lock_fd;
    int clients[SHIM_MAX_CLIENTS];
    pid_t bwrap_pid;          // the staging process, then bubblewrap's outer process
    int bwrap_pidfd;
    int init_pidfd;           // the sandbox's first process
    int stdio[3];             // our ends: stdin (write), stdout (read), stderr (read)
    int status_fd, report_fd; // bubblewrap's status (read), the first process's report
    int proxy_fd;             // the listener inside, -1 without network
    json_t *broken_rules;
    int exit_code; // -1 = unknown
};
// start.c: everything up to the command running. On failure nothing may be assumed: call finish.
int shim_start(struct shim *shim, struct error *err);
// serve.c
void shim_send(int fd, json_t *message, const int *fds, size_t fd_count); // takes the reference; adds "v"
void shim_serve(struct shim *shim);                                       // until the sandbox ended or is to end
// During the start: false when the controller is gone or asked for the end.
bool shim_may_go_on(struct shim *shim);
// finish.c: kills what is left, waits for it, removes cgroups, layers and the socket.
void shim_finish(struct shim *shim);
int shim_purge(const char *name, struct error *err);
int shim_unpack(const char *name, struct error *err); // a tar archive on stdin, into a new directory
int shim_listen(struct shim *shim, struct error *err);
