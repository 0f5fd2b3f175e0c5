// Making a sandbox: (for a private clone: the throwaway sandbox first, then) the shim, its ready event, the egress
// process, the facts.
#include "controller/base/cleanup.h"
#include "controller/base/fs.h"
#include "controller/base/guest_protocol.h"
#include "controller/base/json.h"
#include "controller/base/memory.h"
#include "reconcilers/drivers/bubblewrap/bubblewrap.h"
#include <errno.h>
#include <string.h>

struct creation {
    struct bubblewrap *bw;
    char *name, *root, *source;
    const char *template_name;
    int64_t device, inode, source_device, source_inode, memory_bytes, cpus_milli;
    bool has_network, is_answered;
    driver_created_fn done;
    driver_died_fn died;
    void *arg;
    // between the caller's thread and the loop
    int result;
    struct launched launched;
    struct error err;
};

static void creation_free(void *arg)
{
    struct creation *creation = arg;
    free(creation->name);
    free(creation->root);
    free(creation->source);
    free(creation);
}

static void copy_texts(struct text_list *to, const json_t *array)
{
    size_t i;
    const json_t *item;
    json_array_foreach ((json_t *)array, i, item)
        if (json_is_string(item))
            text_list_add(to, json_string_value(item));
}

static void answer_failed(struct creation *creation, const struct error *err)
{
    if (creation->is_answered)
        return;
    creation->is_answered = true;
    creation->done(creation->arg, -1, NULL, err);
}

// ---- the sandbox itself ----------------------------------------------------------------------------------------------

static void on_ready(void *arg, struct runtime *runtime, const json_t *ready)
{
    struct creation *creation = arg;
    struct driver_facts facts = {.isolation = "namespace", .template_name = creation->template_name};
    (void)runtime;
    findings_describe(&creation->bw->driver, creation->template_name, &facts.capabilities);
    copy_texts(&facts.limits, json_object_get(ready, "limits"));
    copy_texts(&facts.missing_limits, json_object_get(ready, "missing_limits"));
    copy_texts(&facts.warnings, json_object_get(ready, "warnings"));
    copy_texts(&facts.broken_rules, json_object_get(ready, "broken_rules"));
    creation->is_answered = true;
    creation->done(creation->arg, 0, &facts, NULL);
    struct text_list *const lists[] = {&facts.limits, &facts.missing_limits, &facts.warnings, &facts.broken_rules};
    for (size_t i = 0; i < ARRAY_LEN(lists); i++)
        text_list_clear(lists[i]);
    capability_list_free(&facts.capabilities);
}

static void on_failed(void *arg, struct runtime *runtime, const struct error *err)
{
    (void)runtime;
    answer_failed(arg, err);
}

static void on_ended(void *arg, struct runtime *runtime, const struct runtime_end *end)
{
    struct creation *creation = arg;
    if (creation->died && !runtime->is_removing)
        creation->died(creation->arg, runtime->name, end->reason);
}

static void launch(struct creation *creation)
{
    static const char *const guest = GUEST_PATH_INSIDE;
    const char *const command[] = {guest, "--root", creation->root, "--stdio", NULL};
    struct launch launch = {.name = creation->name,
                            .template_name = creation->template_name,
                            .cwd = creation->root,
                            .mounts = {{creation->root, creation->root, false, creation->device, creation->inode}},
                            .mount_count = 1,
                            .command = command,
                            .memory_bytes = creation->memory_bytes,
                            .cpus_milli = creation->cpus_milli,
                            .has_network = creation->has_network};
    creation->result = launch_shim(creation->bw, &launch, &creation->launched, &creation->err);
}

static void launched(void *arg)
{
    struct creation *creation = arg;
    struct runtime *runtime = runtime_find(creation->bw, creation->name); // a launching one is never freed
    runtime->is_launching = false;
    if (creation->result == 0)
        runtime_attach(runtime, &creation->launched);
    else
        runtime_fail(runtime, &creation->err);
    if (runtime->is_removing)
        remove_shim_ended(runtime);
}

// ---- the private clone -------------------------------------------------------------------------------------------------

