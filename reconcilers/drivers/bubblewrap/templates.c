#include "controller/base/memory.h"
#include "controller/base/cleanup.h"
#include "reconcilers/drivers/bubblewrap/bubblewrap.h"
#include "reconcilers/drivers/templates.h"
#include <string.h>

char *template_path(const char *data_root, const char *name)
{
    return mem_format("%s/templates/%s", data_root, name);
}

const char *template_pick(const struct bubblewrap *bw, const char *wanted, struct error *err)
{
    static const char *const names[] = {TEMPLATE_DEBIAN, TEMPLATE_HOST};
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        bool is_there = strcmp(names[i], TEMPLATE_HOST) == 0 || template_is_built(bw->data_root);
        if (wanted == NULL && is_there)
            return names[i];
        if (wanted && strcmp(wanted, names[i]) == 0) {
            if (is_there)
                return names[i];
            error_set(err, ERROR_NOT_FOUND, "run: chat2shell setup", "the template %s is not built yet", wanted);
            return NULL;
        }
    }
    error_set(err, ERROR_INVALID, "use " TEMPLATE_HOST " or " TEMPLATE_DEBIAN, "there is no template named %s", wanted ? wanted : "");
    return NULL;
}
