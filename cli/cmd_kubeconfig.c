// kubeconfig: opens the Kubernetes API for kubectl and other clients of Kubernetes, and says how they reach it.
#include "cli/command.h"
#include "cli/printers/print.h"
#include "cli/terminal.h"
#include "controller/base/fs.h"
#include "controller/base/memory.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define NAME "chat2shell"
#define PATH_OWN REST_OWN "/kubeconfig"
// The first line of a file that this command may replace: kubectl config drops it, and then the file is somebody's own.
#define MARK "# Made by chat2shell kubeconfig, which replaces it as a whole.\n"
#define FILE_MAX_BYTES (64 * 1024)

// ---- its content -------------------------------------------------------------------------------------------------------------------
static int read_token(const char *path, char **ret, struct error *err)
{
    CLEANUP(buffer_free) struct buffer text = BUFFER_INIT(1024);
    if (fs_read_file(path, &text, err) < 0)
        return error_context(err, "the listener's token");
    *ret = buffer_take_string(&text);
    return 0;
}

// The token by its file, so that the kubeconfig itself is no secret and survives a new one. Kubernetes calls that tokenFile;
// token-file is how the JavaScript client spells it.
static json_t *make_user(const struct invocation *in, const json_t *listener, struct error *err)
{
    const char *path = json_get_text(listener, "tokenFile");
    CLEANUP_SECRET char *token = NULL;
    if (!invocation_switch(in, "embed-token", false))
        return json_pack("{s:s, s:s}", "tokenFile", path, "token-file", path);
    if (read_token(path, &token, err) < 0)
        return NULL;
    return json_pack("{s:s}", "token", token);
}

static json_t *make_config(const struct invocation *in, const json_t *listener, struct error *err)
{
    const char *server = json_get_text(listener, "server"), *certificate = json_get_text(listener, "certificate");
    if (!server || !certificate || !json_get_text(listener, "tokenFile")) {
        error_set(err, ERROR_INTERNAL, "is the daemon of another version?", "the daemon's answer does not say how its listener is reached");
        return NULL;
    }
    json_t *user = make_user(in, listener, err);
    if (!user)
        return NULL;
    return json_pack("{s:s, s:s, s:[{s:s, s:{s:s, s:o}}], s:[{s:s, s:{s:s, s:s}}], s:s, s:[{s:s, s:o}]}", "apiVersion", "v1", "kind", "Config", "clusters", "name",
                     NAME, "cluster", "server", server, "certificate-authority-data", json_encode_base64(certificate, strlen(certificate)), "contexts", "name",
                     NAME, "context", "cluster", NAME, "user", NAME, "current-context", NAME, "users", "name", NAME, "user", user);
}

// ---- where it goes -----------------------------------------------------------------------------------------------------------------
static int check_replaceable(const char *path, struct error *err)
{
    char head[sizeof(MARK)] = "";
    CLEANUP_CLOSE int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0 && errno == ENOENT)
        return 0;
    if (fd < 0)
        return error_errno(err, errno, "name a file in a directory that is there and that you may write", "cannot look at %s", path);
    if (read(fd, head, sizeof(MARK) - 1) == sizeof(MARK) - 1 && strcmp(head, MARK) == 0)
        return 0;
    return error_set(err, ERROR_EXISTS, "choose another file and merge them: KUBECONFIG=FILE:OTHER kubectl config view --flatten",
                     "%s is there already, and was not made by this command or changed since", path);
}

static int write_file(const char *path, const json_t *config, struct error *err)
{
    CLEANUP(buffer_free) struct buffer text = BUFFER_INIT(FILE_MAX_BYTES);
    const char *slash = strrchr(path, '/');
    CLEANUP_FREE char *dir = slash ? mem_strndup(path, slash == path ? 1 : (size_t)(slash - path)) : mem_strdup(".");
    if (check_replaceable(path, err) < 0)
        return -1;
    mkdir(dir, 0700); // ~/.kube, where kubectl was never used; what stands in the way is said by the next line
    CLEANUP_CLOSE int dir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dir_fd < 0)
        return error_errno(err, errno, "make the directory first", "cannot open %s", dir);
    buffer_append_text(&text, MARK);
    yaml_write(&text, config);
    return fs_replace_file(dir_fd, slash ? slash + 1 : path, text.data, text.len, 0600, err);
}

