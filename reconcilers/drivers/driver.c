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
    if (session->token)
        explicit_bzero(session->token, strlen(session->token));
    free(session->token);
    *session = (struct driver_session){-1, -1, -1, 0, NULL};
}

// Every driver this program has, the ones that `auto` prefers first.
static const struct driver_entry {
    const char *name;
    int (*open)(const struct driver_options *options, struct driver **ret, struct error *err);
} entries[] = {
    {"bubblewrap", driver_bubblewrap_new},
};

int driver_open(const char *name, const struct driver_options *options, struct driver **ret, char **ret_reason, struct error *err)
{
    bool is_auto = name == NULL || strcmp(name, "auto") == 0;
    for (size_t i = 0; i < ARRAY_LEN(entries); i++) {
        if (!is_auto && strcmp(name, entries[i].name) != 0)
            continue;
        if (entries[i].open(options, ret, err) < 0)
            return error_context(err, "cannot use the %s driver", entries[i].name);
        if (ret_reason)
            *ret_reason = is_auto ? mem_format("%s, because it is the only driver of this version", entries[i].name)
                                  : mem_strdup("it was asked for by name");
        return 0;
    }
    return error_set(err, ERROR_UNSUPPORTED, "use auto or bubblewrap", "this version has no driver named '%s'", name);
}
