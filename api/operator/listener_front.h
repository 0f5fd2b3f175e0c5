// Who may speak on the TCP listener, judged when a request's head is there: programs that reached it under a name of this
// machine, are no web page, and show the token. Of the API they have the paths of Kubernetes; chat2shell's own (exec, tokens,
// stop) stay on the socket. Without the token nothing is answered, not even whether the daemon is well.
#pragma once
#include "api/auth/token.h"
#include "api/http/http.h"

#define LISTENER_PRINCIPAL "operator:kubeconfig"

// HTTP thread. digest: the token's; NULL: none is good any more. False: *refusal.
bool listener_check_front(struct http_request *request, const unsigned char *digest, struct http_refusal *refusal);
