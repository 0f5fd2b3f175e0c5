// Where the tunnel client answers questions about its health: it writes that into a file of its own choosing of bytes, so
// the file is read with bounds and the text is parsed strictly.
#pragma once
#include "controller/base/error.h"
#include <netinet/in.h>
#include <stddef.h>

#define TUNNEL_URL_MAX_BYTES 64

// "http://127.0.0.1:PORT", any address of 127.0.0.0/8, with at most one slash and one newline behind it. Nothing else is
// asked by the daemon: neither another host nor another scheme. ERROR_INVALID says what is wrong.
int tunnel_url_parse(const char *text, size_t len, struct sockaddr_in *ret, struct error *err);
// The same from dir_fd/name: a regular file that is no link, at most TUNNEL_URL_MAX_BYTES. Never blocks (not on a FIFO either).
int tunnel_url_read(int dir_fd, const char *name, struct sockaddr_in *ret, struct error *err);
