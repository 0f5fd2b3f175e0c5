#include "controller/tunnel_command.h"
#include "controller/base/fs.h"
#include "controller/base/memory.h"
#include "controller/tunnel.h"
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#define INSIDE_DIR "/run/chat2shell-tunnel"

static const char *const passed_on[] = {"HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy",   "ALL_PROXY",
                                        "all_proxy",   "NO_PROXY",    "no_proxy",   "SSL_CERT_FILE", "SSL_CERT_DIR"};

// What a network client reads of /etc: names, certificates, the dynamic linker's list. Never the whole of it.
static const char *const etc_files[] = {
    "/etc/ssl",           "/etc/ca-certificates", "/etc/ca-certificates.conf", "/etc/pki",       "/etc/crypto-policies", "/etc/hosts",
    "/etc/nsswitch.conf", "/etc/host.conf",       "/etc/gai.conf",             "/etc/localtime", "/etc/ld.so.cache",     "/etc/services",
    "/etc/alternatives",
};
// Either links into /usr or directories of their own, as the host has it.
static const char *const usr_links[] = {"/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"};
static const char *const fixed_options[] = {
    "--unshare-user", "--disable-userns", "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try",
    "--cap-drop",     "ALL",              "--die-with-parent",
    "--as-pid-1", // the client is told to end by a signal of ours, which a process in between would not pass on
    "--ro-bind",      "/usr",             "/usr",
    "--proc",         "/proc",            "--dev",         "/dev",          "--tmpfs",       "/tmp",
};

__attribute__((format(printf, 2, 3))) static void add(struct tunnel_command *command, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    command->argv = mem_realloc_array(command->argv, command->count + 2, sizeof(*command->argv));
    command->argv[command->count++] = mem_vformat(format, args);
    command->argv[command->count] = NULL;
    va_end(args);
}

static void add_mount(struct tunnel_command *command, const char *option, const char *from, const char *to)
{
    add(command, "%s", option);
    add(command, "%s", from);
    add(command, "%s", to);
}

static void add_usr_link(struct tunnel_command *command, const char *path)
{
    char target[PATH_MAX];
    ssize_t len = readlink(path, target, sizeof(target) - 1);
    if (len < 0) {
        add_mount(command, "--ro-bind-try", path, path);
        return;
    }
    target[len] = '\0';
    add_mount(command, "--symlink", target, path);
}

// Where resolv.conf is a link, its owner (systemd-resolved, NetworkManager) replaces the file that it points to: then the
// directory is shown, so that a change of networks reaches the client.
static void add_resolv_conf(struct tunnel_command *command)
{
    static const char path[] = "/etc/resolv.conf";
    CLEANUP_FREE char *target = realpath(path, NULL);
    if (!target || strcmp(target, path) == 0 || strncmp(target, "/run/", 5) != 0) {
        add_mount(command, "--ro-bind-try", path, path);
        return;
    }
    CLEANUP_FREE char *dir = mem_strndup(target, (size_t)(strrchr(target, '/') - target));
    add_mount(command, "--ro-bind-try", dir, dir);
    add_mount(command, "--symlink", target, path);
}

static void add_confinement(struct tunnel_command *command, const struct tunnel_call *call, const char *key,
                            const char *authorization)
{
    add(command, "%s", call->bwrap);
    for (size_t i = 0; i < ARRAY_LEN(fixed_options); i++)
        add(command, "%s", fixed_options[i]);
    for (size_t i = 0; i < ARRAY_LEN(usr_links); i++)
        add_usr_link(command, usr_links[i]);
    for (size_t i = 0; i < ARRAY_LEN(etc_files); i++)
        add_mount(command, "--ro-bind-try", etc_files[i], etc_files[i]);
    for (size_t i = 0; i < ARRAY_LEN(passed_on); i++)
        if (strncmp(passed_on[i], "SSL_", 4) == 0 && getenv(passed_on[i]) && getenv(passed_on[i])[0] == '/')
            add_mount(command, "--ro-bind-try", getenv(passed_on[i]), getenv(passed_on[i]));
    add_resolv_conf(command);
    add_mount(command, "--ro-bind", call->config->tunnel_client, call->config->tunnel_client);
    add_mount(command, "--ro-bind", key, key);
    if (authorization)
        add_mount(command, "--ro-bind", authorization, authorization);
    add_mount(command, "--bind", call->runtime_dir, INSIDE_DIR);
    add(command, "--chdir");
    add(command, "/");
    add(command, "--json-status-fd");
    add(command, "%d", TUNNEL_STATUS_FD);
    add(command, "--");
}

struct tunnel_command tunnel_command_make(const struct tunnel_call *call)
{
    struct tunnel_command command = {0};
    CLEANUP_FREE char *key = tunnel_key_path(call->config);
    CLEANUP_FREE char *authorization = tunnel_authorization_path(call->config);
    const char *dir = call->bwrap ? INSIDE_DIR : call->runtime_dir;
    if (call->bwrap)
        add_confinement(&command, call, key, authorization);
    add(&command, "%s", call->config->tunnel_client);
    add(&command, "run");
    const struct {
        const char *flag, *before, *value, *after;
    } options[] = {
        {"--control-plane.tunnel-id", "", call->id, ""},        {"--control-plane.api-key", "file:", key, ""},
        {"--mcp.server-url", "", call->mcp_url, ""},            {"--health.listen-addr", "", "127.0.0.1:0", ""},
        {"--health.url-file", "", dir, "/" TUNNEL_URL_NAME},
    };
    for (size_t i = 0; i < ARRAY_LEN(options); i++) {
        add(&command, "%s", options[i].flag);
        add(&command, "%s%s%s", options[i].before, options[i].value, options[i].after);
    }
    if (authorization) { // what the endpoint asks for; the client reads it, nothing here does
        add(&command, "--mcp.extra-headers");
        add(&command, "Authorization: file:%s", authorization);
    }
    return command;
}

struct tunnel_command tunnel_command_environment(void)
{
    struct tunnel_command environment = {0};
    add(&environment, "PATH=/usr/local/bin:/usr/bin:/bin");
    add(&environment, "HOME=/nonexistent"); // it keeps nothing there, and finds no settings there that nobody here knows of
    for (size_t i = 0; i < ARRAY_LEN(passed_on); i++)
        if (getenv(passed_on[i]))
            add(&environment, "%s=%s", passed_on[i], getenv(passed_on[i]));
    return environment;
}

void tunnel_command_free(struct tunnel_command *command)
{
    for (size_t i = 0; i < command->count; i++)
        free(command->argv[i]);
    free(command->argv);
    *command = (struct tunnel_command){0};
}
