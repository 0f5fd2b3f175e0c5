// The fixed-name tools of the public MCP conformance suite, so that its scenarios run for real. Compiled only into the
// CMake target conformance, which is never released; tests/conformance/mcp proves that. They are data, schemas/conformance/
// tools.json: a catalogue entry and a result for each.
#pragma once
#include "api/mcp/exchange.h"

// NULL if the name is none of theirs.
const struct tool *conformance_tool_find(const char *name);
// Appends their entries to the list and the table of entries.
int conformance_extend(struct catalogue *catalogue, struct error *err);
// What the protocol asks before such a tool runs: the client's capabilities, and headers that agree with the arguments.
// True: the call was refused and answered.
bool conformance_refuse(struct mcp_call *call, const struct tool *tool, const json_t *arguments);
