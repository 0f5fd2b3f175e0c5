// The token that a client of the MCP endpoint shows where the endpoint asks for one. It is read from a file that nobody else
// may read, never taken from a command line or the environment (both can be seen by others).
//
//     CLEANUP_SECRET char *authorization = NULL;
//     if (client_read_authorization(config->mcp_token_file, &authorization, err) < 0) return -1;
//     const char *headers[] = {"Accept: …", authorization, NULL}; // NULL: no token is configured, none is sent
#pragma once
#include "controller/base/error.h"

#define CLIENT_TOKEN_MAX_BYTES 8192

// path: a file of this user (or root) and of mode 0600 or less that holds one line, the token itself or "Bearer " and the
// token; NULL or "": none. *ret: the whole header line "Authorization: Bearer …", the caller's, secret; NULL if there is none.
int client_read_authorization(const char *path, char **ret, struct error *err);
