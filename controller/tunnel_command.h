// How the tunnel client is called: its arguments, its environment, and around both the confinement in which it runs where
// bubblewrap can make one.
//
// Confined: own user, mount, pid, ipc, uts and cgroup namespaces, no capability. It sees /usr, the few files of /etc that a
// network client reads, its own program and its key (read-only), and one directory that it may write, which is the tunnel's
// alone. The state directory, the data root, homes and /run are not there. The network is the host's.
#pragma once
#include "controller/config.h"

#define TUNNEL_URL_NAME "health-url"
#define TUNNEL_STATUS_FD 3 // bubblewrap tells there which process it made, and whether the confinement stood

struct tunnel_command {
    char **argv; // NULL-terminated
    size_t count;
};
struct tunnel_call {
    const struct config *config;
    const char *id, *mcp_url;
    const char *runtime_dir; // absolute; the client's to write
    const char *bwrap;       // NULL: not confined
};
struct tunnel_command tunnel_command_make(const struct tunnel_call *call);
// What of our environment the client needs: where the way out of this network is. Nothing that looks like a key.
struct tunnel_command tunnel_command_environment(void);
void tunnel_command_free(struct tunnel_command *command);
