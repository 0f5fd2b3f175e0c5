#include "controller/config.h"
#include "controller/base/buffer.h"
#include "controller/base/cleanup.h"
#include "controller/base/memory.h"
#include "controller/config_path.h"
#include "controller/config_url.h"
#include "controller/log.h"
#include <arpa/inet.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MAX_ROOTS 64
#define DATA_ROOT_WORD "DATA_ROOT"

extern char **environ;

// Reads text into the member at `at`. The error's message is what is wrong, without the variable's name.
typedef int (*read_fn)(const char *text, void *at, struct error *err);

// ---- one value ----------------------------------------------------------------------------------

static int read_host(const char *text, void *at, struct error *err)
{
    struct in_addr address;
    if (inet_pton(AF_INET, text, &address) != 1)
        return error_set(err, ERROR_INVALID, "give 127.0.0.1", "'%s' is not an IPv4 address", text);
    *(char **)at = mem_strdup(text);
    return 0;
}

static bool read_number(const char *text, long min, long max, int *ret)
{
    char *end;
    errno = 0;
    long number = strtol(text, &end, 10);
    bool is_right = text[0] >= '0' && text[0] <= '9' && !*end && !errno && number >= min && number <= max;
    if (is_right)
        *ret = (int)number;
    return is_right;
}

static int read_port(const char *text, void *at, struct error *err)
{
    if (!read_number(text, 0, 65535, at))
        return error_set(err, ERROR_INVALID, "give a number from 1 to 65535 (0: any free port)",
                         "'%s' is not a port", text);
    return 0;
}

static int read_sandboxes(const char *text, void *at, struct error *err)
{
    if (!read_number(text, 1, CONFIG_SANDBOXES_MAX, at))
        return error_set(err, ERROR_INVALID, "64 is the default", "'%s' is not a number from 1 to %d", text, CONFIG_SANDBOXES_MAX);
    return 0;
}

static int read_path(const char *text, void *at, struct error *err)
{
    return config_path_clean(text, at, err);
}

// A bare name stays one: it is looked for in PATH when it is needed.
static int read_program(const char *text, void *at, struct error *err)
{
    if (strchr(text, '/'))
        return read_path(text, at, err);
    *(char **)at = mem_strdup(text);
    return 0;
}

static int read_own_dir(const char *text, void *at, struct error *err)
{
    CLEANUP_FREE char *path = NULL;
    if (config_path_clean(text, &path, err) < 0)
        return -1;
    if (strcmp(path, "/") == 0)
        return error_set(err, ERROR_INVALID, "give a directory of its own",
                         "the root directory cannot be used");
    *(char **)at = config_path_resolve_parent(path); // what is mounted is opened without following links
    return 0;
}

static void add_root(struct text_list *list, char *path)
{
    list->items = mem_realloc_array(list->items, list->count + 1, sizeof(char *));
    list->items[list->count++] = path;
}

static void clear_roots(struct text_list *list)
{
    for (size_t i = 0; i < list->count; i++)
        free(list->items[i]);
    free(list->items);
    *list = (struct text_list){0};
}

static int read_roots(const char *text, void *at, struct error *err)
{
    CLEANUP(clear_roots) struct text_list list = {0};
    CLEANUP_FREE char *copy = mem_strdup(text);
    char *rest = copy;
    for (char *part; (part = strsep(&rest, ":"));) {
        char *path;
        if (!part[0])
            continue;
        if (list.count == MAX_ROOTS)
            return error_set(err, ERROR_INVALID, NULL, "more than %d directories", MAX_ROOTS);
        if (config_path_clean(part, &path, err) < 0)
            return -1;
        add_root(&list, path);
    }
    *(struct text_list *)at = list;
    list = (struct text_list){0};
    return 0;
}

static int read_driver(const char *text, void *at, struct error *err)
{
    static const char *const words[] = {"auto", "bubblewrap", "sbx"};
    for (size_t i = 0; i < ARRAY_LEN(words); i++)
        if (strcmp(text, words[i]) == 0) {
            *(char **)at = mem_strdup(text);
            return 0;
        }
    return error_set(err, ERROR_INVALID, "give auto, bubblewrap or sbx", "'%s' is not a driver", text);
}

static int read_switch(const char *text, void *at, struct error *err)
{
    if (strcmp(text, "0") != 0 && strcmp(text, "1") != 0)
        return error_set(err, ERROR_INVALID, "give 1 or 0", "'%s' is neither 1 nor 0", text);
    *(bool *)at = text[0] == '1';
    return 0;
}

