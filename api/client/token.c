#include "api/client/token.h"
#include "controller/base/fs.h"
#include "controller/base/memory.h"
#include <errno.h>
#include <string.h>
#include <strings.h>

#define HINT_FILE "make one with: chat2shell token create NAME --output-file FILE"
#define SCHEME "Bearer "

static void wipe(struct buffer *text)
{
    if (text->data)
        explicit_bzero(text->data, text->cap);
    buffer_free(text);
}

static int check_file(int fd, const char *path, struct error *err)
{
    struct stat info;
    if (fstat(fd, &info) < 0 || !S_ISREG(info.st_mode))
        return error_set(err, ERROR_INVALID, HINT_FILE, "the token file %s is not a file", path);
    if (info.st_mode & 077)
        return error_set(err, ERROR_REFUSED, "chmod 600 it; if others may have read it, revoke the token and make another one",
                         "the token file %s may be read by others", path);
    if (info.st_uid != geteuid() && info.st_uid != 0)
        return error_set(err, ERROR_REFUSED, "chown it", "the token file %s belongs to another user", path);
    return 0;
}

// RFC 6750's characters of a token, which cannot break a header line.
static bool is_token(const char *text)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~+/";
    size_t len = strspn(text, plain);
    return len > 0 && !text[len + strspn(text + len, "=")];
}

int client_read_authorization(const char *path, char **ret, struct error *err)
{
    CLEANUP(wipe) struct buffer text = BUFFER_INIT(CLIENT_TOKEN_MAX_BYTES);
    if (!path || !path[0]) {
        *ret = NULL;
        return 0;
    }
    CLEANUP_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return error_errno(err, errno, HINT_FILE, "cannot open the token file %s", path);
    if (check_file(fd, path, err) < 0)
        return -1;
    if (fs_read_all(fd, &text, err) < 0)
        return error_context(err, "cannot read the token file %s", path);
    while (text.len && strchr(" \t\r\n", text.data[text.len - 1]))
        text.data[--text.len] = '\0';
    const char *token = buffer_text(&text);
    size_t scheme = sizeof(SCHEME) - 2; // without its blank
    if (strncasecmp(token, SCHEME, scheme) == 0 && (token[scheme] == ' ' || !token[scheme]))
        token += scheme + strspn(token + scheme, " ");
    if (strlen(buffer_text(&text)) != text.len || !is_token(token))
        return error_set(err, ERROR_INVALID, HINT_FILE, "the token file %s does not hold one token", path);
    *ret = mem_format("Authorization: " SCHEME "%s", token);
    return 0;
}
