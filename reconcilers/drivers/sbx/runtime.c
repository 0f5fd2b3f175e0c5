#include "controller/base/memory.h"
#include "reconcilers/drivers/sbx/sbx.h"
#include <string.h>

bool sbx_owns(const struct sbx *sbx, const char *name)
{
    return sbx->instance && driver_owns_name(sbx->instance, name);
}

struct runtime *sbx_runtime_find(struct sbx *sbx, const char *name)
{
    for (struct runtime *runtime = sbx->runtimes; runtime; runtime = runtime->next)
        if (strcmp(runtime->name, name) == 0)
            return runtime;
    return NULL;
}

struct runtime *sbx_runtime_add(struct sbx *sbx, const char *name)
{
    struct runtime *runtime = mem_alloc(sizeof(*runtime));
    *runtime = (struct runtime){.next = sbx->runtimes, .sbx = sbx, .name = mem_strdup(name), .is_untouched = true};
    sbx->runtimes = runtime;
    return runtime;
}

void sbx_runtime_free(struct runtime *runtime)
{
    struct runtime **at = &runtime->sbx->runtimes;
    while (*at != runtime)
        at = &(*at)->next;
    *at = runtime->next;
    sbx_held_free(runtime->held);
    free(runtime->name);
    free(runtime->root);
    free(runtime);
}

bool sbx_runtime_runs(const struct runtime *runtime)
{
    return runtime->is_made && !runtime->is_removing && runtime->held != NULL;
}
