// What a sandbox uses: from its own cgroups where it has them, else from /proc, by walking down from its first process. That
// process is known by the descriptor that the driver holds, never by a number that was kept.
#include "controller/base/buffer.h"
#include "controller/base/cleanup.h"
#include "controller/base/fs.h"
#include "controller/base/memory.h"
#include "reconcilers/drivers/bubblewrap/bubblewrap.h"
#include <stdio.h>
#include <string.h>

#define FILE_MAX_BYTES (64 * 1024)
#define TREE_MAX 4096 // processes looked at
#define NO_LIMIT_BYTES (INT64_C(1) << 60) // version 1 says something as large for "none"

// ---- which sandbox ----------------------------------------------------------------------------------------------------------
struct search {
    struct bubblewrap *bw;
    const char *name;
    int pidfd; // a copy; -1: it does not run
};

static void find_on_loop(void *arg)
{
    struct search *search = arg;
    const struct runtime *runtime = runtime_find(search->bw, search->name);
    if (runtime && runtime->state == RUNTIME_RUNNING && runtime->init_pidfd >= 0)
        search->pidfd = fcntl(runtime->init_pidfd, F_DUPFD_CLOEXEC, 0);
}

// Its number just now, as the descriptor says; -1 once it has ended.
static int pid_of(int pidfd)
{
    CLEANUP_FREE char *path = mem_format("/proc/self/fdinfo/%d", pidfd);
    CLEANUP(buffer_free) struct buffer text = BUFFER_INIT(FILE_MAX_BYTES);
    if (fs_read_file(path, &text, NULL) < 0)
        return -1;
    const char *line = strstr(buffer_text(&text), "\nPid:");
    return line ? (int)strtol(line + 5, NULL, 10) : -1;
}

// ---- cgroups ----------------------------------------------------------------------------------------------------------------
// The number in a file of one line, or behind `key` in one of several; -1: there is none.
static int64_t read_number(const char *dir, const char *file, const char *key)
{
    CLEANUP_FREE char *path = mem_format("%s/%s", dir, file);
    CLEANUP(buffer_free) struct buffer text = BUFFER_INIT(FILE_MAX_BYTES);
    if (fs_read_file(path, &text, NULL) < 0)
        return -1;
    const char *at = buffer_text(&text);
    if (key) {
        CLEANUP_FREE char *mark = mem_format("%s ", key);
        while (at && strncmp(at, mark, strlen(mark)) != 0)
            at = (at = strchr(at, '\n')) ? at + 1 : NULL;
        at = at ? at + strlen(mark) : "";
    }
    return *at >= '0' && *at <= '9' ? strtoll(at, NULL, 10) : -1;
}

static int64_t less(int64_t value, int64_t part)
{
    return value >= 0 && part > 0 && part <= value ? value - part : value;
}

// Without what the kernel can take back at once: pages of files that nobody used lately.
static void read_memory(const char *dir, int version, struct driver_usage *ret)
{
    bool is_2 = version == 2;
    int64_t used = read_number(dir, is_2 ? "memory.current" : "memory.usage_in_bytes", NULL);
    int64_t limit = read_number(dir, is_2 ? "memory.max" : "memory.limit_in_bytes", NULL);
    ret->memory_bytes = less(used, read_number(dir, "memory.stat", is_2 ? "inactive_file" : "total_inactive_file"));
    ret->memory_limit_bytes = limit > 0 && limit < NO_LIMIT_BYTES ? limit : -1;
}

static void read_processes(const char *dir, int version, struct driver_usage *ret)
{
    (void)version;
    ret->processes = read_number(dir, "pids.current", NULL);
}

static void read_cpu(const char *dir, int version, struct driver_usage *ret)
{
    int64_t ns = version == 2 ? -1 : read_number(dir, "cpuacct.usage", NULL);
    ret->cpu_us = version == 2 ? read_number(dir, "cpu.stat", "usage_usec") : ns < 0 ? -1 : ns / 1000;
}

static const struct reader {
    const char *controller;
    void (*read)(const char *dir, int version, struct driver_usage *ret);
} readers[] = {{"memory", read_memory}, {"pids", read_processes}, {"cpu", read_cpu}};