static int read_auth(const char *text, void *at, struct error *err)
{
    static const struct {
        const char *word;
        unsigned modes;
    } words[] = {{"none", 0}, {"token", AUTH_TOKEN}, {"oauth", AUTH_OAUTH}, {"token,oauth", AUTH_TOKEN | AUTH_OAUTH}};
    for (size_t i = 0; i < ARRAY_LEN(words); i++)
        if (strcmp(text, words[i].word) == 0) {
            *(unsigned *)at = words[i].modes;
            return 0;
        }
    return error_set(err, ERROR_INVALID, "give none, token, oauth or token,oauth", "'%s' is no way to ask who somebody is", text);
}

// Tokens that travel in clear can be taken by whoever listens: plain http is for this machine only.
static int read_secure_url(const char *text, void *at, struct error *err)
{
    CLEANUP(config_url_clear) struct config_url url = {0};
    if (text[0] && config_url_parse(text, &url, err) < 0)
        return -1;
    if (text[0] && !url.is_https && !config_host_is_loopback(url.host))
        return error_set(err, ERROR_REFUSED, "give its https:// URL; http:// is for loopback addresses", "'%.200s' is not protected by TLS", text);
    *(char **)at = mem_strdup(text);
    return 0;
}

static int read_public_url(const char *text, void *at, struct error *err)
{
    CLEANUP(config_url_clear) struct config_url url = {0};
    if (text[0] && config_url_parse(text, &url, err) < 0)
        return -1;
    *(char **)at = mem_strdup(text);
    return 0;
}

static int read_path_or_none(const char *text, void *at, struct error *err)
{
    if (text[0])
        return read_path(text, at, err);
    *(char **)at = mem_strdup("");
    return 0;
}

static int read_path_or_url(const char *text, void *at, struct error *err)
{
    return strncmp(text, "http", 4) == 0 ? read_secure_url(text, at, err) : read_path_or_none(text, at, err);
}

// ---- the table ----------------------------------------------------------------------------------

// The data root comes before those that begin with it.
static const struct variable {
    struct config_variable shown;
    read_fn read;
    size_t offset;
    bool may_be_empty;
} variables[] = {
// clang-format off
#define AT(member) offsetof(struct config, member)
    {{"CHAT2SHELL_HOST", "127.0.0.1", "IPv4 address that MCP clients connect to; one that is not a loopback address needs CHAT2SHELL_AUTH."}, read_host, AT(host)},
    {{"CHAT2SHELL_PORT", "18788", "TCP port of the MCP endpoint; 0 takes any free one."}, read_port, AT(port)},
    {{"CHAT2SHELL_KUBE_PORT", "18789", "TCP port on 127.0.0.1 of the Kubernetes API, once chat2shell kubeconfig has opened it; 0 takes any free one, after --off another."},
     read_port, AT(kube_port)},
    {{"CHAT2SHELL_DATA_ROOT", "~/.chat2shell", "Directory for everything that chat2shell keeps (mode 0700)."}, read_own_dir,
     AT(data_root)},
    {{"CHAT2SHELL_STATE_DIR", "DATA_ROOT/state", "Directory of the database and the operator's socket."}, read_own_dir, AT(state_dir)},
    {{"CHAT2SHELL_WORKSPACE_ROOT", "DATA_ROOT/workspaces", "Directory of the managed workspaces and their trash."}, read_own_dir,
     AT(workspace_root)},
    {{"CHAT2SHELL_ALLOWED_HOST_ROOTS", "~/repositories",
      "Directories, separated by colons, below which a host path may be approved; empty: none."},
     read_roots, AT(allowed_host_roots), true},
    {{"CHAT2SHELL_DRIVER", "auto", "What makes sandboxes: bubblewrap, sbx (Docker Sandboxes), or auto: sbx where it answers, else bubblewrap."},
     read_driver, AT(driver)},
    {{"CHAT2SHELL_SBX", "sbx", "The program of Docker Sandboxes: an absolute path, or a name to look for in PATH."}, read_program, AT(sbx)},
    {{"CHAT2SHELL_MAX_SANDBOXES", "64", "How many sandboxes there may be at once, whoever made them: 1 to 4096."}, read_sandboxes, AT(max_sandboxes)},
    {{"CHAT2SHELL_ENABLE_TUNNEL", "1", "1: serve runs the tunnel client too. 0: it does not."}, read_switch, AT(is_tunnel_enabled)},
    {{"CHAT2SHELL_SECRET_DIR", "~/.secrets/tunnel-client", "Directory of the tunnel client's key, passed to it by path, never read."},
     read_path, AT(secret_dir)},
    {{"CHAT2SHELL_TUNNEL_CLIENT", "~/.local/bin/tunnel-client", "The tunnel client's program."}, read_path, AT(tunnel_client)},
    {{"CHAT2SHELL_AUTH", "none", "Who may use the MCP endpoint: none (whoever reaches it), token, oauth, or token,oauth (either)."}, read_auth, AT(auth_modes)},
    {{"CHAT2SHELL_PUBLIC_URL", "", "URL by which MCP clients reach the endpoint, if not by its address: its host name is accepted; the OAuth resource."},
     read_public_url, AT(public_url), true},
    {{"CHAT2SHELL_OAUTH_ISSUER", "", "URL of the OAuth authorization server, as its tokens name it (iss)."}, read_secure_url, AT(oauth_issuer), true},
    {{"CHAT2SHELL_OAUTH_JWKS", "", "Its public keys: the https URL of its key set, or an absolute path of a file with one."}, read_path_or_url,
     AT(oauth_jwks), true},
    {{"CHAT2SHELL_MCP_TOKEN_FILE", "", "File (mode 0600) with the token that the commands of chat2shell mcp show to an endpoint that asks for one."},
     read_path_or_none, AT(mcp_token_file), true},
#undef AT
    // clang-format on
};

