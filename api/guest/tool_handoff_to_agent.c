// handoff_to_agent: write a plan for a local coding agent into .ai-bridge/. Runs nothing. The plan is never
// judged: no secret-looking text is refused, as in write.
#include "api/guest/bridge.h"
#include "api/guest/diff.h"
#include "api/guest/text_file.h"
#include "api/guest/tool.h"
#include "controller/base/memory.h"
#include "controller/base/time.h"
#include <ctype.h>
#include <string.h>

#define MAX_AGENT_CHARS 64
#define DEFAULT_TITLE "Agent implementation plan"

static const struct tool_arg args[] = {
    {"plan", ARG_STRING, "The plan in Markdown: what to change, where, and how to check it.",
     .is_required = true},
    {"agent", ARG_STRING, "Short id of the agent that shall carry it out, such as codex or opencode.",
     .default_text = "custom"},
    {"agent_name", ARG_STRING, "The agent's name for people; the default follows from agent."},
    {"model", ARG_STRING, "The model that the agent shall use, if that matters."},
    {"title", ARG_STRING, "Heading of the plan, at most 120 characters.", .default_text = DEFAULT_TITLE},
    {"append", ARG_BOOLEAN, "Put the plan behind the present one instead of replacing it.",
     .has_default = true},
    {NULL},
};

static const struct tool_field fields[] = {
    {"agent", FIELD_STRING},
    {"agent_name", FIELD_STRING},
    {"model", FIELD_STRING, .is_optional = true},
    {"plan_path", FIELD_STRING},
    {"status_path", FIELD_STRING},
    {"diff_path", FIELD_STRING},
    {"log_path", FIELD_STRING},
    {"execution_log_path", FIELD_STRING},
    {"additions", FIELD_INTEGER},
    {"deletions", FIELD_INTEGER},
    {"diff", FIELD_STRING},
    {NULL},
};

struct handoff {
    char *agent, *agent_name, *model, *title; // owned; model may be NULL
    const char *plan;
    size_t plan_len;
    char now[WALL_TIME_TEXT_SIZE];
};

static void free_handoff(struct handoff *handoff)
{
    free(handoff->agent);
    free(handoff->agent_name);
    free(handoff->model);
    free(handoff->title);
}

static int read_agent(const char *given, char **ret, struct error *err)
{
    CLEANUP_FREE char *agent = mem_strdup(given);
    for (char *at = agent; *at; at++)
        *at = (char)tolower((unsigned char)*at);
    size_t len = strlen(agent);
    if (!len || len > MAX_AGENT_CHARS || !isalnum((unsigned char)*agent) ||
        strspn(agent, "abcdefghijklmnopqrstuvwxyz0123456789._-") != len)
        return guest_tool_fail(
            err, "for example codex",
            "agent must use only letters, digits, dot, underscore and hyphen, begin with a letter "
            "or digit and have at most %d characters.",
            MAX_AGENT_CHARS);
    *ret = TAKE_PTR(agent);
    return 0;
}

static char *default_name(const char *agent)
{
    static const char *const known[][2] = {{"codex", "Codex"}, {"opencode", "OpenCode"}, {"pi", "Pi"}};
    for (size_t i = 0; i < ARRAY_LEN(known); i++)
        if (strcmp(known[i][0], agent) == 0)
            return mem_strdup(known[i][1]);
    return mem_strdup(agent);
}

