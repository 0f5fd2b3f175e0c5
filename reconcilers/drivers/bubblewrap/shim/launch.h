// Starting the staging process and waiting for what it and bubblewrap say.
#pragma once
#include "controller/base/time.h"
#include "reconcilers/drivers/bubblewrap/shim/shim.h"

int launch_stage(struct shim *shim, struct error *err);
// Waits until fd is readable; fails with what went wrong inside when bubblewrap ends first, at the deadline, or when the
// controller gives up.
int launch_wait(struct shim *shim, int fd, struct boot_time deadline, const char *for_what, struct error *err);
