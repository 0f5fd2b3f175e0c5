#include "tests/support/fake_driver.h"
#include "controller/base/cleanup.h"
#include "controller/base/fs.h"
#include "controller/base/memory.h"
#include "controller/spawn.h"
#include <assert.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>

#define FAKE_MAX 4096 // as many as there may be sandboxes

struct fake_runtime {
    bool is_there;
    char *name, *root;
    driver_died_fn died;
    void *died_arg;
    pid_t pid;
    int pidfd;
    int ports[64], host_ports[64];
};

struct hung {
    enum fake_call call;
    struct fake_runtime *runtime; // creates only
    void (*answer)(struct hung *hung, int result, const struct error *err);
    union {
        driver_done_fn done;
        driver_created_fn created;
        driver_port_fn port;
    } fn;
    void *arg;
    int port;
};

struct fake_driver {
    struct driver base;
    struct driver_options options;
    char *program_dir;
    pthread_mutex_t lock; // guards all below
    struct fake_runtime *runtimes[FAKE_MAX];
    int used, next_port, reused;
    int calls[FAKE_CALL_COUNT];
    struct {
        enum fake_fault fault;
        int count;
    } faults[FAKE_CALL_COUNT];
    struct hung *hung[FAKE_MAX];
    int hung_count;
};

static struct fake_driver *self_of(struct driver *driver)
{
    return (struct fake_driver *)driver;
}

static struct fake_runtime *find(struct fake_driver *self, const char *name, bool is_there_only)
{
    for (int i = 0; i < self->used; i++)
        if (strcmp(self->runtimes[i]->name, name) == 0 && (self->runtimes[i]->is_there || !is_there_only))
            return self->runtimes[i];
    return NULL;
}

static enum fake_fault next_fault(struct fake_driver *self, enum fake_call call)
{
    self->calls[call]++;
    if (!self->faults[call].count)
        return FAKE_OK;
    if (self->faults[call].count > 0)
        self->faults[call].count--;
    return self->faults[call].fault;
}

// ---- answers come on the loop thread, as the contract says --------------------------------------------------------------
struct posted {
    struct hung *hung;
    int result;
    struct error err;
};

static void run_posted(void *arg)
{
    struct posted *posted = arg;
    posted->hung->answer(posted->hung, posted->result, &posted->err);
    free(posted->hung);
    free(posted);
}

static void post_answer(struct fake_driver *self, struct hung *hung, int result, enum error_code code, const char *message)
{
    struct posted *posted = mem_alloc(sizeof(*posted));
    posted->hung = hung;
    posted->result = result;
    if (result < 0)
        error_set(&posted->err, code, "nothing to do in a test", "%s", message);
    loop_post(self->options.loop, run_posted, posted);
}

static void answer_done(struct hung *hung, int result, const struct error *err)
{
    hung->fn.done(hung->arg, result, result < 0 ? err : NULL);
}

static void answer_created(struct hung *hung, int result, const struct error *err)
{
    struct driver_facts facts = {.isolation = "namespace", .template_name = "host"};
    struct capability docker = {"docker", false, "no private Docker Engine"};
    facts.capabilities = (struct capability_list){&docker, 1};
    hung->fn.created(hung->arg, result, result < 0 ? NULL : &facts, result < 0 ? err : NULL);
}

static void answer_port(struct hung *hung, int result, const struct error *err)
{
    hung->fn.port(hung->arg, result, hung->port, result < 0 ? err : NULL);
}

static void keep_hung(struct fake_driver *self, struct hung *hung)
{
    if (self->hung_count < FAKE_MAX)
        self->hung[self->hung_count++] = hung;
}

static void settle(struct fake_driver *self, struct hung *hung, enum fake_fault fault)
{
    if (fault == FAKE_HANG)
        keep_hung(self, hung);
    else
        post_answer(self, hung, fault == FAKE_OK ? 0 : -1, fault == FAKE_TIMEOUT ? ERROR_TIMEOUT : ERROR_IO, "injected failure");
}

// The private clone of clone mode, made as the real driver has it, but without a sandbox around git: the source is the test's own.
static void make_clone(const struct driver_spec *spec)
{
    CLEANUP_FREE char *parent = mem_strdup(spec->workspace_root);
    *strrchr(parent, '/') = '\0';
    struct error err = ERROR_INIT;
    if (fs_make_private_dir(parent, NULL, &err) < 0)
        return;
    pid_t pid = fork();
    if (pid == 0) {
        execl("/usr/bin/git", "git", "clone", "-q", "--no-local", spec->clone_source, spec->workspace_root, NULL);
        _exit(127);
    }
    waitpid(pid, NULL, 0);
}

