// A store in a temporary directory on a fake clock.
//
//     struct store_fixture *fixture = store_fixture_open();
//     struct record *workspace = store_fixture_create(fixture, store_fixture_workspace("dev"));
//     …
//     store_fixture_close(fixture);
#pragma once
#include "controller/base/json.h"
#include "controller/store/store.h"
#include "tests/support/support.h"

#define STORE_FIXTURE_START_MS 1796000000000LL

struct store_fixture {
    char *dir; // the state directory lies in it
    char *state_dir;
    struct clock *clock;
    struct store *store;
    struct store_options options; // change, then store_fixture_reopen
};
extern const struct store_actor store_fixture_operator, store_fixture_controller;

struct store_fixture *store_fixture_open(void);
void store_fixture_close(struct store_fixture *fixture);
void store_fixture_reopen(struct store_fixture *fixture); // close and open: what a restart reads back
int store_fixture_setup(void **state);                    // cmocka: *state is the fixture
int store_fixture_teardown(void **state);

// Records of minimal valid spec, not stored. The caller's.
struct record *store_fixture_workspace(const char *name);
struct record *store_fixture_approval(const char *path);
struct record *store_fixture_sandbox(const char *name, const struct record *workspace); // bound to it, with the runtime's finalizer
struct record *store_fixture_exposure(const char *name, const struct record *sandbox, int64_t port); // bound
// Stores it (the test fails if the store refuses) and returns it with its identity.
struct record *store_fixture_create(struct store_fixture *fixture, struct record *record);
struct record *store_fixture_get(struct store_fixture *fixture, const struct record *record); // fresh, by uid
// One-write transactions.
int store_fixture_try_create(struct store *store, struct record *record, struct error *err);
int store_fixture_write_spec(struct store *store, struct record *record, struct error *err);
int store_fixture_write_meta(struct store *store, struct record *record, struct error *err);
int store_fixture_delete(struct store *store, enum kind kind, const char *uid, struct error *err);
