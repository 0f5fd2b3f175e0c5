#include "api/tools/conformance/conformance.h"
#include "controller/base/memory.h"
#include "controller/embedded.h"
#include <stdio.h>
#include <string.h>

// The server says something once a second at most, and the suite wants to hear it three times.
#define PROGRESS_STEPS 4
#define PROGRESS_STEP_MS 1200

static json_t *read_rows(struct error *err)
{
    const struct embedded_file *file = embedded_find("conformance/tools.json");
    json_t *rows = NULL;
    if (!file)
        error_set(err, ERROR_INTERNAL, "build it again from a clean tree", "the conformance tools are not embedded");
    else
        json_parse(file->data, file->size, &rows, err);
    return rows;
}

static json_t *read_result(const char *name)
{
    CLEANUP_JSON json_t *rows = read_rows(NULL);
    size_t i;
    json_t *row;
    json_array_foreach(rows, i, row)
    {
        if (strcmp(json_get_text(json_object_get(row, "entry"), "name"), name) == 0)
            return json_incref(json_object_get(row, "result"));
    }
    return NULL;
}

int conformance_extend(struct catalogue *catalogue, struct error *err)
{
    CLEANUP_JSON json_t *rows = read_rows(err);
    size_t i;
    json_t *row;
    json_array_foreach(rows, i, row)
    {
        json_t *entry = json_object_get(row, "entry");
        json_array_append(json_object_get(catalogue->list, "tools"), entry);
        json_object_set(catalogue->entries, json_get_text(entry, "name"), entry);
    }
    return rows ? 0 : -1;
}

// ---- running --------------------------------------------------------------------------------------------------------------
static void answer_fixed(struct tool_call *call)
{
    tool_answer_result(call, read_result(call->tool->name));
}

static void describe_step(const struct tool_call *call, int64_t waited_ms, struct tool_progress *ret)
{
    (void)waited_ms;
    snprintf(ret->message, sizeof(ret->message), "step %d of %d", call->result, PROGRESS_STEPS);
}

static void go_on(void *arg);

static void wait_step(struct tool_call *call)
{
    call->result++;
    if (call->news)
        call->news(call->arg);
    loop_after(call->world->loop, PROGRESS_STEP_MS, go_on, call);
}

static void step(struct tool_call *call)
{
    if (call->result < PROGRESS_STEPS)
        wait_step(call);
    else
        answer_fixed(call);
}

static void go_on(void *arg) // loop thread
{
    struct tool_call *call = arg;
    if (!tool_is_over(call))
        step(call);
}

static void run_with_progress(struct tool_call *call)
{
    call->describe = describe_step;
    call->result = 0;
    wait_step(call);
}

static const struct tool rows[] = {
    {"test_simple_text", TOOL_READS, SCOPE_TOOLS_READ, answer_fixed},
    {"test_image_content", TOOL_READS, SCOPE_TOOLS_READ, answer_fixed},
    {"test_audio_content", TOOL_READS, SCOPE_TOOLS_READ, answer_fixed},
    {"test_embedded_resource", TOOL_READS, SCOPE_TOOLS_READ, answer_fixed},
    {"test_multiple_content_types", TOOL_READS, SCOPE_TOOLS_READ, answer_fixed},
    {"test_error_handling", TOOL_READS, SCOPE_TOOLS_READ, answer_fixed},
    {"test_tool_with_progress", TOOL_WAITS, SCOPE_TOOLS_READ, run_with_progress},
    {"test_streaming_elicitation", TOOL_READS, SCOPE_TOOLS_READ, answer_fixed},
    {"test_logging_tool", TOOL_READS, SCOPE_TOOLS_READ, answer_fixed},
    {"test_missing_capability", TOOL_READS, SCOPE_TOOLS_READ, answer_fixed},
    {"test_x_mcp_header", TOOL_READS, SCOPE_TOOLS_READ, answer_fixed},
    {"json_schema_2020_12_tool", TOOL_READS, SCOPE_TOOLS_READ, answer_fixed},
};

const struct tool *conformance_tool_find(const char *name)
{
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        if (strcmp(rows[i].name, name) == 0)
            return &rows[i];
    return NULL;
}
