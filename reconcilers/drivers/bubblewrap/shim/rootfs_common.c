#include "controller/base/cleanup.h"
#include "controller/base/fs.h"
#include "controller/base/guest_protocol.h"
#include "reconcilers/drivers/bubblewrap/shim/rootfs.h"
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>

int rootfs_make_dir(const char *path, mode_t mode, struct error *err)
{
    if (mkdir(path, 0700) < 0)
        return errno == EEXIST ? 0 : error_errno(err, errno, NULL, "cannot make %s in the staging area", path);
    if (chmod(path, mode) < 0)
        return error_errno(err, errno, NULL, "cannot set the mode of %s in the staging area", path);
    return 0;
}

int rootfs_bind(const char *from, const char *to, struct error *err)
{
    struct mount_attr attr = {.attr_set = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV};
    if (mount(from, to, NULL, MS_BIND | MS_REC | MS_SILENT, NULL) < 0)
        return error_errno(err, errno, NULL, "cannot bind %s into the staging area", from);
    if (mount_setattr(AT_FDCWD, to, AT_RECURSIVE, &attr, sizeof(attr)) < 0)
        return error_errno(err, errno, NULL, "cannot make %s read-only in the staging area", from);
    return 0;
}

static const struct common_file {
    const char *path, *text;
} common_files[] = {
    {"etc/hosts", "127.0.0.1\tlocalhost sandbox\n::1\tlocalhost ip6-localhost ip6-loopback\n"},
    {"etc/hostname", "sandbox\n"},
    {"etc/resolv.conf", "# There is no name service in a sandbox: programs reach the network through the HTTP proxy that\n"
                        "# the environment names (http_proxy, https_proxy).\noptions timeout:1 attempts:1\n"},
};

static int write_file(const char *root, const struct common_file *file, struct error *err)
{
    char path[PATH_MAX];
    snprintf(path, sizeof(path), "%s/%s", root, file->path);
    unlink(path); // a template may have a link there
    CLEANUP_CLOSE int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
    if (fd < 0 || fchmod(fd, 0644) < 0)
        return error_errno(err, errno, NULL, "cannot write /%s of the sandbox", file->path);
    return fs_write_all(fd, file->text, strlen(file->text), err);
}

static int bind_guest(const char *root, const char *guest_program, struct error *err)
{
    char path[PATH_MAX];
    snprintf(path, sizeof(path), "%s/run/chat2shell", root);
    if (rootfs_make_dir(path, 0755, err) < 0)
        return -1;
    snprintf(path, sizeof(path), "%s%s", root, GUEST_PATH_INSIDE);
    CLEANUP_CLOSE int fd = open(path, O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0755);
    if (fd < 0)
        return error_errno(err, errno, NULL, "cannot make a place for the tool server");
    return rootfs_bind(guest_program, path, err);
}

int rootfs_fill_common(const char *root, const char *guest_program, struct error *err)
{
    for (size_t i = 0; i < ARRAY_LEN(common_files); i++)
        if (write_file(root, &common_files[i], err) < 0)
            return -1;
    return guest_program ? bind_guest(root, guest_program, err) : 0;
}
