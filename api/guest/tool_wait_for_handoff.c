// wait_for_handoff: long poll of a local agent's run. No thread waits: the kernel tells when the state file
// changes, and where it cannot (no inotify, a file system that others change behind its back) the file is
// looked at every poll_ms.
#include "api/guest/bridge.h"
#include "api/guest/handoff_state.h"
#include "api/guest/request.h"
#include "controller/base/memory.h"
#include "controller/base/time.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/vfs.h>

#define SETTLE_MS 50 // a file that changes all the time is not looked at more often
#define STATE_NAME "handoff-run-state.json"
#define STATE_EVENTS (IN_CLOSE_WRITE | IN_MODIFY | IN_MOVED_TO | IN_CREATE | IN_DELETE)

static const struct tool_arg args[] = {
    {"plan_hash", ARG_STRING, "Wait for the run of the plan with this hash."},
    {"since_iteration", ARG_INTEGER, "Wait for a run with a higher iteration.", .min = 0},
    {"max_wait_seconds", ARG_INTEGER, "Longest wait.", .has_default = true, .default_number = 20, .min = 1,
     .max = 60},
    {"poll_ms", ARG_INTEGER, "How often to look where the system does not tell of changes.",
     .has_default = true, .default_number = 1000, .min = 250, .max = 5000},
    {"include_diff", ARG_BOOLEAN, "Return the beginning of the agent's diff.", .has_default = true,
     .default_number = 1},
    {"include_log_excerpt", ARG_BOOLEAN, "Return the last lines of its log.", .has_default = true,
     .default_number = 1},
    {"include_tests", ARG_BOOLEAN, "Return the beginning of its test report.", .has_default = true,
     .default_number = 1},
    {NULL},
};

struct handoff_wait {
    struct request *request;
    struct handoff_question question;
    struct loop_source watch; // inotify; fd -1: there is none
    struct loop_timer timer;
    int bridge_watch; // its number; -1: the directory is not watched
    int64_t deadline_ms;
    bool must_poll;
    bool is_looking; // a worker has request->job; only then may it touch `result`, `text` and `is_last`
    bool is_dirty;   // something changed meanwhile
    bool is_last;
    json_t *result; // of a look that ends the wait
    char *text;
    size_t text_len;
};

// ---- watching
// --------------------------------------------------------------------------------------------------------

// Where changes may come from another kernel, ours does not hear of them.
static bool is_shared_with_others(int fd)
{
    static const uint32_t kinds[] = {
        0x65735546 /* FUSE, virtiofs */, 0x01021997 /* 9P */,   0x6969 /* NFS */,
        0xFF534D42 /* CIFS */,           0xFE534D42 /* SMB2 */, 0x00C36400 /* Ceph */};
    struct statfs meta;
    if (fstatfs(fd, &meta) < 0)
        return true;
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
        if ((uint32_t)meta.f_type == kinds[i])
            return true;
    return false;
}

static int watch_directory(struct handoff_wait *wait, const char *path, uint32_t events)
{
    char link[64];
    CLEANUP_CLOSE int fd =
        workspace_open_real(&wait->request->guest->workspace, path, O_RDONLY | O_DIRECTORY);
    if (fd >= 0 && is_shared_with_others(fd))
        errno = EXDEV;
    else if (fd >= 0)
        errno = 0;
    if (errno)
        return -1;
    snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    return inotify_add_watch(wait->watch.fd, link, events | IN_ONLYDIR);
}

// Before each look, so that nothing falls between the two.
static void watch_bridge(struct handoff_wait *wait)
{
    if (wait->must_poll || wait->bridge_watch >= 0)
        return;
    wait->bridge_watch = watch_directory(wait, BRIDGE_DIR, STATE_EVENTS | IN_DELETE_SELF | IN_MOVE_SELF);
    wait->must_poll =
        wait->bridge_watch < 0 && errno != ENOENT; // a missing one: the root's watch tells when it comes
}

static bool is_about_state(struct handoff_wait *wait, const struct inotify_event *event)
{
    if (event->mask & IN_Q_OVERFLOW)
        return true;
    if (event->wd != wait->bridge_watch) // the root, or a directory that is gone
        return event->len && strcmp(event->name, BRIDGE_DIR) == 0;
    if (event->mask & (IN_DELETE_SELF | IN_MOVE_SELF | IN_IGNORED)) {
        inotify_rm_watch(wait->watch.fd, wait->bridge_watch);
        wait->bridge_watch = -1;
        return true;
    }
    return event->len && strcmp(event->name, STATE_NAME) == 0;
}

static void look(struct handoff_wait *wait);

