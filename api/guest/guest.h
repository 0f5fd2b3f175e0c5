// The whole tool server: what one process holds. All members belong to the loop thread except where their
// own header says otherwise; workspace and environment never change after the start and may be read anywhere.
#pragma once
#include "api/guest/children.h"
#include "api/guest/environment.h"
#include "api/guest/loop.h"
#include "api/guest/output.h"
#include "api/guest/reader.h"
#include "api/guest/review.h"
#include "api/guest/workers.h"
#include "api/guest/workspace.h"

#define GUEST_VERSION CHAT2SHELL_VERSION

struct request;
struct session;
struct exec;

struct guest {
    struct loop loop;
    struct loop_source signals;
    struct reader reader;
    struct output output;
    struct workers workers;
    struct children children;
    struct environment environment;
    struct workspace workspace;
    struct review review;
    struct request *requests; // in flight
    int request_count;
    struct session *sessions; // newest first
    int session_count;
    struct exec *execs;
    int exec_count;
    bool is_stopping;
    struct loop_timer map_timer; // gives back the memory of a repository map that nobody asks for
    struct loop_timer trim_timer; // gives back what large messages took
};

// A message of that size came or goes (loop thread).
void guest_note_message(struct guest *guest, size_t len);
// A tool has ended (loop thread): if it left a repository map, look after it.
void guest_watch_map(struct guest *guest);
// Serves in_fd/out_fd until end of input or a signal, ends every process it started, returns 0 (or -1 if it
// could not start). SIGCHLD, SIGTERM, SIGINT and SIGHUP must be blocked before in every thread.
int guest_serve(const char *root, int in_fd, int out_fd, struct error *err);
