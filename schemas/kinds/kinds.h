// The kinds as C structs. JSON exists only at the edges: the field tables (schemas/kinds/NAME.c, engine in
// controller/fields/) read these structs by offset. All strings are heap-owned, NULL = absent. A record is
// made and freed with record_new()/record_free() and copied with record_copy() (controller/record.h).
#pragma once
#include "controller/base/time.h"
#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum kind { KIND_WORKSPACE, KIND_APPROVAL, KIND_SANDBOX, KIND_SESSION, KIND_EXPOSURE, KIND_APPROVAL_RULE, KIND_COUNT };

// ---- shared parts -------------------------------------------------------------------------------------------
struct text_list {
    char **items;
    size_t count;
};
struct text_map { // sorted by key
    struct text_pair {
        char *key, *value;
    } *items;
    size_t count;
};
enum condition_status { CONDITION_UNKNOWN, CONDITION_TRUE, CONDITION_FALSE }; // JSON "Unknown", "True", "False"
struct condition {                                                         // list-map key: type
    char *type;
    enum condition_status status;
    char *reason;  // CamelCase word, required
    char *message; // a sentence
    struct wall_time last_transition_time;
    int64_t observed_generation;
};
struct condition_list {
    struct condition *items;
    size_t count;
};

// ---- Workspace ----------------------------------------------------------------------------------------------
enum workspace_mode { WORKSPACE_MANAGED, WORKSPACE_CLONE, WORKSPACE_DIRECT }; // "managed", "clone", "direct"
const char *workspace_mode_word(enum workspace_mode mode);
struct workspace_spec {                                                       // immutable
    enum workspace_mode mode;
    char *path; // host modes only: the resolved absolute path that was approved
};
struct workspace_status {
    int64_t observed_generation;
    struct condition_list conditions; // Ready, Retained, Trashed, Revoked, Stalled
    char *phase;                      // printer word: computed by phase_compute(), never branched on
    char *root;                       // absolute host path; for clone mode the private clone's path once made
    int64_t device, inode;            // identity of path (host modes) or root (managed)
    struct wall_time retained_until;  // managed, unbound: when it moves to the trash
    char *bound_sandbox;              // uid of the live sandbox, NULL if none
};

// ---- Approval -----------------------------------------------------------------------------------------------
enum approval_decision { APPROVAL_PENDING, APPROVAL_APPROVED, APPROVAL_REJECTED }; // absent/"", "approved", "rejected"
const char *approval_decision_word(enum approval_decision decision); // "pending" where there is none yet
struct approval_spec {
    char *path;                 // resolved; immutable
    enum workspace_mode mode;   // clone or direct; immutable
    char *requester;            // principal that asked; immutable
    enum approval_decision decision;
    int64_t shown_resource_version; // the version the operator saw when deciding; 0 = not stated
    char *reason;                   // optional, the operator's words
};
struct approval_status {
    int64_t observed_generation;
    struct condition_list conditions; // Decided, Valid (path identity), Revoked
    char *phase;
    int64_t device, inode; // of path when asked, checked again at decision
    char *workspace_ref;   // uid of the Workspace made by approval
    struct wall_time decided_at;
    char *decided_by;
    json_t *exposes;       // direct: what the directory exposes ([{path, what}], bounded), NULL otherwise
};

