#include "reconcilers/drivers/bubblewrap/shim/limits.h"
#include "controller/base/buffer.h"
#include "controller/base/cleanup.h"
#include "controller/base/fs.h"
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define CPU_PERIOD_US 100000
#define REMOVE_TRIES 200

static void group_path(char *path, size_t size, const struct shim_config *config, size_t i, const char *file)
{
    snprintf(path, size, "%s/chat2shell-%s%s%s", config->cgroups[i].path, config->name, file[0] ? "/" : "", file);
}

static bool write_group(const struct shim_config *config, size_t i, const char *file, const char *text)
{
    char path[PATH_MAX];
    group_path(path, sizeof(path), config, i, file);
    CLEANUP_CLOSE int fd = open(path, O_WRONLY | O_CLOEXEC);
    return fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);
}

static bool write_number(const struct shim_config *config, size_t i, const char *file, int64_t value)
{
    char text[32];
    snprintf(text, sizeof(text), "%lld", (long long)value);
    return write_group(config, i, file, text);
}

static bool set_memory(const struct shim_config *config, size_t i)
{
    if (config->cgroups[i].version == 2) {
        write_group(config, i, "memory.swap.max", "0");
        return write_number(config, i, "memory.max", config->memory_bytes);
    }
    bool is_set = write_number(config, i, "memory.limit_in_bytes", config->memory_bytes);
    write_number(config, i, "memory.memsw.limit_in_bytes", config->memory_bytes); // absent without swap accounting
    return is_set;
}

static bool set_cpu(const struct shim_config *config, size_t i)
{
    int64_t quota_us = config->cpus_milli * CPU_PERIOD_US / 1000;
    char text[64];
    snprintf(text, sizeof(text), "%lld %d", (long long)quota_us, CPU_PERIOD_US);
    if (config->cgroups[i].version == 2)
        return write_group(config, i, "cpu.max", text);
    return write_number(config, i, "cpu.cfs_period_us", CPU_PERIOD_US) && write_number(config, i, "cpu.cfs_quota_us", quota_us);
}

static bool is_for(const struct shim_cgroup *group, const char *controller)
{
    return strcmp(group->controller, controller) == 0 || strcmp(group->controller, "all") == 0;
}

void limits_make(struct limits *limits)
{
    const struct shim_config *config = limits->config;
    for (size_t i = 0; i < config->cgroup_count; i++) {
        char path[PATH_MAX];
        group_path(path, sizeof(path), config, i, "");
        if (mkdir(path, 0755) < 0 && errno != EEXIST)
            continue;
        if (is_for(&config->cgroups[i], "memory"))
            limits->has_memory |= set_memory(config, i);
        if (is_for(&config->cgroups[i], "pids"))
            limits->has_pids |= write_number(config, i, "pids.max", config->pids);
        if (is_for(&config->cgroups[i], "cpu"))
            limits->has_cpu |= set_cpu(config, i);
    }
}

void limits_join(struct limits *limits, pid_t pid)
{
    const struct shim_config *config = limits->config;
    for (size_t i = 0; i < config->cgroup_count; i++) {
        if (write_number(config, i, "cgroup.procs", pid))
            continue;
        const struct shim_cgroup *group = &config->cgroups[i];
        limits->has_memory &= !is_for(group, "memory");
        limits->has_pids &= !is_for(group, "pids");
        limits->has_cpu &= !is_for(group, "cpu");
    }
}

// The kernel frees a group's last process a moment after it was reaped.
void limits_remove(const struct shim_config *config)
{
    for (size_t i = 0; i < config->cgroup_count; i++) {
        char path[PATH_MAX];
        group_path(path, sizeof(path), config, i, "");
        for (int tries = 0; tries < REMOVE_TRIES && rmdir(path) < 0 && errno == EBUSY; tries++)
            nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
    }
}

static bool has_oom_kill(const char *text)
{
    const char *at = strstr(text, "oom_kill ");
    return at && strtol(at + strlen("oom_kill "), NULL, 10) > 0;
}

bool limits_killed_for_memory(const struct shim_config *config)
{
    for (size_t i = 0; i < config->cgroup_count; i++) {
        if (!is_for(&config->cgroups[i], "memory"))
            continue;
        char path[PATH_MAX];
        group_path(path, sizeof(path), config, i, config->cgroups[i].version == 2 ? "memory.events" : "memory.oom_control");
        CLEANUP(buffer_free) struct buffer text = BUFFER_INIT(4096);
        if (fs_read_file(path, &text, NULL) == 0 && has_oom_kill(buffer_text(&text)))
            return true;
    }
    return false;
}

static void report(bool holds, const char *name, const char *why_not, json_t *held, json_t *missing)
{
    json_array_append_new(holds ? held : missing, holds ? json_string(name) : json_sprintf("%s: %s", name, why_not));
}

void limits_report(const struct limits *limits, enum identity_kind kind, json_t *held, json_t *missing)
{
    report(limits->has_memory, "memory", "no cgroup with the memory controller is writable", held, missing);
    bool by_rlimit = !limits->has_pids && kind == IDENTITY_SINGLE; // counted for the one id of this user namespace
    report(limits->has_pids || by_rlimit, "pids", "no cgroup with the pids controller is writable; each user inside is limited instead",
           held, missing);
    report(limits->has_cpu, "cpu", "no cgroup with the cpu controller is writable", held, missing);
}