#define CLONE_SOURCE "/clone/source"
#define CLONE_TARGET "/clone/target"
// Runs in the throwaway sandbox: no network, the checkout read-only. Nothing of the checkout's own configuration, hooks,
// templates or submodules is run; the only transport is a directory.
static const char clone_script[] =
    "export GIT_CONFIG_NOSYSTEM=1 GIT_TERMINAL_PROMPT=0 GIT_LFS_SKIP_SMUDGE=1 GIT_ALLOW_PROTOCOL=file GIT_ADVICE=0\n"
    "printf '[safe]\\n\\tdirectory = *\\n[protocol]\\n\\tallow = never\\n[protocol \"file\"]\\n\\tallow = always\\n"
    "[core]\\n\\thooksPath = /dev/null\\n\\tfsmonitor = false\\n' > /root/.gitconfig || exit 125\n"
    "command -v git > /dev/null || { echo 'git is not installed in the template'; exit 125; }\n"
    "exec git clone --quiet --no-local --no-hardlinks --template= --no-recurse-submodules -- \"$1\" \"$2\" >&2\n";

static void clone_removed(void *arg, int result, const struct error *err)
{
    struct creation *creation = arg;
    struct runtime *runtime = runtime_find(creation->bw, creation->name);
    if (result < 0 && creation->err.code == ERROR_NONE)
        error_copy(&creation->err, err);
    if (creation->err.code != ERROR_NONE || runtime->is_removing) {
        creation->result = -1;
        launched(creation);
        return;
    }
    launch(creation);
    launched(creation);
}

static void clone_failed(void *arg, struct runtime *runtime, const struct error *err)
{
    struct creation *creation = arg;
    error_copy(&creation->err, err);
    error_context(&creation->err, "cannot make the private clone");
    remove_on_loop(creation->bw, runtime->name, clone_removed, creation);
}

static void clone_ready(void *arg, struct runtime *runtime, const json_t *ready)
{
    (void)arg;
    (void)runtime;
    (void)ready;
}

static void clone_ended(void *arg, struct runtime *runtime, const struct runtime_end *end)
{
    struct creation *creation = arg;
    if (end->exit_code != 0)
        error_set(&creation->err, ERROR_UNAVAILABLE, "check that the checkout can be cloned: git clone --no-local",
                  "cannot make the private clone: %s", end->last_words[0] ? end->last_words : end->reason);
    remove_on_loop(creation->bw, runtime->name, clone_removed, creation);
}

static int make_clone_dir(const struct creation *creation, struct error *err)
{
    CLEANUP_FREE char *name = driver_clone_dir_name(creation->name);
    CLEANUP_FREE char *dir = mem_format("%s/clones/%s/", creation->bw->data_root, name);
    if (strncmp(creation->root, dir, strlen(dir)) != 0)
        return error_set(err, ERROR_INTERNAL, NULL, "the private clone's place is not below the clones directory");
    return fs_make_private_dir(creation->root, NULL, err);
}

static void start_clone(void *arg)
{
    struct creation *creation = arg;
    CLEANUP_FREE char *name = mem_format("%s" BUBBLEWRAP_CLONE_SUFFIX, creation->name);
    const char *const command[] = {"/bin/sh", "-c", clone_script, "clone", CLONE_SOURCE, CLONE_TARGET, NULL};
    struct launch launch = {.name = name,
                            .template_name = creation->template_name,
                            .cwd = "/clone/target",
                            .mounts = {{creation->source, CLONE_SOURCE, true, creation->source_device, creation->source_inode},
                                       {creation->root, CLONE_TARGET, false, 0, 0}},
                            .mount_count = 2,
                            .command = command};
    struct runtime_events events = {clone_ready, clone_failed, clone_ended, creation};
    struct launched helper;
    if (make_clone_dir(creation, &creation->err) < 0 || launch_shim(creation->bw, &launch, &helper, &creation->err) < 0) {
        error_context(&creation->err, "cannot make the private clone");
        remove_on_loop(creation->bw, name, clone_removed, creation);
        return;
    }
    runtime_attach(runtime_add(creation->bw, name, &events), &helper);
}

// ---- create ------------------------------------------------------------------------------------------------------------