// ---- Sandbox ------------------------------------------------------------------------------------------------
enum session_kind { SESSION_DEFAULT, SESSION_GUEST, SESSION_CODEXPRO }; // absent: the driver's, "guest", "codexpro"
struct sandbox_spec {                                 // immutable after creation
    char *workspace_ref;                              // Workspace name
    char *driver;                                     // NULL = the daemon's default
    char *template_name;                              // JSON "template"; NULL = the driver's default
    int64_t memory_bytes;                             // JSON "memory": bytes or "512Mi"; 0 = driver's default
    int64_t cpus_milli;                               // JSON "cpus": "1.5"; 0 = driver's default
    enum session_kind session;
};
struct capability { // list-map key: name
    char *name;     // "docker", "packages", "network", "sudo", …
    bool is_available;
    char *message; // why not / what to do instead
};
struct capability_list {
    struct capability *items;
    size_t count;
};
struct sandbox_status {
    int64_t observed_generation;
    struct condition_list conditions; // Ready, RuntimeCreated, SessionReady, LimitsEnforced, Isolated, DiskPressure,
                                      // RefNotFound, Expired, RuntimeRemoved, Failed, Stalled
    char *phase;
    char *driver, *template_name;     // what the defaults became
    char *workspace_uid;              // bound once
    char *workspace_root;             // absolute path inside and outside
    char *runtime_name;               // the driver's name for it: from uid and attempt; never shown to MCP
    int64_t attempt;                  // committed before each create
    char *isolation;                  // "namespace" or "microvm"
    struct capability_list capabilities;
    struct text_list limits;          // limits that hold: "memory", "pids", "cpu"
    struct wall_time last_activity_at, expires_at; // merged on read from the activity side table
    struct wall_time started_at;
};

// ---- Session ------------------------------------------------------------------------------------------------
struct session_spec {
    char *sandbox_ref; // Sandbox name; made by the sandbox reconciler only
};
struct session_status {
    int64_t observed_generation;
    struct condition_list conditions; // Ready, Failed
    char *phase;
    char *sandbox_uid;
    char *server_name, *server_version; // the tool server's own words, bounded and sanitized
    struct text_list last_lines;        // printed at death, at most 20 of 400 characters, sanitized
};

// ---- Exposure -----------------------------------------------------------------------------------------------
struct exposure_spec { // immutable
    char *sandbox_ref; // Sandbox name
    int64_t port;      // 1–65535 inside
};
struct exposure_status {
    int64_t observed_generation;
    struct condition_list conditions; // Ready (of the other two), Published, Reachable, RefNotFound
    char *phase;
    char *sandbox_uid;
    int64_t host_port;
    char *host_address; // "0.0.0.0"
};

// ---- ApprovalRule -------------------------------------------------------------------------------------------
struct approval_rule_spec {
    enum approval_decision decision; // approved or rejected; immutable
    struct text_list paths;          // globs (controller/base/path_glob.h) of resolved paths
    struct text_list modes;          // "clone", "direct"; default clone only
    struct text_list requesters;     // principals, or beginnings of them with a * at the end; empty: anybody
    struct wall_time expires_at;     // 0 = never
    int64_t max_count;               // decisions in all; 0 = any number
    char *reason;                    // kept with each decision
};
struct approval_rule_status {
    int64_t observed_generation;
    struct condition_list conditions; // Ready, Expired, Exhausted
    char *phase;
    int64_t used_count;               // written with each decision, in one transaction
    struct wall_time last_used_at;
};

// ---- Record -------------------------------------------------------------------------------------------------
struct owner_reference {          // list-map key: uid. Kept for clients: nothing here acts on them
    char *api_version;            // NULL = this API's
    char *kind, *name, *uid;
    json_t *controller, *blocks;  // true, false or NULL; JSON "controller", "blockOwnerDeletion"
};
struct owner_list {
    struct owner_reference *items;
    size_t count;
};
struct record_meta {
    char *name; // DNS-1123; derived from the uid where the caller gave none
    char *uid;  // "sbx_" + 26 base-32 characters: the public id
    int64_t resource_version, generation;
    struct wall_time created_at;
    struct wall_time deletion_at; // deletion was asked for; 0 = not
    struct wall_time removed_at;  // tombstone since; 0 = live
    char *created_by;             // principal, immutable
    struct text_list finalizers;
    struct text_map labels, annotations;
    struct owner_list owners;
    json_t *managed_fields; // array as Kubernetes has it, kept by the store's write functions
};
struct record {
    enum kind kind;
    struct record_meta meta;
    union {
        struct workspace_spec workspace;
        struct approval_spec approval;
        struct sandbox_spec sandbox;
        struct session_spec session;
        struct exposure_spec exposure;
        struct approval_rule_spec approval_rule;
    } spec;
    union {
        struct workspace_status workspace;
        struct approval_status approval;
        struct sandbox_status sandbox;
        struct session_status session;
        struct exposure_status exposure;
        struct approval_rule_status approval_rule;
    } status;
};
