// The reconcilers and the requests that callers make of them. api/ uses this header only: a request is a store
// transaction that writes desired state (design 3: "a mutating tool call is thin").
#pragma once
#include "controller/config.h"
#include "controller/manager.h"
#include "controller/policy.h"
#include "reconcilers/drivers/driver.h"
#include "reconcilers/session/session.h"

struct world { // what reconcilers and requests share; owned by the daemon (cli/serve.c)
    const struct config *config;
    struct clock *clock;
    struct loop *loop;
    struct store *store;
    struct manager *manager;
    struct lanes *lanes;
    struct driver *driver;
    struct driver_choice driver_choice; // why that one
    struct auth *auth;               // who may use the MCP endpoint (api/auth/auth.h); NULL: nobody is asked
    struct reconcilers *reconcilers; // this folder's own memory (reconcilers_add_all)
};
int reconcilers_add_all(struct world *world, struct error *err); // registers them with world->manager; call before manager_start
// Waits for the checks, findings and usage that are being looked for. Before the driver goes; nobody may ask for some any more.
void reconcilers_stop_workers(struct world *world);
void reconcilers_free(struct world *world);
int effects_running(const struct world *world); // driver or lane calls under way (tests, status)

#define FINALIZER_RUNTIME "chat2shell.dev/runtime"     // Sandbox: runtime confirmed gone, exposures gone
#define FINALIZER_MAPPING "chat2shell.dev/mapping"     // Exposure: port unpublished
#define FINALIZER_TRASH "chat2shell.dev/trash"         // managed Workspace: moved to the trash

// Admission limits for the untrusted side (all written in the README). How many sandboxes there may be is configured.
#define LIMIT_CREATES_A_MINUTE 30
#define LIMIT_PENDING_APPROVALS 100
#define LIMIT_EXPOSURES_A_SANDBOX 32
#define LIMIT_APPROVALS_A_MINUTE 120   // new ones
#define LIMIT_REJECTED_APPROVALS 1000  // of those that are kept the oldest goes
#define REJECTION_STANDS_MS 10000      // a rule's rejection is the answer for so long; then the same approval is asked for again
// And of the operator's side.
#define LIMIT_APPROVAL_RULES 256
#define LIMIT_WAITING_EXPOSURES 256 // for sandboxes that are not there yet

#define PRINCIPAL_MCP "mcp" // the untrusted caller; where the endpoint asks who somebody is: "mcp:token:NAME", "mcp:oauth:SUBJECT"
bool principal_is_untrusted(const char *principal); // all of these

// ---- requests --------------------------------------------------------------------------------------------------
struct sandbox_request {
    const char *principal;      // "mcp", "mcp:token:laptop", "operator:uid=0"
    const char *manager;        // field manager
    const char *workspace_id;   // uid; or
    const char *workspace_name; // a name, the operator's: where there is no such workspace yet the sandbox is made and waits for it; or
    const char *workspace_path; // a host path; or neither: a new managed workspace
    const char *workspace_mode; // "managed", "clone", "direct" or NULL (clone with a path, else the workspace's own)
    const char *name;           // NULL = derived
    const char *template_name;  // NULL = default
    const char *driver;         // NULL = the daemon's; another one is refused
    int64_t memory_bytes, cpus_milli; // 0 = the driver's default
    enum session_kind session;
    const struct record_meta *wanted; // labels, annotations, finalizers, managedFields; NULL = none
    bool is_dry_run;            // everything is checked, nothing is kept
};
enum sandbox_outcome { SANDBOX_CREATED, SANDBOX_REUSED, SANDBOX_JOINED, SANDBOX_NEEDS_APPROVAL };
// Runs inside a store transaction of its own (asynchronous; done on the store thread). JOINED: an identical create by the
// same principal is still in progress. NEEDS_APPROVAL: `record` is the pending Approval (the same one while pending).
// record is handed over. Path checks (stat, realpath) are done on a worker before the transaction, never on an HTTP thread.
typedef void (*sandbox_request_fn)(void *arg, int result, enum sandbox_outcome outcome, struct record *record, const struct error *err);
void request_sandbox(struct world *world, const struct sandbox_request *request, sandbox_request_fn done, void *arg);

