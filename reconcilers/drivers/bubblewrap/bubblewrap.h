// Parts of the bubblewrap driver that its files share. A sandbox at rest costs the daemon BUBBLEWRAP_DESCRIPTORS open files: the
// shim's socket, the pidfd of its first process, the egress process' socket, and the three streams of its session; each port that
// is published is one more. Everything in struct bubblewrap behind `runtimes` and every struct
// runtime belongs to the loop thread; the members before it are fixed once the driver is made.
#pragma once
#include "reconcilers/drivers/bubblewrap/channel.h"
#include "reconcilers/drivers/bubblewrap/child.h"
#include "reconcilers/drivers/bubblewrap/shim/protocol.h"
#include "reconcilers/drivers/driver.h"
#include <jansson.h>

// Defaults where a sandbox states none. Memory and processes bound what one sandbox can take from the others; the
// writable memory file system of the host template counts as memory.
#define BUBBLEWRAP_MEMORY_BYTES (2LL << 30)
#define BUBBLEWRAP_CPUS_MILLI 2000
#define BUBBLEWRAP_PIDS 1024
#define BUBBLEWRAP_CREATE_DEADLINE_MS 120000
#define BUBBLEWRAP_CALL_DEADLINE_MS 10000
#define BUBBLEWRAP_MAX_PORTS 32
#define BUBBLEWRAP_DESCRIPTORS 6
#define BUBBLEWRAP_CLONE_SUFFIX "--clone" // the throwaway sandbox that makes a private clone
#define TEMPLATE_HOST "host"
#define TEMPLATE_DEBIAN "debian-12"

struct cgroup_parent {
    int version;
    char *controller, *path;
};
struct cgroup_list {
    struct cgroup_parent items[SHIM_MAX_CGROUPS];
    size_t count;
};

struct runtime;
struct removal;
struct bubblewrap {
    struct driver driver; // first
    struct clock *clock;
    struct loop *loop;
    struct spawner *spawner;
    char *program_dir, *runtimes_dir, *data_root;
    int image_fd;    // the shim in a sealed memory file
    int programs_fd; // program_dir
    int runtimes_fd; // runtimes_dir
    struct cgroup_list cgroups;
    struct runtime *runtimes;
    struct removal *removals;
};

struct launch_mount {
    const char *path, *target;
    bool is_read_only;
    int64_t device, inode;
};
// What one shim is started with; the strings are the caller's.
struct launch {
    const char *name, *template_name, *cwd;
    struct launch_mount mounts[2];
    size_t mount_count;
    const char *const *command; // NULL-terminated
    int64_t memory_bytes, cpus_milli;
    bool has_network;
};
struct launched {
    int control_fd;
    pid_t pid; // a child that nobody reaps but its runtime
};
// Makes the runtime directory and starts the shim. Any thread; a few milliseconds.
int launch_shim(struct bubblewrap *bw, const struct launch *launch, struct launched *ret, struct error *err);

enum runtime_state { RUNTIME_STARTING, RUNTIME_RUNNING, RUNTIME_ENDED };
struct runtime_port {
    int port, host_port, listener_fd;
    bool is_ready; // egress has it
};
struct runtime_end {
    int exit_code;
    const char *reason, *last_words; // last_words: what was on its stderr, "" if nothing
};
// What happens to a runtime, for create.c. `failed` and `ready` exclude each other; `ended` follows `ready` at most once.
struct runtime_events {
    void (*ready)(void *arg, struct runtime *runtime, const json_t *facts);
    void (*failed)(void *arg, struct runtime *runtime, const struct error *err);
    void (*ended)(void *arg, struct runtime *runtime, const struct runtime_end *end);
    void *arg;
};
struct runtime {
    struct runtime *next;
    struct bubblewrap *bw;
    char *name;
    enum runtime_state state;
    bool is_removing;
    struct runtime_events events;
    void (*free_arg)(void *arg); // NULL = events.arg is somebody else's
    bool is_launching;           // a thread or a clone is on its way to runtime_attach or runtime_fail
    struct loop_timer *deadline;
    struct channel *shim; // NULL before launch and after its end
    struct child supervisor; // the shim's process
    int init_pidfd;          // the sandbox's first process, which is no child of ours
    char *reason, *last_words; // what the shim said at the end
    int exit_code;
    // network; its two descriptors are the shim's, which hands them out for each new egress process
    uint64_t netns_cookie; // which network the sandbox's is, 0: unknown
    struct channel *egress;
    struct child egress_process;
    int egress_restarts;
    struct loop_timer *egress_timer;
    struct runtime_port ports[BUBBLEWRAP_MAX_PORTS];
    size_t port_count;
};
struct runtime *runtime_find(struct bubblewrap *bw, const char *name);
struct runtime *runtime_add(struct bubblewrap *bw, const char *name, const struct runtime_events *events);
void runtime_attach(struct runtime *runtime, const struct launched *launched);
void runtime_fail(struct runtime *runtime, const struct error *err); // before ready
void runtime_free(struct runtime *runtime);                          // its shim must be reaped

// egress.c
void egress_start(struct runtime *runtime, int proxy_fd, int connector_fd); // which stay the caller's
void egress_end(struct runtime *runtime);

// ports.c
void ports_publish(struct driver *driver, const char *name, int port, driver_port_fn done, void *arg);
void ports_unpublish(struct driver *driver, const char *name, int port, driver_done_fn done, void *arg);
void ports_probe(struct driver *driver, const char *name, int port, driver_done_fn done, void *arg);
void ports_dial(struct driver *driver, const char *name, int port, driver_dial_fn done, void *arg); // dial.c
uint64_t dial_netns_cookie(int socket_fd); // which network a socket is in; 0: the kernel does not say
void ports_restore(struct runtime *runtime); // gives a new egress process the listeners again

// create.c
void create_runtime(struct driver *driver, const struct driver_spec *spec, driver_created_fn done, driver_died_fn died, void *arg);
void create_session(struct driver *driver, const char *name, driver_session_fn done, void *arg);

// remove.c
void remove_runtime(struct driver *driver, const char *name, driver_done_fn done, void *arg);
void remove_on_loop(struct bubblewrap *bw, const char *name, driver_done_fn done, void *arg);
void remove_shim_ended(struct runtime *runtime); // from runtime.c: the removal that waits for it goes on

void remove_cancel_all(struct bubblewrap *bw, const struct error *err); // at the driver's end

// templates.c
const char *template_pick(const struct bubblewrap *bw, const char *wanted, struct error *err); // NULL on failure
char *template_path(const char *data_root, const char *name);

// cgroups.c
void cgroups_find(struct cgroup_list *ret);
void cgroups_free(struct cgroup_list *list);
void cgroups_kill(const struct cgroup_list *list, const char *name);       // everything in the sandbox's own cgroups
bool cgroups_are_gone(const struct cgroup_list *list, const char *name);   // after trying to remove them

// usage.c
int usage_read(struct driver *driver, const char *name, struct driver_usage *ret, struct error *err);

// findings.c
json_t *findings_check_host(struct spawner *spawner, const char *program_dir); // `chat2shell-shim check`; NULL = no answer
void findings_probe(struct driver *driver, struct finding_list *ret);
void capability_list_free(struct capability_list *list);
void findings_describe(struct driver *driver, const char *template_name, struct capability_list *ret);
