// events: what happened, oldest first, and what happens.
#include "cli/get.h"
#include "cli/objects.h"
#include "controller/base/memory.h"
#include <string.h>

// What is about one object: by its uid, so that an older one of the same name is another; by name where it is gone.
static int select_object(const struct rest *rest, const char *word, char **ret, struct error *err)
{
    const char *slash = strchr(word, '/');
    if (!slash || !slash[1])
        return error_set(err, ERROR_USAGE, "like --for sandbox/dev", "--for is of the form KIND/NAME, not '%.100s'", word);
    CLEANUP_FREE char *kind = mem_strndup(word, (size_t)(slash - word));
    CLEANUP_JSON json_t *object = NULL;
    struct error local = ERROR_INIT;
    const struct kind_info *info = object_kind(kind, err);
    if (!info)
        return -1;
    if (object_get(rest, info, slash + 1, &object, &local) == 0)
        *ret = mem_format("involvedObject.uid=%s", object_uid(object));
    else if (local.code != ERROR_NOT_FOUND)
        return error_copy(err, &local);
    else
        *ret = mem_format("involvedObject.kind=%s,involvedObject.name=%s", info->name, slash + 1);
    return 0;
}

static int select_events(struct get *get, struct error *err)
{
    const char *word = invocation_option(get->in, "for"), *type = invocation_option(get->in, "types");
    CLEANUP_FREE char *about = NULL;
    if (word && select_object(get->rest, word, &about, err) < 0)
        return -1;
    if (about || type)
        get->fields = mem_format("%s%s%s%s", about ? about : "", about && type ? "," : "", type ? "type=" : "", type ? type : "");
    return 0;
}

static int run(struct invocation *in, struct error *err)
{
    CLEANUP(get_clear) struct get get = {.targets = {.items = {{&events_info, NULL}}, .count = 1}};
    if (get_prepare(in, &get, err) < 0 || select_events(&get, err) < 0)
        return -1;
    if (!get.is_sorted && json_expression_parse(".lastTimestamp", &get.sort, err) < 0)
        return -1;
    get.is_sorted = true;
    return get_run(&get, err);
}

static const char *const types[] = {"Normal", "Warning", NULL};
static const struct example examples[] = {
    {"chat2shell events", "what happened to everything, oldest first"},
    {"chat2shell events --for sandbox/dev -w", "what happened to one sandbox, and what happens"},
    {"chat2shell events --types Warning -o json", "what went wrong, for programs"},
};
static const struct option_row options[] = {
    OPTION_OUTPUT(get_outputs, "how to print them"),
    OPTION_WATCH,
    OPTION_WATCH_ONLY,
    {.name = "for", .value = "KIND/NAME", .doc = "only what is about this object"},
    {.name = "types", .value = "TYPE", .doc = "only these", .choices = types},
    OPTION_FIELD_SELECTOR,
    OPTION_SORT,
    OPTION_CHUNK_SIZE,
    OPTION_NO_HEADERS,
    OPTIONS_NAMESPACE,
};
const struct command command_events = {
    .name = "events", .synopsis = "", .summary = "Show what happened, and watch what happens", .run = run, COMMAND_EXAMPLES(examples), COMMAND_OPTIONS(options),
    .details = "Events are kept for a while only; `describe` shows those of one object beside its conditions.",
};
