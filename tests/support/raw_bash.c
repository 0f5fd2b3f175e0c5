#define PCRE2_CODE_UNIT_WIDTH 8
#include "tests/support/raw_bash.h"
#include "controller/base/buffer.h"
#include "controller/base/memory.h"
#include "controller/base/utf8.h"
#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pcre2.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <sys/wait.h>
#include <unistd.h>

#define GRACE_MS 1500

struct raw_call {
    TAILQ_ENTRY(raw_call) link;
    struct raw_bash *raw;
    int64_t id;
    pthread_t thread;
    char *command, *cwd;
    int64_t timeout_ms;
    rpc_answer_fn fn;
    void *arg;
    bool is_abandoned; // or told
    pid_t pid; // while it runs
    json_t *result;
};

struct raw_bash {
    struct loop *loop;
    char *workspace, *home;
    pthread_mutex_t lock; // guards the rest
    TAILQ_HEAD(, raw_call) calls;
    int64_t last_id;
    char *(*fault)(void *arg, char *text);
    void *fault_arg;
    char *directories[16];
    size_t directory_count;
};

// ---- masking -------------------------------------------------------------------------------------------------------

#define BLANK "\\s*"
#define NAME "[A-Za-z0-9_]{0,64}(?:API[_-]?KEY|TOKEN|SECRET|PASSWORD|PRIVATE[_-]?KEY)[A-Za-z0-9_]{0,64}"
#define VALUE "(?:\"[^\"\\r\\n]{12,512}\"|'[^'\\r\\n]{12,512}'|`[^`\\r\\n]{12,512}`|[A-Za-z0-9_./+=-]{20,512})"
#define MARK "[REDACTED_SECRET]"

static const struct {
    const char *pattern;
    uint32_t flags;
    const char *replacement;
} shapes[] = {
    {"(--(?:token|access-token|auth-token|api[_-]?key|authtoken)(?:=|\\s+))[A-Za-z0-9._~+/=-]{8,}", PCRE2_CASELESS, "$1" MARK},
    {"\\b(" NAME ")" BLANK "=" BLANK VALUE, PCRE2_CASELESS, "$1= " MARK},
    {"([\"']?" NAME "[\"']?" BLANK ":" BLANK ")" VALUE, PCRE2_CASELESS, "$1" MARK},
    {"\\b(Authorization" BLANK ":" BLANK "Bearer\\s+)[A-Za-z0-9._~+/=-]{12,}", PCRE2_CASELESS, "$1" MARK},
    {"([?&](?:codexpro_token|token|access_token|auth_token|api[_-]?key)=)[^&\"'`<>\\s]{8,}", PCRE2_CASELESS, "$1" MARK},
    {"\\bsk-[A-Za-z0-9_-]{10,}\\b", 0, MARK},
    {"\\b(?:sk-ant-[A-Za-z0-9_-]{10,}|gh[opsru]_[A-Za-z0-9_]{20,}|github_pat_[A-Za-z0-9_]{20,}|npm_[A-Za-z0-9_-]{20,})\\b", 0, MARK},
};

static char *substitute(char *text, size_t shape)
{
    int error;
    PCRE2_SIZE at, len = strlen(text) * 2 + 4096;
    pcre2_code *code = pcre2_compile((PCRE2_SPTR)shapes[shape].pattern, PCRE2_ZERO_TERMINATED, shapes[shape].flags, &error, &at, NULL);
    assert_non_null(code);
    char *masked = mem_alloc(len);
    int count = pcre2_substitute(code, (PCRE2_SPTR)text, strlen(text), 0, PCRE2_SUBSTITUTE_GLOBAL, NULL, NULL,
                                 (PCRE2_SPTR)shapes[shape].replacement, PCRE2_ZERO_TERMINATED, (PCRE2_UCHAR *)masked, &len);
    pcre2_code_free(code);
    assert_true(count >= 0);
    free(text);
    return masked;
}

char *raw_bash_mask(char *text)
{
    for (size_t i = 0; i < ARRAY_LEN(shapes); i++)
        text = substitute(text, i);
    return text;
}

// ---- one command ---------------------------------------------------------------------------------------------------

struct running {
    struct raw_call *call;
    pid_t pid;
    int fds[2];
    struct buffer streams[2];
    size_t seen;
    int64_t deadline_ms, kill_ms; // boot time; 0: not set
    bool is_ended, is_late;
};

