#include "controller/base/fs.h"
#include "controller/base/memory.h"
#include "controller/log.h"
#include "controller/tunnel_state.h"
#include "controller/tunnel_url.h"
#include <errno.h>
#include <limits.h>
#include <stdalign.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/inotify.h>

static void ask_client(struct tunnel *tunnel);

// ---- what is known of it ---------------------------------------------------------------------------------------------------------

const char *tunnel_state_word(enum tunnel_state state)
{
    static const char *const words[] = {
        [TUNNEL_STARTING] = "starting", [TUNNEL_READY] = "ready", [TUNNEL_NOT_READY] = "not ready", [TUNNEL_ENDED] = "ended"};
    return words[state];
}

static struct tunnel_status status_of(const struct tunnel *tunnel)
{
    struct boot_time now = clock_boot(tunnel->clock);
    pid_t running = tunnel->operation ? operation_pid(tunnel->operation) : 0;
    int64_t restart_in_ms = tunnel->state == TUNNEL_ENDED ? tunnel->restart_at.ms - now.ms : 0;
    return (struct tunnel_status){.state = tunnel->state,
                                  .reason = tunnel->reason,
                                  .not_confined = tunnel->not_confined,
                                  .pid = tunnel->client_pid ? tunnel->client_pid : running,
                                  .starts = tunnel->starts,
                                  .for_ms = now.ms - tunnel->started_at.ms,
                                  .restart_in_ms = restart_in_ms > 0 ? restart_in_ms : 0,
                                  .exit_code = tunnel->exit_code};
}

void tunnel_answer_askers(struct tunnel *tunnel)
{
    while (tunnel->asker_count) {
        struct tunnel_asker asker = tunnel->askers[--tunnel->asker_count];
        struct tunnel_status status = status_of(tunnel);
        asker.done(asker.arg, &status);
    }
}

// A change is worth one line; the reason is the client's own text, which stays out of the log.
void tunnel_set_state(struct tunnel *tunnel, enum tunnel_state state, const char *reason)
{
    enum tunnel_state before = tunnel->state;
    tunnel->state = state;
    mem_replace(&tunnel->reason, reason);
    if (state == TUNNEL_READY && before != TUNNEL_READY)
        log_info("the tunnel is ready");
    if (state == TUNNEL_NOT_READY && before == TUNNEL_READY)
        log_warning("the tunnel is not ready any more: chat2shell status says why");
}

// ---- its readiness ---------------------------------------------------------------------------------------------------------------

static void ask_again(void *arg)
{
    struct tunnel *tunnel = arg;
    tunnel->ask_timer = NULL;
    ask_client(tunnel);
}

static void probe_done(void *arg, bool is_ready, const char *said)
{
    struct tunnel *tunnel = arg;
    tunnel->probe = NULL;
    tunnel_set_state(tunnel, is_ready ? TUNNEL_READY : TUNNEL_NOT_READY, is_ready && strcmp(said, "ready") == 0 ? NULL : said);
    if (!is_ready) {
        tunnel->ask_timer = loop_after(tunnel->loop, tunnel->ask_ms, ask_again, tunnel);
        tunnel->ask_ms = tunnel->ask_ms * 2 < TUNNEL_ASK_MAX_MS ? tunnel->ask_ms * 2 : TUNNEL_ASK_MAX_MS;
    }
    tunnel_answer_askers(tunnel);
}

static void ask_client(struct tunnel *tunnel)
{
    if (tunnel->probe)
        return;
    loop_cancel(TAKE_PTR(tunnel->ask_timer));
    tunnel->probe = tunnel_probe_start(tunnel->loop, &tunnel->health, probe_done, tunnel);
}

void tunnel_forget_health(struct tunnel *tunnel)
{
    tunnel_probe_cancel(TAKE_PTR(tunnel->probe));
    loop_cancel(TAKE_PTR(tunnel->ask_timer));
    tunnel->has_health = false;
    tunnel->ask_ms = TUNNEL_ASK_MIN_MS;
}

static void read_health_url(struct tunnel *tunnel)
{
    struct error err = ERROR_INIT;
    if (!tunnel->operation || tunnel->is_stopping)
        return;
    tunnel_forget_health(tunnel);
    if (tunnel_url_read(tunnel->dir_fd, TUNNEL_URL_NAME, &tunnel->health, &err) == 0) {
        tunnel->has_health = true;
        ask_client(tunnel);
        return;
    }
    if (err.code == ERROR_NOT_FOUND)
        return; // removed meanwhile
    tunnel_set_state(tunnel, TUNNEL_NOT_READY, err.message);
    log_warning("the tunnel client: %s; whether the tunnel is ready cannot be told", err.message);
    tunnel_answer_askers(tunnel);
}

// Both ways of writing a file: in place, and beside it with a rename. What else happens there does not matter.
static void directory_changed(void *arg, uint32_t events)
{
    struct tunnel *tunnel = arg;
    alignas(struct inotify_event) char bytes[16 * (sizeof(struct inotify_event) + NAME_MAX + 1)];
    bool is_ours = false;
    ssize_t len = read(tunnel->watch_fd, bytes, sizeof(bytes));
    (void)events;
    for (char *at = bytes; at < bytes + len;) {
        const struct inotify_event *event = (const struct inotify_event *)at;
        is_ours |= (event->mask & IN_Q_OVERFLOW) || (event->len && strcmp(event->name, TUNNEL_URL_NAME) == 0);
        at += sizeof(*event) + event->len;
    }
    if (is_ours)
        read_health_url(tunnel);
}

int tunnel_watch_directory(struct tunnel *tunnel, struct error *err)
{
    if (fs_make_private_dir(tunnel->runtime_dir, &tunnel->dir_fd, err) < 0)
        return error_context(err, "cannot make the tunnel's directory");
    tunnel->watch_fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    if (tunnel->watch_fd < 0 || inotify_add_watch(tunnel->watch_fd, tunnel->runtime_dir, IN_CLOSE_WRITE | IN_MOVED_TO | IN_ONLYDIR) < 0)
        return error_errno(err, errno, "raise fs.inotify.max_user_instances", "cannot watch %s", tunnel->runtime_dir);
    tunnel->watch_source = loop_watch(tunnel->loop, tunnel->watch_fd, EPOLLIN, directory_changed, tunnel);
    return 0;
}

void tunnel_ask(struct tunnel *tunnel, tunnel_status_fn done, void *arg)
{
    struct tunnel_status status = status_of(tunnel);
    if (!tunnel->has_health || tunnel->is_stopping || tunnel->asker_count == TUNNEL_ASKERS_MAX) {
        done(arg, &status);
        return;
    }
    tunnel->askers[tunnel->asker_count++] = (struct tunnel_asker){done, arg};
    ask_client(tunnel);
}