static int read_args(const json_t *arguments, struct handoff *handoff, struct error *err)
{
    const json_t *plan = json_object_get(arguments, "plan");
    handoff->plan = json_string_value(plan);
    handoff->plan_len = json_string_length(plan);
    if (strlen(handoff->plan) != handoff->plan_len)
        return guest_tool_fail_type(err, "The argument 'plan' must be a string without null bytes");
    if (!handoff->plan[strspn(handoff->plan, " \t\r\n\v\f")])
        return guest_tool_fail(err, NULL, "plan must not be empty.");
    if (read_agent(json_get_text(arguments, "agent"), &handoff->agent, err) < 0)
        return -1;
    handoff->agent_name = bridge_fold_line(json_get_text(arguments, "agent_name"));
    handoff->model = bridge_fold_line(json_get_text(arguments, "model"));
    handoff->title = bridge_fold_line(json_get_text(arguments, "title"));
    if (!handoff->agent_name)
        handoff->agent_name = default_name(handoff->agent);
    if (!handoff->title)
        handoff->title = mem_strdup(DEFAULT_TITLE);
    wall_time_format(wall_time_now(), handoff->now);
    return 0;
}

static void format_plan(const struct tool_call *call, const struct handoff *handoff, struct buffer *out)
{
    size_t len = handoff->plan_len;
    while (len && isspace((unsigned char)handoff->plan[len - 1]))
        len--;
    buffer_format(out, "# %s\n\nUpdated: %s\nWorkspace: %s\nTarget agent: %s (%s)\n", handoff->title,
                  handoff->now, call->workspace->root, handoff->agent_name, handoff->agent);
    if (handoff->model)
        buffer_format(out, "Model: %s\n", handoff->model);
    buffer_append_text(out, "\n## Plan\n\n");
    buffer_append(out, handoff->plan, len);
    buffer_append_text(
        out, "\n\n## Contract\n\n- Carry out this plan in the workspace above and nothing beyond it.\n"
             "- Report progress, results and open ends in " BRIDGE_STATUS ".\n"
             "- Put the final diff into " BRIDGE_DIFF ".\n"
             "- Add one JSON object a line to " BRIDGE_EXECUTION_LOG " for what was run.\n");
}

static int read_present(int dir, struct text_file *ret, struct error *err)
{
    CLEANUP_CLOSE int fd = -1;
    if (bridge_open_file(dir, BRIDGE_PLAN, O_RDONLY, &fd, err) < 0)
        return -1;
    return fd < 0 ? 0 : text_file_read(fd, BRIDGE_PLAN, TEXT_MAX_WRITE_BYTES, ret, err);
}

static int write_plan(struct tool_call *call, const struct handoff *handoff, int dir, struct diff *ret,
                      struct error *err)
{
    CLEANUP_TEXT_FILE_LOCK struct text_file_lock lock = text_file_lock(BRIDGE_PLAN);
    CLEANUP_TEXT_FILE struct text_file before = {0};
    CLEANUP(buffer_free) struct buffer after = BUFFER_INIT(TEXT_MAX_WRITE_BYTES);
    bool is_append = json_get_bool(call->args, "append", false);
    if (read_present(dir, &before, err) < 0)
        return -1;
    if (is_append && before.has_bad_bytes)
        return guest_tool_fail(err, "write the plan without append",
                               "%s is not UTF-8: appending would change it", BRIDGE_PLAN);
    const char *old_text = before.text ? before.text : "";
    if (is_append && before.len) {
        buffer_append(&after, old_text, before.len);
        buffer_format(&after, "%s\n---\n\n", old_text[before.len - 1] == '\n' ? "" : "\n");
    }
    format_plan(call, handoff, &after);
    if (after.is_over)
        return guest_tool_fail(err, "write a shorter plan, or write it without append",
                               "plan is too large: the file would exceed %d bytes.", TEXT_MAX_WRITE_BYTES);
    if (bridge_replace(dir, BRIDGE_PLAN, buffer_text(&after), after.len, err) < 0)
        return -1;
    diff_make(BRIDGE_PLAN, old_text, before.len, after.data, after.len, ret);
    return 0;
}

