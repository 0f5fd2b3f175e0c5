// setup: builds the template in which packages can be installed, in this process, then says whether all is ready.
#include "cli/command.h"
#include "cli/findings.h"
#include "cli/own_directories.h"
#include "controller/base/memory.h"
#include "controller/base/utf8.h"
#include "controller/base/fs.h"
#include "reconcilers/drivers/templates.h"
#include <stdio.h>
#include <string.h>

static void print_line(void *arg, const char *line)
{
    (void)arg;
    CLEANUP_FREE char *printable = utf8_to_printable(line, strlen(line), false);
    fprintf(stderr, "%s\n", printable);
}

static int build(const struct config *config, struct error *err)
{
    struct spawner *spawner = NULL;
    if (own_directories_make(config, err) < 0 || spawner_start(&spawner, err) < 0)
        return -1;
    const struct template_build build = {.spawner = spawner, .program_dir = config->program_dir, .data_root = config->data_root, .progress = print_line};
    int r = template_build(&build, err);
    spawner_stop(spawner);
    return r;
}

static int run(struct invocation *in, struct error *err)
{
    const struct config *config = invocation_config(in, err);
    if (!config)
        return -1;
    if (template_is_built(config->data_root))
        fprintf(stderr, "the template debian-12 is built already\n");
    else if (build(config, err) < 0)
        return error_context(err, "cannot build the template debian-12");
    const struct rest *rest = invocation_rest(in, err);
    CLEANUP(finding_list_free) struct finding_list list = {0};
    CLEANUP_JSON json_t *answer = NULL;
    if (rest_get(rest, REST_OWN "/doctor", &answer, NULL) < 0 || findings_from_json(answer, &list) < 0)
        findings_without_daemon(config, &list);
    in->exit_code = findings_print(&list) > 0;
    return 0;
}

static const char *const templates[] = {"debian-12", NULL};
static const struct example examples[] = {{"chat2shell setup", "about a minute; from then on new sandboxes can install packages"}};
static const struct option_row options[] = {{.name = "template", .value = "NAME", .doc = "what to build", .choices = templates}};
const struct command command_setup = {
    .name = "setup", .synopsis = "", .summary = "Build the debian-12 template and check that this machine is ready", .run = run,
    .details = "It needs no daemon, and does not disturb one that runs.", COMMAND_EXAMPLES(examples), COMMAND_OPTIONS(options),
};
