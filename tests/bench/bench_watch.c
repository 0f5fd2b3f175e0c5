// From a change to its arrival at 50 watchers, beside a limit measured in the same run: bare SQLite commits a row of the same
// bytes, and one thread sends them to 50 Unix sockets. Both are driven and timed by the same code, a change of each in turn,
// the next as soon as everybody has seen the last.
//     bench_watch SOCKET WORKSPACE RESOURCE_VERSION DIRECTORY [CHANGES [json]]
// SOCKET: the operator's; the label "bench" of WORKSPACE is changed; DIRECTORY is on the store's disk, for the limit's own file.
// Two clocks: from the sending of the change (an upper limit, its handling and its commit are counted), and from its answer,
// which leaves behind the commit (below zero where a watcher was first).
#include "controller/base/cleanup.h"
#include "controller/base/memory.h"
#include "controller/base/socket.h"
#include "tests/bench/figures.h"
#include <errno.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/wait.h>

#define WATCHERS 50
#define WAIT_MS 10000
#define BUFFER_BYTES (256 * 1024)
#define PATH "/apis/chat2shell.dev/v1/workspaces"

static void fail(const char *what)
{
    fprintf(stderr, "bench_watch: %s: %s\n", what, errno ? strerror(errno) : "not as expected");
    exit(1);
}

static void put(int fd, const char *bytes, size_t len)
{
    while (len) {
        ssize_t n = send(fd, bytes, len, MSG_NOSIGNAL);
        if (n <= 0)
            fail("cannot send");
        bytes += n;
        len -= (size_t)n;
    }
}

// ---- connections: what came on each since the change was sent -----------------------------------------------------------------
struct connection {
    int fd;
    char *bytes;
    size_t len;
    double done_at; // 0: not yet
};

static void take(struct connection *connection)
{
    ssize_t n = recv(connection->fd, connection->bytes + connection->len, BUFFER_BYTES - 1 - connection->len, 0);
    if (n <= 0)
        fail("a connection ended");
    connection->len += (size_t)n;
    connection->bytes[connection->len] = '\0';
}

// Has the whole line with the token come?
static bool has_line(const struct connection *connection, const char *token)
{
    const char *at = strstr(connection->bytes, token);
    return at && strchr(at, '\n');
}

static bool has_answer(const struct connection *connection)
{
    const char *body = strstr(connection->bytes, "\r\n\r\n"), *length = strcasestr(connection->bytes, "content-length:");
    return body && length && connection->len >= (size_t)(body + 4 - connection->bytes) + strtoul(length + 15, NULL, 10);
}

// ---- whoever is measured --------------------------------------------------------------------------------------------------------
struct peer {
    struct connection all[WATCHERS + 1]; // the last one is the writer's
    int epoll;
};

static void add(struct peer *peer, int at, int fd)
{
    struct connection *connection = &peer->all[at];
    *connection = (struct connection){.fd = fd, .bytes = mem_alloc(BUFFER_BYTES)};
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = connection};
    if (epoll_ctl(peer->epoll, EPOLL_CTL_ADD, fd, &event) < 0)
        fail("epoll");
}

static bool serve(struct peer *peer, struct connection *connection, const char *token)
{
    take(connection);
    bool is_writer = connection == &peer->all[WATCHERS];
    if (connection->done_at || !(is_writer ? has_answer(connection) : has_line(connection, token)))
        return false;
    connection->done_at = now_ms();
    if (is_writer && memcmp(connection->bytes, "HTTP/1.1 200", 12) != 0) {
        fprintf(stderr, "bench_watch: the change was answered: %.300s\n", connection->bytes);
        exit(1);
    }
    return true;
}

static void await_all(struct peer *peer, const char *token)
{
    struct epoll_event events[WATCHERS + 1];
    for (int waiting = WATCHERS + 1; waiting > 0;) {
        int count = epoll_wait(peer->epoll, events, WATCHERS + 1, WAIT_MS);
        if (count <= 0)
            fail("a change did not arrive");
        for (int i = 0; i < count; i++)
            waiting -= serve(peer, events[i].data.ptr, token);
    }
}

// ---- times ----------------------------------------------------------------------------------------------------------------------
struct times {
    double *sent, *answered; // a change and watcher
    double *write, *last;    // a change: its answer, the last watcher's line
    int count;               // changes
};

static struct times times_new(int changes)
{
    size_t bytes = (size_t)changes * sizeof(double);
    return (struct times){mem_alloc(bytes * WATCHERS), mem_alloc(bytes * WATCHERS), mem_alloc(bytes), mem_alloc(bytes), 0};
}

