// setup: makes the template that the driver here starts from, in this process, then says whether all is ready.
#include "cli/command.h"
#include "cli/findings.h"
#include "cli/own_directories.h"
#include "cli/terminal.h"
#include "controller/base/memory.h"
#include "reconcilers/drivers/templates.h"
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>

#define EXIT_INTERRUPTED 130

static void print_line(void *arg, const char *line)
{
    (void)arg;
    terminal_note("%s", line);
}

// Ctrl-C and its kin as something to look at, so that what was begun is cleaned up first. -1: they end the program as ever.
static int hold_signals(const struct template_row *row, sigset_t *ret_before)
{
    sigset_t held;
    sigemptyset(&held);
    for (size_t i = 0; row->honours_stop && i < 3; i++)
        sigaddset(&held, (const int[]){SIGINT, SIGTERM, SIGHUP}[i]);
    pthread_sigmask(SIG_BLOCK, &held, ret_before);
    return row->honours_stop ? signalfd(-1, &held, SFD_CLOEXEC) : -1;
}

static int make(const struct config *config, const struct template_row *row, struct error *err)
{
    struct spawner *spawner = NULL;
    sigset_t before;
    if (own_directories_make(config, err) < 0)
        return -1;
    CLEANUP_CLOSE int stop_fd = hold_signals(row, &before);
    int r = spawner_start(&spawner, err);
    const struct template_build build = {.spawner = spawner, .program_dir = config->program_dir, .data_root = config->data_root, .progress = print_line,
                                         .sbx = config->sbx, .stop_fd = stop_fd};
    if (r == 0)
        r = row->make(&build, err);
    spawner_stop(spawner);
    if (r == 0 || err->code != ERROR_CANCELLED) // else the signal waits still, and would end us before we said so
        pthread_sigmask(SIG_SETMASK, &before, NULL);
    return r;
}

static const struct template_row *choose(struct invocation *in, const struct config *config, struct error *err)
{
    const char *name = invocation_option(in, "template");
    CLEANUP_FREE char *driver = NULL;
    if (name)
        return template_find(name, NULL);
    CLEANUP(driver_choice_free) struct driver_choice choice = {0};
    if (findings_driver_name(config, &driver, &choice, err) < 0)
        return NULL;
    if (choice.fix)
        terminal_note("for the driver %s, because %s", driver, choice.reason);
    const struct template_row *row = template_find(NULL, driver);
    if (!row)
        error_set(err, ERROR_UNSUPPORTED, "choose one: --template NAME", "the %s driver has no template to make", driver);
    return row;
}

static void show_findings(struct invocation *in, const struct config *config)
{
    const struct rest *rest = invocation_rest(in, NULL);
    CLEANUP(finding_list_free) struct finding_list list = {0};
    CLEANUP_JSON json_t *answer = NULL;
    if (!rest || rest_get(rest, REST_OWN "/doctor", &answer, NULL) < 0 || findings_from_json(answer, &list) < 0)
        findings_without_daemon(config, &list);
    in->exit_code = findings_print(&list) > 0;
}

static int run(struct invocation *in, struct error *err)
{
    const struct config *config = invocation_config(in, err);
    const struct template_row *row = config ? choose(in, config, err) : NULL;
    struct error failure = ERROR_INIT;
    if (!row)
        return -1;
    int r = make(config, row, &failure);
    if (failure.code == ERROR_CANCELLED) {
        complain(in, &failure);
        in->exit_code = EXIT_INTERRUPTED;
        return 0;
    }
    show_findings(in, config); // after a failure too: one of them may be why
    if (r == 0)
        return 0;
    error_copy(err, &failure);
    return error_context(err, "cannot make the template %s", row->name);
}

static const char *const templates[] = {TEMPLATE_NAME_DEBIAN, TEMPLATE_NAME_CODEXPRO, NULL};
static const struct example examples[] = {
    {"chat2shell setup", "the template of the driver here; some minutes the first time"},
    {"chat2shell setup --template debian-12", "this one, whatever the driver"},
};
static const struct option_row options[] = {{.name = "template", .value = "NAME", .doc = "what to make, instead of the driver's own", .choices = templates}};
const struct command command_setup = {
    .name = "setup", .synopsis = "", .summary = "Make the template that sandboxes start from, and check that this machine is ready", .run = run,
    .details = "bubblewrap: debian-12, built with mmdebstrap. sbx: chat2shell-codexpro:0.30.0, made by npm inside a sandbox of its own, which is\n"
               "removed again, also after Ctrl-C (exit code 130). Made once; run again it looks only. It needs no daemon, and does not disturb\n"
               "one that runs. What it cannot do for you (sign in, network policy) it prints as a command.",
    COMMAND_EXAMPLES(examples), COMMAND_OPTIONS(options),
};
