// What lasts of the TLS listener, in STATE_DIR/kubernetes (0700, made when it is first asked for), each file 0600:
//   tls.pem        key and certificate; stays when the listener is turned off, so that a kubeconfig keeps its worth
//   token          the bearer token, without a line end; gone when the listener is turned off
//   listener.json  {"port": n}: there while the listener is on, written last and removed first
// Blocking. One thread at a time.
#pragma once
#include "api/auth/token.h"
#include "controller/base/error.h"
#include "controller/base/time.h"
#include <stdbool.h>

struct listener_files {
    char *path;  // of the directory
    int dir_fd;  // -1: not opened yet
};
#define LISTENER_FILES_INIT {.path = NULL, .dir_fd = -1}
// may_make: the directory is made where it is missing. Without: 0 and dir_fd -1.
int listener_files_open(const char *state_dir, bool may_make, struct listener_files *ret, struct error *err);
void listener_files_close(struct listener_files *files);
char *listener_files_token_path(const char *state_dir); // the caller's

// *ret_port: 0 where the listener is off.
int listener_files_read_port(const struct listener_files *files, int *ret_port, struct error *err);
int listener_files_write_port(const struct listener_files *files, int port, struct error *err);
int listener_files_remove_port(const struct listener_files *files, struct error *err);

// The digest of the token that is there; of a new one, where there is none that is well formed, or must_be_new.
int listener_files_take_token(const struct listener_files *files, bool must_be_new, unsigned char ret[TOKEN_DIGEST_BYTES], struct error *err);
int listener_files_remove_token(const struct listener_files *files, struct error *err);

// *ret_pem: what certificate_make() made, new where there is none that can be served (the log says why). Both the caller's; the
// first is a secret.
int listener_files_take_certificate(const struct listener_files *files, struct wall_time now, char **ret_pem, char **ret_public, struct error *err);
