// bubblewrap's options, in a memfd that it reads with --args: the environment does not show in a process list.
#pragma once
#include "reconcilers/drivers/bubblewrap/shim/stage.h"

int bwrap_args_make(const struct stage *stage, struct error *err); // the descriptor is inherited by exec; the caller's
