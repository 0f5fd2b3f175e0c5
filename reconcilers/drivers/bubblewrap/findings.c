// What doctor says about this driver, and what a sandbox of it can do.
#include "controller/base/buffer.h"
#include "controller/base/cleanup.h"
#include "controller/base/fs.h"
#include "controller/base/json.h"
#include "controller/base/memory.h"
#include "controller/spawn.h"
#include "reconcilers/drivers/bubblewrap/bubblewrap.h"
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>

#define BWRAP "/usr/bin/bwrap"
#define CHECK_DEADLINE_MS 1500

// Runs a program and takes what it prints; -1 when it did not end in time or failed.
static int run(struct spawner *spawner, const char *path, const char *const *argv, struct buffer *output)
{
    int ends[2], pidfd, exit_code = -1;
    if (pipe2(ends, O_CLOEXEC) < 0)
        return -1;
    CLEANUP_CLOSE int read_fd = ends[0];
    CLEANUP_CLOSE int write_fd = ends[1];
    struct spawn_options options = {.path = path, .argv = argv, .fds = {{write_fd, 1}}, .fd_count = 1, .dies_with_us = true};
    pid_t pid;
    if (spawn_process(spawner, &options, &pid, &pidfd, NULL) < 0)
        return -1;
    close(TAKE_FD(write_fd));
    if (spawn_wait(pidfd, CHECK_DEADLINE_MS, &exit_code) < 0) {
        spawn_signal(pidfd, SIGKILL);
        spawn_wait(pidfd, CHECK_DEADLINE_MS, &exit_code);
        exit_code = -1;
    }
    close(pidfd);
    fs_set_nonblocking(read_fd, true);
    fs_read_all(read_fd, output, NULL);
    return exit_code == 0 ? 0 : -1;
}

static void probe_bwrap(const struct bubblewrap *bw, struct finding_list *ret)
{
    static const char *const argv[] = {"bwrap", "--version", NULL};
    CLEANUP(buffer_free) struct buffer output = BUFFER_INIT(256);
    if (access(BWRAP, X_OK) < 0) {
        finding_add(ret, FINDING_FAIL, "bubblewrap", "apt install bubblewrap", BWRAP " is not installed");
        return;
    }
    int result = run(bw->spawner, BWRAP, argv, &output);
    char *text = (char *)buffer_text(&output);
    text[strcspn(text, "\n")] = '\0';
    if (result < 0)
        finding_add(ret, FINDING_FAIL, "bubblewrap", "apt install --reinstall bubblewrap", BWRAP " does not run");
    else
        finding_add(ret, FINDING_PASS, "bubblewrap", NULL, "%s is installed", text);
}

static void probe_programs(const struct bubblewrap *bw, struct finding_list *ret)
{
    static const char *const names[] = {"chat2shell-shim", "chat2shell-guest", "chat2shell-egress"};
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        CLEANUP_FREE char *path = mem_format("%s/%s", bw->program_dir, names[i]);
        bool is_there = access(path, X_OK) == 0;
        finding_add(ret, is_there ? FINDING_PASS : FINDING_FAIL, names[i], is_there ? NULL : "build or install chat2shell whole",
                    is_there ? "%s can be run" : "%s is missing or cannot be run", path);
    }
}

static void add_identity(struct finding_list *ret, const json_t *host)
{
    const char *identity = json_get_text(host, "identity");
    if (identity && strcmp(identity, "range") == 0)
        finding_add(ret, FINDING_PASS, "identity", NULL, "each sandbox gets 65536 user ids of its own");
    else if (identity && strcmp(identity, "subuid") == 0)
        finding_add(ret, FINDING_PASS, "identity", NULL, "sandboxes use the user's subordinate ids (/etc/subuid)");
    else
        finding_add(ret, FINDING_WARN, "identity", "apt install uidmap && sudo usermod --add-subuids 100000-165535 --add-subgids 100000-165535 $USER",
                    "sandboxes have one user id: changing owners inside only seems to work");
}

static void add_yes_no(struct finding_list *ret, bool is_yes, const char *check, const char *yes, const char *no, const char *fix)
{
    finding_add(ret, is_yes ? FINDING_PASS : FINDING_WARN, check, is_yes ? NULL : fix, "%s", is_yes ? yes : no);
}

json_t *findings_check_host(struct spawner *spawner, const char *program_dir)
{
    CLEANUP_FREE char *path = mem_format("%s/chat2shell-shim", program_dir);
    static const char *const argv[] = {"chat2shell-shim", "check", NULL};
    CLEANUP(buffer_free) struct buffer output = BUFFER_INIT(SHIM_MESSAGE_MAX_BYTES);
    json_t *host = NULL;
    run(spawner, path, argv, &output);
    json_parse(buffer_text(&output), output.len, &host, NULL);
    return host;
}

