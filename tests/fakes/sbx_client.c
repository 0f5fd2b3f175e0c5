// The client of the sbx stand-in once more, in C: what tests/fakes/sbx does for a call of a daemon that runs,
// in a fifth of the processor's time. A test program makes thousands of calls, and to start Python for each
// takes longer than all the rest of them. Whatever else there is to do (starting the daemon, `daemon …`, the
// self-test) is left to tests/fakes/sbx, which this program becomes. It is the target sbx_client, built with
// SBX_STANDIN: the path of tests/fakes/sbx.
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

extern char **environ;

// A message as Python's marshal writes it.
struct message {
    char *bytes;
    size_t len, size;
};

static void append(struct message *message, const void *bytes, size_t len)
{
    if (message->size - message->len < len) {
        message->size = 2 * message->size + len;
        message->bytes = realloc(message->bytes, message->size);
        if (!message->bytes)
            abort();
    }
    memcpy(message->bytes + message->len, bytes, len);
    message->len += len;
}

static void append_number(struct message *message, char type, uint32_t number)
{
    const unsigned char bytes[] = {(unsigned char)type, number & 255, number >> 8 & 255, number >> 16 & 255,
                                   number >> 24};
    append(message, bytes, sizeof(bytes));
}

static void append_text(struct message *message, char type, const char *text, size_t len)
{
    append_number(message, type, (uint32_t)len);
    append(message, text, len);
}

static void append_key(struct message *message, const char *name)
{
    append_text(message, 'u', name, strlen(name));
}
static void append_bytes(struct message *message, const char *text)
{
    append_text(message, 's', text, strlen(text));
}

static uint32_t count(char *const *words)
{
    uint32_t n = 0;
    while (words[n])
        n++;
    return n;
}

static void append_environment(struct message *message)
{
    append(message, "{", 1);
    for (char **each = environ; *each; each++) {
        const char *value = strchr(*each, '=');
        if (!value)
            continue;
        append_text(message, 's', *each, (size_t)(value - *each));
        append_bytes(message, value + 1);
    }
    append(message, "0", 1);
}

static void append_closed(struct message *message, const int *closed, uint32_t n)
{
    append_number(message, '[', n);
    for (uint32_t i = 0; i < n; i++)
        append_number(message, 'i', (uint32_t)closed[i]);
}

static void write_request(struct message *message, char *const *words, const int *closed,
                          uint32_t closed_count)
{
    char cwd[PATH_MAX];
    append(message, "{", 1);
    append_key(message, "argv");
    append_number(message, '[', count(words));
    for (char *const *word = words; *word; word++)
        append_bytes(message, *word);
    append_key(message, "environment");
    append_environment(message);
    append_key(message, "cwd");
    append_bytes(message, getcwd(cwd, sizeof(cwd)) ? cwd : "/");
    append_key(message, "closed");
    append_closed(message, closed, closed_count);
    append_key(message, "pid");
    append_number(message, 'i', (uint32_t)getpid());
    append(message, "0", 1);
}

// Where 0, 1 or 2 is closed, /dev/null takes its place, until an exec. The number of those.
static uint32_t fill_stdio(int closed[3])
{
    uint32_t n = 0;
    struct stat info;
    for (int i = 0; i < 3; i++) {
        if (fstat(i, &info) < 0 && open("/dev/null", O_RDWR | O_CLOEXEC) == i)
            closed[n++] = i;
    }
    return n;
}

// The daemon's socket, through a descriptor of its directory because its path may be too long for an address.
// -1: nobody listens.
static int connect_daemon(void)
{
    char state[PATH_MAX];
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    const char *home = getenv("HOME");
    snprintf(state, sizeof(state), "%s/.local/state/sandboxes/sandboxes/sandboxd",
             home && *home ? home : "/");
    int directory = open(state, O_PATH | O_CLOEXEC);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    snprintf(address.sun_path, sizeof(address.sun_path), "/proc/self/fd/%d/sandboxd.sock", directory);
    return directory >= 0 && fd >= 0 && connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0 ? fd
                                                                                                       : -1;
}

// The length, with the three descriptors.
static int send_head(int fd, size_t len)
{
    static const int descriptors[3] = {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO};
    unsigned char head[8];
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(sizeof(descriptors))];
    } control;
    memset(&control, 0, sizeof(control));
    for (size_t i = 0; i < sizeof(head); i++)
        head[i] = (unsigned char)(len >> 8 * i);
    struct iovec part = {head, sizeof(head)};
    struct msghdr message = {.msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_control = control.bytes,
                             .msg_controllen = sizeof(control.bytes)};
    struct cmsghdr *rights = CMSG_FIRSTHDR(&message);
    *rights = (struct cmsghdr){
        .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS, .cmsg_len = CMSG_LEN(sizeof(descriptors))};
    memcpy(CMSG_DATA(rights), descriptors, sizeof(descriptors));
    return sendmsg(fd, &message, MSG_NOSIGNAL) == sizeof(head) ? 0 : -1;
}

static int send_all(int fd, const char *bytes, size_t len)
{
    while (len) {
        ssize_t n = send(fd, bytes, len, MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return -1;
        bytes += n;
        len -= (size_t)n;
    }
    return 0;
}

// The exit status, or -1 when the daemon is gone.
static int call(int fd, const struct message *request)
{
    unsigned char status;
    if (send_head(fd, request->len) < 0 || send_all(fd, request->bytes, request->len) < 0)
        return -1;
    ssize_t n;
    do
        n = recv(fd, &status, 1, 0);
    while (n < 0 && errno == EINTR);
    return n == 1 ? status : -1;
}

int main(int argc, char **argv)
{
    static const char lost[] = "ERROR: the connection to sandboxd was lost\n";
    const char *first = argc > 1 ? argv[1] : "";
    int closed[3];
    struct message request = {0};
    signal(SIGINT, SIG_DFL);
    uint32_t closed_count = fill_stdio(closed);
    int fd = strcmp(first, "daemon") != 0 && strcmp(first, "--selftest") != 0 ? connect_daemon() : -1;
    if (fd < 0) {
        argv[0] = SBX_STANDIN;
        execv(SBX_STANDIN, argv);
        return 126;
    }
    write_request(&request, argv + 1, closed, closed_count);
    int status = call(fd, &request);
    if (status < 0 && write(STDERR_FILENO, lost, sizeof(lost) - 1) < 0)
        return 1;
    return status < 0 ? 1 : status;
}
