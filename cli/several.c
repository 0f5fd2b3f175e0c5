#include "cli/several.h"
#include "cli/objects.h"
#include "cli/printers/print.h"

void several_begin(struct several *several, struct invocation *in, bool is_one)
{
    *several = (struct several){.in = in, .is_one = is_one, .items = json_array()};
}

void several_clear(struct several *several)
{
    json_decref(several->items);
    *several = (struct several){0};
}

void several_add(struct several *several, const json_t *object)
{
    json_array_append(several->items, (json_t *)object);
}

int several_fail(struct several *several, const struct error *why, struct error *err)
{
    if (several->is_one)
        return error_copy(err, why);
    complain(several->in, why);
    if (!several->failed)
        several->failed = why->code;
    return 0;
}

static void print(const struct several *several)
{
    bool is_json = invocation_is_output(several->in, "json");
    if (!is_json && !invocation_is_output(several->in, "yaml"))
        return;
    CLEANUP_JSON json_t *list = json_pack("{s:s, s:s, s:{s:s}, s:O}", "apiVersion", "v1", "kind", "List", "metadata", "resourceVersion", "", "items",
                                          several->items);
    const json_t *shown = several->is_one ? json_array_get(several->items, 0) : list;
    CLEANUP_JSON json_t *printed = shown ? object_shown(several->in, shown) : NULL;
    if (printed)
        (is_json ? print_json : print_yaml)(printed);
}

int several_end(struct several *several, struct error *err)
{
    print(several);
    return several->failed ? error_set(err, several->failed, NULL, "%s", "") : 0;
}
