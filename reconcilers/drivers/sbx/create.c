// Making a sandbox: a row of steps, each of which starts something whose end begins the next. What fails after sbx was asked to
// make it is cleaned up here; the error says whether that is certain.
#include "controller/base/cleanup.h"
#include "controller/base/memory.h"
#include "controller/base/random.h"
#include "reconcilers/drivers/sbx/sbx.h"
#include <string.h>

#define MIB (1LL << 20)
#define MEMORY_MIN (512 * MIB) // of Docker Sandboxes

struct creation {
    struct sbx *sbx;
    struct runtime *runtime; // NULL while its clean-up runs
    char *name, *path, *template_name; // path: of the workspace, or of the checkout to clone; template NULL: sbx's own
    int64_t device, inode, memory_bytes, cpus_milli;
    bool is_clone, is_codexpro, is_cancelled;
    size_t step;
    struct boot_time deadline;
    struct loop_timer *timer;
    struct call *call; // of the current step, or NULL
    struct denial *denial;
    char marker[INSIDE_MARKER_DIGITS + 1];
    struct inside inside;
    struct error err; // why it ends
    driver_created_fn done;
    void *arg;
};

static void begin_step(struct creation *creation);

// ---- the end -----------------------------------------------------------------------------------------------------------

static void creation_free(struct creation *creation)
{
    sbx_inside_free(&creation->inside);
    free(creation->name);
    free(creation->path);
    free(creation->template_name);
    free(creation);
}

static void answer_failed(struct creation *creation)
{
    creation->done(creation->arg, -1, NULL, &creation->err);
    creation_free(creation);
}

static void note_cleaned(struct error *err, bool was_there, const struct error *wrong)
{
    CLEANUP_FREE char *said = mem_strdup(err->message), *hint = mem_strdup(err->hint);
    enum error_code code = err->code;
    if (wrong) // what may be left is found and removed by the record's own removal
        error_set(err, code, hint, "%s; and it is not certain that nothing is left of it: %s", said, wrong->message);
    else if (was_there)
        error_set(err, code == ERROR_IO ? ERROR_CONFLICT : code, hint, "%s; what was made of it is removed", said);
}

static void on_cleaned(void *arg, bool was_there, const struct error *wrong)
{
    struct creation *creation = arg;
    note_cleaned(&creation->err, was_there, wrong);
    answer_failed(creation);
}

static void leave_runtime(struct creation *creation)
{
    loop_cancel(TAKE_PTR(creation->timer));
    creation->runtime->creation = NULL;
    creation->runtime = NULL;
}

// creation->err says why.
static void fail(struct creation *creation)
{
    struct runtime *runtime = creation->runtime;
    struct sbx *sbx = creation->sbx;
    leave_runtime(creation);
    if (!creation->is_cancelled && !runtime->is_untouched) {
        sbx_remove_on_loop(sbx, creation->name, on_cleaned, creation);
        return;
    }
    CLEANUP_FREE char *name = mem_strdup(creation->name);
    bool is_cancelled = creation->is_cancelled;
    answer_failed(creation);
    if (is_cancelled)
        sbx_remove_creation_ended(sbx, name);
}

static void succeed(struct creation *creation)
{
    struct runtime *runtime = creation->runtime;
    struct driver_facts facts;
    runtime->is_made = true;
    mem_replace(&runtime->root, creation->inside.root);
    leave_runtime(creation);
    sbx_facts_fill(&creation->inside, creation->template_name ? creation->template_name : SBX_TEMPLATE_SHELL, &facts);
    if (creation->cpus_milli % 1000)
        text_list_add(&facts.warnings, "the processor limit is rounded up: a microVM has whole processors");
    creation->done(creation->arg, 0, &facts, NULL);
    sbx_facts_free(&facts);
    creation_free(creation);
}

// Ends what the current step waits for. The step's own callback, if it still comes, sees creation->err.
static void interrupt(struct creation *creation)
{
    if (creation->call) {
        sbx_call_cancel(creation->call);
        return;
    }
    if (creation->denial)
        sbx_denial_cancel(TAKE_PTR(creation->denial));
    sbx_list_leave(creation->sbx, creation);
    sbx_version_leave(creation->sbx, creation);
    fail(creation);
}

