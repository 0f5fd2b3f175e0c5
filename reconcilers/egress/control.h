// The controller's side: requests over control-fd (controller/base/egress_protocol.h). Its end ends the process.
#pragma once
#include "reconcilers/egress/egress.h"

int control_open(struct egress *egress, struct error *err);
void control_close(struct egress *egress);
// {"op":"ready",…}: once at start, and again when address_check has changed.
void control_announce(struct egress *egress);
