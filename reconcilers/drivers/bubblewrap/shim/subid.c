#include "reconcilers/drivers/bubblewrap/shim/subid.h"
#include "controller/base/buffer.h"
#include "controller/base/cleanup.h"
#include "controller/base/fs.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#define NEWUIDMAP "/usr/bin/newuidmap"
#define NEWGIDMAP "/usr/bin/newgidmap"
#define SUBID_MAX_BYTES (1024 * 1024)
#define SUBID_LEAST 1000u // fewer ids are of no use to a distribution

// The user's name from /etc/passwd, by hand: a static program cannot load name services.
static bool find_name(uid_t uid, char *name, size_t size)
{
    CLEANUP(buffer_free) struct buffer text = BUFFER_INIT(SUBID_MAX_BYTES);
    if (fs_read_file("/etc/passwd", &text, NULL) < 0)
        return false;
    char *rest = NULL;
    for (char *line = strtok_r((char *)buffer_text(&text), "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
        unsigned found;
        char user[256];
        if (sscanf(line, "%255[^:]:%*[^:]:%u:", user, &found) == 2 && found == uid)
            return snprintf(name, size, "%s", user) < (int)size;
    }
    return false;
}

static bool find_range(const char *path, const char *name, uid_t uid, struct subid_range *ret)
{
    CLEANUP(buffer_free) struct buffer text = BUFFER_INIT(SUBID_MAX_BYTES);
    if (fs_read_file(path, &text, NULL) < 0)
        return false;
    char number[16], *rest = NULL;
    snprintf(number, sizeof(number), "%u", uid);
    for (char *line = strtok_r((char *)buffer_text(&text), "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
        char owner[256];
        struct subid_range range;
        if (sscanf(line, "%255[^:]:%u:%u", owner, &range.first, &range.count) != 3)
            continue;
        if ((strcmp(owner, number) == 0 || (name[0] && strcmp(owner, name) == 0)) && range.count >= SUBID_LEAST) {
            *ret = range;
            return true;
        }
    }
    return false;
}

bool subid_find(struct subid_ranges *ret)
{
    char name[256] = "";
    uid_t uid = geteuid();
    if (access(NEWUIDMAP, X_OK) < 0 || access(NEWGIDMAP, X_OK) < 0)
        return false;
    find_name(uid, name, sizeof(name));
    return find_range("/etc/subuid", name, uid, &ret->uid) && find_range("/etc/subgid", name, uid, &ret->gid);
}

static int run_tool(const char *path, pid_t pid, uint32_t own, const struct subid_range *range, struct error *err)
{
    char pid_text[16], own_text[16], first[16], count[16];
    snprintf(pid_text, sizeof(pid_text), "%d", pid);
    snprintf(own_text, sizeof(own_text), "%u", own);
    snprintf(first, sizeof(first), "%u", range->first);
    snprintf(count, sizeof(count), "%u", range->count < 65535 ? range->count : 65535);
    char *const argv[] = {(char *)path, pid_text, "0", own_text, "1", "1", first, count, NULL};
    char *const environment[] = {NULL};
    pid_t child = fork();
    if (child == 0) {
        execve(path, argv, environment);
        _exit(127);
    }
    int status = 0;
    while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR)
        ;
    if (child < 0 || status != 0)
        return error_set(err, ERROR_UNSUPPORTED, "check the user's lines in /etc/subuid and /etc/subgid, or remove them",
                         "%s could not map the user's subordinate ids", path);
    return 0;
}

int subid_write_maps(pid_t pid, const struct subid_ranges *ranges, struct error *err)
{
    if (run_tool(NEWUIDMAP, pid, geteuid(), &ranges->uid, err) < 0)
        return -1;
    return run_tool(NEWGIDMAP, pid, getegid(), &ranges->gid, err);
}
