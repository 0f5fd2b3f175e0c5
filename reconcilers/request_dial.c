// A connection to a port of a sandbox, for the operator's port-forward.
#include "controller/base/memory.h"
#include "reconcilers/reconcilers.h"
#include "schemas/kinds/conditions.h"

static int check(const struct world *world, const struct record *sandbox, struct error *err)
{
    if (sandbox->meta.deletion_at.ms)
        return error_set(err, ERROR_STATE, "create another one", "the sandbox '%s' is being destroyed", sandbox->meta.name);
    if (!sandbox->status.sandbox.runtime_name || !record_is_true(sandbox, CONDITION_READY))
        return error_set(err, ERROR_STATE, "see why: chat2shell describe sandbox", "the sandbox '%s' does not run", sandbox->meta.name);
    if (!world->driver->ops->dial_port)
        return error_set(err, ERROR_UNSUPPORTED, "expose the port instead", "the driver %s cannot connect to ports of its sandboxes", world->driver->ops->name);
    return 0;
}

int request_dial(struct world *world, const struct record *sandbox, int port, dial_request_fn done, void *arg, struct error *err)
{
    if (check(world, sandbox, err) < 0)
        return -1;
    world->driver->ops->dial_port(world->driver, sandbox->status.sandbox.runtime_name, port, done, arg);
    return 0;
}