// ---- create, remove ----------------------------------------------------------------------------------------------------
static void fake_create(struct driver *driver, const struct driver_spec *spec, driver_created_fn done, driver_died_fn died, void *arg)
{
    struct fake_driver *self = self_of(driver);
    pthread_mutex_lock(&self->lock);
    enum fake_fault fault = next_fault(self, FAKE_CREATE);
    self->reused += find(self, spec->runtime_name, false) != NULL;
    struct fake_runtime *runtime = mem_alloc(sizeof(*runtime));
    *runtime = (struct fake_runtime){.is_there = fault != FAKE_FAIL, .name = mem_strdup(spec->runtime_name),
                                     .root = mem_strdup(spec->workspace_root), .died = died, .died_arg = arg, .pidfd = -1};
    assert(self->used < FAKE_MAX);
    self->runtimes[self->used++] = runtime;
    struct hung *hung = mem_alloc(sizeof(*hung));
    *hung = (struct hung){.call = FAKE_CREATE, .runtime = runtime, .answer = answer_created, .fn.created = done, .arg = arg};
    if (runtime->is_there && spec->mode == WORKSPACE_CLONE && spec->clone_source)
        make_clone(spec);
    settle(self, hung, fault);
    pthread_mutex_unlock(&self->lock);
}

static void kill_process(struct fake_runtime *runtime)
{
    if (runtime->pidfd < 0)
        return;
    kill(-runtime->pid, SIGKILL);
    waitid(P_PIDFD, (id_t)runtime->pidfd, &(siginfo_t){0}, WEXITED);
    close(runtime->pidfd);
    runtime->pidfd = -1;
}

static void cancel_hung_create(struct fake_driver *self, const struct fake_runtime *runtime)
{
    for (int i = 0; i < self->hung_count; i++) {
        if (self->hung[i]->call != FAKE_CREATE || self->hung[i]->runtime != runtime)
            continue;
        post_answer(self, self->hung[i], -1, ERROR_CANCELLED, "the create was cancelled");
        self->hung[i--] = self->hung[--self->hung_count];
    }
}

static void fake_remove(struct driver *driver, const char *name, driver_done_fn done, void *arg)
{
    struct fake_driver *self = self_of(driver);
    pthread_mutex_lock(&self->lock);
    enum fake_fault fault = next_fault(self, FAKE_REMOVE);
    struct fake_runtime *runtime = find(self, name, true);
    if (runtime && (fault == FAKE_OK || fault == FAKE_HALF_DONE)) {
        cancel_hung_create(self, runtime);
        kill_process(runtime);
        runtime->is_there = false;
    }
    struct hung *hung = mem_alloc(sizeof(*hung));
    *hung = (struct hung){.call = FAKE_REMOVE, .answer = answer_done, .fn.done = done, .arg = arg};
    settle(self, hung, fault);
    pthread_mutex_unlock(&self->lock);
}

// ---- the tool server: the real one --------------------------------------------------------------------------------------
static int start_guest(struct fake_driver *self, struct fake_runtime *runtime, struct driver_session *ret, struct error *err)
{
    int in[2], out[2], errors[2];
    if (pipe2(in, O_CLOEXEC) < 0 || pipe2(out, O_CLOEXEC) < 0 || pipe2(errors, O_CLOEXEC) < 0)
        return error_errno(err, 24, NULL, "cannot make pipes");
    CLEANUP_FREE char *path = mem_format("%s/chat2shell-guest", self->program_dir);
    const char *argv[] = {path, "--root", runtime->root, "--stdio", NULL};
    const char *environment[] = {"PATH=/usr/bin:/bin", "HOME=/tmp", "USER=test", NULL};
    struct spawn_options options = {.path = path, .argv = argv, .environment = environment, .fds = {{in[0], 0}, {out[1], 1}, {errors[1], 2}},
                                    .fd_count = 3, .dies_with_us = true};
    int r = spawn_process(self->options.spawner, &options, &runtime->pid, &runtime->pidfd, err);
    close(in[0]);
    close(out[1]);
    close(errors[1]);
    *ret = (struct driver_session){in[1], out[0], errors[0]};
    return r;
}

struct session_answer {
    struct fake_driver *self;
    char *name;
    driver_session_fn done;
    void *arg;
    bool is_failing;
};

