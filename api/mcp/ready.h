// Results that are the same for every caller, made once when the server starts: what is asked most often costs no more than sending it.
#pragma once
#include "api/mcp/revision.h"
#include "api/tools/tools.h"

#define MCP_READY_REVISIONS 8 // at least as many as the table of revision.c has

struct mcp_ready {
    struct shared_text *initialize[MCP_READY_REVISIONS]; // by mcp_revision_index; legacy ones only
    struct shared_text *discover;
    struct shared_text *tools[MCP_MODERN + 1]; // tools/list, by era
    char *modern_members;                      // what mcp_finish_result adds, with a comma before and the closing brace behind
};
void mcp_ready_make(const struct catalogue *catalogue, struct mcp_ready *ret);
void mcp_ready_clear(struct mcp_ready *ready);

// Adds what every modern result has. The result's reference stays the caller's.
void mcp_finish_result(json_t *result, enum mcp_era era);
// The same for a result that is text. Takes the reference, gives one back.
struct shared_text *mcp_finish_text(const struct mcp_ready *ready, struct shared_text *result, enum mcp_era era);
