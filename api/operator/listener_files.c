#include "api/operator/listener_files.h"
#include "api/operator/certificate.h"
#include "controller/base/fs.h"
#include "controller/base/json.h"
#include "controller/base/memory.h"
#include "controller/log.h"
#include <errno.h>
#include <string.h>
#include <unistd.h>

#define DIR_NAME "kubernetes"
#define CERTIFICATE "tls.pem"
#define TOKEN "token"
#define SWITCH "listener.json"

int listener_files_open(const char *state_dir, bool may_make, struct listener_files *ret, struct error *err)
{
    struct listener_files files = {.path = mem_format("%s/" DIR_NAME, state_dir), .dir_fd = -1};
    int r = !may_make && access(files.path, F_OK) < 0 && errno == ENOENT ? 0 : fs_make_private_dir(files.path, &files.dir_fd, err);
    if (r < 0)
        listener_files_close(&files);
    else
        *ret = files;
    return r;
}

void listener_files_close(struct listener_files *files)
{
    free(files->path);
    if (files->dir_fd >= 0)
        close(files->dir_fd);
    *files = (struct listener_files)LISTENER_FILES_INIT;
}

char *listener_files_token_path(const char *state_dir)
{
    return mem_format("%s/" DIR_NAME "/" TOKEN, state_dir);
}

// ---- one file -----------------------------------------------------------------------------------------------------------
// NULL and no error: it is not there.
static int read_text(const struct listener_files *files, const char *name, char **ret, struct error *err)
{
    char bytes[CERTIFICATE_PEM_MAX + 1];
    CLEANUP_CLOSE int fd = openat(files->dir_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    *ret = NULL;
    if (fd < 0 && errno == ENOENT)
        return 0;
    ssize_t len = fd < 0 ? -1 : read(fd, bytes, sizeof(bytes));
    if (len < 0)
        return error_errno(err, errno, "chat2shell kubeconfig --off forgets it", "cannot read %s/%s", files->path, name);
    *ret = mem_strndup(bytes, (size_t)len < sizeof(bytes) ? (size_t)len : 0); // what is too long is none of ours
    explicit_bzero(bytes, sizeof(bytes));
    return 0;
}

static int write_text(const struct listener_files *files, const char *name, const char *text, struct error *err)
{
    if (fs_replace_file(files->dir_fd, name, text, strlen(text), 0600, err) < 0)
        return error_context(err, "cannot write %s/%s", files->path, name);
    return 0;
}

static int remove_file(const struct listener_files *files, const char *name, struct error *err)
{
    if (files->dir_fd < 0)
        return 0;
    if ((unlinkat(files->dir_fd, name, 0) < 0 && errno != ENOENT) || fsync(files->dir_fd) < 0)
        return error_errno(err, errno, "remove it by hand", "cannot remove %s/%s", files->path, name);
    return 0;
}

// ---- whether it is on ----------------------------------------------------------------------------------------------------
int listener_files_read_port(const struct listener_files *files, int *ret_port, struct error *err)
{
    CLEANUP_FREE char *text = NULL;
    CLEANUP_JSON json_t *json = NULL;
    *ret_port = 0;
    if (files->dir_fd < 0)
        return 0;
    if (read_text(files, SWITCH, &text, err) < 0)
        return -1;
    if (!text)
        return 0;
    json_int_t port = json_parse(text, strlen(text), &json, err) < 0 ? 0 : json_get_int(json, "port", 0);
    if (port < 1 || port > 65535)
        return error_set(err, ERROR_CORRUPT, "chat2shell kubeconfig writes it anew", "%s/" SWITCH " does not say a port", files->path);
    *ret_port = (int)port;
    return 0;
}

int listener_files_write_port(const struct listener_files *files, int port, struct error *err)
{
    CLEANUP_FREE char *text = mem_format("{\"port\": %d}\n", port);
    return write_text(files, SWITCH, text, err);
}

int listener_files_remove_port(const struct listener_files *files, struct error *err)
{
    return remove_file(files, SWITCH, err);
}

// ---- the token -------------------------------------------------------------------------------------------------------------
int listener_files_take_token(const struct listener_files *files, bool must_be_new, unsigned char ret[TOKEN_DIGEST_BYTES], struct error *err)
{
    CLEANUP_SECRET char *text = NULL;
    if (!must_be_new && read_text(files, TOKEN, &text, err) < 0)
        return -1;
    if (!text || !token_is_formed(text)) {
        cleanup_secret(&text);
        text = mem_alloc(TOKEN_LEN + 1);
        token_make(text);
        if (write_text(files, TOKEN, text, err) < 0)
            return -1;
    }
    token_digest(text, TOKEN_LEN, ret);
    return 0;
}

int listener_files_remove_token(const struct listener_files *files, struct error *err)
{
    return remove_file(files, TOKEN, err);
}

// ---- the certificate ---------------------------------------------------------------------------------------------------------
static int make_certificate(const struct listener_files *files, struct wall_time now, char **ret_pem, char **ret_public, struct error *err)
{
    CLEANUP_SECRET char *pem = NULL;
    if (certificate_make(now, &pem, err) < 0 || write_text(files, CERTIFICATE, pem, err) < 0 || certificate_check(pem, now, ret_public, err) < 0)
        return -1;
    *ret_pem = TAKE_PTR(pem);
    return 0;
}

int listener_files_take_certificate(const struct listener_files *files, struct wall_time now, char **ret_pem, char **ret_public, struct error *err)
{
    CLEANUP_SECRET char *pem = NULL;
    struct error why = ERROR_INIT;
    if (read_text(files, CERTIFICATE, &pem, err) < 0)
        return -1;
    if (pem && certificate_check(pem, now, ret_public, &why) == 0) {
        *ret_pem = TAKE_PTR(pem);
        return 0;
    }
    if (pem)
        log_warning("Kubernetes listener: %s; a new certificate is made, so write each kubeconfig anew: chat2shell kubeconfig", why.message);
    return make_certificate(files, now, ret_pem, ret_public, err);
}
