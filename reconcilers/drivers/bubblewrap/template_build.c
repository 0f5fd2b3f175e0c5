#include "reconcilers/drivers/templates.h"
#include "controller/base/buffer.h"
#include "controller/base/cleanup.h"
#include "controller/base/fs.h"
#include "controller/base/json.h"
#include "controller/base/memory.h"
#include "reconcilers/drivers/bubblewrap/bubblewrap.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>

#define NEW_NAME ".debian-12.new"
#define TAR_NAME ".debian-12.tar"
#define LINE_MAX_BYTES 4096
#define MMDEBSTRAP "/usr/bin/mmdebstrap"
#define UNSHARE "/usr/bin/unshare"

// A shell, git, a compiler, a scripting language, and what the tool server uses for search and symbols.
#define PACKAGES                                                                                                        \
    "ca-certificates,curl,file,gcc,git,jq,less,libc6-dev,make,patch,procps,python3,ripgrep,universal-ctags,unzip,xz-utils"

static const char *const mmdebstrap_args[] = {
    "mmdebstrap", "--variant=minbase", "--include=" PACKAGES,
    "--aptopt=APT::Sandbox::User \"root\"", // there may be one user id only
    "--aptopt=APT::Install-Recommends \"false\"",
    "--dpkgopt=force-unsafe-io", // a build that the power interrupts is thrown away
    "--dpkgopt=path-exclude=/usr/share/man/*", "--dpkgopt=path-exclude=/usr/share/locale/*",
    "--dpkgopt=path-exclude=/usr/share/doc/*", "--dpkgopt=path-include=/usr/share/doc/*/copyright",
};
static const char *const sources[] = {
    "deb http://deb.debian.org/debian bookworm main",
    "deb http://deb.debian.org/debian bookworm-updates main",
    "deb http://deb.debian.org/debian-security bookworm-security main",
};

// ---- running a step ------------------------------------------------------------------------------------------------------

struct step {
    const char *path;
    const char *const *argv;
    int input_fd, directory_fd, output_fd; // -1 = none; directory_fd at SHIM_FD_DIRECTORY
};

// Feeds the complete lines in text to progress and keeps the last one for the error.
static void take_lines(const struct template_build *build, struct buffer *text, char *last, size_t size)
{
    for (char *end; (end = memchr(buffer_text(text), '\n', text->len)) != NULL;) {
        *end = '\0';
        if (text->data[0]) {
            snprintf(last, size, "%s", text->data);
            build->progress(build->arg, text->data);
        }
        buffer_consume(text, (size_t)(end - text->data) + 1);
    }
    if (text->len == text->max) // an endless line
        buffer_consume(text, text->len);
}

static void follow_output(const struct template_build *build, int fd, char *last, size_t size)
{
    CLEANUP(buffer_free) struct buffer text = BUFFER_INIT(LINE_MAX_BYTES);
    for (;;) {
        size_t room = text.max - text.len;
        char *at = buffer_reserve(&text, room);
        ssize_t n = read(fd, at, room);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return;
        text.len += (size_t)n;
        take_lines(build, &text, last, size);
    }
}

