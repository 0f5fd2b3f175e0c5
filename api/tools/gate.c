// Admission of tool calls, and the order in which they reach the loop thread: one asker's hundred calls do
// not stand before another's one.
#include "api/tools/tools.h"
#include <stddef.h>

void tool_gate_init(struct tool_gate *gate)
{
    pthread_mutex_init(&gate->lock, NULL);
    fair_init(&gate->calls, TOOL_CALLS_MAX);
    fair_init(&gate->waits, TOOL_WAITS_MAX);
    list_cache_init(&gate->lists);
}

void tool_gate_clear(struct tool_gate *gate)
{
    list_cache_clear(&gate->lists);
    fair_clear(&gate->waits);
    fair_clear(&gate->calls);
    pthread_mutex_destroy(&gate->lock);
}

static bool enter(struct tool_call *call, struct fair_line *line, struct fair_item *place)
{
    pthread_mutex_lock(&call->gate->lock);
    bool is_in = place->asker || fair_enter(line, call->asker, place);
    pthread_mutex_unlock(&call->gate->lock);
    return is_in;
}

bool tool_gate_enter(struct tool_call *call)
{
    return enter(call, &call->gate->calls, &call->place);
}

bool tool_gate_enter_wait(struct tool_call *call)
{
    return enter(call, &call->gate->waits, &call->wait_place);
}

void tool_gate_leave(struct tool_call *call)
{
    struct tool_gate *gate = call->gate;
    pthread_mutex_lock(&gate->lock);
    fair_leave(&gate->waits, &call->wait_place);
    fair_leave(&gate->calls, &call->place);
    pthread_mutex_unlock(&gate->lock);
}

// One call a look, so that the loop's other work comes between. Once the last call in line runs nothing here
// may touch the gate: it may end with that call.
static void look(void *arg)
{
    struct tool_gate *gate = arg;
    pthread_mutex_lock(&gate->lock);
    struct fair_item *item = fair_pop(&gate->calls);
    struct tool_call *call = (struct tool_call *)((char *)item - offsetof(struct tool_call, place));
    gate->is_looking = gate->calls.waiting > 0;
    if (gate->is_looking)
        loop_post(call->world->loop, look, gate);
    pthread_mutex_unlock(&gate->lock);
    tool_call_run(call);
}

void tool_gate_post(struct tool_call *call)
{
    struct tool_gate *gate = call->gate;
    pthread_mutex_lock(&gate->lock);
    fair_push(&gate->calls, &call->place);
    if (!gate->is_looking)
        loop_post(call->world->loop, look, gate);
    gate->is_looking = true;
    pthread_mutex_unlock(&gate->lock);
}
