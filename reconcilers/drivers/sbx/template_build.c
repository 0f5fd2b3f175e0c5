// chat2shell-codexpro:0.30.0: CodexPro in Docker's own image of the `shell` agent, installed by npm inside a sandbox.
#include "controller/base/cleanup.h"
#include "controller/base/fs.h"
#include "controller/base/memory.h"
#include "reconcilers/drivers/sbx/template.h"
#include <errno.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>

#define CODEXPRO_PACKAGE "codexpro@0.30.0"
#define LOCK_NAME ".sbx-lock"
#define LOCK_LOOK_MS 200
#define LOCK_WAIT_MS (3600 * 1000) // longer than any setup takes
#define LOOK_DEADLINE_MS 60000 // the daemon of Docker Sandboxes may have to start
#define INSTALL_DEADLINE_MS (15 * 60 * 1000)
#define STEP_DEADLINE_MS (2 * 60 * 1000)
#define SAVE_DEADLINE_MS (15 * 60 * 1000)
#define NETWORK_HINT                                                                                                       \
    "look whether sandboxes may reach npm: sbx policy check network registry.npmjs.org; if not: sbx policy allow network registry.npmjs.org"

static const struct version codexpro_version = {0, 30, 0};
_Static_assert(sizeof(TEMPLATE_NAME_CODEXPRO) == sizeof(SBX_TEMPLATE_CODEXPRO), "setup makes the template that the driver uses");

// What npm, the shell and the package left beside what was installed. Each may be absent.
static const char clean_script[] =
    "npm cache clean --force >/dev/null 2>&1\n"
    "for home in /root /home/*; do\n"
    "  rm -rf \"$home/.npm\" \"$home/.cache/npm\" \"$home/.cache/node-gyp\" \"$home/.node_repl_history\" \"$home/.bash_history\" \"$home/.wget-hsts\" "
    "\"$home/.lesshst\" \"$home/.python_history\" \"$home/.sudo_as_admin_successful\"\n"
    "done\n"
    "find /tmp /var/tmp -xdev -mindepth 1 -not -path \"$1\" -not -path \"$1/*\" -delete 2>/dev/null\n"
    "sync\n"
    "exit 0\n";

// ---- is it there? --------------------------------------------------------------------------------------------------------

static int check_sbx(const struct setup *setup, struct error *err)
{
    const struct order order = {.words = {"version"}, .deadline_ms = LOOK_DEADLINE_MS};
    struct version version;
    CLEANUP(answer_free) struct answer answer;
    order_run(setup, &order, &answer);
    if (sbx_call_judge(&answer.result, err) < 0)
        return -1;
    if (sbx_version_parse(answer.result.printed, &version, NULL) < 0)
        return error_set(err, ERROR_UNAVAILABLE, "run: sbx version", "`sbx version` tells no version");
    return sbx_version_check(&version, err);
}

static int look_for_template(const struct setup *setup, bool is_cleanup, bool *ret, struct error *err)
{
    const struct order order = {.words = {"template", "ls", "--json"}, .deadline_ms = LOOK_DEADLINE_MS, .is_cleanup = is_cleanup};
    CLEANUP_JSON json_t *json = NULL;
    CLEANUP(answer_free) struct answer answer;
    order_run(setup, &order, &answer);
    if (sbx_call_json(&answer.result, &json, err) < 0)
        return error_context(err, "cannot ask for the templates");
    *ret = sbx_images_have(json, TEMPLATE_NAME_CODEXPRO);
    return 0;
}

// ---- the steps -----------------------------------------------------------------------------------------------------------

static int install(const struct setup *setup, const struct note *note, struct error *err)
{
    const struct order order = {.words = {"exec", "-u", "root", note->name, "npm", "install", "--global", "--omit=dev", "--no-audit", "--no-fund", CODEXPRO_PACKAGE},
                                .subject = note->name, .deadline_ms = INSTALL_DEADLINE_MS, .is_shown = true};
    CLEANUP(answer_free) struct answer answer;
    setup_say(setup, "installing " CODEXPRO_PACKAGE " in it");
    order_run(setup, &order, &answer);
    if (sbx_call_judge(&answer.result, err) == 0)
        return 0;
    if (answer.result.end == CALL_EXITED && err)
        error_hint(err, "%s", NETWORK_HINT);
    return error_context(err, "npm could not install " CODEXPRO_PACKAGE);
}

// As the user who will run it, which is not root.
static int check_installed(const struct setup *setup, const struct note *note, struct error *err)
{
    const struct order order = {.words = {"exec", note->name, SBX_CODEXPRO_PROGRAM, "--version"}, .subject = note->name, .deadline_ms = STEP_DEADLINE_MS};
    struct version version;
    CLEANUP(answer_free) struct answer answer;
    order_run(setup, &order, &answer);
    if (sbx_call_judge(&answer.result, err) < 0)
        return error_context(err, "what was installed does not run");
    if (sbx_version_parse(answer.result.printed, &version, NULL) < 0 || sbx_version_compare(&version, &codexpro_version) != 0)
        return error_set(err, ERROR_UNAVAILABLE, "report it", "what was installed is not " CODEXPRO_PACKAGE ": it tells another version");
    return 0;
}

static int clean(const struct setup *setup, const struct note *note, struct error *err)
{
    CLEANUP_FREE char *workspace = mem_format("/tmp/%s", note->name);
    const struct order order = {.words = {"exec", "-u", "root", note->name, "sh", "-c", clean_script, "sh", workspace}, .subject = note->name,
                                .deadline_ms = STEP_DEADLINE_MS};
    return order_check(setup, &order, err) < 0 ? error_context(err, "cannot clean it") : 0;
}

