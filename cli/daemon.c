#include "cli/daemon.h"
#include "api/auth/auth.h"
#include "api/mcp/mcp.h"
#include "api/operator/operator.h"
#include "cli/notify.h"
#include "cli/own_directories.h"
#include "controller/base/fs.h"
#include "controller/base/memory.h"
#include "controller/log.h"
#include "controller/tunnel.h"
#include "reconcilers/reconcilers.h"
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

struct daemon {
    struct world world;
    struct spawner *spawner;
    struct mcp_server *mcp;
    struct operator_server *operator_server;
    struct tunnel *tunnel;
};

static void block_signals(sigset_t *ret)
{
    sigemptyset(ret);
    sigaddset(ret, SIGTERM);
    sigaddset(ret, SIGINT);
    sigaddset(ret, SIGHUP);
    pthread_sigmask(SIG_BLOCK, ret, NULL); // inherited by every thread made from here on
    signal(SIGPIPE, SIG_IGN);
}

#define DESCRIPTORS_OF_THE_DAEMON 256
#define DESCRIPTORS_IN_USE 2 // of a sandbox beyond those at rest: a call to it, a port that is published

static void raise_descriptor_limit(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
        return;
    limit.rlim_cur = limit.rlim_max < 65536 ? limit.rlim_max : 65536;
    setrlimit(RLIMIT_NOFILE, &limit);
}

// Where the machine allows fewer than the sandboxes that there may be would need, it is said now, not by the sandbox that fails.
static void say_if_descriptors_are_few(const struct config *config, const struct driver *driver)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
        return;
    const int one = driver->ops->descriptors + DESCRIPTORS_IN_USE;
    long long allowed = (long long)limit.rlim_cur, needed = DESCRIPTORS_OF_THE_DAEMON + one * (long long)config->max_sandboxes;
    if (allowed < needed)
        log_warning("the hard limit on open files (ulimit -Hn) is %lld, and %lld sandboxes (CHAT2SHELL_MAX_SANDBOXES) may need %lld: after some %lld of them "
                    "creates fail; to fix it: raise the limit (LimitNOFILE= in a systemd unit) or lower CHAT2SHELL_MAX_SANDBOXES",
                    allowed, (long long)config->max_sandboxes, needed,
                    allowed > DESCRIPTORS_OF_THE_DAEMON ? (allowed - DESCRIPTORS_OF_THE_DAEMON) / one : 0);
}

// What will make creating sandboxes fail is said now, not only when somebody tries. A backend that hangs may take its time over
// it; the daemon serves meanwhile, and stops when it is told to.
static void log_findings(void *arg, int result, const struct finding_list *list, const struct error *err)
{
    (void)arg;
    (void)err;
    for (size_t i = 0; result == 0 && i < list->count; i++)
        if (list->items[i].level == FINDING_FAIL)
            log_error("%s: %s%s%s", list->items[i].check, list->items[i].what, list->items[i].fix ? "; to fix it: " : "",
                      list->items[i].fix ? list->items[i].fix : "");
}

static int open_driver(struct daemon *daemon, struct error *err)
{
    struct world *world = &daemon->world;
    struct driver_options options = {.clock = world->clock, .loop = world->loop, .spawner = daemon->spawner,
                                     .program_dir = world->config->program_dir, .state_dir = world->config->state_dir,
                                     .data_root = world->config->data_root, .instance = store_instance(world->store),
                                     .sbx = world->config->sbx};
    struct driver_choice *choice = &world->driver_choice;
    if (driver_open(world->config->driver, &options, &world->driver, choice, err) < 0)
        return -1;
    if (choice->fix)
        log_warning("driver %s, because %s; to fix it: %s", world->driver->ops->name, choice->reason, choice->fix);
    else
        log_info("driver %s, because %s", world->driver->ops->name, choice->reason);
    say_if_descriptors_are_few(world->config, world->driver);
    return 0;
}

