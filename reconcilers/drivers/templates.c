#include "reconcilers/drivers/templates.h"
#include "controller/base/cleanup.h"
#include <string.h>

static const struct template_row rows[] = {
    {TEMPLATE_NAME_DEBIAN, "bubblewrap", false, template_build},
    {TEMPLATE_NAME_CODEXPRO, "sbx", true, template_build_sbx},
};

const struct template_row *template_row(size_t i)
{
    return i < ARRAY_LEN(rows) ? &rows[i] : NULL;
}

const struct template_row *template_find(const char *name, const char *driver)
{
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        if (name ? strcmp(rows[i].name, name) == 0 : strcmp(rows[i].driver, driver) == 0)
            return &rows[i];
    return NULL;
}
