#include "reconcilers/drivers/driver.h"
#include "controller/base/cleanup.h"
#include "controller/base/memory.h"
#include "controller/hash.h"
#include <inttypes.h>
#include <stdarg.h>
#include <string.h>
#include <unistd.h>

void finding_list_free(struct finding_list *list)
{
    for (size_t i = 0; i < list->count; i++) {
        free(list->items[i].check);
        free(list->items[i].what);
        free(list->items[i].fix);
    }
    free(list->items);
    *list = (struct finding_list){0};
}

void finding_add(struct finding_list *list, enum finding_level level, const char *check, const char *fix, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    char *what = mem_vformat(format, args);
    va_end(args);
    list->items = mem_realloc_array(list->items, list->count + 1, sizeof(*list->items));
    list->items[list->count++] = (struct finding){level, mem_strdup(check), what, mem_strdup_or_null(fix)};
}

void driver_choice_free(struct driver_choice *choice)
{
    free(choice->reason);
    free(choice->fix);
    *choice = (struct driver_choice){0};
}

void driver_choice_tell(const struct driver_choice *choice, const char *driver_name, struct finding_list *ret)
{
    CLEANUP_FREE char *fix = choice->fix ? mem_format("%s; or set CHAT2SHELL_DRIVER=%s", choice->fix, driver_name) : NULL;
    finding_add(ret, fix ? FINDING_WARN : FINDING_PASS, "driver", fix, "sandboxes run on the driver '%s'%s%s", driver_name,
                choice->reason ? ", because " : "", choice->reason ? choice->reason : "");
}

char *driver_clone_dir_name(const char *runtime_name)
{
    return mem_format("%016" PRIx64, hash_text(runtime_name));
}

char *driver_runtime_name(const char *instance, const char *sandbox_uid, int64_t attempt)
{
    return mem_format(RUNTIME_PREFIX "%.*s-%s-%" PRId64, RUNTIME_INSTANCE_DIGITS, instance, sandbox_uid + strlen("sbx_"), attempt);
}

bool driver_owns_name(const char *instance, const char *runtime_name)
{
    CLEANUP_FREE char *prefix = mem_format(RUNTIME_PREFIX "%.*s-", RUNTIME_INSTANCE_DIGITS, instance);
    return strncmp(runtime_name, prefix, strlen(prefix)) == 0;
}

void driver_session_close(struct driver_session *session)
{
    const int fds[] = {session->input_fd, session->output_fd, session->error_fd};
    for (size_t i = 0; i < ARRAY_LEN(fds); i++)
        if (fds[i] >= 0)
            close(fds[i]);
    cleanup_secret(&session->token);
    *session = (struct driver_session){-1, -1, -1, 0, NULL};
}

bool driver_create_may_help(const struct error *err)
{
    return err->code == ERROR_TIMEOUT || err->code == ERROR_EXISTS || err->code == ERROR_CONFLICT;
}

// Every driver this program has, the ones that `auto` prefers first.
static const struct driver_entry {
    const char *name;
    int (*open)(const struct driver_options *options, struct driver **ret, struct error *err);
    int (*check)(struct driver *driver, struct error *err); // can it be used here? NULL: whoever asks for it gets its findings
    bool outlives_daemon;
} entries[] = {
    {"sbx", driver_sbx_new, driver_sbx_check, true},
    {"bubblewrap", driver_bubblewrap_new, NULL, false},
};

bool driver_outlives_daemon(const char *name)
{
    for (size_t i = 0; i < ARRAY_LEN(entries); i++)
        if (strcmp(name, entries[i].name) == 0)
            return entries[i].outlives_daemon;
    return false;
}

// Opens the entry; for auto only if it can be used. -1 with the reason.
static int open_entry(const struct driver_entry *entry, bool is_auto, const struct driver_options *options, struct driver **ret, struct error *err)
{
    struct driver *driver;
    if (entry->open(options, &driver, err) < 0)
        return error_context(err, "cannot use the %s driver", entry->name);
    if (is_auto && entry->check && entry->check(driver, err) < 0) {
        driver->ops->free(driver);
        return -1;
    }
    *ret = driver;
    return 0;
}

static void choose(struct driver_choice *ret, char *reason, char *fix)
{
    struct driver_choice choice = {reason, fix};
    if (ret)
        *ret = choice;
    else
        driver_choice_free(&choice);
}

static int open_named(const char *name, const struct driver_options *options, struct driver **ret, struct driver_choice *ret_choice, struct error *err)
{
    for (size_t i = 0; i < ARRAY_LEN(entries); i++) {
        if (strcmp(name, entries[i].name) != 0)
            continue;
        if (open_entry(&entries[i], false, options, ret, err) < 0)
            return -1;
        choose(ret_choice, mem_strdup("CHAT2SHELL_DRIVER names it"), NULL);
        return 0;
    }
    return error_set(err, ERROR_UNSUPPORTED, "use auto, sbx or bubblewrap", "this version has no driver named '%s'", name);
}

// What is not installed was passed over as meant; what is there, or was named in the settings, and cannot be used should be mended.
static bool is_worth_mending(const struct error *why, const struct driver_options *options)
{
    return why->code != ERROR_NOT_FOUND || (options->sbx && strcmp(options->sbx, SBX_DEFAULT_PROGRAM) != 0);
}

// The first that can be used; the last one is not asked whether it can.
static int open_best(const struct driver_options *options, struct driver **ret, struct driver_choice *ret_choice, struct error *err)
{
    CLEANUP(driver_choice_free) struct driver_choice passed_over = {0};
    for (size_t i = 0; i < ARRAY_LEN(entries); i++) {
        struct error why = ERROR_INIT;
        if (open_entry(&entries[i], true, options, ret, &why) == 0) {
            if (passed_over.reason)
                choose(ret_choice, TAKE_PTR(passed_over.reason), TAKE_PTR(passed_over.fix));
            else
                choose(ret_choice, mem_strdup("it answers"), NULL);
            return 0;
        }
        if (is_worth_mending(&why, options))
            mem_replace(&passed_over.fix, why.hint[0] ? why.hint : "mend that");
        char *reason = mem_format("%s%s%s cannot be used: %s", passed_over.reason ? passed_over.reason : "", passed_over.reason ? "; " : "",
                                  entries[i].name, why.message);
        free(passed_over.reason);
        passed_over.reason = reason;
        error_copy(err, &why);
    }
    return -1;
}

int driver_open(const char *name, const struct driver_options *options, struct driver **ret, struct driver_choice *ret_choice, struct error *err)
{
    if (name == NULL || strcmp(name, "auto") == 0)
        return open_best(options, ret, ret_choice, err);
    return open_named(name, options, ret, ret_choice, err);
}