static void changed(struct loop_source *source, uint32_t events)
{
    (void)events;
    struct handoff_wait *wait = CONTAINER_OF(source, struct handoff_wait, watch);
    char bytes[8192] __attribute__((aligned(__alignof__(struct inotify_event))));
    bool is_due = false;
    ssize_t n = read(source->fd, bytes, sizeof(bytes));
    for (ssize_t at = 0; at < n;) {
        const struct inotify_event *event = (const struct inotify_event *)(const void *)(bytes + at);
        is_due |= is_about_state(wait, event);
        at += (ssize_t)(sizeof(*event) + event->len);
    }
    if (is_due && wait->is_looking)
        wait->is_dirty = true;
    else if (is_due)
        guest_loop_timer_start(&wait->request->guest->loop, &wait->timer, SETTLE_MS);
}

static void start_watching(struct handoff_wait *wait)
{
    struct loop *loop = &wait->request->guest->loop;
    wait->bridge_watch = -1;
    wait->watch = (struct loop_source){
        .fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK), .events = EPOLLIN, .ready = changed};
    if (wait->watch.fd < 0 || watch_directory(wait, ".", IN_CREATE | IN_MOVED_TO) < 0 ||
        guest_loop_add(loop, &wait->watch, NULL) < 0)
        wait->must_poll = true;
}

// ---- looking
// ---------------------------------------------------------------------------------------------------------

static void end_wait(struct handoff_wait *wait)
{
    struct loop *loop = &wait->request->guest->loop;
    guest_loop_timer_stop(loop, &wait->timer);
    guest_loop_remove(loop, &wait->watch);
    if (wait->watch.fd >= 0)
        close(wait->watch.fd);
    json_decref(wait->result);
    free(wait->text);
    free(wait);
}

static void cancel_wait(struct request *request)
{
    struct handoff_wait *wait = request->context;
    if (wait->is_looking)
        return; // looked() finds the flag
    end_wait(wait);
    request_fail_cancelled(request);
}

static void answer(struct handoff_wait *wait)
{
    struct request *request = wait->request;
    json_t *result = guest_tool_result(TAKE_PTR(wait->result), wait->text, wait->text_len);
    end_wait(wait);
    request_answer(request, result);
}

static void sleep_on(struct handoff_wait *wait)
{
    int64_t delay = wait->deadline_ms - boot_time_now().ms;
    if (wait->is_dirty && delay > SETTLE_MS)
        delay = SETTLE_MS;
    else if (wait->must_poll && delay > wait->question.poll_ms)
        delay = wait->question.poll_ms;
    guest_loop_timer_start(&wait->request->guest->loop, &wait->timer, delay > 0 ? delay : 0);
}

static void looked(struct job *job)
{
    struct request *request = CONTAINER_OF(job, struct request, job);
    struct handoff_wait *wait = request->context;
    wait->is_looking = false;
    if (atomic_load(&request->is_cancelled))
        cancel_wait(request);
    else if (wait->result)
        answer(wait);
    else
        sleep_on(wait);
}

static void run_look(struct job *job)
{
    struct request *request = CONTAINER_OF(job, struct request, job);
    struct handoff_wait *wait = request->context;
    const struct workspace *workspace = &request->guest->workspace;
    wait->result =
        handoff_look(workspace, &wait->question, wait->is_last,
                     guest_tool_start_structured(request->tool, workspace), &wait->text, &wait->text_len);
}

static void look(struct handoff_wait *wait)
{
    watch_bridge(wait);
    wait->is_dirty = false;
    wait->is_looking = true;
    wait->is_last = boot_time_now().ms >= wait->deadline_ms;
    wait->request->job = (struct job){.run = run_look, .done = looked};
    workers_submit(&wait->request->guest->workers, &wait->request->job);
}

static void time_is_up(struct loop_timer *timer)
{
    look(CONTAINER_OF(timer, struct handoff_wait, timer));
}

static void start(struct request *request, const json_t *arguments)
{
    struct handoff_wait *wait = mem_alloc(sizeof(*wait));
    wait->request = request;
    wait->timer.fire = time_is_up;
    wait->deadline_ms = boot_time_now().ms + 1000 * json_get_int(arguments, "max_wait_seconds", 20);
    handoff_question_read(arguments, &wait->question);
    request->context = wait;
    request->cancel = cancel_wait;
    start_watching(wait);
    look(wait);
}

const struct tool guest_tool_wait_for_handoff = {
    .name = "wait_for_handoff",
    .title = "Wait for handoff",
    .description =
        "Wait until a coding agent's run on this workspace has ended, up to a minute, and return what it "
        "reported: state, status, diff, log and tests. Call it after handoff_to_agent, and again while "
        "next_poll_after_seconds is there; since_iteration or plan_hash tell an old run from the awaited "
        "one.",
    .args = args,
    .fields = handoff_fields,
    .hints = {.is_read_only = true},
    .start = start,
};