static void on_deadline(void *arg)
{
    struct creation *creation = arg;
    creation->timer = NULL;
    if (creation->err.code != ERROR_NONE)
        return; // it ends already
    error_set(&creation->err, ERROR_TIMEOUT, "look at: sbx daemon status", "the sandbox was not made within %lld s", (long long)creation->sbx->deadlines.create_ms / 1000);
    interrupt(creation);
}

void sbx_create_cancel(struct creation *creation)
{
    bool is_ending = creation->err.code != ERROR_NONE;
    creation->is_cancelled = true;
    error_set(&creation->err, ERROR_CANCELLED, NULL, "the sandbox was removed while it was being made");
    if (!is_ending)
        interrupt(creation);
}

static void next(struct creation *creation)
{
    creation->step++;
    begin_step(creation);
}

// The end of a step's call: false if the creation ended with it. was_good: what the caller makes of the result.
static bool settle_call(struct creation *creation, const struct call_result *result)
{
    creation->call = NULL;
    if (creation->err.code == ERROR_NONE && sbx_call_judge(result, &creation->err) == 0)
        return true;
    fail(creation);
    return false;
}

// ---- the steps ---------------------------------------------------------------------------------------------------------

static void on_version(void *arg, const struct version *version, const struct error *err)
{
    struct creation *creation = arg;
    if (err)
        error_copy(&creation->err, err);
    else
        sbx_version_check(version, &creation->err);
    if (creation->err.code != ERROR_NONE)
        fail(creation);
    else
        next(creation);
}

static void begin_version(struct creation *creation)
{
    sbx_version_ask(creation->sbx, on_version, creation);
}

static void add_limits(const struct creation *creation, struct words *words)
{
    if (creation->cpus_milli) {
        sbx_words_add(words, "--cpus");
        sbx_words_add(words, "%lld", (long long)(creation->cpus_milli + 999) / 1000);
    }
    if (creation->memory_bytes) {
        sbx_words_add(words, "--memory");
        sbx_words_add(words, "%lldm", (long long)(creation->memory_bytes + MIB - 1) / MIB);
    }
}

// Docker Sandboxes' own image may have to be fetched once; a template is local, and a name of it from elsewhere is refused.
static void add_switches(const struct creation *creation, struct words *words)
{
    const struct sbx *sbx = creation->sbx;
    for (size_t i = 0; sbx_denied_hosts[i] && sbx_version_has(sbx, FEATURE_DENY_NETWORK); i++) {
        sbx_words_add(words, "%s", sbx_version_flag(FEATURE_DENY_NETWORK));
        sbx_words_add(words, "%s", sbx_denied_hosts[i]);
    }
    if (creation->is_codexpro && sbx_version_has(sbx, FEATURE_PUBLISH)) {
        sbx_words_add(words, "%s", sbx_version_flag(FEATURE_PUBLISH));
        sbx_words_add(words, "%d", SBX_CODEXPRO_PORT);
    }
    if (sbx_version_has(sbx, FEATURE_SKILLS)) {
        sbx_words_add(words, "%s", sbx_version_flag(FEATURE_SKILLS));
        sbx_words_add(words, "off");
    }
    if (sbx_version_has(sbx, FEATURE_PULL)) {
        sbx_words_add(words, "%s", sbx_version_flag(FEATURE_PULL));
        sbx_words_add(words, "%s", creation->template_name ? "never" : "missing");
    }
}

static void on_made(void *arg, const struct call_result *result)
{
    struct creation *creation = arg;
    struct runtime *runtime = creation->runtime;
    runtime->is_untouched = result->end == CALL_NOT_STARTED;
    runtime->is_unsettled = result->end == CALL_TIMED_OUT || result->end == CALL_CANCELLED;
    if (creation->err.code == ERROR_NONE && sbx_version_drop_refused(creation->sbx, result)) {
        creation->call = NULL;
        begin_step(creation); // without the flag that this sbx does not know
        return;
    }
    if (result->end == CALL_EXITED && result->exit_code != 0)
        sbx_version_forget(creation->sbx); // perhaps another sbx was installed meanwhile
    if (settle_call(creation, result))
        next(creation);
}

