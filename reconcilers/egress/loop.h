// One epoll loop for the one thread of chat2shell-egress: descriptors that become ready, deadlines, and memory that
// is released only when no event of the current batch can still point into it.
#pragma once
#include "controller/base/error.h"
#include "controller/base/time.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CONTAINER_OF(pointer, type, member) ((type *)(void *)((char *)(pointer)-offsetof(type, member)))

// Every deadline of one kind has one duration, so that a queue in order of arrival is in order of time.
enum deadline_kind {
    DEADLINE_SOON,    // from the loop, as soon as the current event is done
    DEADLINE_LINGER,  // after a refusal: time for the client to read it
    DEADLINE_PAUSE,   // before accepting again when the system is out of something
    DEADLINE_ATTEMPT, // one address, when others are left to try
    DEADLINE_RESOLVE, // a name
    DEADLINE_DIAL,    // all addresses together, an upstream proxy's answer, the connector's answer
    DEADLINE_HEAD,    // a request head, a TLS ClientHello that has begun
    DEADLINE_ANSWER,  // a response head
    DEADLINE_IDLE,    // a tunnel, a relay or a body without any byte
    DEADLINE_COUNT
};
extern int64_t deadline_duration_ms[DEADLINE_COUNT]; // tests shorten them

struct deadline {
    struct deadline *prev, *next; // NULL: not running
    int64_t at_ms;                // boot time
    void (*expired)(struct deadline *deadline);
};

struct watch {
    int fd;          // -1: closed; events that were under way for it are dropped
    uint32_t events; // what epoll was told; 0: not registered
    void (*ready)(struct watch *watch, uint32_t events);
};

struct loop {
    int epoll_fd;
    struct deadline queues[DEADLINE_COUNT]; // ring heads
    void **retired;
    size_t retired_count, retired_cap;
    bool is_ending;
    int exit_status;
};

int loop_open(struct loop *loop, struct error *err);
void loop_close(struct loop *loop);
// Waits at most timeout_ms (-1: until something happens), runs what is ready and what expired.
int loop_step(struct loop *loop, int timeout_ms, struct error *err);
void loop_end(struct loop *loop, int exit_status);
// Memory that a watch or deadline lives in: freed after the current batch. Stop and close them first.
void loop_retire(struct loop *loop, void *memory);

// Registers, changes or (events 0) removes the interest. Removal matters: an error that nobody reads would spin.
void watch_want(struct loop *loop, struct watch *watch, uint32_t events);
void watch_close(struct loop *loop, struct watch *watch);
int watch_release(struct loop *loop, struct watch *watch); // the descriptor becomes the caller's
// (Re)starts; a running deadline moves to the end of its queue.
void deadline_start(struct loop *loop, struct deadline *deadline, enum deadline_kind kind);
void deadline_stop(struct deadline *deadline);
