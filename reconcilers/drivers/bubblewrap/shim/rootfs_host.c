// The `host` template: /usr of the host read-only (bubblewrap binds it) without /usr/local, the named files of /etc, and
// nothing else. A file that is not in these lists does not exist inside.
#include "controller/base/buffer.h"
#include "controller/base/cleanup.h"
#include "controller/base/fs.h"
#include "reconcilers/drivers/bubblewrap/shim/rootfs.h"
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#define ETC_FILE_MAX_BYTES (4 * 1024 * 1024)

static const struct made_dir {
    const char *path;
    mode_t mode;
} made_dirs[] = {
    {"usr", 0755},     {"proc", 0555},      {"dev", 0755},       {"etc", 0755},         {"root", 0700},       {"home", 0755},
    {"tmp", 01777},    {"run", 0755},       {"run/lock", 01777}, {"var", 0755},         {"var/tmp", 01777},   {"var/lib", 0755},
    {"var/cache", 0755}, {"var/log", 0755}, {"var/spool", 0755}, {"mnt", 0755},         {"srv", 0755},        {"opt", 0755},
    {"media", 0755},   {"etc/ssl", 0755},   {"etc/maven", 0755}, {"etc/profile.d", 0755},
};
static const char *const local_dirs[] = {"bin", "etc", "games", "include", "lib", "sbin", "share", "src"};

static const struct made_link {
    const char *path, *target;
} made_links[] = {
    {"bin", "usr/bin"},      {"sbin", "usr/sbin"},        {"lib", "usr/lib"},          {"lib32", "usr/lib32"},
    {"lib64", "usr/lib64"},  {"libx32", "usr/libx32"},    {"var/run", "/run"},         {"var/lock", "/run/lock"},
    {"etc/mtab", "/proc/self/mounts"},                    {"etc/os-release", "../usr/lib/os-release"},
};

static const struct made_file {
    const char *path, *text;
} made_files[] = {
    {"etc/passwd", "root:x:0:0:root:/root:/bin/bash\n"
                   "daemon:x:1:1:daemon:/usr/sbin:/usr/sbin/nologin\n"
                   "bin:x:2:2:bin:/bin:/usr/sbin/nologin\n"
                   "mail:x:8:8:mail:/var/mail:/usr/sbin/nologin\n"
                   "www-data:x:33:33:www-data:/var/www:/usr/sbin/nologin\n"
                   "nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n"},
    {"etc/group", "root:x:0:\ndaemon:x:1:\nbin:x:2:\nadm:x:4:\ntty:x:5:\ndisk:x:6:\nmail:x:8:\nwww-data:x:33:\n"
                  "utmp:x:43:\nstaff:x:50:\nusers:x:100:\nnogroup:x:65534:\n"},
    {"etc/nsswitch.conf", "passwd: files\ngroup: files\nshadow: files\nhosts: files dns\nnetworks: files\n"
                          "protocols: files\nservices: files\nethers: files\nrpc: files\n"},
    {"etc/shells", "/bin/sh\n/bin/bash\n/usr/bin/bash\n"},
};

// Copied where the host has them; none can hold a secret on a machine that is set up as Debian means it.
static const char *const copied_files[] = {
    "ld.so.cache", "ld.so.conf",   "debian_version", "mime.types",   "timezone",     "services",  "protocols", "rpc",   "inputrc",
    "bash.bashrc", "profile",      "magic",          "magic.mime",   "locale.alias", "gai.conf",  "host.conf", "networks",
    "login.defs",  "ssl/openssl.cnf", "maven/m2.conf", "papersize", "ucf.conf", "nanorc", "localtime",
};
// Bound read-only where the host has them.
static const char *const bound_dirs[] = {
    "alternatives", "ssl/certs", "ld.so.conf.d", "terminfo", "fonts", "xml", "sgml", "perl", "python3", "python3.11",
    "java-17-openjdk", "maven/logging", "ImageMagick-6", "php", "skel",
};

static int make_dirs(const char *root, const char *local, struct error *err)
{
    char path[PATH_MAX];
    for (size_t i = 0; i < ARRAY_LEN(made_dirs); i++) {
        snprintf(path, sizeof(path), "%s/%s", root, made_dirs[i].path);
        if (rootfs_make_dir(path, made_dirs[i].mode, err) < 0)
            return -1;
    }
    for (size_t i = 0; i < ARRAY_LEN(local_dirs); i++) {
        snprintf(path, sizeof(path), "%s/%s", local, local_dirs[i]);
        if (rootfs_make_dir(path, 0755, err) < 0)
            return -1;
    }
    return 0;
}

static int make_links(const char *root, struct error *err)
{
    char path[PATH_MAX];
    for (size_t i = 0; i < ARRAY_LEN(made_links); i++) {
        snprintf(path, sizeof(path), "%s/%s", root, made_links[i].path);
        if (symlink(made_links[i].target, path) < 0 && errno != EEXIST)
            return error_errno(err, errno, NULL, "cannot link /%s of the sandbox", made_links[i].path);
    }
    return 0;
}

static int put_file(const char *root, const char *name, const char *bytes, size_t len, struct error *err)
{
    char path[PATH_MAX];
    snprintf(path, sizeof(path), "%s/%s", root, name);
    CLEANUP_CLOSE int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    if (fd < 0 || fchmod(fd, 0644) < 0)
        return error_errno(err, errno, NULL, "cannot write /%s of the sandbox", name);
    return fs_write_all(fd, bytes, len, err);
}

static int copy_files(const char *root, struct error *err)
{
    for (size_t i = 0; i < ARRAY_LEN(copied_files); i++) {
        char from[PATH_MAX];
        snprintf(from, sizeof(from), "/etc/%s", copied_files[i]);
        CLEANUP(buffer_free) struct buffer text = BUFFER_INIT(ETC_FILE_MAX_BYTES);
        CLEANUP_CLOSE int fd = open(from, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
        struct stat info;
        if (fd < 0 || fstat(fd, &info) < 0 || !S_ISREG(info.st_mode) || fs_read_all(fd, &text, NULL) < 0)
            continue; // not there, or not for everybody to read
        if (put_file(root, from + 1, buffer_text(&text), text.len, err) < 0)
            return -1;
    }
    return 0;
}

static int bind_dirs(const char *root, struct error *err)
{
    for (size_t i = 0; i < ARRAY_LEN(bound_dirs); i++) {
        char from[PATH_MAX], to[PATH_MAX];
        struct stat info;
        snprintf(from, sizeof(from), "/etc/%s", bound_dirs[i]);
        snprintf(to, sizeof(to), "%s/etc/%s", root, bound_dirs[i]);
        if (lstat(from, &info) < 0 || !S_ISDIR(info.st_mode))
            continue;
        if (mkdir(to, 0755) < 0 && errno != EEXIST) // its parent is not in the list of directories: nothing to show
            continue;
        if (rootfs_bind(from, to, err) < 0)
            return -1;
    }
    return 0;
}

int rootfs_fill_host(const char *root, const char *local, struct error *err)
{
    if (make_dirs(root, local, err) < 0 || make_links(root, err) < 0 || copy_files(root, err) < 0 || bind_dirs(root, err) < 0)
        return -1;
    for (size_t i = 0; i < ARRAY_LEN(made_files); i++)
        if (put_file(root, made_files[i].path, made_files[i].text, strlen(made_files[i].text), err) < 0)
            return -1;
    return 0;
}
