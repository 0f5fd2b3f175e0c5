// The process: its descriptors and signals, the loop, and an orderly end.
#include "api/guest/dispatch.h"
#include "api/guest/exec.h"
#include "api/guest/guest.h"
#include "api/guest/repo.h"
#include "api/guest/request.h"
#include "api/guest/session.h"
#include <errno.h>
#include <malloc.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

#define FLUSH_MS 1000
#define MAP_IDLE_MS (10 * 60 * 1000)
#define LARGE_BYTES (32 * 1024) // a message this large leaves free memory that is worth giving back
#define TRIM_IDLE_MS 1000       // after the last one

// Not after each large message: where one follows the other, memory that is given back is soon asked for again.
static void give_memory_back(struct loop_timer *timer)
{
    (void)timer;
    malloc_trim(0);
}

void guest_note_message(struct guest *guest, size_t len)
{
    guest->trim_timer.fire = give_memory_back;
    if (len > LARGE_BYTES)
        guest_loop_timer_start(&guest->loop, &guest->trim_timer, TRIM_IDLE_MS);
}

static void line_came(struct reader *reader, const char *text, size_t len)
{
    struct guest *guest = CONTAINER_OF(reader, struct guest, reader);
    dispatch_line(guest, text, len);
    guest_note_message(guest, len);
    if (guest->output.pending_bytes > OUTPUT_PAUSE_BYTES)
        reader_pause(reader, true);
}

static void line_too_long(struct reader *reader)
{
    struct guest *guest = CONTAINER_OF(reader, struct guest, reader);
    rpc_send_error(guest, NULL, RPC_INVALID_REQUEST, "the message is larger than 24 MiB and was skipped");
}

static void input_ended(struct reader *reader)
{
    CONTAINER_OF(reader, struct guest, reader)->is_stopping = true;
}

static void output_changed(struct output *output)
{
    struct guest *guest = CONTAINER_OF(output, struct guest, output);
    if (output->is_broken)
        guest->is_stopping = true;
    else if (output->pending_bytes < OUTPUT_PAUSE_BYTES / 2)
        reader_pause(&guest->reader, false);
}

static void look_after_map(struct loop_timer *timer)
{
    struct guest *guest = CONTAINER_OF(timer, struct guest, map_timer);
    if (repo_drop_if_unused(MAP_IDLE_MS))
        guest_loop_timer_start(&guest->loop, timer, MAP_IDLE_MS);
    else
        malloc_trim(0);
}

void guest_watch_map(struct guest *guest)
{
    guest->map_timer.fire = look_after_map;
    if (!guest->map_timer.is_armed && repo_drop_if_unused(MAP_IDLE_MS))
        guest_loop_timer_start(&guest->loop, &guest->map_timer, MAP_IDLE_MS);
}

static void signal_came(struct loop_source *source, uint32_t events)
{
    (void)events;
    struct guest *guest = CONTAINER_OF(source, struct guest, signals);
    struct signalfd_siginfo info;
    while (read(source->fd, &info, sizeof(info)) == sizeof(info))
        if (info.ssi_signo != SIGCHLD)
            guest->is_stopping = true;
    children_reap(&guest->children);
}

static int open_signals(struct guest *guest, struct error *err)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGHUP);
    pthread_sigmask(SIG_BLOCK, &set, NULL);
    signal(SIGPIPE, SIG_IGN);
    guest->signals = (struct loop_source){
        .fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK), .events = EPOLLIN, .ready = signal_came};
    if (guest->signals.fd < 0)
        return error_errno(err, errno, NULL, "cannot make a signal descriptor");
    return guest_loop_add(&guest->loop, &guest->signals, err);
}

static int start(struct guest *guest, const char *root, int in_fd, int out_fd, struct error *err)
{
    environment_init(&guest->environment);
    children_init(&guest->children);
    review_init(&guest->review);
    guest->reader.line = line_came;
    guest->reader.too_long = line_too_long;
    guest->reader.ended = input_ended;
    guest->output.changed = output_changed;
    prctl(PR_SET_CHILD_SUBREAPER, 1); // what commands leave behind falls to us: reaped, and ended with us
    if (workspace_open(&guest->workspace, root, guest->environment.home, err) < 0 ||
        guest_loop_init(&guest->loop, err) < 0 || open_signals(guest, err) < 0 ||
        workers_init(&guest->workers, &guest->loop, err) < 0 ||
        output_init(&guest->output, &guest->loop, out_fd, err) < 0)
        return -1;
    return reader_init(&guest->reader, &guest->loop, in_fd, GUEST_MESSAGE_MAX_BYTES, err);
}

// Answers that are ready go out still; calls under way are answered as cancelled.
static void cancel_all(struct guest *guest)
{
    for (struct request *request = guest->requests, *next; request; request = next) {
        next = request->next;
        atomic_store(&request->is_cancelled, true);
        if (request->cancel)
            request->cancel(request);
    }
}

static void stop(struct guest *guest)
{
    guest_loop_remove(&guest->loop, &guest->reader.source);
    cancel_all(guest);
    children_kill_all(&guest->children);
    if (!workers_stop(&guest->workers))
        _exit(0); // a worker hangs in the kernel: nothing it may still touch can be freed
    if (guest->output.first)
        guest_loop_step(&guest->loop, FLUSH_MS);
    sessions_free(guest);
    execs_free(guest);
    reader_free(&guest->reader);
    output_free(&guest->output);
    guest_loop_remove(&guest->loop, &guest->signals);
    close(guest->signals.fd);
    guest_loop_free(&guest->loop);
    workspace_close(&guest->workspace);
    environment_free(&guest->environment);
    review_forget(&guest->review);
}

int guest_serve(const char *root, int in_fd, int out_fd, struct error *err)
{
    static struct guest guest; // one a process; a worker may outlive this function only into _exit
    if (start(&guest, root, in_fd, out_fd, err) < 0)
        return -1;
    while (!guest.is_stopping)
        guest_loop_step(&guest.loop, -1);
    stop(&guest);
    return 0;
}
