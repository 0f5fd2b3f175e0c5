// Which changed paths want a second look, by the words in them.
#pragma once
#include "api/guest/tool.h"

extern const struct tool_field change_risk_fields[];
json_t *change_risks_of(const json_t *paths); // an array of signals; the caller's