static void times_free(struct times *times)
{
    free(times->sent);
    free(times->answered);
    free(times->write);
    free(times->last);
}

static void note(struct times *times, const struct peer *peer, double sent_at)
{
    double answered_at = peer->all[WATCHERS].done_at, last = 0;
    for (int i = 0; i < WATCHERS; i++) {
        double at = peer->all[i].done_at;
        times->sent[times->count * WATCHERS + i] = at - sent_at;
        times->answered[times->count * WATCHERS + i] = at - answered_at;
        last = at > last ? at : last;
    }
    times->write[times->count] = answered_at - sent_at;
    times->last[times->count++] = last - sent_at;
}

static void measure(struct peer *peer, const char *request, size_t len, const char *token, struct times *times)
{
    for (int i = 0; i <= WATCHERS; i++) {
        peer->all[i].len = 0;
        peer->all[i].done_at = 0;
    }
    double sent_at = now_ms();
    put(peer->all[WATCHERS].fd, request, len);
    await_all(peer, token);
    if (times)
        note(times, peer, sent_at);
}

// ---- the limit: a process of its own ------------------------------------------------------------------------------------------
static void must(sqlite3 *db, int code)
{
    if (code != SQLITE_OK && code != SQLITE_DONE) {
        fprintf(stderr, "bench_watch: sqlite: %s\n", sqlite3_errmsg(db));
        exit(1);
    }
}

static sqlite3_stmt *open_bare(const char *dir)
{
    CLEANUP_FREE char *path = mem_format("%s/bench_watch.%d.sqlite", dir, (int)getpid());
    sqlite3 *db;
    sqlite3_stmt *insert;
    must(NULL, sqlite3_open(path, &db));
    must(db, sqlite3_exec(db, "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; CREATE TABLE t (id INTEGER PRIMARY KEY, body TEXT)", NULL,
                          NULL, NULL));
    must(db, sqlite3_prepare_v2(db, "INSERT INTO t (body) VALUES (?1)", -1, &insert, NULL));
    return insert;
}

static void delete_bare(const char *dir, pid_t pid)
{
    static const char *const ends[] = {"", "-wal", "-shm"};
    for (size_t i = 0; i < ARRAY_LEN(ends); i++) {
        CLEANUP_FREE char *path = mem_format("%s/bench_watch.%d.sqlite%s", dir, (int)pid, ends[i]);
        unlink(path);
    }
}

static void commit(sqlite3_stmt *insert, const char *line, size_t len)
{
    sqlite3 *db = sqlite3_db_handle(insert);
    must(db, sqlite3_bind_text(insert, 1, line, (int)len, SQLITE_STATIC));
    must(db, sqlite3_step(insert));
    must(db, sqlite3_reset(insert));
}

// Takes a line, stores it, answers, sends it to all; until the writer hangs up.
static void serve_limit(const int *fds, const char *dir)
{
    static const char answer[] = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}";
    sqlite3_stmt *insert = open_bare(dir);
    char *line = mem_alloc(BUFFER_BYTES);
    for (size_t len = 0;;) {
        ssize_t n = recv(fds[WATCHERS], line + len, BUFFER_BYTES - len, 0);
        if (n <= 0)
            _exit(0);
        len += (size_t)n;
        if (line[len - 1] != '\n')
            continue;
        commit(insert, line, len);
        put(fds[WATCHERS], answer, sizeof(answer) - 1);
        for (int i = 0; i < WATCHERS; i++)
            put(fds[i], line, len);
        len = 0;
    }
}

static pid_t start_limit(struct peer *peer, const char *dir)
{
    int theirs[WATCHERS + 1];
    peer->epoll = epoll_create1(EPOLL_CLOEXEC);
    for (int i = 0; i <= WATCHERS; i++) {
        int pair[2];
        if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
            fail("socketpair");
        add(peer, i, pair[0]);
        theirs[i] = pair[1];
    }
    pid_t pid = fork();
    if (pid < 0)
        fail("fork");
    if (pid == 0) {
        for (int i = 0; i <= WATCHERS; i++)
            close(peer->all[i].fd);
        serve_limit(theirs, dir);
    }
    for (int i = 0; i <= WATCHERS; i++)
        close(theirs[i]);
    return pid;
}

static void end_limit(struct peer *peer, pid_t pid, const char *dir)
{
    close(peer->all[WATCHERS].fd);
    waitpid(pid, NULL, 0);
    delete_bare(dir, pid);
}

