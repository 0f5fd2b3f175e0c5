// The privilege boundary: the only code that makes sandboxes real. Nothing in api/ includes this. All calls are
// asynchronous: they return at once and `done` runs once, on the loop thread. Calls on one runtime may overlap only as
// stated. Every byte that comes back from a sandbox is untrusted.
//
// Names: the caller gives the runtime name, computed from uid and attempt and committed before create (intent before
// effect); a name is never used twice. "Not there" is success for remove.
#pragma once
#include "controller/loop.h"
#include "controller/record.h"

struct driver;

struct driver_spec { // everything a create needs; copied by the driver
    const char *runtime_name;      // [a-z0-9-]{1,63}
    const char *sandbox_uid;
    const char *workspace_root;    // absolute path, mounted read-write at the same path
    int64_t device, inode;         // identity of workspace_root (0,0 = not checked): checked at mount, by descriptor
    enum workspace_mode mode;      // clone: the driver makes the private clone from `clone_source` first
    const char *clone_source;      // clone only: the approved checkout, only read; its identity:
    int64_t source_device, source_inode;
    const char *template_name;     // NULL = default
    int64_t memory_bytes, cpus_milli; // 0 = default
    bool has_network;              // false for throwaway helper sandboxes
    enum session_kind session;     // which tool server start_session will start; SESSION_DEFAULT: the driver's own
};

// The tool server's process: what start_session hands out. The receiver owns the descriptors and the token. The end of
// output_fd is the end of the session, whatever the kind. One of two kinds:
//   port 0: MCP over the descriptors, one message a line (chat2shell-guest);
//   port > 0: MCP over HTTP at http://127.0.0.1:PORT/mcp with the bearer token (CodexPro); the descriptors are those of the
//   held foreground process, whose stdout carries nothing and whose stdin is only held open.
struct driver_session {
    int input_fd, output_fd; // stdin (write end) and stdout (read end) of the foreground process
    int error_fd;            // its stderr (read end), for the last lines at death
    int port;
    char *token;             // port > 0: secret; never logged, never in argv, wiped when freed
};
// Closes the descriptors and wipes the token. All fields are reset. For who got a session and does not pass it on.
void driver_session_close(struct driver_session *session);
// Facts about a created sandbox for its status; strings valid in the callback only.
struct driver_facts {
    const char *isolation; // "namespace" / "microvm"
    struct capability_list capabilities;
    struct text_list limits;         // that hold
    struct text_list missing_limits; // that do not: "memory: cgroup memory controller is not writable"
    struct text_list warnings;       // e.g. supplementary groups kept
    struct text_list broken_rules;   // hard rules that the probe inside found not to hold (Isolated=False)
    const char *template_name;       // what the default became
    const char *workspace_root;      // where the workspace is inside, read back from the sandbox; NULL: as the spec said
};

typedef void (*driver_done_fn)(void *arg, int result, const struct error *err);
typedef void (*driver_created_fn)(void *arg, int result, const struct driver_facts *facts, const struct error *err);
typedef void (*driver_session_fn)(void *arg, int result, const struct driver_session *session, const struct error *err);
typedef void (*driver_port_fn)(void *arg, int result, int host_port, const struct error *err);
typedef void (*driver_dial_fn)(void *arg, int fd, const struct error *err); // fd: the receiver's; -1 with err
typedef void (*driver_list_fn)(void *arg, int result, const struct text_list *runtime_names, const struct error *err);
// The runtime ended by itself: reason is a sentence. Registered at create; at most once; loop thread; never after a
// successful remove's `done`, nor after a failed create.
typedef void (*driver_died_fn)(void *arg, const char *runtime_name, const char *reason);

// One readiness finding: doctor prints them, create is refused while a failing one exists.
enum finding_level { FINDING_PASS, FINDING_WARN, FINDING_FAIL };
struct finding {
    enum finding_level level;
    char *check; // "bubblewrap", "user namespaces", "cgroup memory"
    char *what;  // sentence
    char *fix;   // sentence or command; may be NULL
};
struct finding_list {
    struct finding *items;
    size_t count;
};
void finding_list_free(struct finding_list *list);
void finding_add(struct finding_list *list, enum finding_level level, const char *check, const char *fix, const char *format, ...)
    __attribute__((format(printf, 5, 6)));

// What a sandbox uses; -1: not known.
struct driver_usage {
    int64_t cpu_us;       // since its start
    int64_t memory_bytes; // without what can be taken back at once
    int64_t memory_limit_bytes, processes;
};
#define DRIVER_USAGE_UNKNOWN {.cpu_us = -1, .memory_bytes = -1, .memory_limit_bytes = -1, .processes = -1}

