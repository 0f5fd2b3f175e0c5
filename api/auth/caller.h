// Who makes a request of the MCP endpoint, and what it may do. Without authentication everybody is the one untrusted
// caller, who may do all that the endpoint offers; with it a caller is a token's name or an OAuth subject. Never more
// than the endpoint offers: no caller from here is ever an operator.
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum auth_scope { // bits; what a tool needs is a column of api/tools/table.c
    SCOPE_NONE = 0,
    SCOPE_TOOLS_READ = 1,
    SCOPE_TOOLS_WRITE = 2,
    SCOPE_SANDBOXES_MANAGE = 4,
    SCOPE_ALL = 7,
};
#define CALLER_PRINCIPAL_SIZE 192
struct caller {
    char principal[CALLER_PRINCIPAL_SIZE]; // "mcp", "mcp:token:NAME", "mcp:oauth:SUBJECT"
    unsigned scopes;
    int64_t token_id; // of a static token, to see whether it was revoked; 0: it showed none
};
#define CALLER_ANYBODY {.principal = "mcp", .scopes = SCOPE_ALL}

const char *auth_scope_word(enum auth_scope scope);     // of one bit: "tools:read"
#define AUTH_SCOPES_TEXT_SIZE 64
void auth_scopes_format(unsigned scopes, char text[AUTH_SCOPES_TEXT_SIZE]); // "tools:read tools:write"
// Words separated by blanks, as OAuth writes them. Unknown words are skipped and counted in *ret_unknown (NULL allowed).
unsigned auth_scopes_parse(const char *text, size_t len, size_t *ret_unknown);
