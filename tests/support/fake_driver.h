// A driver for tests, behind the real driver.h: runtimes are table rows, but the tool server in each is the real
// chat2shell-guest on a real directory. Every way in which a real driver can misbehave is a knob.
#pragma once
#include "reconcilers/drivers/driver.h"

enum fake_call { FAKE_CREATE, FAKE_SESSION, FAKE_REMOVE, FAKE_PUBLISH, FAKE_UNPUBLISH, FAKE_PROBE, FAKE_CALL_COUNT };
enum fake_fault {
    FAKE_OK,
    FAKE_FAIL,        // fails, nothing done
    FAKE_HALF_DONE,   // fails, but the effect happened
    FAKE_TIMEOUT,     // the same, with ERROR_TIMEOUT
    FAKE_HANG,        // never answers until released (a remove of the runtime cancels a hung create)
};

int fake_driver_new(const struct driver_options *options, struct driver **ret, struct error *err);
void fake_driver_set_loop(struct driver *driver, struct loop *loop); // after a restart: hung calls of the old one are forgotten
// The next `count` calls of this kind misbehave so (-1: for ever).
void fake_driver_inject(struct driver *driver, enum fake_call call, enum fake_fault fault, int count);
void fake_driver_release(struct driver *driver, enum fake_call call); // hung ones of this kind now succeed
int fake_driver_calls(struct driver *driver, enum fake_call call);    // how often it was called
int fake_driver_runtimes(struct driver *driver);                      // how many exist now
int fake_driver_hung(struct driver *driver);                          // calls that hang now
bool fake_driver_has(struct driver *driver, const char *runtime_name);
// Kills the tool server of the one runtime that exists (its stdio ends), or reports the runtime dead.
void fake_driver_kill_session(struct driver *driver);
void fake_driver_kill_runtime(struct driver *driver, const char *reason);
int fake_driver_names_reused(struct driver *driver); // creates with a name used before: must stay 0
