// What the sandboxes use, for `chat2shell top`.
#include "api/operator/internal.h"

static void done(void *arg, json_t *items, const struct error *err)
{
    struct call *call = arg;
    if (items)
        operator_answer(call, 200, json_pack("{s:o}", "items", items));
    else
        operator_fail(call, err);
}

void usage_show(struct call *call)
{
    request_usage(call->world, done, call);
}