static char **make_environment(const struct raw_bash *raw)
{
    static const char *const fixed[] = {"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
                                        "USER=root",
                                        "SHELL=/bin/bash",
                                        "TMPDIR=/tmp",
                                        "TERM=dumb",
                                        "NO_COLOR=1",
                                        "CI=1"};
    char **envp = mem_alloc((ARRAY_LEN(fixed) + 2) * sizeof(char *));
    for (size_t i = 0; i < ARRAY_LEN(fixed); i++)
        envp[i] = mem_strdup(fixed[i]);
    envp[ARRAY_LEN(fixed)] = mem_format("HOME=%s", raw->home);
    return envp;
}

// 0, or an errno value.
static int spawn(struct running *running)
{
    struct raw_call *call = running->call;
    int pipes[2][2];
    for (int i = 0; i < 2; i++)
        if (pipe2(pipes[i], O_CLOEXEC) < 0)
            abort();
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    posix_spawn_file_actions_init(&actions);
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    sigset_t none, all;
    sigemptyset(&none);
    sigfillset(&all);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setsigdefault(&attributes, &all);
    CLEANUP_FREE char *cwd = call->cwd && *call->cwd == '/' ? mem_strdup(call->cwd)
                                                            : mem_format("%s/%s", call->raw->workspace, call->cwd ? call->cwd : ".");
    posix_spawn_file_actions_addchdir_np(&actions, cwd);
    posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&actions, pipes[0][1], 1);
    posix_spawn_file_actions_adddup2(&actions, pipes[1][1], 2);
    char *argv[] = {(char *)"/bin/bash", (char *)"-lc", call->command, NULL}, **envp = make_environment(call->raw);
    int error = posix_spawn(&running->pid, argv[0], &actions, &attributes, argv, envp);
    for (char **at = envp; *at; at++)
        free(*at);
    free(envp);
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
    for (int i = 0; i < 2; i++) {
        close(pipes[i][1]);
        running->fds[i] = pipes[i][0];
    }
    return error;
}

static void end_group(struct running *running)
{
    if (running->is_ended)
        return;
    running->is_ended = true;
    running->kill_ms = boot_time_now().ms + GRACE_MS;
    kill(-running->pid, SIGTERM);
}

static void look_at_clocks(struct running *running)
{
    int64_t now = boot_time_now().ms;
    if (!running->is_late && now >= running->deadline_ms) {
        running->is_late = true;
        end_group(running);
    }
    if (running->kill_ms && now >= running->kill_ms) {
        running->kill_ms = 0;
        kill(-running->pid, SIGKILL);
    }
}

// Each read is decoded by itself; what is over the cap ends the command.
static void take(struct running *running, int stream)
{
    char bytes[65536];
    ssize_t n = read(running->fds[stream], bytes, sizeof(bytes));
    if (n <= 0) {
        close(TAKE_FD(running->fds[stream]));
        return;
    }
    size_t len, room = CODEXPRO_OUTPUT_BYTES - running->streams[0].len - running->streams[1].len;
    CLEANUP_FREE char *text = utf8_to_valid(bytes, (size_t)n, &len);
    running->seen += len;
    buffer_append(&running->streams[stream], text, len < room ? len : utf8_cut(text, room));
    if (running->seen > CODEXPRO_OUTPUT_BYTES)
        end_group(running);
}

static void watch(struct running *running)
{
    while (running->fds[0] >= 0 || running->fds[1] >= 0) {
        struct pollfd fds[2] = {{.fd = running->fds[0], .events = POLLIN}, {.fd = running->fds[1], .events = POLLIN}};
        poll(fds, 2, 20);
        look_at_clocks(running);
        for (int i = 0; i < 2; i++)
            if (running->fds[i] >= 0 && fds[i].revents)
                take(running, i);
    }
}

