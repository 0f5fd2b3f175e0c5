// The operator's programs in sandboxes, as this API knows them.
#pragma once
#include "reconcilers/reconcilers.h"

struct execs;
struct execs *operator_execs_new(struct world *world);
void operator_execs_stop(struct execs *execs); // ends all; not on the loop thread
void operator_execs_free(struct execs *execs); // after operator_execs_stop
