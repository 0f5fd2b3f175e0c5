// chat2shell-guest: the tool server inside a sandbox, or its sudo.
#include "api/guest/guest.h"
#include "api/guest/sudo.h"
#include "controller/base/guest_protocol.h"
#include <fcntl.h>
#include <jansson.h>
#include <linux/close_range.h>
#include <malloc.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#define DESCRIPTORS (2 * GUEST_MAX_BASH_SESSIONS + 2048)
#define EXIT_USAGE 2

static const char usage[] =
    "usage: chat2shell-guest --root DIR --stdio\n"
    "       chat2shell-guest --version | --help\n"
    "Serves the files below DIR and a shell as MCP tools: JSON-RPC on stdin and stdout, one message a\n"
    "line. It opens no socket and ends, with every process it started, when stdin ends.\n";

struct options {
    const char *root;
    bool is_stdio;
};

static int complain(const char *format, const char *what)
{
    fputs("chat2shell-guest: ", stderr);
    fprintf(stderr, format, what);
    fputs("; see chat2shell-guest --help\n", stderr);
    return EXIT_USAGE;
}

// 0, or EXIT_USAGE after a sentence.
static int parse_options(char **argv, struct options *options)
{
    for (char **at = argv + 1; *at; at++) {
        if (strcmp(*at, "--stdio") == 0)
            options->is_stdio = true;
        else if (strncmp(*at, "--root=", 7) == 0)
            options->root = *at + 7;
        else if (strcmp(*at, "--root") != 0)
            return complain("unknown argument %s", *at);
        else if (at[1])
            options->root = *++at;
        else
            return complain("%s", "--root needs a directory");
    }
    if (!options->root || !*options->root)
        return complain("%s", "--root DIR is missing");
    return options->is_stdio ? 0
                             : complain("%s", "--stdio is missing: it is the only way this program serves");
}

static bool has_argument(char **argv, const char *text)
{
    while (*++argv)
        if (strcmp(*argv, text) == 0)
            return true;
    return false;
}

// Descriptors 0 to 2 must be something, or the first pipe would take their place.
static void fill_stdio(void)
{
    int fd;
    do
        fd = open("/dev/null", O_RDWR | O_CLOEXEC);
    while (fd >= 0 && fd <= 2);
    if (fd > 2)
        close(fd);
}

// A running Bash session holds one descriptor, with much unread output two: the usual limit of 1024 is too
// low for as many sessions as there may be. Where the hard limit is low too, sessions are refused before
// files are.
static void raise_descriptor_limit(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur >= DESCRIPTORS)
        return;
    limit.rlim_cur = limit.rlim_max < DESCRIPTORS ? limit.rlim_max : DESCRIPTORS;
    setrlimit(RLIMIT_NOFILE, &limit);
}

static void keep_memory_small(void)
{
    mallopt(M_ARENA_MAX, 1);
    mallopt(M_MMAP_THRESHOLD, 128 * 1024);
    mallopt(M_TRIM_THRESHOLD, 1024 * 1024); // below it the server's timer gives memory back, when all is quiet
}

int main(int argc, char **argv)
{
    const char *name = argc && argv[0] ? argv[0] : "";
    const char *slash = strrchr(name, '/');
    if (strcmp(slash ? slash + 1 : name, "sudo") == 0)
        return sudo_main(argc, argv);
    if (argc && has_argument(argv, "--help"))
        return fputs(usage, stdout) < 0;
    if (argc && has_argument(argv, "--version"))
        return printf("chat2shell-guest %s\n", GUEST_VERSION) < 0;
    struct options options = {0};
    if (!argc || parse_options(argv, &options))
        return EXIT_USAGE;
    fill_stdio();
    // Whatever was inherited stays out of commands. Linux 5.10 lacks the flag: there children_spawn alone
    // sees to it.
    close_range(3, ~0U, CLOSE_RANGE_CLOEXEC);
    raise_descriptor_limit();
    keep_memory_small();
    json_object_seed(0);
    struct error err = ERROR_INIT;
    if (guest_serve(options.root, STDIN_FILENO, STDOUT_FILENO, &err) == 0)
        return 0;
    fprintf(stderr, "chat2shell-guest: %s%s%s\n", err.message, err.hint[0] ? ": " : "", err.hint);
    return 1;
}