static int stop(const struct setup *setup, const struct note *note, struct error *err)
{
    const struct order order = {.words = {"stop", note->name}, .subject = note->name, .deadline_ms = STEP_DEADLINE_MS};
    setup_say(setup, "stopping it");
    return order_check(setup, &order, err);
}

// A half-saved template must not look like one: under this lock the name was free, so what is there now is ours.
static void remove_half_saved(const struct setup *setup)
{
    const struct order order = {.words = {"template", "rm", TEMPLATE_NAME_CODEXPRO, "--force"}, .deadline_ms = STEP_DEADLINE_MS, .is_cleanup = true};
    bool is_there = false;
    if (look_for_template(setup, true, &is_there, NULL) == 0 && is_there)
        order_check(setup, &order, NULL);
}

static int save(const struct setup *setup, const struct note *note, struct error *err)
{
    const struct order order = {.words = {"template", "save", note->name, TEMPLATE_NAME_CODEXPRO}, .subject = note->name, .deadline_ms = SAVE_DEADLINE_MS};
    bool is_there = false;
    setup_say(setup, "saving it as the template " TEMPLATE_NAME_CODEXPRO);
    if (order_check(setup, &order, err) < 0) {
        remove_half_saved(setup);
        return error_context(err, "cannot save the template");
    }
    if (look_for_template(setup, false, &is_there, err) < 0)
        return -1;
    return is_there ? 0 : error_set(err, ERROR_UNAVAILABLE, "run: sbx diagnose, then setup again", "the template was saved, but `sbx template ls` does not show it");
}

static int fill(const struct setup *setup, const struct note *note, struct error *err)
{
    static int (*const steps[])(const struct setup *, const struct note *, struct error *) = {install, check_installed, clean, stop, save};
    for (size_t i = 0; i < ARRAY_LEN(steps); i++)
        if (steps[i](setup, note, err) < 0)
            return -1;
    return 0;
}

// ---- the whole -----------------------------------------------------------------------------------------------------------

static int make(const struct setup *setup, struct notes *notes, struct error *err)
{
    const struct note *note = NULL;
    struct error cleanup = ERROR_INIT;
    int r = bootstrap_make(setup, notes, &note, err);
    if (r == 0)
        r = fill(setup, note, err);
    setup_say(setup, "removing the sandbox");
    if (bootstrap_remove_all(setup, notes, &cleanup) == 0)
        return r;
    if (r == 0)
        return error_copy(err, &cleanup);
    setup_say(setup, "%s; the next setup removes it", cleanup.message);
    return -1;
}

static int make_unless_there(const struct setup *setup, struct error *err)
{
    struct notes notes;
    bool is_there = false;
    if (check_sbx(setup, err) < 0 || notes_read(setup->dir_fd, &notes, err) < 0)
        return -1;
    if (notes.count)
        setup_say(setup, "removing what an earlier setup left");
    if (bootstrap_remove_all(setup, &notes, err) < 0 || look_for_template(setup, false, &is_there, err) < 0)
        return -1;
    if (is_there) {
        setup_say(setup, "the template " TEMPLATE_NAME_CODEXPRO " is there already");
        return 0;
    }
    setup_say(setup, "building the template " TEMPLATE_NAME_CODEXPRO " (some minutes)");
    if (make(setup, &notes, err) < 0)
        return -1;
    setup_say(setup, "the template " TEMPLATE_NAME_CODEXPRO " is ready");
    return 0;
}

static int lock(const struct setup *setup, int *ret_fd, struct error *err)
{
    CLEANUP_CLOSE int fd = openat(setup->dir_fd, LOCK_NAME, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return error_errno(err, errno, NULL, "cannot open the lock of the templates");
    for (int64_t waited_ms = 0; flock(fd, LOCK_EX | LOCK_NB) < 0; waited_ms += LOCK_LOOK_MS) {
        if (errno != EWOULDBLOCK && errno != EINTR)
            return error_errno(err, errno, NULL, "cannot lock the templates");
        if (setup_is_stopped(setup))
            return error_set(err, ERROR_CANCELLED, NULL, "interrupted");
        if (waited_ms >= LOCK_WAIT_MS)
            return error_set(err, ERROR_TIMEOUT, "end the other setup, then run this again", "another setup has been at work for an hour");
        if (waited_ms == 0)
            setup_say(setup, "waiting for another setup to end");
        nanosleep(&(struct timespec){.tv_nsec = LOCK_LOOK_MS * 1000000L}, NULL);
    }
    *ret_fd = TAKE_FD(fd);
    return 0;
}

static void setup_clear(struct setup *setup)
{
    free(setup->program);
    sbx_call_environment_free(setup->environment);
    if (setup->dir_fd >= 0)
        close(setup->dir_fd);
}

int template_build_sbx(const struct template_build *build, struct error *err)
{
    CLEANUP(setup_clear) struct setup setup = {.build = build, .dir_fd = -1};
    CLEANUP_FREE char *path = mem_format("%s/templates", build->data_root);
    CLEANUP_CLOSE int lock_fd = -1;
    setup.program = sbx_call_find_program(build->sbx);
    if (!setup.program)
        return error_set(err, ERROR_UNSUPPORTED, "install Docker Sandboxes, or give its program with CHAT2SHELL_SBX", "there is no program %s", build->sbx);
    setup.environment = sbx_call_environment_new();
    if (fs_make_private_dir(path, &setup.dir_fd, err) < 0 || lock(&setup, &lock_fd, err) < 0)
        return -1;
    int r = make_unless_there(&setup, err);
    if (r < 0 && setup_is_stopped(&setup))
        return error_set(err, ERROR_CANCELLED, "run setup again: it begins anew", "interrupted before the template was ready");
    return r;
}