static json_t *describe(struct raw_call *call, struct running *running, int status)
{
    struct raw_bash *raw = call->raw;
    if (running->is_late)
        buffer_format(&running->streams[1], "\n[codexpro] Command timed out after %lld ms.", (long long)call->timeout_ms);
    pthread_mutex_lock(&raw->lock);
    char *(*fault)(void *arg, char *text) = raw->fault;
    void *fault_arg = raw->fault_arg;
    pthread_mutex_unlock(&raw->lock);
    char *out = mem_strdup(buffer_text(&running->streams[0]));
    if (fault)
        out = fault(fault_arg, out);
    out = raw_bash_mask(out);
    char *errors = raw_bash_mask(mem_strdup(buffer_text(&running->streams[1]))), *command = raw_bash_mask(mem_strdup(call->command));
    bool is_killed = WIFSIGNALED(status);
    json_t *content = json_pack("{s:s, s:s, s:o, s:o, s:i, s:s, s:s, s:b, s:n}", "command", command, "cwd", ".", "exitCode",
                                is_killed ? json_null() : json_integer(WEXITSTATUS(status)), "signal",
                                is_killed ? json_string(WTERMSIG(status) == SIGKILL ? "SIGKILL" : "SIGTERM") : json_null(), "durationMs", 1,
                                "stdout", out, "stderr", errors, "truncated", 0, "bash_session_id");
    free(out);
    free(errors);
    free(command);
    return json_pack("{s:[{s:s, s:s}], s:o}", "content", "type", "text", "text", "# Bash", "structuredContent", content);
}

static json_t *failure(const char *text)
{
    return json_pack("{s:[{s:s, s:s}], s:{s:s}, s:b}", "content", "type", "text", "text", text, "structuredContent", "error", text, "isError", 1);
}

static void note_directory(struct raw_bash *raw, const char *out)
{
    const char *at = strstr(out, " dir /tmp/.chat2shell-");
    if (!at || raw->directory_count == ARRAY_LEN(raw->directories))
        return;
    at += strlen(" dir ");
    raw->directories[raw->directory_count++] = mem_strndup(at, strcspn(at, "\n"));
}

static json_t *run(struct raw_call *call)
{
    struct raw_bash *raw = call->raw;
    struct running running = {.call = call, .deadline_ms = boot_time_now().ms + call->timeout_ms};
    for (int i = 0; i < 2; i++)
        running.streams[i] = (struct buffer)BUFFER_INIT(CODEXPRO_OUTPUT_BYTES + 4096);
    if (call->cwd && (strncmp(call->cwd, "..", 2) == 0 || (*call->cwd == '/' && strncmp(call->cwd, raw->workspace, strlen(raw->workspace)))))
        return failure("CodexProError: Path escapes workspace root");
    int error = spawn(&running), status = 0;
    if (error) {
        close(running.fds[0]);
        close(running.fds[1]);
        return failure(error == ENOENT ? "Error: spawn /bin/bash ENOENT" : error == ENOTDIR ? "Error: spawn ENOTDIR" : strerror(error));
    }
    pthread_mutex_lock(&raw->lock);
    call->pid = running.pid;
    pthread_mutex_unlock(&raw->lock);
    watch(&running);
    waitpid(running.pid, &status, 0);
    pthread_mutex_lock(&raw->lock);
    call->pid = 0;
    note_directory(raw, buffer_text(&running.streams[0]));
    pthread_mutex_unlock(&raw->lock);
    json_t *result = describe(call, &running, status);
    buffer_free(&running.streams[0]);
    buffer_free(&running.streams[1]);
    return result;
}

// ---- the host ------------------------------------------------------------------------------------------------------

static void tell(void *arg)
{
    struct raw_call *call = arg;
    pthread_mutex_lock(&call->raw->lock);
    bool is_abandoned = call->is_abandoned;
    call->is_abandoned = true; // told
    pthread_mutex_unlock(&call->raw->lock);
    if (!is_abandoned)
        call->fn(call->arg, call->result, NULL);
}

static void *run_thread(void *arg)
{
    struct raw_call *call = arg;
    call->result = run(call);
    loop_post(call->raw->loop, tell, call);
    return NULL;
}

static int64_t host_run(void *arg, const char *command, const char *cwd, int64_t timeout_ms, rpc_answer_fn fn, void *fn_arg, struct error *err)
{
    struct raw_bash *raw = arg;
    if (strlen(command) > 100 * 1024)
        return error_set(err, ERROR_TOO_LARGE, NULL, "a command of %zu bytes is longer than was agreed", strlen(command));
    assert(timeout_ms >= 1000 && timeout_ms <= CODEXPRO_CALL_MAX_MS);
    struct raw_call *call = mem_alloc(sizeof(*call));
    *call = (struct raw_call){.raw = raw,
                              .command = mem_strdup(command),
                              .cwd = mem_strdup_or_null(cwd),
                              .timeout_ms = timeout_ms,
                              .fn = fn,
                              .arg = fn_arg};
    pthread_mutex_lock(&raw->lock);
    int64_t id = call->id = ++raw->last_id;
    TAILQ_INSERT_TAIL(&raw->calls, call, link);
    pthread_create(&call->thread, NULL, run_thread, call);
    pthread_mutex_unlock(&raw->lock);
    return id;
}

