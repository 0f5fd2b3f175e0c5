// Who may speak to the operator's socket: real connections from real processes, one of them in another user
// namespace.
#include "api/operator/peer.h"
#include "controller/base/socket.h"
#include "tests/support/support.h"
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define NOBODY 65534

enum child_kind { CHILD_PLAIN, CHILD_IN_OTHER_NAMESPACE, CHILD_OF_OTHER_UID, CHILD_THAT_ENDS };

struct peer_case {
    int listener, fd;
    pid_t pid;
    struct ucred peer;
};

// Connects as a process of that kind, which then waits until it is killed.
static void run_child(enum child_kind kind, const char *dir)
{
    char path[512], byte = 0;
    struct error err = ERROR_INIT;
    if (kind == CHILD_IN_OTHER_NAMESPACE && unshare(CLONE_NEWUSER) < 0)
        _exit(77);
    if (kind == CHILD_OF_OTHER_UID && setresuid(NOBODY, NOBODY, NOBODY) < 0)
        _exit(77);
    snprintf(path, sizeof(path), "%s/socket", dir);
    int fd = socket_connect_path(path, SOCK_STREAM, SUPPORT_PATIENCE_MS, &err);
    if (fd < 0 || write(fd, &byte, 1) != 1)
        _exit(1);
    if (kind != CHILD_THAT_ENDS)
        pause();
    _exit(0);
}

static bool connect_child(struct peer_case *peer, enum child_kind kind, char **ret_dir)
{
    struct error err = ERROR_INIT;
    char *dir = *ret_dir = support_make_dir();
    char byte;
    int dir_fd = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
    peer->listener = socket_listen_at(dir_fd, "socket", SOCK_STREAM, &err);
    assert_ok(peer->listener);
    close(dir_fd);
    chmod(dir, 0755);
    char path[512];
    snprintf(path, sizeof(path), "%s/socket", dir);
    chmod(path, 0666);
    peer->pid = fork();
    if (peer->pid == 0)
        run_child(kind, dir);
    struct pollfd wait = {.fd = peer->listener, .events = POLLIN};
    if (poll(&wait, 1, SUPPORT_PATIENCE_MS) <= 0)
        return false;
    peer->fd = accept4(peer->listener, NULL, NULL, SOCK_CLOEXEC);
    assert_true(read(peer->fd, &byte, 1) == 1);
    assert_int_equal(socket_peer(peer->fd, &peer->peer), 0);
    return true;
}

static void end_child(struct peer_case *peer, char *dir)
{
    kill(peer->pid, SIGKILL);
    waitpid(peer->pid, NULL, 0);
    if (peer->fd > 0)
        close(peer->fd);
    close(peer->listener);
    support_remove_dir(dir);
}

static void the_daemons_own_user_in_its_own_namespace_may(void **state)
{
    (void)state;
    struct peer_case peer = {0};
    struct error err = ERROR_INIT;
    char *dir;
    assert_true(connect_child(&peer, CHILD_PLAIN, &dir));
    assert_ok(peer_check(peer.fd, &peer.peer, geteuid(), &err));
    end_child(&peer, dir);
}

static void another_user_may_not(void **state)
{
    (void)state;
    struct peer_case peer = {0};
    struct error err = ERROR_INIT;
    char *dir;
    if (geteuid() != 0)
        skip();
    assert_true(connect_child(&peer, CHILD_OF_OTHER_UID, &dir));
    assert_error(peer_check(peer.fd, &peer.peer, geteuid(), &err), ERROR_REFUSED);
    assert_non_null(strstr(err.message, "65534"));
    end_child(&peer, dir);
}

static void root_may_speak_to_anybodys_daemon(void **state)
{
    (void)state;
    struct peer_case peer = {0};
    struct error err = ERROR_INIT;
    char *dir;
    if (geteuid() != 0)
        skip();
    assert_true(connect_child(&peer, CHILD_PLAIN, &dir));
    assert_ok(peer_check(peer.fd, &peer.peer, 1000, &err));
    end_child(&peer, dir);
}

// A sandbox that maps one uid shows the owner's uid: the uid alone must not be enough.
static void the_same_user_in_another_user_namespace_may_not(void **state)
{
    (void)state;
    struct peer_case peer = {0};
    struct error err = ERROR_INIT;
    char *dir;
    if (!connect_child(&peer, CHILD_IN_OTHER_NAMESPACE, &dir)) {
        end_child(&peer, dir);
        skip(); // this machine makes no user namespaces
    }
    assert_int_equal(peer.peer.uid, geteuid());
    assert_error(peer_check(peer.fd, &peer.peer, geteuid(), &err), ERROR_REFUSED);
    assert_non_null(strstr(err.message, "namespace"));
    end_child(&peer, dir);
}

static void a_process_that_ended_may_not_whoever_has_its_number_now(void **state)
{
    (void)state;
    struct peer_case peer = {0};
    struct error err = ERROR_INIT;
    char *dir;
    assert_true(connect_child(&peer, CHILD_THAT_ENDS, &dir));
    siginfo_t info;
    waitid(P_PID, (id_t)peer.pid, &info, WEXITED | WNOWAIT);
    assert_error(peer_check(peer.fd, &peer.peer, geteuid(), &err), ERROR_REFUSED);
    waitpid(peer.pid, NULL, 0);
    peer.pid = fork(); // something to end
    if (peer.pid == 0) {
        pause();
        _exit(0);
    }
    assert_error(peer_check(peer.fd, &peer.peer, geteuid(), &err), ERROR_REFUSED);
    end_child(&peer, dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_daemons_own_user_in_its_own_namespace_may),
        cmocka_unit_test(another_user_may_not),
        cmocka_unit_test(root_may_speak_to_anybodys_daemon),
        cmocka_unit_test(the_same_user_in_another_user_namespace_may_not),
        cmocka_unit_test(a_process_that_ended_may_not_whoever_has_its_number_now),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
