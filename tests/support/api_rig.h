// The operator API over its real Unix socket, in front of a whole control plane with a fault-injecting driver.
#pragma once
#include "api/operator/operator.h"
#include "controller/base/json.h"
#include "tests/support/world_fixture.h"

#define API_KINDS "/apis/chat2shell.dev/v1"
#define API_JSON "application/json"
#define API_MERGE "application/merge-patch+json"
#define API_JSON_PATCH "application/json-patch+json"
#define API_APPLY "application/apply-patch+yaml"

struct api_rig {
    struct world_fixture *fixture;
    struct operator_server *server;
    char warning[4096]; // header Warning of the last answer; "" = none
};
int api_rig_setup(void **state);
int api_rig_teardown(void **state);
// One request; its answer's status must be `expected`. New reference. type NULL: no Content-Type.
json_t *api_call(struct api_rig *api, const char *method, const char *path, const char *type, const char *body, int expected);
void api_check(struct api_rig *api, const char *method, const char *path, const char *type, const char *body, int expected);
const char *api_text(const json_t *json, const char *path); // "metadata/name"; "" if there is none
json_t *api_at(const json_t *json, const char *path);       // borrowed; NULL if there is none
void api_assert_status(const json_t *status, const char *reason, const char *words);
bool api_has_cause(const json_t *status, const char *field, const char *reason);
// fieldsV1 of a managedFields entry, borrowed; NULL if there is none.
json_t *api_owned(const json_t *object, const char *manager, const char *operation);