static void run_session(void *arg)
{
    struct session_answer *answer = arg;
    struct driver_session session = {-1, -1, -1};
    struct error err = ERROR_INIT;
    pthread_mutex_lock(&answer->self->lock);
    struct fake_runtime *runtime = find(answer->self, answer->name, true);
    int r = answer->is_failing || !runtime ? error_set(&err, ERROR_IO, NULL, "injected failure") : start_guest(answer->self, runtime, &session, &err);
    pthread_mutex_unlock(&answer->self->lock);
    answer->done(answer->arg, r, r == 0 ? &session : NULL, r < 0 ? &err : NULL);
    free(answer->name);
    free(answer);
}

static void fake_start_session(struct driver *driver, const char *name, driver_session_fn done, void *arg)
{
    struct fake_driver *self = self_of(driver);
    pthread_mutex_lock(&self->lock);
    enum fake_fault fault = next_fault(self, FAKE_SESSION);
    pthread_mutex_unlock(&self->lock);
    struct session_answer *answer = mem_alloc(sizeof(*answer));
    *answer = (struct session_answer){self, mem_strdup(name), done, arg, fault != FAKE_OK};
    loop_post(self->options.loop, run_session, answer);
}

// ---- ports ------------------------------------------------------------------------------------------------------------
static int *port_slot(struct fake_runtime *runtime, int port)
{
    for (int i = 0; i < 64; i++)
        if (runtime->ports[i] == port)
            return &runtime->ports[i];
    return NULL;
}

static void fake_publish(struct driver *driver, const char *name, int port, driver_port_fn done, void *arg)
{
    struct fake_driver *self = self_of(driver);
    pthread_mutex_lock(&self->lock);
    enum fake_fault fault = next_fault(self, FAKE_PUBLISH);
    struct fake_runtime *runtime = find(self, name, true);
    struct hung *hung = mem_alloc(sizeof(*hung));
    *hung = (struct hung){.call = FAKE_PUBLISH, .answer = answer_port, .fn.port = done, .arg = arg};
    if (!runtime)
        fault = FAKE_FAIL;
    if (fault != FAKE_FAIL) {
        int *slot = port_slot(runtime, port);
        if (!slot) {
            slot = port_slot(runtime, 0);
            *slot = port;
            runtime->host_ports[slot - runtime->ports] = 40000 + self->next_port++;
        }
        hung->port = runtime->host_ports[slot - runtime->ports];
    }
    settle(self, hung, fault);
    pthread_mutex_unlock(&self->lock);
}

static void simple_port_call(struct driver *driver, enum fake_call call, const char *name, int port, driver_done_fn done, void *arg)
{
    struct fake_driver *self = self_of(driver);
    pthread_mutex_lock(&self->lock);
    enum fake_fault fault = next_fault(self, call);
    struct fake_runtime *runtime = find(self, name, true);
    int *slot = runtime ? port_slot(runtime, port) : NULL;
    if (call == FAKE_UNPUBLISH && slot && fault != FAKE_FAIL)
        *slot = 0;
    struct hung *hung = mem_alloc(sizeof(*hung));
    *hung = (struct hung){.call = call, .answer = answer_done, .fn.done = done, .arg = arg};
    settle(self, hung, fault);
    pthread_mutex_unlock(&self->lock);
}

static void fake_unpublish(struct driver *driver, const char *name, int port, driver_done_fn done, void *arg)
{
    simple_port_call(driver, FAKE_UNPUBLISH, name, port, done, arg);
}

static void fake_probe_port(struct driver *driver, const char *name, int port, driver_done_fn done, void *arg)
{
    simple_port_call(driver, FAKE_PROBE, name, port, done, arg);
}

static void fake_list(struct driver *driver, driver_list_fn done, void *arg)
{
    struct fake_driver *self = self_of(driver);
    struct text_list names = {0};
    pthread_mutex_lock(&self->lock);
    for (int i = 0; i < self->used; i++)
        if (self->runtimes[i]->is_there)
            text_list_add(&names, self->runtimes[i]->name);
    pthread_mutex_unlock(&self->lock);
    done(arg, 0, &names, NULL);
    text_list_clear(&names);
}

static void fake_probe(struct driver *driver, struct finding_list *ret)
{
    (void)driver;
    finding_add(ret, FINDING_PASS, "fake driver", NULL, "it is there");
}

static void fake_describe(struct driver *driver, const char *template_name, struct capability_list *ret)
{
    (void)driver, (void)template_name;
    *ret = (struct capability_list){0};
}