const struct config_variable *config_variable(size_t i)
{
    return i < ARRAY_LEN(variables) ? &variables[i].shown : NULL;
}

// ---- loading ------------------------------------------------------------------------------------

struct problems {
    struct buffer text;
    struct error first;
};

static void add_problem(struct problems *problems, const struct error *err)
{
    if (problems->first.code == ERROR_NONE)
        problems->first = *err;
    if (problems->text.len)
        buffer_append_text(&problems->text, "; ");
    buffer_append_text(&problems->text, err->message);
}

// A fallback that begins with DATA_ROOT, as text. NULL when there is no data root, which is a problem of its
// own.
static char *fallback_text(const struct config *config, const char *fallback)
{
    size_t len = strlen(DATA_ROOT_WORD);
    if (strncmp(fallback, DATA_ROOT_WORD, len) != 0)
        return mem_strdup(fallback);
    return config->data_root ? mem_format("%s%s", config->data_root, fallback + len) : NULL;
}

static void read_variable(const struct variable *variable, struct config *config, struct problems *problems)
{
    struct error err = ERROR_INIT;
    const char *given = getenv(variable->shown.name);
    CLEANUP_FREE char *text = given ? mem_strdup(given) : fallback_text(config, variable->shown.fallback);
    if (!text)
        return;
    int result = given && !given[0] && !variable->may_be_empty
                     ? error_set(&err, ERROR_INVALID, "unset it to use the default", "is empty")
                     : variable->read(text, (char *)config + variable->offset, &err);
    if (result < 0) {
        error_context(&err, "%s", variable->shown.name);
        add_problem(problems, &err);
    }
}

static void refuse_overlap(struct problems *problems, const char *name, const char *path,
                           const char *other_name, const char *other)
{
    struct error err = ERROR_INIT;
    if (!path || !other || !config_path_overlaps(path, other))
        return;
    error_set(&err, ERROR_REFUSED, "choose directories of which none contains the other",
              "%s (%s) and %s (%s) overlap", name, path, other_name, other);
    add_problem(problems, &err);
}

// A host path below an allowed root can be approved and mounted, so nothing of ours may be reachable through
// one.
static void check_places(const struct config *config, struct problems *problems)
{
    const struct {
        const char *name, *path;
    } ours[] = {
        {"CHAT2SHELL_DATA_ROOT", config->data_root},
        {"CHAT2SHELL_STATE_DIR", config->state_dir},
        {"CHAT2SHELL_WORKSPACE_ROOT", config->workspace_root},
        {"CHAT2SHELL_SECRET_DIR", config->secret_dir},
    };
    for (size_t i = 0; i < ARRAY_LEN(ours); i++)
        for (size_t j = 0; j < config->allowed_host_roots.count; j++)
            refuse_overlap(problems, ours[i].name, ours[i].path, "CHAT2SHELL_ALLOWED_HOST_ROOTS",
                           config->allowed_host_roots.items[j]);
    refuse_overlap(problems, "CHAT2SHELL_STATE_DIR", config->state_dir, "CHAT2SHELL_WORKSPACE_ROOT",
                   config->workspace_root);
    refuse_overlap(problems, "CHAT2SHELL_SECRET_DIR", config->secret_dir, "CHAT2SHELL_WORKSPACE_ROOT",
                   config->workspace_root);
}

static void refuse_access(struct problems *problems, enum error_code code, const char *hint, const char *message)
{
    struct error err = ERROR_INIT;
    error_set(&err, code, hint, "%s", message);
    add_problem(problems, &err);
}

