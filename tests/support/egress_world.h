// A little internet for tests of chat2shell-egress: two network namespaces joined by a cable. This process and the egress
// process live in one ("the host", 203.0.113.1); in the other one ("outside", 203.0.113.80) stand an HTTP origin, a
// TCP echo, a DNS server and an upstream proxy, served by a child process. /etc/resolv.conf and /etc/hosts are replaced
// for this process. Works for root and, where user namespaces work, for anybody.
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define WORLD_OUTSIDE "203.0.113.80"
#define WORLD_HOST "203.0.113.1"
#define WORLD_HTTP_PORT 80
#define WORLD_ECHO_PORT 7000      // echoes until end-of-file, then says "bye"
#define WORLD_UPSTREAM_PORT 3128  // CONNECT to anything
#define WORLD_PICKY_PORT 3129     // CONNECT to names only

// Makes the world once for this program. false (with the reason on stderr): it cannot be made here.
bool egress_world_make(void);
void egress_world_end(void);

enum connector_mode {
    CONNECTOR_HONEST,
    CONNECTOR_OTHER_NAMESPACE, // hands out a socket of another network namespace
    CONNECTOR_OTHER_PORT,
    CONNECTOR_UDP,
    CONNECTOR_UNIX,
    CONNECTOR_NOTHING,         // success without a descriptor
    CONNECTOR_SILENT,
};

struct egress_process {
    pid_t pid;       // the waiting process
    int control_fd;
    int connector_fd;
    uint16_t proxy_port;
    enum connector_mode mode; // may be changed while it runs
    unsigned long thread;
};
// Starts the real program; the first message is read already unless it ended. args: NULL-terminated, after the fds.
void egress_start(struct egress_process *ret, const char *const *args);
int egress_stop(struct egress_process *process); // by closing the control socket: the exit status
pid_t egress_working_pid(const struct egress_process *process); // the one behind the waiting process
// One control message there and its answer back (text owned by the caller). fd < 0: none.
char *egress_ask(struct egress_process *process, const char *message, int fd);
char *egress_read_control(struct egress_process *process); // NULL: nothing within 5 s

int world_connect(uint16_t port);                 // to 127.0.0.1; receive timeout 10 s
int world_listen(uint16_t *ret_port);             // on 127.0.0.1
void world_send(int fd, const void *bytes, size_t len);
char *world_read_all(int fd, size_t *ret_len);    // to the end (or the timeout), closes fd; owned by the caller
char *world_talk(uint16_t port, const char *text); // connect, send, read to the end
// Sends CONNECT and reads the answer's head; the descriptor is ready for the tunnel, or -1 unless it is 200.
int world_tunnel(uint16_t proxy_port, const char *target);