static int run_step(const struct template_build *build, const struct step *step, struct error *err)
{
    int ends[2], pidfd, exit_code = -1;
    char last[512] = "it gave no reason";
    CLEANUP_FREE char *http_proxy = getenv("http_proxy") ? mem_format("http_proxy=%s", getenv("http_proxy")) : NULL;
    const char *const environment[] = {"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "LANG=C.UTF-8", "HOME=/", http_proxy, NULL};
    if (pipe2(ends, O_CLOEXEC) < 0)
        return error_errno(err, errno, NULL, "cannot make a pipe");
    CLEANUP_CLOSE int read_fd = ends[0];
    CLEANUP_CLOSE int write_fd = ends[1];
    struct spawn_options options = {.path = step->path, .argv = step->argv, .environment = environment, .dies_with_us = true};
    options.fds[options.fd_count++] = (struct spawn_fd){write_fd, 2};
    options.fds[options.fd_count++] = (struct spawn_fd){step->output_fd >= 0 ? step->output_fd : write_fd, 1};
    if (step->input_fd >= 0)
        options.fds[options.fd_count++] = (struct spawn_fd){step->input_fd, 0};
    if (step->directory_fd >= 0)
        options.fds[options.fd_count++] = (struct spawn_fd){step->directory_fd, SHIM_FD_DIRECTORY};
    pid_t pid;
    if (spawn_process(build->spawner, &options, &pid, &pidfd, err) < 0)
        return -1;
    close(TAKE_FD(write_fd));
    follow_output(build, read_fd, last, sizeof(last));
    spawn_wait(pidfd, -1, &exit_code);
    close(pidfd);
    return exit_code == 0 ? 0 : error_set(err, ERROR_UNAVAILABLE, "check the network, and run setup again", "%s failed: %s", step->argv[0], last);
}

static int run_shim(const struct template_build *build, const char *mode, const char *name, int dir_fd, int input_fd, struct error *err)
{
    CLEANUP_FREE char *path = mem_format("%s/chat2shell-shim", build->program_dir);
    const char *const argv[] = {"chat2shell-shim", mode, name, NULL};
    struct step step = {path, argv, input_fd, dir_fd, -1};
    return run_step(build, &step, err);
}

// ---- the steps -----------------------------------------------------------------------------------------------------------

// As root it mounts proc, sys and more in the tree that it makes: in a mount namespace of its own, so that a build that is killed
// leaves none of them on the host.
static const char *const private_mounts[] = {"unshare", "--mount", "--propagation", "private", "--"};

static int run_mmdebstrap(const struct template_build *build, const char *mode, const char *target, int output_fd, struct error *err)
{
    const char *argv[ARRAY_LEN(private_mounts) + ARRAY_LEN(mmdebstrap_args) + ARRAY_LEN(sources) + 6];
    size_t count = 0;
    bool is_root = geteuid() == 0;
    for (size_t i = 0; is_root && i < ARRAY_LEN(private_mounts); i++)
        argv[count++] = private_mounts[i];
    for (size_t i = 0; i < ARRAY_LEN(mmdebstrap_args); i++)
        argv[count++] = mmdebstrap_args[i];
    argv[count++] = mode;
    argv[count++] = output_fd >= 0 ? "--format=tar" : "--format=directory";
    argv[count++] = "bookworm";
    argv[count++] = target;
    for (size_t i = 0; i < ARRAY_LEN(sources); i++)
        argv[count++] = sources[i];
    argv[count] = NULL;
    struct step step = {is_root ? UNSHARE : MMDEBSTRAP, argv, -1, -1, output_fd};
    return run_step(build, &step, err);
}

static int build_as_root(const struct template_build *build, struct error *err)
{
    CLEANUP_FREE char *target = mem_format("%s/templates/" NEW_NAME, build->data_root);
    return run_mmdebstrap(build, "--mode=root", target, -1, err);
}

// The owners in the tree must be those that sandboxes of this user see, so it is unpacked with their identity.
static int build_as_user(const struct template_build *build, int dir_fd, struct error *err)
{
    CLEANUP_JSON json_t *host = findings_check_host(build->spawner, build->program_dir);
    const char *identity = json_get_text(host, "identity");
    if (identity == NULL || strcmp(identity, "subuid") != 0)
        return error_set(err, ERROR_UNSUPPORTED,
                         "sudo apt install uidmap && sudo usermod --add-subuids 100000-165535 --add-subgids 100000-165535 $USER",
                         "building the " TEMPLATE_DEBIAN " template needs subordinate user ids, which this user does not have");
    CLEANUP_CLOSE int tar_fd = openat(dir_fd, TAR_NAME, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (tar_fd < 0)
        return error_errno(err, errno, NULL, "cannot write below the data root");
    if (run_mmdebstrap(build, "--mode=unshare", "-", tar_fd, err) < 0)
        return -1;
    lseek(tar_fd, 0, SEEK_SET);
    build->progress(build->arg, "unpacking the template");
    return run_shim(build, "unpack", NEW_NAME, dir_fd, tar_fd, err);
}

static int build_and_publish(const struct template_build *build, int dir_fd, struct error *err)
{
    if (access(MMDEBSTRAP, X_OK) < 0)
        return error_set(err, ERROR_UNSUPPORTED, "sudo apt install mmdebstrap", "mmdebstrap is not installed");
    if (run_shim(build, "purge", NEW_NAME, dir_fd, -1, err) < 0)
        return error_context(err, "cannot remove what an interrupted build left");
    int result = geteuid() == 0 ? build_as_root(build, err) : build_as_user(build, dir_fd, err);
    unlinkat(dir_fd, TAR_NAME, 0);
    if (result < 0) {
        run_shim(build, "purge", NEW_NAME, dir_fd, -1, NULL);
        return error_context(err, "cannot build the template " TEMPLATE_DEBIAN);
    }
    if (renameat(dir_fd, NEW_NAME, dir_fd, TEMPLATE_DEBIAN) < 0 || fsync(dir_fd) < 0)
        return error_errno(err, errno, NULL, "cannot put the template in its place");
    return 0;
}

bool template_is_built(const char *data_root)
{
    CLEANUP_FREE char *path = template_path(data_root, TEMPLATE_DEBIAN);
    struct stat info;
    return stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

int template_build(const struct template_build *build, struct error *err)
{
    CLEANUP_FREE char *path = mem_format("%s/templates", build->data_root);
    CLEANUP_CLOSE int dir_fd = -1;
    if (fs_make_private_dir(path, &dir_fd, err) < 0)
        return -1;
    CLEANUP_CLOSE int lock_fd = openat(dir_fd, ".lock", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (lock_fd < 0 || flock(lock_fd, LOCK_EX) < 0)
        return error_errno(err, errno, NULL, "cannot lock %s", path);
    if (template_is_built(build->data_root)) {
        build->progress(build->arg, "the template " TEMPLATE_DEBIAN " is built already");
        return 0;
    }
    build->progress(build->arg, "building the template " TEMPLATE_DEBIAN " (about a minute)");
    return build_and_publish(build, dir_fd, err);
}
