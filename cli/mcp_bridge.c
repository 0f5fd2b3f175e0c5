#include "cli/mcp_bridge_internal.h"
#include <errno.h>
#include <signal.h>
#include <sys/signalfd.h>

static const struct mcp_flight *largest_answer(const struct mcp_bridge *bridge, size_t *ret_total)
{
    const struct mcp_flight *largest = bridge->flights;
    *ret_total = 0;
    for (const struct mcp_flight *flight = bridge->flights; flight; flight = flight->next) {
        *ret_total += mcp_flight_held_bytes(flight);
        if (mcp_flight_held_bytes(flight) > mcp_flight_held_bytes(largest))
            largest = flight;
    }
    return largest;
}

// A descriptor that nothing is wanted of is left out: its hang-up would end every wait at once.
static struct pollfd poll_row(int fd, short events)
{
    return (struct pollfd){.fd = events ? fd : -1, .events = events};
}

static size_t set_polls(struct mcp_bridge *bridge, bool may_read)
{
    size_t total, count = FIXED_POLLS;
    const struct mcp_flight *largest = largest_answer(bridge, &total);
    bool is_full = mcp_output_waiting(&bridge->output) >= MCP_OUTPUT_HIGH_BYTES;
    bridge->polls[0] = poll_row(bridge->signal_fd, POLLIN);
    bridge->polls[1] = poll_row(bridge->input.fd, may_read && !bridge->input.is_ended ? POLLIN : 0);
    bridge->polls[2] = (struct pollfd){.fd = bridge->output.fd, .events = mcp_output_waiting(&bridge->output) ? POLLOUT : 0};
    for (struct mcp_flight *flight = bridge->flights; flight; flight = flight->next) {
        short events = mcp_flight_events(flight);
        if (is_full || (total > HELD_MAX_BYTES && flight != largest)) {
            events &= ~POLLIN;
            mcp_flight_keep_alive(flight); // whoever is not listened to is not silent
        }
        bridge->polls[count++] = poll_row(flight->fd, events);
    }
    return count;
}

// Every line was taken and every answer written: only requests under way keep it from ending.
static bool is_at_end(const struct mcp_bridge *bridge, bool has_more)
{
    return bridge->input.is_ended && !has_more && !mcp_output_waiting(&bridge->output);
}

static int wait_ms(const struct mcp_bridge *bridge, bool has_more)
{
    int64_t now = boot_time_now().ms, left = 60 * 1000;
    for (const struct mcp_flight *flight = bridge->flights; flight; flight = flight->next)
        left = flight->fd < 0 || flight->deadline.ms - now >= left ? left : flight->deadline.ms - now;
    if (is_at_end(bridge, has_more) && bridge->end.ms - now < left)
        left = bridge->end.ms - now;
    return left > 0 ? (int)left : 0;
}

static bool is_over(const struct mcp_bridge *bridge, bool has_more)
{
    if (bridge->signal || bridge->output.is_closed)
        return true;
    return is_at_end(bridge, has_more) && (!bridge->flights || boot_time_now().ms >= bridge->end.ms);
}

static void step_flights(struct mcp_bridge *bridge)
{
    size_t at = FIXED_POLLS;
    for (struct mcp_flight *flight = bridge->flights; flight; flight = flight->next) {
        short revents = bridge->polls[at++].revents;
        bool may_go = mcp_output_waiting(&bridge->output) < MCP_OUTPUT_HIGH_BYTES || !mcp_flight_is_sent(flight);
        if (may_go && !flight->is_over && flight->fd >= 0)
            mcp_bridge_step_flight(bridge, flight, revents);
    }
}

static int step_client(struct mcp_bridge *bridge, struct error *err)
{
    struct signalfd_siginfo info;
    if (bridge->polls[0].revents && read(bridge->signal_fd, &info, sizeof(info)) == sizeof(info))
        bridge->signal = (int)info.ssi_signo;
    if (bridge->polls[2].revents & POLLOUT)
        mcp_output_write(&bridge->output);
    if (bridge->polls[2].revents & (POLLERR | POLLHUP | POLLNVAL))
        bridge->output.is_closed = true;
    if (bridge->polls[1].revents && mcp_input_read(&bridge->input, err) < 0)
        return -1;
    if (bridge->polls[1].revents)
        bridge->end = (struct boot_time){boot_time_now().ms + END_QUIET_MS};
    return 0;
}

static int run(struct mcp_bridge *bridge, struct error *err)
{
    for (;;) {
        bool has_more = mcp_bridge_take_lines(bridge);
        mcp_bridge_sweep(bridge);
        if (is_over(bridge, has_more))
            return 0;
        size_t count = set_polls(bridge, !has_more);
        if (poll(bridge->polls, count, wait_ms(bridge, has_more)) < 0) {
            if (errno != EINTR)
                return error_errno(err, errno, NULL, "cannot wait for the client and the daemon");
            continue;
        }
        step_flights(bridge);
        if (step_client(bridge, err) < 0)
            return -1;
        mcp_bridge_sweep(bridge);
    }
}

static void clear(struct mcp_bridge *bridge)
{
    if (bridge->flights)
        mcp_bridge_tell("%s", "the client ended before all its requests were answered; what they started goes on");
    for (struct mcp_flight *flight = bridge->flights; flight; flight = flight->next)
        flight->is_over = true;
    mcp_bridge_sweep(bridge);
    mcp_input_clear(&bridge->input);
    mcp_output_clear(&bridge->output);
    mcp_client_clear(&bridge->endpoint);
    free(bridge->negotiated);
    if (bridge->signal_fd >= 0)
        close(bridge->signal_fd);
}

int mcp_bridge_run(const struct mcp_bridge_options *options, int *ret_signal, struct error *err)
{
    CLEANUP(clear) struct mcp_bridge bridge = {.options = options};
    mcp_input_init(&bridge.input, options->input_fd);
    mcp_output_init(&bridge.output, options->output_fd);
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGHUP);
    sigprocmask(SIG_BLOCK, &signals, NULL);
    signal(SIGPIPE, SIG_IGN); // a reader that has gone is an end like the other ones
    bridge.signal_fd = signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
    if (bridge.signal_fd < 0)
        return error_errno(err, errno, NULL, "cannot watch for signals");
    if (run(&bridge, err) < 0)
        return -1;
    *ret_signal = bridge.signal;
    return 0;
}