static int start(struct daemon *daemon, struct error *err)
{
    struct world *world = &daemon->world;
    world->clock = clock_new_real();
    struct store_options store = {.state_dir = world->config->state_dir, .clock = world->clock};
    if (own_directories_make(world->config, err) < 0 || store_open(&store, &world->store, err) < 0 ||
        spawner_start(&daemon->spawner, err) < 0 || loop_start(world->clock, &world->loop, err) < 0 || open_driver(daemon, err) < 0)
        return -1;
    world->lanes = lanes_new(world->loop, world->store);
    const struct auth_options auth = {.config = world->config, .clock = world->clock, .loop = world->loop, .store = world->store};
    world->manager = manager_new(&(struct manager_options){.clock = world->clock, .loop = world->loop, .store = world->store});
    if (reconcilers_add_all(world, err) < 0 || manager_start(world->manager, err) < 0 || auth_start(&auth, &world->auth, err) < 0 ||
        operator_server_start(world, &daemon->operator_server, err) < 0)
        return -1;
    if (mcp_server_start(world, &daemon->mcp, err) < 0)
        return -1;
    operator_server_set_mcp_port(daemon->operator_server, mcp_server_port(daemon->mcp));
    return 0;
}

// With OAuth whoever is behind the tunnel brings a token of his own.
static void say_if_tunnel_has_no_token(const struct config *config)
{
    CLEANUP_FREE char *authorization = tunnel_authorization_path(config);
    if (config->auth_modes == AUTH_TOKEN && !authorization)
        log_warning("the tunnel client has no token for the MCP endpoint, which asks for one; make it with: chat2shell token create tunnel "
                    "--output-file %s/mcp-authorization; then start chat2shell again",
                    config->secret_dir);
}

static int start_tunnel(struct daemon *daemon, struct error *err)
{
    say_if_tunnel_has_no_token(daemon->world.config);
    const struct tunnel_options options = {.config = daemon->world.config, .clock = daemon->world.clock, .loop = daemon->world.loop,
                                           .spawner = daemon->spawner, .bwrap = TUNNEL_BWRAP, .mcp_port = mcp_server_port(daemon->mcp)};
    if (tunnel_start(&options, &daemon->tunnel, err) < 0)
        return -1;
    operator_server_set_tunnel(daemon->operator_server, daemon->tunnel);
    return 0;
}

static int start_all(struct daemon *daemon, struct error *err)
{
    const struct config *config = daemon->world.config;
    CLEANUP_FREE char *tunnel_id = NULL;
    if (config->is_tunnel_enabled && tunnel_check(config, &tunnel_id, err) < 0)
        return -1; // before anything is touched
    if (start(daemon, err) < 0)
        return -1;
    return config->is_tunnel_enabled ? start_tunnel(daemon, err) : 0;
}

// In reverse order of start; each part tolerates never having been started.
static void stop(struct daemon *daemon)
{
    struct world *world = &daemon->world;
    operator_server_set_tunnel(daemon->operator_server, NULL);
    tunnel_stop(daemon->tunnel);
    if (world->driver && world->driver->ops->interrupt)
        world->driver->ops->interrupt(world->driver);
    mcp_server_stop(daemon->mcp);
    operator_server_stop(daemon->operator_server);
    auth_stop(world->auth);
    if (world->manager && !manager_stop(world->manager, DAEMON_STOP_DEADLINE_MS / 2)) {
        // A hung reconcile still uses the store and all the rest: nothing may be freed, and the kernel ends what is left.
        log_error("some reconciles did not end in time; their records are settled at the next start");
        _exit(1);
    }
    if (world->lanes)
        lanes_free(world->lanes);
    reconcilers_stop_workers(world);
    if (world->driver)
        world->driver->ops->free(world->driver);
    driver_choice_free(&world->driver_choice);
    if (world->store)
        store_close(world->store); // its waiters end on the loop
    if (world->loop)
        loop_stop(world->loop);
    reconcilers_free(world);
    if (world->manager)
        manager_free(world->manager);
    if (daemon->spawner)
        spawner_stop(daemon->spawner);
    clock_free(world->clock);
}

static void wait_for_stop(const sigset_t *signals)
{
    int number = 0;
    do
        while (sigwait(signals, &number) != 0)
            ;
    while (number == SIGHUP); // a closed terminal does not end sandboxes that somebody may be using
    log_info("stopping");
}

int daemon_run(const struct config *config, struct error *err)
{
    sigset_t signals;
    block_signals(&signals);
    raise_descriptor_limit();
    config_warn_unknown();
    umask(077);
    struct daemon daemon = {.world = {.config = config}};
    int r = start_all(&daemon, err);
    if (r == 0) {
        notify_systemd("READY=1");
        log_info("serving MCP on http://%s:%d/mcp", config->host, mcp_server_port(daemon.mcp));
        request_driver_findings(&daemon.world, log_findings, NULL);
        wait_for_stop(&signals);
        notify_systemd("STOPPING=1");
    }
    stop(&daemon);
    return r;
}