static void read_groups(const struct bubblewrap *bw, const char *name, struct driver_usage *ret)
{
    for (size_t i = 0; i < bw->cgroups.count; i++)
        for (size_t k = 0; k < ARRAY_LEN(readers); k++) {
            const struct cgroup_parent *parent = &bw->cgroups.items[i];
            if (strcmp(parent->controller, readers[k].controller) != 0)
                continue;
            CLEANUP_FREE char *dir = mem_format("%s/chat2shell-%s", parent->path, name);
            readers[k].read(dir, parent->version, ret);
        }
}

// ---- /proc --------------------------------------------------------------------------------------------------------------------
struct tree {
    int pids[TREE_MAX];
    size_t count;
    int64_t ticks, pages;
};

static void add_children(struct tree *tree, int pid)
{
    CLEANUP_FREE char *path = mem_format("/proc/%d/task/%d/children", pid, pid);
    CLEANUP(buffer_free) struct buffer text = BUFFER_INIT(FILE_MAX_BYTES);
    if (fs_read_file(path, &text, NULL) < 0)
        return;
    char *end;
    for (const char *at = buffer_text(&text); tree->count < TREE_MAX; at = end) {
        long child = strtol(at, &end, 10);
        if (end == at || child <= 1)
            return;
        tree->pids[tree->count++] = (int)child;
    }
}

// Times of a process and of its children that were waited for. The name in it is the process's own word: what counts begins
// behind its last parenthesis.
static void add_times(struct tree *tree, int pid)
{
    CLEANUP_FREE char *path = mem_format("/proc/%d/stat", pid);
    CLEANUP(buffer_free) struct buffer text = BUFFER_INIT(FILE_MAX_BYTES);
    long long user, system, children_user, children_system;
    if (fs_read_file(path, &text, NULL) < 0)
        return;
    const char *at = strrchr(buffer_text(&text), ')');
    if (at && sscanf(at, ") %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lld %lld %lld %lld", &user, &system, &children_user, &children_system) == 4)
        tree->ticks += user + system + children_user + children_system;
}

// What is its own: shared pages are mostly programs and libraries, which belong to all.
static void add_pages(struct tree *tree, int pid)
{
    CLEANUP_FREE char *path = mem_format("/proc/%d/statm", pid);
    CLEANUP(buffer_free) struct buffer text = BUFFER_INIT(FILE_MAX_BYTES);
    long long resident, shared;
    if (fs_read_file(path, &text, NULL) == 0 && sscanf(buffer_text(&text), "%*d %lld %lld", &resident, &shared) == 2 && resident > shared)
        tree->pages += resident - shared;
}

static void read_tree(int pid, struct driver_usage *ret)
{
    CLEANUP_FREE struct tree *tree = mem_alloc(sizeof(*tree));
    tree->pids[tree->count++] = pid;
    for (size_t i = 0; i < tree->count; i++) {
        add_children(tree, tree->pids[i]);
        add_times(tree, tree->pids[i]);
        add_pages(tree, tree->pids[i]);
    }
    ret->cpu_us = ret->cpu_us >= 0 ? ret->cpu_us : tree->ticks * (1000000 / sysconf(_SC_CLK_TCK));
    ret->memory_bytes = ret->memory_bytes >= 0 ? ret->memory_bytes : tree->pages * sysconf(_SC_PAGESIZE);
    ret->processes = ret->processes >= 0 ? ret->processes : (int64_t)tree->count;
}

int usage_read(struct driver *driver, const char *name, struct driver_usage *ret, struct error *err)
{
    struct search search = {.bw = (struct bubblewrap *)driver, .name = name, .pidfd = -1};
    struct driver_usage usage = DRIVER_USAGE_UNKNOWN;
    loop_call(search.bw->loop, find_on_loop, &search);
    CLEANUP_CLOSE int pidfd = search.pidfd;
    int pid = pidfd < 0 ? -1 : pid_of(pidfd);
    if (pid <= 0)
        return error_set(err, ERROR_STATE, NULL, "it does not run");
    read_groups(search.bw, name, &usage);
    if (usage.cpu_us < 0 || usage.memory_bytes < 0 || usage.processes < 0)
        read_tree(pid, &usage);
    *ret = usage;
    return 0;
}
