// What the tunnel needs before it can be started, looked at from outside: the key is never opened.
#include "controller/base/fs.h"
#include "controller/base/memory.h"
#include "controller/tunnel.h"
#include <errno.h>
#include <string.h>

#define ID_MAX_BYTES 128
#define SWITCH_HINT "mend what is named, or switch the tunnel off with CHAT2SHELL_ENABLE_TUNNEL=0"

static void add_problem(struct buffer *problems, const char *what, const char *path, const char *why)
{
    buffer_format(problems, "%s%s %s %s", problems->len ? "; " : "", what, path, why);
}

static void check_program(const struct config *config, struct buffer *problems)
{
    struct stat info;
    if (stat(config->tunnel_client, &info) < 0)
        add_problem(problems, "the tunnel client", config->tunnel_client, errno == ENOENT ? "is missing" : strerrordesc_np(errno));
    else if (!S_ISREG(info.st_mode) || access(config->tunnel_client, X_OK) < 0)
        add_problem(problems, "the tunnel client", config->tunnel_client, "cannot be run");
}

static void check_secret(const char *what, const char *path, struct buffer *problems)
{
    struct stat info;
    if (stat(path, &info) < 0)
        add_problem(problems, what, path, errno == ENOENT ? "is missing" : strerrordesc_np(errno));
    else if (!S_ISREG(info.st_mode) || info.st_size == 0)
        add_problem(problems, what, path, "is not a file with something in it");
    else if (info.st_mode & 077)
        add_problem(problems, what, path, "may be read by others (chmod 600 it)");
    else if (info.st_uid != geteuid())
        add_problem(problems, what, path, "belongs to another user than the one who runs chat2shell (chown it)");
}

char *tunnel_authorization_path(const struct config *config)
{
    CLEANUP_FREE char *path = mem_format("%s/mcp-authorization", config->secret_dir);
    return config->auth_modes && access(path, F_OK) == 0 ? TAKE_PTR(path) : NULL;
}

static bool is_id(const char *text)
{
    size_t len = strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-");
    return len > 0 && text[0] != '-' && !text[len];
}

static char *read_id(const char *path, struct buffer *problems)
{
    CLEANUP(buffer_free) struct buffer text = BUFFER_INIT(ID_MAX_BYTES);
    struct stat info;
    if (stat(path, &info) < 0 && errno == ENOENT) {
        add_problem(problems, "the tunnel's id", path, "is missing");
        return NULL;
    }
    if (!S_ISREG(info.st_mode) || fs_read_file(path, &text, NULL) < 0) {
        add_problem(problems, "the tunnel's id", path, "cannot be read, or is too long");
        return NULL;
    }
    while (text.len && strchr(" \t\r\n", text.data[text.len - 1]))
        text.data[--text.len] = '\0';
    if (is_id(buffer_text(&text)) && strlen(buffer_text(&text)) == text.len)
        return buffer_take_string(&text);
    add_problem(problems, "the tunnel's id", path, "does not hold an id like tunnel_0123abcd");
    return NULL;
}

char *tunnel_key_path(const struct config *config)
{
    return mem_format("%s/key", config->secret_dir);
}

int tunnel_check(const struct config *config, char **ret_id, struct error *err)
{
    CLEANUP(buffer_free) struct buffer problems = BUFFER_INIT(900);
    CLEANUP_FREE char *key = tunnel_key_path(config), *id_path = mem_format("%s/tunnel-id", config->secret_dir);
    check_program(config, &problems);
    check_secret("the key", key, &problems);
    CLEANUP_FREE char *id = read_id(id_path, &problems);
    CLEANUP_FREE char *authorization = tunnel_authorization_path(config);
    if (authorization)
        check_secret("the header for the MCP endpoint", authorization, &problems);
    if (problems.len || problems.is_over)
        return error_set(err, ERROR_STATE, SWITCH_HINT, "the tunnel cannot be started: %s", buffer_text(&problems));
    *ret_id = TAKE_PTR(id);
    return 0;
}
