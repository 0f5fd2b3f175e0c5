#include "reconcilers/drivers/bubblewrap/shim/config.h"
#include "controller/base/buffer.h"
#include "controller/base/fs.h"
#include "controller/base/json.h"
#include <string.h>

static int refuse(struct error *err, const char *what)
{
    return error_set(err, ERROR_INVALID, "start the shim through chat2shell", "the sandbox's configuration is wrong: %s", what);
}

static bool is_text_array(const json_t *array, size_t least)
{
    size_t i;
    const json_t *item;
    json_array_foreach ((json_t *)array, i, item)
        if (!json_is_string(item))
            return false;
    return json_is_array(array) && json_array_size(array) >= least;
}

static bool has_flag(const json_t *root, const char *name)
{
    size_t i;
    const json_t *item;
    json_array_foreach (json_object_get(root, "flags"), i, item)
        if (json_is_string(item) && strcmp(json_string_value(item), name) == 0)
            return true;
    return false;
}

// Absolute, no empty, "." or ".." component: bubblewrap would resolve them in its own way.
static bool is_clean_path(const char *path)
{
    if (path == NULL || path[0] != '/' || path[1] == '\0')
        return false;
    for (const char *at = path; *at != '\0';) {
        size_t len = strcspn(++at, "/");
        if (len == 0 || (at[0] == '.' && (len == 1 || (len == 2 && at[1] == '.'))))
            return false;
        at += len;
    }
    return true;
}

static int read_mounts(const json_t *root, struct shim_config *config, struct error *err)
{
    size_t i;
    const json_t *item;
    json_array_foreach (json_object_get(root, "mounts"), i, item) {
        if (i >= SHIM_MAX_MOUNTS)
            return refuse(err, "too many mounts");
        struct shim_mount *mount = &config->mounts[config->mount_count++];
        mount->fd = (int)json_get_int(item, "fd", -1);
        mount->target = json_get_text(item, "target");
        mount->is_read_only = json_get_bool(item, "read_only", false);
        mount->device = json_get_int(item, "device", 0);
        mount->inode = json_get_int(item, "inode", 0);
        if (mount->fd < SHIM_FD_FIRST_MOUNT || !is_clean_path(mount->target))
            return refuse(err, "a mount has no descriptor or no clean absolute target");
    }
    return 0;
}

static int read_limits(const json_t *limits, struct shim_config *config, struct error *err)
{
    config->memory_bytes = json_get_int(limits, "memory_bytes", 0);
    config->pids = json_get_int(limits, "pids", 0);
    config->cpus_milli = json_get_int(limits, "cpus_milli", 0);
    config->root_bytes = json_get_int(limits, "root_bytes", 0);
    if (config->memory_bytes <= 0 || config->pids <= 0 || config->cpus_milli <= 0 || config->root_bytes <= 0)
        return refuse(err, "each limit must be a positive number");
    size_t i;
    const json_t *item;
    json_array_foreach (json_object_get(limits, "cgroups"), i, item) {
        if (i >= SHIM_MAX_CGROUPS)
            return refuse(err, "too many cgroups");
        struct shim_cgroup *group = &config->cgroups[config->cgroup_count++];
        group->version = (int)json_get_int(item, "version", 0);
        group->controller = json_get_text(item, "controller");
        group->path = json_get_text(item, "path");
        if (group->controller == NULL || !is_clean_path(group->path))
            return refuse(err, "a cgroup has no controller or path");
    }
    return 0;
}

static int read_template(const json_t *template, struct shim_config *config, struct error *err)
{
    const char *kind = json_get_text(template, "kind");
    if (kind == NULL)
        return refuse(err, "no template");
    config->template_fd = -1;
    if (strcmp(kind, "host") == 0)
        return 0;
    config->template_fd = (int)json_get_int(template, "fd", -1);
    if (strcmp(kind, "tree") != 0 || config->template_fd < SHIM_FD_FIRST_MOUNT)
        return refuse(err, "unknown kind of template");
    return 0;
}

int config_read(int fd, struct shim_config *ret, struct error *err)
{
    CLEANUP(buffer_free) struct buffer text = BUFFER_INIT(SHIM_CONFIG_MAX_BYTES);
    CLEANUP_JSON json_t *root = NULL;
    lseek(fd, 0, SEEK_SET); // the writer left the offset at its end
    if (fs_read_all(fd, &text, err) < 0 || json_parse(buffer_text(&text), text.len, &root, err) < 0)
        return error_context(err, "cannot read the sandbox's configuration");
    if (json_get_int(root, "version", 0) != SHIM_PROTOCOL_VERSION)
        return refuse(err, "its version is not this shim's");
    struct shim_config config = {.name = json_get_text(root, "name"),
                                 .cwd = json_get_text(root, "cwd"),
                                 .ends_with_controller = has_flag(root, "ends-with-controller"),
                                 .has_network = json_get_bool(root, "network", false),
                                 .command = json_object_get(root, "command"),
                                 .environment = json_object_get(root, "environment")};
    const char *identity = json_get_text(root, "identity");
    config.is_single_identity = identity != NULL && strcmp(identity, "single") == 0;
    if (config.name == NULL || config.name[0] == '\0' || strchr(config.name, '/') != NULL)
        return refuse(err, "no name");
    if (!is_text_array(config.command, 1) || !is_text_array(config.environment, 0))
        return refuse(err, "command and environment must be lists of texts");
    if (!is_clean_path(config.cwd))
        return refuse(err, "no working directory");
    if (read_template(json_object_get(root, "template"), &config, err) < 0 || read_mounts(root, &config, err) < 0 ||
        read_limits(json_object_get(root, "limits"), &config, err) < 0)
        return -1;
    config.root = TAKE_PTR(root);
    *ret = config;
    return 0;
}
