#include "reconcilers/exposes.h"
#include "controller/base/fs.h"
#include "controller/base/json.h"
#include "controller/base/memory.h"
#include <dirent.h>
#include <errno.h>
#include <fnmatch.h>
#include <stdio.h>
#include <string.h>

#define EXPOSES_MAX_DEPTH 12

struct scan {
    json_t *findings;
    size_t entries;
    bool is_cut;
    struct buffer listening; // /proc/net/unix
};

static const struct {
    const char *pattern, *what;
} telling_names[] = {
    {".git", "repository metadata, hooks and history: code in it can run as the owner on the host"},
    {".env", "environment file, often with secrets"},
    {".env.*", "environment file, often with secrets"},
    {"*.pem", "key or certificate"},
    {"*.key", "key"},
    {"id_rsa*", "SSH key"},
    {"id_ed25519*", "SSH key"},
    {".envrc", "run by direnv on the host"},
    {".npmrc", "may hold registry tokens"},
    {".netrc", "holds passwords"},
    {".vscode", "tasks that an editor on the host may run"},
    {"Makefile", "run by make on the host"},
    {"package.json", "scripts run by npm on the host"},
};

static void add_finding(struct scan *scan, const char *path, const char *what)
{
    if (json_array_size(scan->findings) >= EXPOSES_MAX_FINDINGS) {
        scan->is_cut = true;
        return;
    }
    json_t *finding = json_object();
    json_set_text(finding, "path", path);
    json_set_text(finding, "what", what);
    json_array_append_new(scan->findings, finding);
}

// Of the whole tree at once: the walk below has limits and leaves out .git.
static int check_listening(struct scan *scan, const char *root, struct error *err)
{
    CLEANUP_FREE char *prefix = mem_format(" %s/", root);
    const char *at = strstr(buffer_text(&scan->listening), prefix);
    if (!at)
        return 0;
    return error_set(err, ERROR_REFUSED, "stop the program that listens on it, or choose another directory", "%.*s is a listening socket",
                     (int)strcspn(at + 1, "\n"), at + 1);
}

// A server that bound a relative path is listed under what it wrote: the last part must do then.
static bool may_be_listening(struct scan *scan, const char *name)
{
    size_t len = strlen(name);
    for (const char *at = buffer_text(&scan->listening); (at = strstr(at, name)); at += len) {
        const char *start = at;
        while (start > scan->listening.data && start[-1] != ' ' && start[-1] != '\n')
            start--;
        bool is_last = at[len] == '\n' && (at == start || at[-1] == '/');
        if (is_last && start[0] != '/' && start[0] != '@')
            return true;
    }
    return false;
}

static int check_special(struct scan *scan, const char *root, const char *path, mode_t mode, struct error *err)
{
    if (S_ISCHR(mode) || S_ISBLK(mode))
        return error_set(err, ERROR_REFUSED, "remove it first", "%s/%s is a device", root, path);
    const char *slash = strrchr(path, '/');
    if (S_ISSOCK(mode) && may_be_listening(scan, slash ? slash + 1 : path))
        return error_set(err, ERROR_REFUSED, "stop the program that listens on it, or remove the file", "%s/%s may be a listening socket", root, path);
    add_finding(scan, path, S_ISSOCK(mode) ? "socket" : "named pipe");
    return 0;
}

static void check_name(struct scan *scan, const char *path, const char *name)
{
    for (size_t i = 0; i < ARRAY_LEN(telling_names); i++)
        if (fnmatch(telling_names[i].pattern, name, 0) == 0) {
            add_finding(scan, path, telling_names[i].what);
            return;
        }
}

static int scan_directory(struct scan *scan, const char *root, int dir_fd, const char *prefix, int depth, struct error *err);

static int scan_entry(struct scan *scan, const char *root, int dir_fd, const char *prefix, const char *name, int depth, struct error *err)
{
    struct stat st;
    if (fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return 0; // gone meanwhile
    CLEANUP_FREE char *path = mem_format("%s%s", prefix, name);
    check_name(scan, path, name);
    if (!S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode) && !S_ISLNK(st.st_mode))
        return check_special(scan, root, path, st.st_mode, err);
    if (!S_ISDIR(st.st_mode) || strcmp(name, ".git") == 0)
        return 0;
    CLEANUP_CLOSE int fd = fs_open_beneath(dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_NONBLOCK, 0);
    if (fd < 0)
        return 0;
    CLEANUP_FREE char *inner = mem_format("%s/", path);
    return scan_directory(scan, root, fd, inner, depth + 1, err);
}

static int scan_directory(struct scan *scan, const char *root, int dir_fd, const char *prefix, int depth, struct error *err)
{
    if (depth > EXPOSES_MAX_DEPTH) {
        scan->is_cut = true;
        return 0;
    }
    int list_fd = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *list = list_fd >= 0 ? fdopendir(list_fd) : NULL;
    if (!list) {
        if (list_fd >= 0)
            close(list_fd);
        return 0;
    }
    int r = 0;
    for (struct dirent *entry; r == 0 && (entry = readdir(list));) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        if (++scan->entries > EXPOSES_MAX_ENTRIES) {
            scan->is_cut = true;
            break;
        }
        r = scan_entry(scan, root, dir_fd, prefix, entry->d_name, depth, err);
    }
    closedir(list);
    return r;
}

static bool others_can_enter(const char *path)
{
    CLEANUP_FREE char *prefix = mem_strdup(path);
    struct stat st;
    for (char *slash = strchr(prefix + 1, '/');; slash = strchr(slash + 1, '/')) {
        if (slash)
            *slash = '\0';
        if (stat(prefix, &st) < 0 || !(st.st_mode & S_IXOTH))
            return false;
        if (!slash)
            return true;
        *slash = '/';
    }
}

int exposes_scan(const char *path, json_t **ret, struct error *err)
{
    CLEANUP_CLOSE int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return error_errno(err, errno, NULL, "cannot open %s", path);
    CLEANUP_JSON json_t *findings = json_array();
    struct scan scan = {.findings = findings, .listening = BUFFER_INIT(8 * 1024 * 1024)};
    fs_read_file("/proc/net/unix", &scan.listening, NULL);
    add_finding(&scan, ".", "everything in the directory, read and write, .git included; what a sandbox writes here can run as the owner");
    if (others_can_enter(path))
        add_finding(&scan, ".", "other users of this machine can enter it: a program that a sandbox leaves here with the set-user-id bit runs as the "
                                "owner for them, too (chmod o-x keeps them out)");
    int r = check_listening(&scan, path, err);
    if (r == 0)
        r = scan_directory(&scan, path, fd, "", 0, err);
    buffer_free(&scan.listening);
    if (r < 0)
        return -1;
    if (scan.is_cut)
        json_array_append_new(findings, json_pack("{s:s, s:s}", "path", "…", "what", "more that is not listed"));
    *ret = TAKE_PTR(findings);
    return 0;
}
