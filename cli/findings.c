#include "cli/findings.h"
#include "cli/terminal.h"
#include "controller/base/json.h"
#include "controller/base/memory.h"
#include "controller/base/utf8.h"
#include "controller/spawn.h"
#include "controller/tunnel.h"
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

static const char *const level_words[] = {[FINDING_PASS] = "pass", [FINDING_WARN] = "warn", [FINDING_FAIL] = "fail"};

static void add_failure(struct finding_list *list, const char *check, const struct error *err)
{
    finding_add(list, FINDING_FAIL, check, err->hint[0] ? err->hint : NULL, "%s", err->message);
}

// ---- without a daemon -----------------------------------------------------------------------------------------------------------
struct opened {
    struct clock *clock;
    struct loop *loop;
    struct spawner *spawner;
    struct driver *driver;
    struct driver_choice choice;
};

static int open_driver(const struct config *config, struct opened *ret, struct error *err)
{
    ret->clock = clock_new_real();
    if (spawner_start(&ret->spawner, err) < 0 || loop_start(ret->clock, &ret->loop, err) < 0)
        return -1;
    const struct driver_options options = {.clock = ret->clock, .loop = ret->loop, .spawner = ret->spawner, .program_dir = config->program_dir,
                                           .state_dir = config->state_dir, .data_root = config->data_root, .sbx = config->sbx};
    return driver_open(config->driver, &options, &ret->driver, &ret->choice, err);
}

static void close_driver(struct opened *opened)
{
    if (opened->driver)
        opened->driver->ops->free(opened->driver);
    if (opened->loop)
        loop_stop(opened->loop);
    spawner_stop(opened->spawner);
    clock_free(opened->clock);
    driver_choice_free(&opened->choice);
}

static void ask_driver(const struct config *config, struct finding_list *ret)
{
    CLEANUP(close_driver) struct opened opened = {0};
    struct error err = ERROR_INIT;
    if (open_driver(config, &opened, &err) < 0) {
        add_failure(ret, "driver", &err);
        return;
    }
    driver_choice_tell(&opened.choice, opened.driver->ops->name, ret);
    opened.driver->ops->probe(opened.driver, ret);
}

int findings_driver_name(const struct config *config, char **ret, struct driver_choice *ret_choice, struct error *err)
{
    if (strcmp(config->driver, "auto") != 0) {
        *ret = mem_strdup(config->driver);
        return 0;
    }
    CLEANUP(close_driver) struct opened opened = {0};
    if (open_driver(config, &opened, err) < 0)
        return -1;
    *ret = mem_strdup(opened.driver->ops->name);
    *ret_choice = opened.choice;
    opened.choice = (struct driver_choice){0};
    return 0;
}

static void check_port(const struct config *config, struct finding_list *ret)
{
    static const int on = 1;
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)config->port)};
    CLEANUP_CLOSE int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    inet_pton(AF_INET, config->host, &address.sin_addr);
    if (fd >= 0)
        setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    if (fd < 0 || bind(fd, (struct sockaddr *)&address, sizeof(address)) < 0)
        finding_add(ret, FINDING_FAIL, "port", "stop what uses it, or choose another CHAT2SHELL_PORT", "%s:%d cannot be listened on: %s", config->host, config->port,
                    strerrordesc_np(errno));
    else
        finding_add(ret, FINDING_PASS, "port", NULL, "%s:%d is free", config->host, config->port);
}

static void check_tunnel(const struct config *config, struct finding_list *ret)
{
    struct error err = ERROR_INIT;
    CLEANUP_FREE char *id = NULL;
    if (!config->is_tunnel_enabled)
        finding_add(ret, FINDING_PASS, "tunnel", NULL, "it is switched off");
    else if (tunnel_check(config, &id, &err) < 0)
        add_failure(ret, "tunnel", &err);
    else
        finding_add(ret, FINDING_PASS, "tunnel", NULL, "its client and its secrets are there");
}

void findings_without_daemon(const struct config *config, struct finding_list *ret)
{
    finding_add(ret, FINDING_WARN, "daemon", "chat2shell serve", "no daemon runs for %s", config->state_dir);
    ask_driver(config, ret);
    check_port(config, ret);
    check_tunnel(config, ret);
}

// ---- printing -------------------------------------------------------------------------------------------------------------------
static void print_one(const struct finding *finding, size_t width)
{
    CLEANUP_FREE char *check = utf8_to_printable(finding->check, strlen(finding->check), false);
    CLEANUP_FREE char *what = utf8_to_printable(finding->what, strlen(finding->what), false);
    enum style style = style_of_word(level_words[finding->level]);
    printf("%s%s%s  %-*s  %s\n", style_on(stdout, style), level_words[finding->level], style_off(stdout, style), (int)width, check, what);
    if (!finding->fix || finding->level == FINDING_PASS)
        return;
    CLEANUP_FREE char *fix = utf8_to_printable(finding->fix, strlen(finding->fix), false);
    printf("      %-*s  fix: %s\n", (int)width, "", fix);
}

size_t findings_print(const struct finding_list *list)
{
    size_t width = 0, failures = 0;
    for (size_t i = 0; i < list->count; i++)
        width = strlen(list->items[i].check) > width ? strlen(list->items[i].check) : width;
    for (int level = FINDING_FAIL; level >= FINDING_PASS; level--)
        for (size_t i = 0; i < list->count; i++)
            if ((int)list->items[i].level == level) {
                print_one(&list->items[i], width);
                failures += level == FINDING_FAIL;
            }
    return failures;
}

// ---- JSON -----------------------------------------------------------------------------------------------------------------------
json_t *findings_to_json(const struct finding_list *list)
{
    json_t *findings = json_array();
    for (size_t i = 0; i < list->count; i++) {
        json_t *one = json_object();
        json_set_text(one, "level", level_words[list->items[i].level]);
        json_set_text(one, "check", list->items[i].check);
        json_set_text(one, "what", list->items[i].what);
        json_set_text(one, "fix", list->items[i].fix);
        json_array_append_new(findings, one);
    }
    return json_pack("{s:o}", "findings", findings);
}

int findings_from_json(const json_t *answer, struct finding_list *ret)
{
    const json_t *findings = json_object_get(answer, "findings");
    if (!json_is_array(findings))
        return -1;
    for (size_t i = 0; i < json_array_size(findings); i++) {
        const json_t *one = json_array_get(findings, i);
        const char *level = json_get_text(one, "level"), *check = json_get_text(one, "check"), *what = json_get_text(one, "what");
        enum finding_level found = FINDING_FAIL;
        for (size_t word = 0; level && word < ARRAY_LEN(level_words); word++)
            if (strcmp(level_words[word], level) == 0)
                found = (enum finding_level)word;
        finding_add(ret, found, check ? check : "?", json_get_text(one, "fix"), "%s", what ? what : "");
    }
    return 0;
}