// The path alone on standard output: export KUBECONFIG=$(chat2shell kubeconfig --output-file FILE)
static int deliver(const struct invocation *in, const json_t *config, const char *server, struct error *err)
{
    const char *path = invocation_option(in, "output-file");
    if (path && write_file(path, config, err) < 0)
        return -1;
    if (path)
        printf("%s\n", path);
    else if (invocation_is_output(in, "json"))
        print_json(config);
    else
        print_yaml(config);
    fflush(stdout);
    terminal_note("the Kubernetes API is on %s until: chat2shell kubeconfig --off", server);
    return 0;
}

static int run_off(const struct rest *rest, struct error *err)
{
    if (rest_call(rest, &(struct rest_ask){.method = "DELETE", .path = PATH_OWN}, NULL, NULL, NULL, err) < 0)
        return -1;
    terminal_confirm("the Kubernetes listener is closed, and its token has ended");
    return 0;
}

static int run(struct invocation *in, struct error *err)
{
    const struct rest *rest = invocation_rest(in, err);
    bool is_off = invocation_switch(in, "off", false), is_rotated = invocation_switch(in, "rotate", false);
    if (!rest)
        return -1;
    if (is_off && (is_rotated || invocation_option(in, "output-file") || invocation_switch(in, "embed-token", false)))
        return error_set(err, ERROR_USAGE, "give --off alone", "--off writes no kubeconfig");
    if (is_off)
        return run_off(rest, err);
    CLEANUP_JSON json_t *body = json_pack("{s:b}", "rotate", is_rotated), *listener = NULL;
    if (rest_post(rest, PATH_OWN, body, &listener, err) < 0)
        return -1;
    CLEANUP_JSON json_t *config = make_config(in, listener, err);
    return config ? deliver(in, config, json_get_text(listener, "server"), err) : -1;
}

static const char *const outputs[] = {"yaml", "json", NULL};
static const struct option_row options[] = {
    {.name = "output-file", .value = "FILE", .doc = "write it into this file (mode 0600) and print the file's name; one that this command made is replaced"},
    {.name = "embed-token", .doc = "put the token itself in, for clients that cannot read it from its file; the kubeconfig is then a secret"},
    {.name = "rotate", .doc = "make a new token; the old one and all that uses it end at once"},
    {.name = "off", .doc = "close the listener and end its token, at once"},
    OPTION_OUTPUT(outputs, "how to print it"),
};
static const struct example examples[] = {
    {"export KUBECONFIG=$(chat2shell kubeconfig --output-file ~/.kube/chat2shell)", "kubectl in this shell works with chat2shell"},
    {"chat2shell kubeconfig > chat2shell.yaml", "the same, printed"},
    {"chat2shell kubeconfig --off", "nobody listens any more"},
};
const struct command command_kubeconfig = {
    .name = "kubeconfig", .synopsis = "", .summary = "Open the API for kubectl on loopback, and print a kubeconfig for it", .run = run,
    .details = "The daemon listens on 127.0.0.1 (port CHAT2SHELL_KUBE_PORT) with TLS and a certificate of its own, for whoever has its token, which may do\n"
               "what an operator may through the Kubernetes API. It stays on, through restarts with the same port, certificate and token, until --off. The\n"
               "token is in a file of mode 0600 below the state directory; the kubeconfig names that file, so it is no secret, and it stays good after\n"
               "--rotate, and after --off and on again on the same port.",
    COMMAND_OPTIONS(options), COMMAND_EXAMPLES(examples),
};
