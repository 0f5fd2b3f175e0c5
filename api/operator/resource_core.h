// Core v1's resources, read-only: Events in the namespace "default", and that namespace itself.
#pragma once
#include "api/operator/resource.h"

json_t *event_image(const struct store_event_row *row); // new reference
int64_t event_id_of_name(const char *name);             // 0: no event has such a name
json_t *namespace_image(struct wall_time made_at);      // new reference
