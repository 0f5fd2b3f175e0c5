// The operator API over its real Unix socket in front of a whole control plane with a fault-injecting driver,
// and a client of it that reads watches line by line.
#pragma once
#include "api/operator/operator.h"
#include "controller/base/json.h"
#include "tests/support/world_fixture.h"

#define OPERATOR_KINDS "/apis/chat2shell.dev/v1"

struct operator_rig {
    struct world_fixture *fixture;
    struct operator_server *server;
};
int operator_rig_setup(void **state); // cmocka
int operator_rig_setup_busy(void **state); // over world_open_busy
int operator_rig_teardown(void **state);

int operator_rig_connect(const struct operator_rig *rig);
// One exchange; fails the test unless the status is `expected`. NULL where the answer is not JSON.
json_t *operator_rig_call(const struct operator_rig *rig, const char *method, const char *path,
                          const char *headers, const char *body, int expected);
char *operator_rig_text(const struct operator_rig *rig, const char *path,
                        int expected); // the body as it came
// Workspaces need no reconcile to be there.
void operator_rig_make_workspace(const struct operator_rig *rig, const char *name, const char *labels_json);
void operator_rig_label(const struct operator_rig *rig, const char *workspace, const char *labels_json);
void operator_rig_remove(const struct operator_rig *rig, const char *workspace); // its finalizer, too

struct watch_client;
// path with its query; headers: lines that end in CRLF, or "". The answer must be 200.
struct watch_client *watch_client_open(const struct operator_rig *rig, const char *path, const char *headers);
// The same on a connection that is there already, and taken.
struct watch_client *watch_client_on(int fd, const char *path, const char *headers);
void watch_client_close(struct watch_client *client);
// The next event, a new reference; NULL: the stream ended (is_clean: as a chunked answer does, and not in the middle of a line). The test
// fails if neither comes within 20 s.
json_t *watch_client_next(struct watch_client *client);
json_t *watch_client_wait(struct watch_client *client, int ms); // the same on any thread: NULL, too, when nothing comes for so long
bool watch_client_is_ended(const struct watch_client *client);
bool watch_client_is_clean(const struct watch_client *client);
bool watch_client_is_quiet(struct watch_client *client, int ms); // nothing comes for so long
int watch_client_fd(const struct watch_client *client);
// The next event must have this type and its object this name ("" = any). The caller's reference.
json_t *watch_client_expect(struct watch_client *client, const char *type, const char *name);