// Whoever reaches the endpoint has a shell in every sandbox: beyond this machine it is never open.
static void check_access(const struct config *config, struct problems *problems)
{
    if (config->host && !config->auth_modes && !config_host_is_loopback(config->host))
        refuse_access(problems, ERROR_REFUSED,
                      "set CHAT2SHELL_AUTH to token or oauth, or keep CHAT2SHELL_HOST=127.0.0.1 and use the tunnel or 'ssh -L 18788:127.0.0.1:18788'",
                      "CHAT2SHELL_HOST is not a loopback address, and CHAT2SHELL_AUTH asks nobody who they are");
    if (!(config->auth_modes & AUTH_OAUTH) || !config->public_url || !config->oauth_issuer || !config->oauth_jwks)
        return; // not wanted, or said already
    if (!config->public_url[0] || !config->oauth_issuer[0] || !config->oauth_jwks[0])
        refuse_access(problems, ERROR_INVALID, "set all three", "CHAT2SHELL_AUTH=oauth needs CHAT2SHELL_PUBLIC_URL, CHAT2SHELL_OAUTH_ISSUER and CHAT2SHELL_OAUTH_JWKS");
    CLEANUP(config_url_clear) struct config_url url = {0};
    if (config->public_url[0] && config_url_parse(config->public_url, &url, NULL) == 0 && !url.is_https && !config_host_is_loopback(url.host))
        refuse_access(problems, ERROR_REFUSED, "put a proxy that ends TLS in front of it, and give its https:// URL",
                      "CHAT2SHELL_PUBLIC_URL names an OAuth resource that is not protected by TLS");
}

static void find_program_dir(struct config *config, struct problems *problems)
{
    struct error err = ERROR_INIT;
    char path[PATH_MAX];
    ssize_t len = readlink("/proc/self/exe", path, sizeof(path) - 1);
    if (len < 0) {
        error_errno(&err, errno, "is /proc mounted?", "cannot read /proc/self/exe");
        add_problem(problems, &err);
        return;
    }
    path[len] = '\0';
    char *slash = strrchr(path, '/');
    *(slash == path ? slash + 1 : slash) = '\0';
    config->program_dir = mem_strdup(path);
}

int config_load(struct config *ret, struct error *err)
{
    CLEANUP(config_free) struct config config = {0};
    struct problems problems = {.text = BUFFER_INIT(sizeof(err->message) - 1), .first = ERROR_INIT};
    for (size_t i = 0; i < ARRAY_LEN(variables); i++)
        read_variable(&variables[i], &config, &problems);
    check_places(&config, &problems);
    check_access(&config, &problems);
    find_program_dir(&config, &problems);
    CLEANUP_FREE char *text = buffer_take_string(&problems.text);
    if (problems.first.code != ERROR_NONE)
        return error_set(err, problems.first.code, problems.first.hint, "%s", text);
    *ret = config;
    config = (struct config){0};
    return 0;
}

void config_free(struct config *config)
{
    char *texts[] = {config->host,   config->data_root,  config->state_dir,     config->workspace_root,
                     config->driver, config->sbx, config->secret_dir, config->tunnel_client, config->program_dir,
                     config->public_url, config->oauth_issuer, config->oauth_jwks, config->mcp_token_file};
    for (size_t i = 0; i < ARRAY_LEN(texts); i++)
        free(texts[i]);
    clear_roots(&config->allowed_host_roots);
    *config = (struct config){0};
}

// ---- what nothing reads -------------------------------------------------------------------------

static bool is_known(const char *name, size_t len)
{
    static const char *const others[] = {"CHAT2SHELL_TEST_", "CHAT2SHELL_BUILD_DIR", "CHAT2SHELL_FAULT",
                                         "CHAT2SHELL_QUICKSTART_"}; // beginnings
    for (size_t i = 0; i < ARRAY_LEN(variables); i++)
        if (strlen(variables[i].shown.name) == len && strncmp(variables[i].shown.name, name, len) == 0)
            return true;
    for (size_t i = 0; i < ARRAY_LEN(others); i++)
        if (strncmp(name, others[i], strlen(others[i])) == 0)
            return true;
    return false;
}

void config_warn_unknown(void)
{
    static const char prefix[] = "CHAT2SHELL_";
    for (char **at = environ; at && *at; at++) {
        size_t len = strcspn(*at, "=");
        if (strncmp(*at, prefix, sizeof(prefix) - 1) == 0 && !is_known(*at, len))
            log_warning("%.*s is set, but nothing reads it; deploy/env.example lists the variables", (int)len,
                        *at);
    }
}
