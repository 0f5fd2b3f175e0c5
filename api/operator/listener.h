// The optional TCP listener of the operator API: HTTPS on 127.0.0.1 for Kubernetes clients, off until `chat2shell kubeconfig`
// asks for it over the socket, then on through restarts until it is turned off. While it is off it costs nothing: no thread, no
// memory, no file. What lasts is in listener_files.h; who may speak on it, in listener_front.h.
//
// Turning it on, off, or over to another token waits for disks and threads, so it is done by a thread of its own, one change
// after the other, which ends with the last of them.
#pragma once
#include "controller/base/json.h"
#include "controller/base/error.h"
#include <stdbool.h>

#define LISTENER_HOST "127.0.0.1"
#define LISTENER_CONNECTIONS_MAX 512 // an idle one takes 32 KiB
#define LISTENER_CHANGES_MAX 16      // waiting at once

struct operator_server;
struct listener; // thread-safe
struct listener *listener_new(struct operator_server *server);
// At the daemon's start, before anybody can ask for changes: opens it where it was on. What fails is logged and told by listener_look.
// Blocking.
void listener_resume(struct listener *listener);
// Ends every connection; waits for changes that are under way. Not on the loop or an HTTP thread. NULL allowed.
void listener_stop(struct listener *listener);
void listener_free(struct listener *listener); // after listener_stop; NULL allowed

struct listener_view {
    bool is_on;
    int port; // 0: not listening
    struct error trouble; // why not, although it is on
};
void listener_look(struct listener *listener, struct listener_view *ret);