// done's record (handed over): the Sandbox. Closes the lane at once, then commits the deletion. Again = the same record.
// unsaved: {is_repository, changed_files, unexported_commits} when it was a private clone that answered within 2 s, else NULL.
typedef void (*record_request_fn)(void *arg, int result, struct record *record, json_t *unsaved, const struct error *err);
void request_destroy(struct world *world, const char *principal, const char *sandbox_uid, record_request_fn done, void *arg);
// Makes (or finds) the Exposure of (sandbox, port). record: the Exposure (maybe not yet published: wait on its status).
void request_expose(struct world *world, const char *principal, const char *sandbox_uid, int64_t port, record_request_fn done, void *arg);
// The same with name, labels, annotations, finalizers and managedFields of its own; one that is there already is
// ERROR_EXISTS. is_dry_run: everything is checked, nothing is kept.
// sandbox_uid NULL: the sandbox of that name; where there is none yet the exposure is made and waits for it.
struct expose_request {
    const char *principal, *manager, *sandbox_uid, *sandbox_name;
    int64_t port;
    const struct record_meta *wanted; // NULL = none
    bool is_dry_run;
};
void request_expose_as(struct world *world, const struct expose_request *request, record_request_fn done, void *arg);
// Operator only: decides; approving makes (or revives) the host Workspace in the same transaction. decision "approved"/"rejected".
// shown_resource_version 0 = not checked. Identity changed since asked → ERROR_CONFLICT. is_dry_run: everything is checked, nothing is kept.
void request_decision(struct world *world, const char *principal, const char *manager, const char *approval, const char *decision,
                      int64_t shown_resource_version, const char *reason, bool is_dry_run, record_request_fn done, void *arg);
// Operator only: pre-approves a host path: Approval (approved) and Workspace at once. record: the Workspace.
// wanted NULL: one that is there already is the answer. Else a new one gets its name, labels, annotations, finalizers and
// managedFields, and one that is there is ERROR_EXISTS. is_dry_run: everything is checked, nothing is kept.
void request_host_workspace(struct world *world, const char *principal, const char *manager, const char *path, const char *mode,
                            const struct record_meta *wanted, bool is_dry_run, record_request_fn done, void *arg);
// Operator's delete of any kind, with the policy's meaning for each (bound workspace refused, revoke, …).
void request_delete(struct world *world, const char *principal, const char *manager, enum kind kind, const char *uid, int64_t resource_version,
                    record_request_fn done, void *arg);
// What request_delete would answer; nothing is done.
void request_delete_dry_run(struct world *world, const char *principal, const char *manager, enum kind kind, const char *uid,
                            int64_t resource_version, record_request_fn done, void *arg);

// What the daemon finds when it looks at its driver, its store and its state directory, runtimes without a record included.
// done: once, on another thread than the caller's; findings are borrowed. -1: too many requests at once.
typedef void (*findings_request_fn)(void *arg, int result, const struct finding_list *findings, const struct error *err);
void request_findings(struct world *world, findings_request_fn done, void *arg);
void request_driver_findings(struct world *world, findings_request_fn done, void *arg); // the driver's own only
// Operator only: a connection to a port of a running sandbox. 0: done comes once, on the loop thread; fd (nonblocking) is the
// receiver's, or -1 with err. -1: it cannot be tried, and done does not come.
typedef void (*dial_request_fn)(void *arg, int fd, const struct error *err);
int request_dial(struct world *world, const struct record *sandbox, int port, dial_request_fn done, void *arg, struct error *err);
const char *request_driver_name(const struct world *world);

// What each live sandbox uses: [{name, uid, phase, atUs, cpuUs?, memoryBytes?, memoryLimitBytes?, processes?, callsRunning?, callsWaiting?,
// idleMs?, expiresAtMs?, note?}]. cpuUs: since its start; atUs: boot time when that was read. done: once, maybe on another thread; items
// are handed over, NULL with err.
typedef void (*usage_request_fn)(void *arg, json_t *items, const struct error *err);
void request_usage(struct world *world, usage_request_fn done, void *arg);

// ERROR_LIMIT when there are as many ApprovalRules as there may be. Before one is created, in the same transaction.
int rule_check_room(struct store_tx *tx, struct error *err);
// A pending approval that the rules have been asked about: it waits for a person.
bool approval_is_waiting(const struct record *approval);

// ---- path policy (reconcilers/path_policy.c) --------------------------------------------------------------------
struct host_path {
    char *resolved; // all symlinks resolved
    int64_t device, inode;
};
// Exists, a directory, resolves strictly below an allowed root, no blocked component (.aws .azure .config .docker .gnupg .kube
// .local .secrets .ssh), neither contains nor lies in the data root; clone: top level of a repository with a real .git
// directory and no alternates leading out. For callers on the untrusted side every refusal is the one uniform sentence
// PATH_REFUSED_MESSAGE (is_operator false); the operator is told the exact reason.
#define PATH_REFUSED_MESSAGE "this host path cannot be approved"
int path_policy_check(const struct config *config, const char *path, enum workspace_mode mode, bool is_operator, struct host_path *ret,
                      struct error *err);
void host_path_clear(struct host_path *path);

// ---- rendering for MCP (product policy's words) -----------------------------------------------------------------
json_t *render_sandbox(struct world *world, const struct record *sandbox);    // {id, status, workspace{…}, error?, …}
json_t *render_workspace(const struct record *workspace);
json_t *render_approval(const struct record *approval);                       // {id, status, path, mode, createdAt, decidedAt?}
json_t *render_exposure(const struct record *exposure);                       // {sandboxId, sandboxPort, hostPort}