static void host_abandon(void *arg, int64_t id)
{
    struct raw_bash *raw = arg;
    struct raw_call *call;
    pthread_mutex_lock(&raw->lock);
    TAILQ_FOREACH(call, &raw->calls, link)
        if (call->id == id)
            call->is_abandoned = true;
    pthread_mutex_unlock(&raw->lock);
}

struct shell_host raw_bash_host(struct raw_bash *raw)
{
    return (struct shell_host){.loop = raw->loop, .run = host_run, .abandon = host_abandon, .arg = raw};
}

struct raw_bash *raw_bash_new(struct loop *loop, const char *workspace, const char *home)
{
    struct raw_bash *raw = mem_alloc(sizeof(*raw));
    *raw = (struct raw_bash){.loop = loop, .workspace = mem_strdup(workspace), .home = mem_strdup(home)};
    pthread_mutex_init(&raw->lock, NULL);
    TAILQ_INIT(&raw->calls);
    return raw;
}

int raw_bash_calls(struct raw_bash *raw)
{
    pthread_mutex_lock(&raw->lock);
    int count = (int)raw->last_id;
    pthread_mutex_unlock(&raw->lock);
    return count;
}

char *raw_bash_directory(struct raw_bash *raw)
{
    pthread_mutex_lock(&raw->lock);
    char *text = raw->directory_count ? mem_strdup(raw->directories[raw->directory_count - 1]) : NULL;
    pthread_mutex_unlock(&raw->lock);
    assert_non_null(text);
    return text;
}

void raw_bash_set_fault(struct raw_bash *raw, char *(*fault)(void *arg, char *text), void *arg)
{
    pthread_mutex_lock(&raw->lock);
    raw->fault = fault;
    raw->fault_arg = arg;
    pthread_mutex_unlock(&raw->lock);
}

// ---- the end -------------------------------------------------------------------------------------------------------

static void kill_group_in(const char *dir, const char *name, const char *file)
{
    CLEANUP_FREE char *path = mem_format("%s/%s/%s", dir, name, file);
    int pid = 0;
    FILE *from = fopen(path, "re");
    if (!from)
        return;
    if (fscanf(from, "%d", &pid) == 1 && pid > 1)
        kill(-pid, SIGKILL);
    fclose(from);
}

static void end_programs(const char *dir)
{
    DIR *list = opendir(dir);
    for (struct dirent *entry; list && (entry = readdir(list));) {
        kill_group_in(dir, entry->d_name, "supervisor");
        kill_group_in(dir, entry->d_name, "pid");
    }
    if (list)
        closedir(list);
}

static void call_free(struct raw_call *call)
{
    json_decref(call->result);
    free(call->command);
    free(call->cwd);
    free(call);
}

static void nothing(void *arg)
{
    (void)arg;
}

void raw_bash_free(struct raw_bash *raw)
{
    struct raw_call *call;
    pthread_mutex_lock(&raw->lock);
    TAILQ_FOREACH(call, &raw->calls, link)
    {
        call->is_abandoned = true;
        if (call->pid > 0)
            kill(-call->pid, SIGKILL);
    }
    pthread_mutex_unlock(&raw->lock);
    for (size_t i = 0; i < raw->directory_count; i++)
        end_programs(raw->directories[i]);
    TAILQ_FOREACH(call, &raw->calls, link)
        pthread_join(call->thread, NULL);
    loop_call(raw->loop, nothing, NULL); // what they posted has run
    for (size_t i = 0; i < raw->directory_count; i++)
        if (access(raw->directories[i], F_OK) == 0)
            support_remove_dir(raw->directories[i]);
        else
            free(raw->directories[i]);
    while ((call = TAILQ_FIRST(&raw->calls))) {
        TAILQ_REMOVE(&raw->calls, call, link);
        call_free(call);
    }
    free(raw->workspace);
    free(raw->home);
    free(raw);
}