static void probe_host(const struct bubblewrap *bw, struct finding_list *ret)
{
    CLEANUP_JSON json_t *host = findings_check_host(bw->spawner, bw->program_dir);
    if (host == NULL || json_get_text(host, "error")) {
        const char *error = json_get_text(host, "error"), *hint = json_get_text(host, "hint");
        finding_add(ret, FINDING_FAIL, "user namespaces", hint, "%s", error ? error : "this host cannot be examined: the shim gave no answer");
        return;
    }
    finding_add(ret, FINDING_PASS, "user namespaces", NULL, "user namespaces can be made");
    add_identity(ret, host);
    add_yes_no(ret, json_get_bool(host, "overlay", false), "overlay", "overlay file systems can be mounted in user namespaces",
               "overlay file systems cannot be mounted in user namespaces: only the host template can be used", "use Linux 5.11 or newer");
    if (json_object_get(host, "idmapped"))
        add_yes_no(ret, json_get_bool(host, "idmapped", false), "idmapped mounts", "owners can be mapped at mounts",
                   "the file system of /usr cannot map owners at mounts", "keep workspaces on ext4, xfs, btrfs or tmpfs, or run as an ordinary user");
    if (json_get_bool(host, "keeps_groups", false))
        finding_add(ret, FINDING_WARN, "groups", "give the user subordinate ids (see identity)", "supplementary groups cannot be dropped in sandboxes");
}

static void probe_limits(const struct bubblewrap *bw, struct finding_list *ret)
{
    static const char *const names[] = {"memory", "pids", "cpu"};
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        const char *path = NULL;
        for (size_t j = 0; j < bw->cgroups.count; j++)
            if (strcmp(bw->cgroups.items[j].controller, names[i]) == 0)
                path = bw->cgroups.items[j].path;
        CLEANUP_FREE char *check = mem_format("cgroup %s", names[i]);
        if (path)
            finding_add(ret, FINDING_PASS, check, NULL, "the %s limit is enforced below %s", names[i], path);
        else
            finding_add(ret, FINDING_WARN, check, "run chat2shell as root, or as a systemd service with Delegate=yes",
                        "the %s limit of sandboxes is not enforced: no cgroup with that controller is writable", names[i]);
    }
}

static void probe_templates(const struct bubblewrap *bw, struct finding_list *ret)
{
    const char *picked = template_pick(bw, NULL, NULL);
    if (strcmp(picked, TEMPLATE_DEBIAN) == 0)
        finding_add(ret, FINDING_PASS, "template", NULL, "the template " TEMPLATE_DEBIAN " is built and is the default");
    else
        finding_add(ret, FINDING_WARN, "template", "run: chat2shell setup",
                    "only the host template is there: packages cannot be installed in sandboxes");
    struct stat info;
    if (lstat("/bin", &info) < 0 || !S_ISLNK(info.st_mode))
        finding_add(ret, FINDING_FAIL, "merged /usr", "apt install usrmerge", "/bin is not a link into /usr, which sandboxes are built from");
}

void findings_probe(struct driver *driver, struct finding_list *ret)
{
    const struct bubblewrap *bw = (const struct bubblewrap *)driver;
    probe_bwrap(bw, ret);
    probe_programs(bw, ret);
    probe_host(bw, ret);
    probe_limits(bw, ret);
    probe_templates(bw, ret);
    finding_add(ret, FINDING_PASS, "docker", NULL, "sandboxes of this driver have no Docker Engine, and the host's is never bound in");
}

// ---- capabilities ------------------------------------------------------------------------------------------------------

void capability_list_free(struct capability_list *list)
{
    for (size_t i = 0; i < list->count; i++) {
        free(list->items[i].name);
        free(list->items[i].message);
    }
    free(list->items);
    *list = (struct capability_list){0};
}

static void add(struct capability_list *list, const char *name, bool is_available, const char *message)
{
    list->items = mem_realloc_array(list->items, list->count + 1, sizeof(*list->items));
    list->items[list->count++] = (struct capability){mem_strdup(name), is_available, mem_strdup_or_null(message)};
}

void findings_describe(struct driver *driver, const char *template_name, struct capability_list *ret)
{
    const char *picked = template_pick((const struct bubblewrap *)driver, template_name, NULL);
    bool is_debian = picked && strcmp(picked, TEMPLATE_DEBIAN) == 0;
    add(ret, "docker", false, "a private Docker Engine needs the sbx driver; the host's Docker socket is never bound in");
    add(ret, "network", true, "outbound HTTP and HTTPS through the proxy that the environment names; nothing else");
    add(ret, "packages", is_debian,
        is_debian ? "apt install works; what is installed goes away with the sandbox"
                  : "packages cannot be installed in the host template; run: chat2shell setup, for the " TEMPLATE_DEBIAN " template");
    add(ret, "sudo", true, "commands run as root of the sandbox already; sudo CMD runs CMD");
}