static int64_t remaining_ms(const struct creation *creation)
{
    int64_t left = creation->deadline.ms - clock_boot(creation->sbx->clock).ms;
    return left < 1000 ? 1000 : left;
}

static void begin_make(struct creation *creation)
{
    int64_t left = remaining_ms(creation);
    struct call_options options = {.subject = creation->name, .deadline_ms = left < creation->sbx->deadlines.create_call_ms ? left : creation->sbx->deadlines.create_call_ms};
    struct words *words = &options.words;
    sbx_words_add(words, "create");
    sbx_words_add(words, "--name");
    sbx_words_add(words, "%s", creation->name);
    if (creation->template_name) {
        sbx_words_add(words, "--template");
        sbx_words_add(words, "%s", creation->template_name);
    }
    if (creation->is_clone)
        sbx_words_add(words, "--clone");
    add_switches(creation, words);
    add_limits(creation, words);
    sbx_words_add(words, "-q");
    sbx_words_add(words, "shell");
    sbx_words_add(words, "%s", creation->path);
    creation->runtime->is_untouched = false;
    creation->call = sbx_call_start(creation->sbx, &options, on_made, creation);
}

// Exit code 0 is not proof; and the directory that sbx mounted by its path must still be the approved one.
static void on_list(void *arg, const struct sandbox_row_list *sandboxes, const struct error *err)
{
    struct creation *creation = arg;
    if (err)
        error_copy(&creation->err, err);
    else if (sbx_sandbox_row_find(sandboxes, creation->name) == NULL)
        error_set(&creation->err, ERROR_CONFLICT, "look at: sbx ls", "sbx reported the sandbox as made, and does not list it");
    else
        sbx_place_check(creation->path, creation->device, creation->inode, true, &creation->err);
    if (creation->err.code != ERROR_NONE)
        fail(creation);
    else
        next(creation);
}

static void begin_find(struct creation *creation)
{
    sbx_list_ask(creation->sbx, on_list, creation);
}

static void on_denied(void *arg, const struct error *err)
{
    struct creation *creation = arg;
    creation->denial = NULL;
    if (err) {
        error_copy(&creation->err, err);
        fail(creation);
    } else {
        next(creation);
    }
}

static void begin_denial(struct creation *creation)
{
    creation->denial = sbx_denial_confirm(creation->sbx, creation->name, on_denied, creation);
}

static int check_inside(const struct creation *creation, struct error *err)
{
    const struct inside *inside = &creation->inside;
    const char *template_name = creation->template_name ? creation->template_name : SBX_TEMPLATE_SHELL;
    if (creation->is_codexpro && !inside->has_codexpro)
        return error_set(err, ERROR_NOT_FOUND, "run: chat2shell setup; or give session: guest in the Sandbox",
                         "the template %s has no %s", template_name, SBX_CODEXPRO_PROGRAM);
    if (creation->is_clone && !inside->is_checkout)
        return error_set(err, ERROR_UNAVAILABLE, "look at: git status in the checkout", "there is no working tree in the sandbox's private clone");
    return 0;
}

static void on_looked(void *arg, const struct call_result *result)
{
    struct creation *creation = arg;
    creation->call = NULL;
    if (creation->err.code == ERROR_NONE && sbx_inside_read(result, creation->marker, &creation->inside, &creation->err) == 0)
        check_inside(creation, &creation->err);
    if (creation->err.code != ERROR_NONE)
        fail(creation);
    else
        next(creation);
}

static void begin_look(struct creation *creation)
{
    struct call_options options = {.subject = creation->name, .deadline_ms = creation->sbx->deadlines.call_ms};
    random_hex(creation->marker, INSIDE_MARKER_DIGITS);
    sbx_inside_words(&options.words, creation->name, creation->marker);
    creation->call = sbx_call_start(creation->sbx, &options, on_looked, creation);
}

