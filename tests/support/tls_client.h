// A TLS client for tests: what is written to its descriptor goes out encrypted, what comes in can be read from it, so that every
// helper of plain connections works over TLS too. A thread in between carries the bytes, with bounded memory.
#pragma once
#include <stdbool.h>

struct tls_client;
// 127.0.0.1:port. The certificate must be the one given (PEM) and be for 127.0.0.1; the test fails otherwise.
struct tls_client *tls_client_open(int port, const char *certificate);
int tls_client_fd(const struct tls_client *client); // its own
void tls_client_close(struct tls_client *client);
// Whether a handshake with these priorities (GnuTLS' word for versions and ciphers) comes to an end, whatever the certificate.
bool tls_client_can_connect(int port, const char *priorities);
