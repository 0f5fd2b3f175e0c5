#include "tests/support/tls_client.h"
#include "controller/base/memory.h"
#include "tests/support/http_client.h"
#include "tests/support/support.h"
#include <gnutls/gnutls.h>
#include <poll.h>
#include <pthread.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

struct tls_client {
    gnutls_certificate_credentials_t trust;
    gnutls_session_t session;
    int tls_fd, inner_fd, outer_fd;
    pthread_t pump;
};

static bool carry_out(struct tls_client *client)
{
    char bytes[16384];
    ssize_t len = read(client->inner_fd, bytes, sizeof(bytes));
    for (ssize_t sent = 0; sent < len;) {
        ssize_t n = gnutls_record_send(client->session, bytes + sent, (size_t)(len - sent));
        if (n < 0 && n != GNUTLS_E_AGAIN && n != GNUTLS_E_INTERRUPTED)
            return false;
        sent += n > 0 ? n : 0;
    }
    return len > 0;
}

static bool carry_in(struct tls_client *client)
{
    char bytes[16384];
    ssize_t len = gnutls_record_recv(client->session, bytes, sizeof(bytes));
    if (len == GNUTLS_E_AGAIN || len == GNUTLS_E_INTERRUPTED)
        return true;
    for (ssize_t sent = 0; sent < len;) {
        ssize_t n = send(client->inner_fd, bytes + sent, (size_t)(len - sent), MSG_NOSIGNAL);
        if (n <= 0)
            return false;
        sent += n;
    }
    return len > 0;
}

static void *pump(void *arg)
{
    struct tls_client *client = arg;
    bool is_open = true;
    while (is_open) {
        struct pollfd fds[] = {{.fd = client->inner_fd, .events = POLLIN}, {.fd = client->tls_fd, .events = POLLIN}};
        bool has_pending = gnutls_record_check_pending(client->session) > 0;
        poll(fds, 2, has_pending ? 0 : -1);
        if (fds[0].revents)
            is_open = carry_out(client);
        if (is_open && (fds[1].revents || has_pending))
            is_open = carry_in(client);
    }
    shutdown(client->inner_fd, SHUT_RDWR);
    shutdown(client->tls_fd, SHUT_RDWR);
    return NULL;
}

static int shake_hands(struct tls_client *client, const char *priorities)
{
    int r;
    gnutls_init(&client->session, GNUTLS_CLIENT);
    gnutls_priority_set_direct(client->session, priorities, NULL);
    gnutls_credentials_set(client->session, GNUTLS_CRD_CERTIFICATE, client->trust);
    gnutls_transport_set_int(client->session, client->tls_fd);
    do
        r = gnutls_handshake(client->session);
    while (r < 0 && !gnutls_error_is_fatal(r));
    return r;
}

struct tls_client *tls_client_open(int port, const char *certificate)
{
    struct tls_client *client = mem_alloc(sizeof(*client));
    const gnutls_datum_t text = {(unsigned char *)certificate, (unsigned)strlen(certificate)};
    unsigned faults = 1;
    int pair[2];
    gnutls_certificate_allocate_credentials(&client->trust);
    assert_int_equal(gnutls_certificate_set_x509_trust_mem(client->trust, &text, GNUTLS_X509_FMT_PEM), 1);
    client->tls_fd = http_client_connect(port);
    int r = shake_hands(client, "NORMAL");
    if (r < 0)
        fail_msg("no TLS with port %d: %s", port, gnutls_strerror(r));
    assert_int_equal(gnutls_certificate_verify_peers3(client->session, "127.0.0.1", &faults), 0);
    assert_int_equal(faults, 0);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
    client->inner_fd = pair[0];
    client->outer_fd = pair[1];
    assert_int_equal(pthread_create(&client->pump, NULL, pump, client), 0);
    return client;
}

int tls_client_fd(const struct tls_client *client)
{
    return client->outer_fd;
}

static void free_session(struct tls_client *client)
{
    gnutls_deinit(client->session);
    gnutls_certificate_free_credentials(client->trust);
    close(client->tls_fd);
}

void tls_client_close(struct tls_client *client)
{
    shutdown(client->outer_fd, SHUT_RDWR);
    pthread_join(client->pump, NULL);
    close(client->inner_fd);
    close(client->outer_fd);
    free_session(client);
    free(client);
}

bool tls_client_can_connect(int port, const char *priorities)
{
    struct tls_client client = {.tls_fd = http_client_connect(port)};
    gnutls_certificate_allocate_credentials(&client.trust);
    int r = shake_hands(&client, priorities);
    free_session(&client);
    return r == 0;
}
