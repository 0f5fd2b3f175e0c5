// The daemon's configuration, from the environment (deploy/env.example lists every variable with its default).
// A wrong value is named and refused at start, before anything is touched.
#pragma once
#include "controller/base/error.h"
#include "schemas/kinds/kinds.h"
#include <stdbool.h>

enum auth_mode { AUTH_TOKEN = 1, AUTH_OAUTH = 2 }; // who may use the MCP endpoint; 0: whoever reaches it

#define CONFIG_SANDBOXES_MAX 4096

struct config {
    char *host;              // CHAT2SHELL_HOST: 127.0.0.1; one that is not a loopback address needs auth_modes
    int port;                // CHAT2SHELL_PORT: 18788; 0 = any free port (tests)
    int kube_port;           // CHAT2SHELL_KUBE_PORT: 18789; 0 = any free port
    char *data_root;         // CHAT2SHELL_DATA_ROOT: ~/.chat2shell
    char *state_dir;         // CHAT2SHELL_STATE_DIR: DATA_ROOT/state; database chat2shell.sqlite, socket operator.sock
    char *workspace_root;    // CHAT2SHELL_WORKSPACE_ROOT: DATA_ROOT/workspaces
    struct text_list allowed_host_roots; // CHAT2SHELL_ALLOWED_HOST_ROOTS: ~/repositories, colon-separated, absolute; "" = none
    char *driver;            // CHAT2SHELL_DRIVER: auto | bubblewrap | sbx
    char *sbx;               // CHAT2SHELL_SBX: sbx; a program's name to look for in PATH, or its absolute path
    int max_sandboxes;       // CHAT2SHELL_MAX_SANDBOXES: 64; of all callers together, failed ones included
    bool is_tunnel_enabled;  // CHAT2SHELL_ENABLE_TUNNEL: 1 | 0
    char *secret_dir;        // CHAT2SHELL_SECRET_DIR: ~/.secrets/tunnel-client
    char *tunnel_client;     // CHAT2SHELL_TUNNEL_CLIENT: ~/.local/bin/tunnel-client
    unsigned auth_modes;     // CHAT2SHELL_AUTH: none | token | oauth | token,oauth; bits of enum auth_mode
    char *public_url;        // CHAT2SHELL_PUBLIC_URL: "" = none; the OAuth resource identifier
    char *oauth_issuer;      // CHAT2SHELL_OAUTH_ISSUER: "" = none
    char *oauth_jwks;        // CHAT2SHELL_OAUTH_JWKS: "" = none; an absolute path or a URL
    char *mcp_token_file;    // CHAT2SHELL_MCP_TOKEN_FILE: "" = none; of the client side
    char *program_dir;       // where chat2shell-shim, -guest, -egress are: the directory of /proc/self/exe
};
// Paths come out absolute and clean ("~/" is expanded), and nothing of ours overlaps an allowed host root: a host path that
// could be approved must never reach the state. All problems are in one message, each naming its variable; the hint is
// the first one's. Touches nothing but the symlinks that it resolves.
int config_load(struct config *ret, struct error *err);
void config_free(struct config *config);
// Logs a warning for each CHAT2SHELL_ variable in the environment that nothing reads (a typing error, most likely).
void config_warn_unknown(void);

struct config_variable {
    const char *name;     // "CHAT2SHELL_PORT"
    const char *fallback; // as a user would write it; "DATA_ROOT/state" begins with the data root
    const char *doc;      // one line
};
// The i-th variable, NULL past the last one.
const struct config_variable *config_variable(size_t i);