static int log_handoff(const struct handoff *handoff, int dir, struct error *err)
{
    CLEANUP_JSON json_t *event = json_object();
    json_set_text(event, "ts", handoff->now);
    json_set_text(event, "event", "handoff_to_agent");
    json_set_text(event, "agent", handoff->agent);
    json_set_text(event, "agent_name", handoff->agent_name);
    json_set_text(event, "model", handoff->model);
    json_set_text(event, "title", handoff->title);
    json_set_text(event, "plan_path", BRIDGE_PLAN);
    json_set_text(event, "status_path", BRIDGE_STATUS);
    json_set_text(event, "diff_path", BRIDGE_DIFF);
    CLEANUP_FREE char *text = json_to_text(event);
    CLEANUP_FREE char *line = mem_format("%s\n", text);
    return bridge_append(dir, BRIDGE_SESSION_LOG, line, strlen(line), err) < 0 ||
                   bridge_append(dir, BRIDGE_EXECUTION_LOG, line, strlen(line), err) < 0
               ? -1
               : 0;
}

static void set_result(struct tool_call *call, const struct handoff *handoff, const struct diff *diff)
{
    json_t *to = call->structured;
    json_set_text(to, "agent", handoff->agent);
    json_set_text(to, "agent_name", handoff->agent_name);
    json_set_text(to, "model", handoff->model);
    json_set_text(to, "plan_path", BRIDGE_PLAN);
    json_set_text(to, "status_path", BRIDGE_STATUS);
    json_set_text(to, "diff_path", BRIDGE_DIFF);
    json_set_text(to, "log_path", BRIDGE_SESSION_LOG);
    json_set_text(to, "execution_log_path", BRIDGE_EXECUTION_LOG);
    json_object_set_new(to, "additions", json_integer((json_int_t)diff->additions));
    json_object_set_new(to, "deletions", json_integer((json_int_t)diff->deletions));
    json_object_set_new(to, "diff", json_from_bytes(diff->text, diff->len));
    struct buffer text = BUFFER_INIT(4 * DIFF_MAX_CHARS + 8192);
    buffer_format(
        &text,
        "# Handoff to %s\nAgent: %s\nPlan: %s\nStatus: %s\nDiff: %s\nLogs: %s, %s\nDiff stats: +%zu -%zu\n",
        handoff->agent_name, handoff->agent, BRIDGE_PLAN, BRIDGE_STATUS, BRIDGE_DIFF, BRIDGE_SESSION_LOG,
        BRIDGE_EXECUTION_LOG, diff->additions, diff->deletions);
    buffer_format(&text,
                  "\nPrompt for the agent:\n\n```\nRead %s and carry it out in this workspace. Report in %s "
                  "and put the final "
                  "diff into %s.\n```\n\n```diff\n",
                  BRIDGE_PLAN, BRIDGE_STATUS, BRIDGE_DIFF);
    buffer_append(&text, diff->text, diff->len);
    buffer_append_text(&text, "\n```");
    call->text_len = text.len;
    call->text = buffer_take_string(&text);
}

static int run(struct tool_call *call, struct error *err)
{
    CLEANUP(free_handoff) struct handoff handoff = {0};
    CLEANUP(diff_free) struct diff diff = {0};
    CLEANUP_CLOSE int dir = -1;
    if (read_args(call->args, &handoff, err) < 0 || bridge_open(call->workspace, true, &dir, err) < 0 ||
        bridge_make_files(dir, err) < 0 || write_plan(call, &handoff, dir, &diff, err) < 0 ||
        log_handoff(&handoff, dir, err) < 0)
        return -1;
    set_result(call, &handoff, &diff);
    return 0;
}

const struct tool guest_tool_handoff_to_agent = {
    .name = "handoff_to_agent",
    .title = "Hand off to agent",
    .description =
        "Leave an implementation plan for a coding agent that works on the same workspace: writes "
        ".ai-bridge/current-plan.md and the files in which the agent reports. It starts nothing; use "
        "wait_for_handoff to wait for the agent's run.",
    .args = args,
    .fields = fields,
    .hints = {0},
    .run = run,
};
