#include "controller/tunnel_url.h"
#include "controller/base/fs.h"
#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define SCHEME "http://"

static int refuse(struct error *err, const char *why)
{
    return error_set(err, ERROR_INVALID, NULL, "it told a health address that %s", why);
}

// Digits only, no leading zero, 1 to 65535; 0 for anything else.
static int parse_port(const char *text)
{
    size_t len = strspn(text, "0123456789");
    if (len == 0 || len > 5 || text[len] || text[0] == '0')
        return 0;
    long port = strtol(text, NULL, 10);
    return port <= 65535 ? (int)port : 0;
}

int tunnel_url_parse(const char *text, size_t len, struct sockaddr_in *ret, struct error *err)
{
    char url[TUNNEL_URL_MAX_BYTES + 1];
    if (len > TUNNEL_URL_MAX_BYTES || memchr(text, '\0', len))
        return refuse(err, "is too long or not text");
    memcpy(url, text, len);
    if (len && url[len - 1] == '\n')
        len--;
    if (len && url[len - 1] == '/')
        len--;
    url[len] = '\0';
    if (strncmp(url, SCHEME, strlen(SCHEME)) != 0)
        return refuse(err, "does not begin with " SCHEME);
    char *host = url + strlen(SCHEME), *colon = strchr(host, ':');
    if (!colon)
        return refuse(err, "names no port");
    *colon = '\0';
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)parse_port(colon + 1))};
    if (!address.sin_port)
        return refuse(err, "names no usable port");
    if (inet_pton(AF_INET, host, &address.sin_addr) != 1 || ntohl(address.sin_addr.s_addr) >> 24 != 127)
        return refuse(err, "is not on this machine's loopback");
    *ret = address;
    return 0;
}

int tunnel_url_read(int dir_fd, const char *name, struct sockaddr_in *ret, struct error *err)
{
    CLEANUP(buffer_free) struct buffer text = BUFFER_INIT(TUNNEL_URL_MAX_BYTES);
    CLEANUP_CLOSE int fd = openat(dir_fd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    struct stat info;
    if (fd < 0)
        return error_errno(err, errno, NULL, "cannot open the file with its health address");
    if (fstat(fd, &info) < 0 || !S_ISREG(info.st_mode))
        return refuse(err, "is not in a regular file");
    if (info.st_size > TUNNEL_URL_MAX_BYTES || fs_read_all(fd, &text, NULL) < 0)
        return refuse(err, "is too long or not text");
    return tunnel_url_parse(buffer_text(&text), text.len, ret, err);
}
