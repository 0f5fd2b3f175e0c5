// The operator API: Kubernetes REST conventions on the Unix socket STATE_DIR/operator.sock (0600 in a 0700 directory; the peer
// must be this uid or root and live in the daemon's own user namespace), and, once asked for, over TLS on 127.0.0.1 for who has
// its token (listener.h); there without chat2shell's own paths.
//
// Kinds, under /apis/chat2shell.dev/v1/PLURAL (workspaces approvals approvalrules sandboxes sessions exposures):
//   GET    /PLURAL                     {kind: "SandboxList", metadata: {resourceVersion, continue?, remainingItemCount?}, items: […]};
//                                      labelSelector, fieldSelector (the fields that the field tables mark), limit and continue (all
//                                      pieces show the revision of the first, or 410 Expired with a token that begins anew behind it),
//                                      resourceVersion with resourceVersionMatch=Exact|NotOlderThan. Accept as=Table (includeObject) or
//                                      as=PartialObjectMetadataList gives those
//   GET    /PLURAL?watch=true          a stream of {"type": "ADDED|MODIFIED|DELETED|BOOKMARK|ERROR", "object"} lines, from resourceVersion
//                                      on, or behind the state as it is (none, or 0, or sendInitialEvents); the same selectors: an object
//                                      that stops fitting is DELETED. allowWatchBookmarks, timeoutSeconds. 410 Expired: list again
//   GET    /PLURAL/NAME                NAME may be a name, a uid, or a unique prefix (8 characters or more) of a uid. By its whole
//                                      uid a removed record is read, too, for 30 days: its last image, with deletionTimestamp and the
//                                      annotation chat2shell.dev/removed-at; every other request for it is 404
//   POST   /PLURAL                     creates (201); metadata.generateName makes a name
//   PUT    /PLURAL/NAME                replaces spec, labels, annotations, ownerReferences and finalizers (the server's own, chat2shell.dev/…, stay);
//                                      metadata.name must be there; metadata.resourceVersion and metadata.uid must be current if given
//   PATCH  /PLURAL/NAME                application/merge-patch+json (RFC 7386), application/json-patch+json (RFC 6902, at most 10,000
//                                      operations), application/apply-patch+yaml (server-side apply of JSON or YAML: creates (201) or
//                                      updates; ?fieldManager=M is required, &force=true takes other managers' fields)
//   DELETE /PLURAL/NAME                the product policy's meaning for each kind; body DeleteOptions {preconditions: {uid,
//                                      resourceVersion}, propagationPolicy, dryRun: ["All"]} optional; answers the object (with
//                                      deletionTimestamp), or a Status of success if it is gone at once
//   DELETE /PLURAL                     all that labelSelector and fieldSelector fit (at most 1,000); what the policy refuses is named
//   GET    /PLURAL/NAME/status         the object; nobody writes status here
// All writes: ?dryRun=All (everything is checked and nothing kept);
// &fieldManager=M (else the User-Agent's program); &fieldValidation=Strict (the default here), Warn (header Warning) or Ignore.
// metadata.managedFields says who set what, as Kubernetes has it. Bodies may be application/yaml where objects are written.
// Creating a Sandbox or Exposure goes through the same admission as MCP's (request_*), so races are settled in one place.
// A Workspace of a host mode made by POST is pre-approved by its operator (request_host_workspace). An Approval's decision is
// spec.decision, by PATCH or PUT (request_decision); approving waits until status.workspaceRef is set (at most 10 s).
//   GET    /api/v1/namespaces/default/events?fieldSelector=involvedObject.uid=UID     core v1 Events, listed and watched alike;
//                                      their resourceVersion is their own
//   GET    /api/v1/namespaces          the one namespace, "default"
// Failures are kind Status with reason, code, message, details.causes[]; our hint is details.hint, our own word
// for what went wrong details.code (controller/base/error.h).
//
// chat2shell's own, under /chat2shell/v1 (JSON):
//   GET    /status                     {version, pid, startedAt, driver, mcp: {host, port}, sandboxes: {running: n, …}, approvalsPending,
//                                      exposures: n, workspaces: {…}, store: {…}, queues: [{name, depth, runs, failures}], lastErrors: […],
//                                      kubernetes: {isOn, host, port, message?},
//                                      tunnel: {state: "off"|"starting"|"ready"|"not ready"|"ended", message, …}}; asks the tunnel client (≤ 2 s)
//   GET    /doctor                     {findings: [{level: "pass"|"warn"|"fail", check, what, fix?}]}
//   GET    /usage                      {items: [{name, uid, phase, atUs, cpuUs?, memoryBytes?, memoryLimitBytes?, processes?, callsRunning?,
//                                      callsWaiting?, idleMs?, expiresAtMs?, note?}]} (request_usage)
//   POST   /stop                       202, then the daemon stops as by SIGTERM
//   POST   /workspaces  {path, mode?}  → Workspace (request_host_workspace)
//   GET    /tokens                     {items: [{name, scopes: […], createdAt, createdBy, expiresAt, lastUsedAt, isExpired}]}; tokens never
//   POST   /tokens  {name, scopes?: […], expiresInMs?}  201, the same and {token}: the only answer that has it
//   DELETE /tokens/NAME                200 {name, status: "revoked"}; no request is served with it any more
//   GET    /kubeconfig                 {isOn, isListening, server?, tokenFile?, certificate?, message?} of the TLS listener
//   POST   /kubeconfig  {rotate?}      opens it (rotate: with a new token, at once in place of the old one); the same
//   DELETE /kubeconfig                 closes it and ends its token
//   GET    /sandboxes/NAME/unsaved     {isClone, isRepository, changedFiles, unexportedCommits} (nulls where it is no clone or does not answer)
//   POST   /sandboxes/NAME/logs        {after?, sinceMs?, tail?, source?: "calls"|"server"|"all", waitMs?: 0–30000} → {uid, lines: [{timeMs,
//                                      source: "call"|"server", text, caller?, tool?, result?, exitCode?, durationMs?}], position, hasGap, hasMore,
//                                      isOver}: `after` of the next request is `position`; waits until there is something. NAME: also a
//                                      sandbox that was removed in the last hour
//   POST   /sandboxes/NAME/exec        {argv: […], cwd?, env?, label? (what `logs` calls it), tty?: {columns?, rows?, term?}}; the data plane of `exec`, `cp` and `export`, spoken
//                                      to the tool server. With `Connection: Upgrade` and `Upgrade: chat2shell-stream` it answers 101, and the
//                                      program's streams follow in frames (controller/base/frames.h); the connection's end is the program's.
//                                      Else → {execId}, for callers that want requests:
//   POST   /sandboxes/NAME/ports/PORT/connect                    with the same Upgrade: a connection to that port inside, in frames; 503 if
//                                      nothing listens there
//   POST   /sandboxes/NAME/exec/ID/write {data: base64, eof}      → {}
//   POST   /sandboxes/NAME/exec/ID/read  {waitMs: 0–30000}        → {stdout, stderr: base64, exited, exitCode}
//   POST   /sandboxes/NAME/exec/ID/signal {signal}                → {}
//   POST   /sandboxes/NAME/exec/ID/end                            → {}
// As Kubernetes has them: /version; /api, /apis and the groups' documents (aggregated, v2 and v2beta1, where Accept asks); /openapi/v3,
// and /openapi/v2 as protobuf for older kubectl, from the field tables; authorization.k8s.io/v1 SelfSubjectAccessReview and
// SelfSubjectRulesReview; /livez, /readyz and /healthz (?verbose, ?exclude=, /readyz/CHECK); /metrics in the Prometheus text format.
#pragma once
#include "reconcilers/reconcilers.h"

#define OPERATOR_SOCKET_NAME "operator.sock"
#define OPERATOR_BODY_MAX_BYTES (4 * 1024 * 1024)

struct operator_server;
int operator_server_start(struct world *world, struct operator_server **ret, struct error *err);
void operator_server_stop(struct operator_server *server); // NULL allowed; answers everything that waits first
// What /status and /doctor say about the MCP listener, once it is there. Any thread.
void operator_server_set_mcp_port(struct operator_server *server, int port);
// Whom they ask about the tunnel: loop-thread memory of the server's. NULL (before the tunnel is stopped): it is off. Not on the loop
// thread; server may be NULL.
struct tunnel;
void operator_server_set_tunnel(struct operator_server *server, struct tunnel *tunnel);