// ---- the server -------------------------------------------------------------------------------------------------------------------
static int connect_operator(const char *path)
{
    struct error err = ERROR_INIT;
    int fd = socket_connect_path(path, SOCK_STREAM, WAIT_MS, &err);
    if (fd < 0) {
        fprintf(stderr, "bench_watch: %s\n", err.message);
        exit(1);
    }
    return fd;
}

static void start_server(struct peer *peer, const char *path, const char *version)
{
    CLEANUP_FREE char *request = mem_format("GET " PATH "?watch=true&resourceVersion=%s HTTP/1.1\r\nHost: bench\r\n\r\n", version);
    peer->epoll = epoll_create1(EPOLL_CLOEXEC);
    for (int i = 0; i <= WATCHERS; i++) {
        add(peer, i, connect_operator(path));
        if (i < WATCHERS)
            put(peer->all[i].fd, request, strlen(request));
    }
}

static void change_server(struct peer *peer, const char *name, int number, struct times *times)
{
    CLEANUP_FREE char *token = mem_format("\"bench\":\"v%d\"", number);
    CLEANUP_FREE char *body = mem_format("{\"metadata\":{\"labels\":{%s}}}", token);
    CLEANUP_FREE char *request = mem_format("PATCH " PATH "/%s HTTP/1.1\r\nHost: bench\r\nContent-Type: application/merge-patch+json\r\n"
                                            "Content-Length: %zu\r\n\r\n%s",
                                            name, strlen(body), body);
    measure(peer, request, strlen(request), token, times);
}

// As many bytes as the server's watchers just got, the token among them.
static void change_limit(struct peer *peer, const struct peer *server, int number, struct times *times)
{
    CLEANUP_FREE char *token = mem_format("\"bench\":\"v%d\"", number);
    const struct connection *model = &server->all[0];
    CLEANUP_FREE char *line = mem_strndup(model->bytes, model->len);
    for (size_t i = 0; i < model->len; i++)
        if (line[i] == '\n' || line[i] == '\r')
            line[i] = ' ';
    line[model->len - 1] = '\n';
    measure(peer, line, model->len, token, times);
}

// ---- what came out ----------------------------------------------------------------------------------------------------------------
static void print(struct times *times, const char *name, bool is_json)
{
    struct {
        const char *word;
        struct percentiles found;
    } rows[] = {{"sent", figures_sum_up(times->sent, times->count * WATCHERS)},
                {"answered", figures_sum_up(times->answered, times->count * WATCHERS)},
                {"last", figures_sum_up(times->last, times->count)},
                {"write", figures_sum_up(times->write, times->count)}};
    static const char *const words[] = {"from the sending", "from the answer", "from the sending, last watcher", "from the sending to the answer"};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        if (is_json)
            printf("%s\"%s\": {\"p50_ms\": %.4f, \"p99_ms\": %.4f}", i ? ", " : "{", rows[i].word, rows[i].found.p50, rows[i].found.p99);
        else
            printf("%-8s %-34s p50 %7.3f ms   p99 %7.3f ms\n", name, words[i], rows[i].found.p50, rows[i].found.p99);
    if (is_json)
        printf("}");
}

static void print_both(struct times *server, struct times *limit, bool is_json)
{
    printf(is_json ? "{\"server\": " : "");
    print(server, "server", is_json);
    printf(is_json ? ", \"limit\": " : "");
    print(limit, "limit", is_json);
    printf(is_json ? "}\n" : "");
}

int main(int argc, char **argv)
{
    int changes = argc > 5 ? atoi(argv[5]) : 2000;
    if (argc < 5 || changes < 1) {
        fprintf(stderr, "usage: bench_watch SOCKET WORKSPACE RESOURCE_VERSION DIRECTORY [CHANGES [json]]\n");
        return 2;
    }
    struct peer server = {0}, limit = {0};
    struct times of_server = times_new(changes), of_limit = times_new(changes);
    pid_t pid = start_limit(&limit, argv[4]);
    start_server(&server, argv[1], argv[3]);
    for (int i = -1; i < changes; i++) { // the first one opens what is opened when first needed
        change_server(&server, argv[2], i + 1, i < 0 ? NULL : &of_server);
        change_limit(&limit, &server, i + 1, i < 0 ? NULL : &of_limit);
    }
    end_limit(&limit, pid, argv[4]);
    print_both(&of_server, &of_limit, argc > 6 && strcmp(argv[6], "json") == 0);
    times_free(&of_server);
    times_free(&of_limit);
    return 0;
}
