#include "reconcilers/bundle.h"
#include "controller/base/fs.h"
#include "controller/base/guest_protocol.h"
#include "controller/base/memory.h"
#include "controller/base/random.h"
#include "reconcilers/world.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>

const char *const bundle_argv[] = {"git", "-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", "bundle", "create", "-", "--branches", NULL};

struct bundle {
    struct world *world;
    char *uid, *path, *temp_path, exec_id[33];
    int fd;
    int64_t written;
    struct boot_time deadline;
    bundle_done_fn done;
    void *arg;
};

static void bundle_free(struct bundle *bundle)
{
    if (bundle->fd >= 0)
        close(bundle->fd);
    free(bundle->uid);
    free(bundle->path);
    free(bundle->temp_path);
    free(bundle);
}

static void finish(struct bundle *bundle, int result, const char *path, const struct error *err)
{
    if (!path && bundle->temp_path)
        unlink(bundle->temp_path);
    bundle->done(bundle->arg, result, path, err);
    bundle_free(bundle);
}

// Making it durable may take seconds: on the request worker, the loop goes on.
static void keep_file(void *arg)
{
    struct bundle *bundle = arg;
    struct error err = ERROR_INIT;
    int r = fsync(bundle->fd) < 0 || rename(bundle->temp_path, bundle->path) < 0
                ? error_errno(&err, errno, NULL, "cannot make the bundle %s durable", bundle->path)
                : 0;
    finish(bundle, r, r == 0 ? bundle->path : NULL, &err);
}

static void ignore_answer(void *arg, int result, json_t *answer, const struct error *err)
{
    (void)arg, (void)result, (void)answer, (void)err;
}

static json_t *params_of(const struct bundle *bundle)
{
    json_t *params = json_object();
    json_set_text(params, "exec_id", bundle->exec_id);
    return params;
}

static void end_exec(struct bundle *bundle)
{
    lane_request_closed(bundle->world->lanes, bundle->uid, "chat2shell/exec_end", params_of(bundle), 5000, ignore_answer, NULL);
}

static void fail(struct bundle *bundle, const struct error *err)
{
    end_exec(bundle);
    finish(bundle, -1, NULL, err);
}

static void read_more(struct bundle *bundle);

static int keep_output(struct bundle *bundle, const json_t *answer, struct error *err)
{
    CLEANUP_FREE char *bytes = NULL;
    size_t len = 0;
    if (json_decode_base64(json_get_text(answer, "stdout"), &bytes, &len, err) < 0)
        return -1;
    bundle->written += (int64_t)len;
    if (bundle->written > BUNDLE_MAX_BYTES || clock_boot(bundle->world->clock).ms > bundle->deadline.ms)
        return error_set(err, ERROR_TOO_LARGE, NULL, "the bundle is larger or slower than allowed");
    return fs_write_all(bundle->fd, bytes, len, err);
}

// git ends with 128 and no output where there is no commit to bundle: nothing to save is no failure.
static void settle(struct bundle *bundle, int64_t exit_code)
{
    struct error err = ERROR_INIT;
    if (exit_code != 0 && !(exit_code == 128 && bundle->written == 0)) {
        error_set(&err, ERROR_IO, NULL, "git bundle ended with exit code %lld", (long long)exit_code);
        fail(bundle, &err);
        return;
    }
    end_exec(bundle);
    if (bundle->written == 0)
        finish(bundle, 0, NULL, NULL);
    else if (!request_worker_add(bundle->world->reconcilers->worker, keep_file, bundle))
        keep_file(bundle); // stopping or crowded: late is better than lost
}

static void on_read(void *arg, int result, json_t *answer, const struct error *failure)
{
    struct bundle *bundle = arg;
    struct error err = ERROR_INIT;
    if (result < 0)
        fail(bundle, failure);
    else if (keep_output(bundle, answer, &err) < 0)
        fail(bundle, &err);
    else if (json_get_bool(answer, "exited", false))
        settle(bundle, json_get_int(answer, "exit_code", -1));
    else
        read_more(bundle);
}

static void read_more(struct bundle *bundle)
{
    json_t *params = params_of(bundle);
    json_object_set_new(params, "wait_ms", json_integer(30000));
    lane_request_closed(bundle->world->lanes, bundle->uid, "chat2shell/exec_read", params, 60000, on_read, bundle);
}

static void on_started(void *arg, int result, json_t *answer, const struct error *err)
{
    (void)answer;
    struct bundle *bundle = arg;
    if (result < 0)
        finish(bundle, -1, NULL, err);
    else
        read_more(bundle);
}

static int open_file(struct bundle *bundle, const char *name, struct error *err)
{
    CLEANUP_FREE char *dir = mem_format("%s/bundles", bundle->world->config->data_root);
    if (fs_make_private_dir(dir, NULL, err) < 0)
        return -1;
    bundle->path = mem_format("%s/%s-%s.bundle", dir, name, bundle->uid);
    bundle->temp_path = mem_format("%s.part", bundle->path);
    bundle->fd = open(bundle->temp_path, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
    return bundle->fd < 0 ? error_errno(err, errno, NULL, "cannot create %s", bundle->temp_path) : 0;
}

void bundle_save(struct world *world, const char *sandbox_uid, const char *sandbox_name, bundle_done_fn done, void *arg)
{
    struct bundle *bundle = mem_alloc(sizeof(*bundle));
    *bundle = (struct bundle){.world = world, .uid = mem_strdup(sandbox_uid), .fd = -1, .done = done, .arg = arg};
    bundle->deadline.ms = clock_boot(world->clock).ms + BUNDLE_DEADLINE_MS;
    random_hex(bundle->exec_id, 32);
    struct error err = ERROR_INIT;
    if (open_file(bundle, sandbox_name, &err) < 0) {
        finish(bundle, -1, NULL, &err);
        return;
    }
    json_t *params = params_of(bundle), *argv = json_array();
    for (size_t i = 0; bundle_argv[i]; i++)
        json_array_append_new(argv, json_from_text(bundle_argv[i]));
    json_object_set_new(params, "argv", argv);
    lane_request_closed(world->lanes, sandbox_uid, "chat2shell/exec_start", params, 30000, on_started, bundle);
}