struct driver_ops {
    const char *name;
    int descriptors; // open files of the daemon that a sandbox at rest takes, its session included; each published port may be one more
    // Makes the runtime; the tool server is not started. Deadline 120 s inside the driver. On failure nothing is left
    // (if something may be, the caller's remove settles it). Removing a runtime cancels its running create.
    void (*create)(struct driver *driver, const struct driver_spec *spec, driver_created_fn done, driver_died_fn died, void *arg);
    void (*start_session)(struct driver *driver, const char *runtime_name, driver_session_fn done, void *arg);
    // Ends everything of it and confirms that it is gone: processes, mounts, directories, ports, the private clone.
    void (*remove)(struct driver *driver, const char *runtime_name, driver_done_fn done, void *arg);
    // host_port 0 = automatic, on every host IPv4 interface. Same (name, port) again: the same mapping.
    void (*publish)(struct driver *driver, const char *runtime_name, int port, driver_port_fn done, void *arg);
    void (*unpublish)(struct driver *driver, const char *runtime_name, int port, driver_done_fn done, void *arg);
    // Does something listen on the port inside? result 0 yes, -1 no (err says why).
    void (*probe_port)(struct driver *driver, const char *runtime_name, int port, driver_done_fn done, void *arg);
    // Connects to the port inside and hands the connection out (nonblocking). ERROR_UNAVAILABLE: nothing listens there. NULL: this
    // driver cannot.
    void (*dial_port)(struct driver *driver, const char *runtime_name, int port, driver_dial_fn done, void *arg);
    void (*list)(struct driver *driver, driver_list_fn done, void *arg); // runtimes of this state directory
    void (*probe)(struct driver *driver, struct finding_list *ret);     // may block ≤ 30 s: never on the loop thread
    void (*interrupt)(struct driver *driver); // a probe or list that runs ends soon, later ones at once; any thread. NULL: they are quick
    // Reads files, and waits for the loop: never on the loop thread. NULL: this driver cannot tell.
    int (*usage)(struct driver *driver, const char *runtime_name, struct driver_usage *ret, struct error *err);
    void (*describe)(struct driver *driver, const char *template_name, struct capability_list *ret); // static facts
    void (*free)(struct driver *driver);                                // ends all runtimes it holds
};
struct driver {
    const struct driver_ops *ops;
};

struct driver_options {
    struct clock *clock;
    struct loop *loop;
    struct spawner *spawner;
    const char *program_dir; // chat2shell-shim, -guest, -egress
    const char *state_dir;   // runtime directories below state_dir/runtimes
    const char *data_root;   // templates below data_root/templates, private clones below data_root/clones
    const char *instance;    // of the store: runtimes of this state directory are named RUNTIME_PREFIX, its first digits, …
    const char *sbx;         // config: the program of Docker Sandboxes
};
#define RUNTIME_PREFIX "c2s-"
#define RUNTIME_INSTANCE_DIGITS 8
// The name of a runtime: RUNTIME_PREFIX INSTANCE-DIGITS "-" uid without its prefix "-" attempt. Ownership is carried in the
// name, because that is all that a backend keeps for us; at most 60 characters of [a-z0-9-]. Owned by the caller.
char *driver_runtime_name(const char *instance, const char *sandbox_uid, int64_t attempt);
bool driver_owns_name(const char *instance, const char *runtime_name); // is it of this state directory?
// The name below data_root/clones of the directory that holds a runtime's private clone. Callers see the path of their
// workspace, and are never told a runtime's name. Owned by the caller.
char *driver_clone_dir_name(const char *runtime_name);
int driver_bubblewrap_new(const struct driver_options *options, struct driver **ret, struct error *err);
int driver_sbx_new(const struct driver_options *options, struct driver **ret, struct error *err);
// Can this sbx be used now: is it there and new enough, does its daemon answer, is somebody signed in? Waits up to 15 s; not
// on the loop thread. -1 and the reason.
int driver_sbx_check(struct driver *driver, struct error *err);
// A failed create that another attempt, under another name, may help: no answer in time, a name that is taken, a sandbox that
// came half into being (ERROR_TIMEOUT, ERROR_EXISTS, ERROR_CONFLICT).
bool driver_create_may_help(const struct error *err);
// Do runtimes of this driver live on when the daemon ends? Then only that driver can say that one is gone.
bool driver_outlives_daemon(const char *name);
#define SBX_DEFAULT_PROGRAM "sbx" // of CHAT2SHELL_SBX
// Why that driver, as the rest of a sentence after "because". fix: a better one is there and cannot be used; what to do about it
// (a sandbox that would have been a virtual machine is not silently one of the host's kernel). The caller frees it.
struct driver_choice {
    char *reason, *fix; // NULL: not known; nothing to do
};
void driver_choice_free(struct driver_choice *choice);
void driver_choice_tell(const struct driver_choice *choice, const char *driver_name, struct finding_list *ret); // as the finding "driver"
// Picks by name: "auto", "bubblewrap", "sbx". ret_choice may be NULL.
int driver_open(const char *name, const struct driver_options *options, struct driver **ret, struct driver_choice *ret_choice, struct error *err);