static void (*const steps[])(struct creation *creation) = {begin_version, begin_make, begin_find, begin_denial, begin_look, succeed};

static void begin_step(struct creation *creation)
{
    steps[creation->step](creation);
}

// ---- the start ---------------------------------------------------------------------------------------------------------

static int check_spec(struct sbx *sbx, const struct driver_spec *spec, struct error *err)
{
    if (!sbx_owns(sbx, spec->runtime_name))
        return error_set(err, ERROR_INTERNAL, NULL, "the runtime's name does not carry this state directory");
    if (spec->memory_bytes && spec->memory_bytes < MEMORY_MIN)
        return error_set(err, ERROR_INVALID, "give 512Mi or more", "Docker Sandboxes has no sandboxes with less than 512 MiB of memory");
    if (!spec->has_network)
        return error_set(err, ERROR_UNSUPPORTED, "use the driver bubblewrap", "Docker Sandboxes has no sandboxes without a network");
    return 0;
}

static int check_place(struct sbx *sbx, const struct creation *creation, struct error *err)
{
    if (sbx_place_check_path(creation->path, err) < 0 || sbx_place_check(creation->path, creation->device, creation->inode, false, err) < 0)
        return -1;
    if (!creation->is_clone)
        return 0;
    return sbx_place_check_checkout(creation->path, err) < 0 ? -1 : sbx_clone_note(sbx, creation->name, creation->path, err);
}

static struct creation *creation_new(struct sbx *sbx, const struct driver_spec *spec)
{
    bool is_clone = spec->mode == WORKSPACE_CLONE && spec->clone_source != NULL, is_codexpro = spec->session != SESSION_GUEST;
    struct creation *creation = mem_alloc(sizeof(*creation));
    *creation = (struct creation){.sbx = sbx,
                                  .name = mem_strdup(spec->runtime_name),
                                  .path = mem_strdup(is_clone ? spec->clone_source : spec->workspace_root),
                                  .template_name = mem_strdup_or_null(spec->template_name ? spec->template_name
                                                                      : is_codexpro       ? SBX_TEMPLATE_CODEXPRO
                                                                                          : NULL),
                                  .device = is_clone ? spec->source_device : spec->device,
                                  .inode = is_clone ? spec->source_inode : spec->inode,
                                  .memory_bytes = spec->memory_bytes,
                                  .cpus_milli = spec->cpus_milli,
                                  .is_clone = is_clone,
                                  .is_codexpro = is_codexpro};
    return creation;
}

static void begin(void *arg)
{
    struct creation *creation = arg;
    struct sbx *sbx = creation->sbx;
    if (sbx_runtime_find(sbx, creation->name))
        error_set(&creation->err, ERROR_EXISTS, NULL, "a runtime of that name is there already");
    else if (sbx_owns(sbx, creation->name))
        creation->runtime = sbx_runtime_add(sbx, creation->name);
    if (creation->runtime == NULL) {
        answer_failed(creation);
        return;
    }
    creation->runtime->creation = creation;
    creation->runtime->session = creation->is_codexpro ? SESSION_CODEXPRO : SESSION_GUEST;
    if (creation->err.code != ERROR_NONE) {
        fail(creation); // the runtime stays known as one that sbx never heard of
        return;
    }
    creation->deadline = (struct boot_time){clock_boot(sbx->clock).ms + sbx->deadlines.create_ms};
    creation->timer = loop_at(sbx->loop, creation->deadline, on_deadline, creation);
    begin_step(creation);
}

// Looking at the directory may block, so it is done on the caller's thread.
void sbx_create(struct driver *driver, const struct driver_spec *spec, driver_created_fn done, driver_died_fn died, void *arg)
{
    struct sbx *sbx = sbx_of(driver);
    struct creation *creation = creation_new(sbx, spec);
    (void)died; // a microVM that ends takes its held session along, which is seen at once
    creation->done = done;
    creation->arg = arg;
    if (check_spec(sbx, spec, &creation->err) == 0)
        check_place(sbx, creation, &creation->err);
    loop_post(sbx->loop, begin, creation);
}
