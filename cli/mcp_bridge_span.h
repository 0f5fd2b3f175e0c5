// Members of a JSON object in its own bytes. The bridge passes lines on as they came and answers with ids as they
// came, so it needs to see where a value stands, not what a JSON library makes of it (an integer beyond 64 bits, a
// number's spelling, an escape). Tolerant on purpose: what is not JSON is found to have no members, and the daemon
// says what is wrong with it. Pure; nothing is allocated.
#pragma once
#include <stdbool.h>
#include <stddef.h>

struct mcp_span {
    const char *text; // not NUL-terminated; NULL = absent
    size_t len;
};
struct mcp_span mcp_span_trim(struct mcp_span span);
bool mcp_span_equals(struct mcp_span span, const char *text);
// The member's value, without blanks around. name is compared with the key's bytes as they stand.
bool mcp_span_member(struct mcp_span object, const char *name, struct mcp_span *ret);
// Takes the next element of an array. *at begins as the array and becomes what is left of it.
bool mcp_span_element(struct mcp_span *at, struct mcp_span *ret);

// ---- the id of a line that is too long to keep: fed piece by piece -----------------------------------------------
#define MCP_ID_MAX_BYTES 1024
struct mcp_id_search {
    size_t depth;
    bool is_in_string, is_escaped;
    enum { MCP_AT_KEY, MCP_IN_KEY, MCP_AT_COLON, MCP_IN_VALUE } place; // in the outermost object
    char key[8], id[MCP_ID_MAX_BYTES];
    size_t key_len, id_len;
    bool is_over, is_found; // the id is too long as well; it is complete
};
void mcp_id_search_feed(struct mcp_id_search *search, const char *bytes, size_t len);
struct mcp_span mcp_id_search_result(const struct mcp_id_search *search); // absent if there was none