static void fake_free(struct driver *driver)
{
    struct fake_driver *self = self_of(driver);
    for (int i = 0; i < self->used; i++) {
        kill_process(self->runtimes[i]);
        free(self->runtimes[i]->name);
        free(self->runtimes[i]->root);
        free(self->runtimes[i]);
    }
    for (int i = 0; i < self->hung_count; i++)
        free(self->hung[i]);
    free(self->program_dir);
    pthread_mutex_destroy(&self->lock);
    free(self);
}

static const struct driver_ops fake_ops = {
    .name = "fake", .create = fake_create, .start_session = fake_start_session, .remove = fake_remove, .publish = fake_publish,
    .unpublish = fake_unpublish, .probe_port = fake_probe_port, .list = fake_list, .probe = fake_probe, .describe = fake_describe, .free = fake_free,
};

int fake_driver_new(const struct driver_options *options, struct driver **ret, struct error *err)
{
    (void)err;
    struct fake_driver *self = mem_alloc(sizeof(*self));
    self->base.ops = &fake_ops;
    self->options = *options;
    self->program_dir = mem_strdup(options->program_dir);
    pthread_mutex_init(&self->lock, NULL);
    *ret = &self->base;
    return 0;
}

void fake_driver_set_loop(struct driver *driver, struct loop *loop)
{
    struct fake_driver *self = self_of(driver);
    pthread_mutex_lock(&self->lock);
    self->options.loop = loop;
    while (self->hung_count)
        free(self->hung[--self->hung_count]);
    pthread_mutex_unlock(&self->lock);
}

void fake_driver_inject(struct driver *driver, enum fake_call call, enum fake_fault fault, int count)
{
    struct fake_driver *self = self_of(driver);
    pthread_mutex_lock(&self->lock);
    self->faults[call].fault = fault;
    self->faults[call].count = count;
    pthread_mutex_unlock(&self->lock);
}

void fake_driver_release(struct driver *driver, enum fake_call call)
{
    struct fake_driver *self = self_of(driver);
    pthread_mutex_lock(&self->lock);
    for (int i = 0; i < self->hung_count; i++) {
        if (self->hung[i]->call != call)
            continue;
        post_answer(self, self->hung[i], 0, ERROR_NONE, "");
        self->hung[i--] = self->hung[--self->hung_count];
    }
    pthread_mutex_unlock(&self->lock);
}

static int locked_int(struct driver *driver, const int *value)
{
    struct fake_driver *self = self_of(driver);
    pthread_mutex_lock(&self->lock);
    int copy = *value;
    pthread_mutex_unlock(&self->lock);
    return copy;
}

int fake_driver_calls(struct driver *driver, enum fake_call call)
{
    return locked_int(driver, &self_of(driver)->calls[call]);
}

int fake_driver_hung(struct driver *driver)
{
    return locked_int(driver, &self_of(driver)->hung_count);
}

int fake_driver_names_reused(struct driver *driver)
{
    return locked_int(driver, &self_of(driver)->reused);
}

int fake_driver_runtimes(struct driver *driver)
{
    struct fake_driver *self = self_of(driver);
    int count = 0;
    pthread_mutex_lock(&self->lock);
    for (int i = 0; i < self->used; i++)
        count += self->runtimes[i]->is_there;
    pthread_mutex_unlock(&self->lock);
    return count;
}

bool fake_driver_has(struct driver *driver, const char *name)
{
    struct fake_driver *self = self_of(driver);
    pthread_mutex_lock(&self->lock);
    bool has = find(self, name, true) != NULL;
    pthread_mutex_unlock(&self->lock);
    return has;
}

static struct fake_runtime *the_one(struct fake_driver *self)
{
    for (int i = self->used - 1; i >= 0; i--)
        if (self->runtimes[i]->is_there)
            return self->runtimes[i];
    return NULL;
}

void fake_driver_kill_session(struct driver *driver)
{
    struct fake_driver *self = self_of(driver);
    pthread_mutex_lock(&self->lock);
    struct fake_runtime *runtime = the_one(self);
    if (runtime)
        kill_process(runtime);
    pthread_mutex_unlock(&self->lock);
}

void fake_driver_kill_runtime(struct driver *driver, const char *reason)
{
    struct fake_driver *self = self_of(driver);
    pthread_mutex_lock(&self->lock);
    struct fake_runtime *runtime = the_one(self);
    if (runtime) {
        kill_process(runtime);
        runtime->is_there = false;
    }
    pthread_mutex_unlock(&self->lock);
    if (runtime)
        runtime->died(runtime->died_arg, runtime->name, reason);
}