static struct creation *creation_new(struct bubblewrap *bw, const struct driver_spec *spec)
{
    struct creation *creation = mem_alloc(sizeof(*creation));
    *creation = (struct creation){.bw = bw,
                                  .name = mem_strdup(spec->runtime_name),
                                  .root = mem_strdup(spec->workspace_root),
                                  .source = spec->mode == WORKSPACE_CLONE ? mem_strdup_or_null(spec->clone_source) : NULL,
                                  .device = spec->device,
                                  .inode = spec->inode,
                                  .source_device = spec->source_device,
                                  .source_inode = spec->source_inode,
                                  .memory_bytes = spec->memory_bytes,
                                  .cpus_milli = spec->cpus_milli,
                                  .has_network = spec->has_network};
    return creation;
}

static void register_runtime(void *arg)
{
    struct creation *creation = arg;
    struct runtime_events events = {on_ready, on_failed, on_ended, creation};
    if (runtime_find(creation->bw, creation->name)) {
        creation->result = error_set(&creation->err, ERROR_EXISTS, NULL, "a runtime of that name is there already");
        return;
    }
    struct runtime *runtime = runtime_add(creation->bw, creation->name, &events);
    runtime->free_arg = creation_free;
    runtime->is_launching = true;
}

static void refuse(void *arg)
{
    struct creation *creation = arg;
    answer_failed(creation, &creation->err);
    creation_free(creation);
}

static void check_session(const struct driver_spec *spec, struct error *err)
{
    if (spec->session == SESSION_CODEXPRO)
        error_set(err, ERROR_UNSUPPORTED, "leave out spec.session, or use the driver sbx",
                  "the bubblewrap driver starts the embedded tool server 'guest' only, not codexpro");
}

void create_runtime(struct driver *driver, const struct driver_spec *spec, driver_created_fn done, driver_died_fn died, void *arg)
{
    struct bubblewrap *bw = (struct bubblewrap *)driver;
    struct creation *creation = creation_new(bw, spec);
    creation->done = done;
    creation->died = died;
    creation->arg = arg;
    check_session(spec, &creation->err);
    if (creation->err.code == ERROR_NONE)
        creation->template_name = template_pick(bw, spec->template_name, &creation->err);
    if (creation->template_name)
        loop_call(bw->loop, register_runtime, creation);
    if (creation->err.code != ERROR_NONE) {
        loop_post(bw->loop, refuse, creation);
        return;
    }
    if (creation->source) {
        loop_post(bw->loop, start_clone, creation);
        return;
    }
    launch(creation); // on the caller's thread: the loop must not wait for a process to start
    loop_post(bw->loop, launched, creation);
}

// ---- the session's streams ---------------------------------------------------------------------------------------------

struct session_call {
    struct bubblewrap *bw;
    char *name;
    driver_session_fn done;
    void *arg;
};

static void session_end(struct session_call *call, const struct driver_session *session, const struct error *err)
{
    call->done(call->arg, err ? -1 : 0, session, err);
    free(call->name);
    free(call);
}

static void on_streams(void *arg, struct channel_message *message, const struct error *err)
{
    struct error wrong = ERROR_INIT;
    if (err || message->fd_count != 3) {
        if (err == NULL)
            error_set(&wrong, ERROR_INTERNAL, NULL, "the sandbox's supervisor handed out the wrong streams");
        session_end(arg, NULL, err ? err : &wrong);
        return;
    }
    struct driver_session session = {TAKE_FD(message->fds[0]), TAKE_FD(message->fds[1]), TAKE_FD(message->fds[2])};
    session_end(arg, &session, NULL);
}

static void session_on_loop(void *arg)
{
    struct session_call *call = arg;
    struct runtime *runtime = runtime_find(call->bw, call->name);
    if (runtime && runtime->state == RUNTIME_RUNNING && !runtime->is_removing && runtime->shim) {
        channel_call(runtime->shim, json_pack("{s:s}", "op", "stdio"), -1, BUBBLEWRAP_CALL_DEADLINE_MS, on_streams, call);
        return;
    }
    struct error err = ERROR_INIT;
    error_set(&err, ERROR_STATE, NULL, "the sandbox is not running");
    session_end(call, NULL, &err);
}

void create_session(struct driver *driver, const char *name, driver_session_fn done, void *arg)
{
    struct session_call *call = mem_alloc(sizeof(*call));
    *call = (struct session_call){(struct bubblewrap *)driver, mem_strdup(name), done, arg};
    loop_post(call->bw->loop, session_on_loop, call);
}
