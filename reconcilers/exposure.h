// Shared by the Exposure reconciler and the request that makes one.
#pragma once
#include "reconcilers/world.h"

// What an exposure says whose spec names a sandbox that is not there.
void exposure_set_waiting(struct record *exposure, struct wall_time now);
// The condition Ready, from Published and Reachable as they stand; to be called before each write of its status.
void exposure_settle_ready(struct record *exposure, struct wall_time now);
// Binds it to the sandbox that its spec names, in one transaction, or writes down what it waits for: status.sandboxUid says which.
enum reconcile_verdict exposure_bind(struct world *world, struct record *exposure, struct error *err);
