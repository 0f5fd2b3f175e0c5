// The whole control plane without HTTP, in a temporary directory, on a fake clock, with the fault-injecting driver. Reconciles run on the
// test's own thread (world_settle), so tests decide what happens when.
#pragma once
#include "reconcilers/reconcilers.h"
#include "tests/support/fake_driver.h"
#include "tests/support/support.h"

struct world_fixture {
    char *dir;
    int worker_count; // of the manager; -1: the test's own thread
    struct config config;
    struct spawner *spawner;
    struct world world;
};
struct world_fixture *world_open(void);
// As a daemon runs it: on the real clock, and on its workers. world_settle and what uses it are not for it.
struct world_fixture *world_open_busy(void);
void world_close(struct world_fixture *fixture);
// As if the daemon was killed and started again on the same state: the driver keeps its runtimes, memory is lost.
void world_restart(struct world_fixture *fixture);
int world_setup(void **state); // cmocka
int world_teardown(void **state);

void world_settle(struct world_fixture *fixture); // until nothing is ready, the driver's and lanes' answers included
// The same, until the sandbox has this word: for what the outside starts (a killed process) and nothing waits for.
void world_settle_until(struct world_fixture *fixture, const char *uid, const char *word);
void world_advance(struct world_fixture *fixture, int64_t ms);

// Requests, waited for. On failure *ret is NULL and err filled.
int world_create(struct world_fixture *fixture, const struct sandbox_request *request, enum sandbox_outcome *ret_outcome, struct record **ret,
                 struct error *err);
struct record *world_create_running(struct world_fixture *fixture); // a new managed sandbox that is Ready
int world_destroy(struct world_fixture *fixture, const char *uid, struct record **ret, struct error *err);
int world_destroy_unsaved(struct world_fixture *fixture, const char *uid, json_t **ret_unsaved, struct error *err);
int world_expose(struct world_fixture *fixture, const char *uid, int64_t port, struct record **ret, struct error *err);
int world_decide(struct world_fixture *fixture, const char *approval, const char *decision, int64_t shown, struct error *err);
int world_delete(struct world_fixture *fixture, enum kind kind, const char *uid, struct error *err);
struct record *world_get_record(struct world_fixture *fixture, enum kind kind, const char *uid); // fresh; the caller's
// The word that MCP callers see for a sandbox ("running"); owned by the fixture until the next call.
const char *world_word(struct world_fixture *fixture, const char *uid);
// One tool call through the lane, waited for (at most 20 s of real time). *ret is a new reference.
int world_call(struct world_fixture *fixture, const char *uid, const char *tool, json_t *arguments, json_t **ret, struct error *err);
char *world_make_repository(struct world_fixture *fixture, const char *name); // below the allowed root; path is the caller's
char *world_make_host_dir(struct world_fixture *fixture, const char *name);
#define REQUEST_MCP(...) (&(struct sandbox_request){.principal = PRINCIPAL_MCP, .manager = "mcp", ##__VA_ARGS__})
