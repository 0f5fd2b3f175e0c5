// What stands "outside" in egress_world.h. Served by a child process, one thread a connection.
#pragma once
#include <sys/types.h>

// Opens the listeners in the current network namespace and forks the server. *ret_socket: a TCP socket of this
// namespace. The child dies with its parent. -1 on failure.
//
// HTTP by path: /hello "hello"; /chunked, /close, /interim (103 first) "hello" in other framings; /big 8 MiB of 'b';
// /echo answers with the request as it arrived; /both, /lf, /twice malformed heads; /cut half a body; /silence nothing.
// DNS: origin.example → 203.0.113.80, api.denied.example → the same, inside.example → 10.0.0.1,
// mixed.example → 10.0.0.1 and 203.0.113.80, own.example → 203.0.113.1; any other name does not exist.
pid_t origin_start(int *ret_socket);
