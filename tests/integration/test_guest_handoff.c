// load_skill, handoff_to_agent and wait_for_handoff of the real chat2shell-guest.
#include "controller/base/fs.h"
#include "controller/base/guest_protocol.h"
#include "controller/base/memory.h"
#include "tests/support/guest_rig.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define STATE ".ai-bridge/handoff-run-state.json"

static char *path_of(const struct guest_rig *rig, const char *path)
{
    return mem_format("%s/%s", rig->dir, path);
}

static char *get(const struct guest_rig *rig, const char *path)
{
    CLEANUP_FREE char *full = path_of(rig, path);
    struct buffer text = BUFFER_INIT(4 * 1024 * 1024);
    struct error err = ERROR_INIT;
    if (fs_read_file(full, &text, &err) < 0)
        fail_msg("%s", err.message);
    return buffer_take_string(&text);
}

static void link_to(const struct guest_rig *rig, const char *target, const char *path)
{
    CLEANUP_FREE char *full = path_of(rig, path);
    assert_int_equal(symlink(target, full), 0);
}

static json_t *parse(const char *text)
{
    json_t *value = json_loads(text, 0, NULL);
    if (!value)
        fail_msg("the test's own JSON is wrong: %s", text);
    return value;
}

static void assert_fails(struct guest_rig *rig, const char *tool, const char *args, const char *words)
{
    CLEANUP_FREE char *text = guest_rig_tool_error(rig, tool, parse(args));
    if (!strstr(text, words))
        fail_msg("%s %s: expected \"%s\" in \"%s\"", tool, args, words, text);
}

struct bad_call {
    const char *tool, *args, *words;
};

static void assert_all_fail(struct guest_rig *rig, const struct bad_call *calls, size_t count)
{
    for (size_t i = 0; i < count; i++)
        assert_fails(rig, calls[i].tool, calls[i].args, calls[i].words);
}

static void arguments_out_of_bounds_are_refused_by_name(void **state)
{
    static const struct bad_call calls[] = {
        {"load_skill", "{}", "at name"},
        {"load_skill", "{\"name\":5}", "at name"},
        {"load_skill", "{\"name\":\"a\",\"source\":\"else\"}", "at source"},
        {"load_skill", "{\"name\":\"a\",\"max_skills\":0}", "at max_skills"},
        {"load_skill", "{\"name\":\"a\",\"max_skills\":501}", "at max_skills"},
        {"load_skill", "{\"name\":\"a\",\"max_bytes\":999}", "at max_bytes"},
        {"load_skill", "{\"name\":\"a\",\"max_bytes\":100001}", "at max_bytes"},
        {"wait_for_handoff", "{\"since_iteration\":-1}", "at since_iteration"},
        {"wait_for_handoff", "{\"max_wait_seconds\":0}", "at max_wait_seconds"},
        {"wait_for_handoff", "{\"max_wait_seconds\":61}", "at max_wait_seconds"},
        {"wait_for_handoff", "{\"poll_ms\":249}", "at poll_ms"},
        {"wait_for_handoff", "{\"poll_ms\":5001}", "at poll_ms"},
        {"wait_for_handoff", "{\"include_diff\":1}", "at include_diff"},
        {"handoff_to_agent", "{}", "at plan"},
        {"handoff_to_agent", "{\"plan\":\"x\",\"append\":\"yes\"}", "at append"},
    };
    assert_all_fail(*state, calls, ARRAY_LEN(calls));
}

// --- load_skill

static void a_skill_is_found_by_name_source_and_path(void **state)
{
    struct guest_rig *rig =
        *state; // HOME is the workspace here: the first place of a name is the workspace's
    guest_rig_put_text(rig, "skills/paint/SKILL.md",
        "---\nname: 'painting'\ndescription: Paint things\n---\nUse a brush.\n");
    guest_rig_put_text(rig, ".codex/skills/deep/er/SKILL.md", "no front matter\n");
    guest_rig_put_text(rig, ".codex/plugins/cache/a/b/c/d/e/f/SKILL.md", "---\nname: painting\n---\nfrom a plugin\n");
    CLEANUP_JSON json_t *first = guest_rig_tool(rig, "load_skill", parse("{\"name\":\"painting\"}"));
    json_t *skill = json_object_get(first, "skill");
    assert_string_equal(json_get_text(skill, "source"), "workspace");
    assert_string_equal(json_get_text(skill, "path"), "$WORKSPACE/skills/paint/SKILL.md");
    assert_string_equal(json_get_text(skill, "description"), "Paint things");
    assert_non_null(strstr(json_get_text(first, "text"), "Use a brush.\n"));
    assert_int_equal(json_get_int(first, "bytes", 0), json_get_int(first, "total_bytes", 1));
    assert_false(json_get_bool(first, "truncated", true));
    CLEANUP_JSON json_t *plugin =
        guest_rig_tool(rig, "load_skill", parse("{\"name\":\"painting\",\"source\":\"plugin\"}"));
    assert_non_null(strstr(json_get_text(plugin, "text"), "from a plugin"));
    CLEANUP_JSON json_t *by_path = guest_rig_tool(
        rig, "load_skill",
        parse("{\"name\":\"painting\",\"path\":\"~/.codex/plugins/cache/a/b/c/d/e/f/SKILL.md\"}"));
    assert_string_equal(json_get_text(json_object_get(by_path, "skill"), "source"), "plugin");
    CLEANUP_JSON json_t *named_by_directory = guest_rig_tool(rig, "load_skill", parse("{\"name\":\"er\"}"));
    assert_null(json_get_text(json_object_get(named_by_directory, "skill"), "description"));
}

static void a_skill_that_is_not_there_is_named_with_similar_ones(void **state)
{
    static const struct bad_call calls[] = {
        {"load_skill", "{\"name\":\"\"}", "Error: Skill name is required."},
        {"load_skill", "{\"name\":\" \"}", "Error: Skill name is required."},
        {"load_skill", "{\"name\":\"Painting\"}", "Error: Skill not found: Painting. Similar: painting"},
        {"load_skill", "{\"name\":\"zzz\"}", "Error: Skill not found: zzz"},
        {"load_skill", "{\"name\":\"homely\",\"source\":\"workspace\"}", "Error: Skill not found: homely"},
        {"load_skill", "{\"name\":\"homely\",\"include_global_skills\":false}",
         "Error: Skill not found: homely"},
        {"load_skill", "{\"name\":\"homely\",\"path\":\"$WORKSPACE/x/SKILL.md\"}",
         "Error: Skill not found: homely"},
        {"load_skill", "{\"name\":\"painting\",\"path\":\"$WORKSPACE/../../etc/passwd\"}",
         "Error: Skill not found"},
        {"load_skill", "{\"name\":\"zoo\",\"max_skills\":1}", "Error: Skill not found: zoo"},
    };
    guest_rig_put_text(*state, "skills/paint/SKILL.md", "---\nname: painting\n---\n");
    guest_rig_put_text(*state, "skills/zoo/SKILL.md", "x");
    guest_rig_put_text(*state, ".codex/plugins/cache/homely/SKILL.md", "x");
    assert_all_fail(*state, calls, ARRAY_LEN(calls));
    json_decref(guest_rig_tool(*state, "load_skill", parse("{\"name\":\"zoo\",\"max_skills\":2}")));
}

static void a_long_skill_is_cut_at_a_byte(void **state)
{
    struct guest_rig *rig = *state;
    struct buffer text = BUFFER_INIT(10000);
    for (int i = 0; i < 999; i++)
        buffer_append_char(&text, 'x');
    buffer_append_text(&text, "\xc3\xa9 and more"); // the cut splits the letter
    guest_rig_put_text(rig, "skills/long/SKILL.md", buffer_text(&text));
    CLEANUP_JSON json_t *result =
        guest_rig_tool(rig, "load_skill", parse("{\"name\":\"long\",\"max_bytes\":1000}"));
    assert_true(json_get_bool(result, "truncated", false));
    assert_int_equal(json_get_int(result, "bytes", 0), 1000);
    assert_int_equal(json_get_int(result, "total_bytes", 0), (int)text.len);
    assert_non_null(strstr(json_get_text(result, "text"), "x\xef\xbf\xbd"));
    buffer_free(&text);
}

static void hostile_skill_directories_end_and_lead_nowhere(void **state)
{
    struct guest_rig *rig = *state;
    guest_rig_put_text(rig, "skills/good/SKILL.md", "---\nname: good\xff\n---\nbad\xff byte\n");
    guest_rig_put_text(rig, "skills/fifo/x", "");
    CLEANUP_FREE char *fifo = path_of(rig, "skills/fifo/SKILL.md");
    assert_int_equal(mkfifo(fifo, 0600), 0);
    link_to(rig, "/etc", "skills/etc");
    guest_rig_put_text(rig, "skills/outside/x", "");
    link_to(rig, "/etc/passwd", "skills/outside/SKILL.md");
    for (int i = 0; i < 60; i++) { // each leads to all: 60^3 paths
        CLEANUP_FREE char *path = mem_format("skills/loop%d", i);
        link_to(rig, ".", path);
    }
    assert_fails(rig, "load_skill", "{\"name\":\"outside\"}", "Error: Skill not found");
    assert_fails(rig, "load_skill", "{\"name\":\"fifo\"}", "Error: Skill not found");
    CLEANUP_JSON json_t *result = guest_rig_tool(rig, "load_skill", parse("{\"name\":\"good\xef\xbf\xbd\"}"));
    assert_non_null(strstr(json_get_text(result, "text"), "bad\xef\xbf\xbd byte"));
}

// --- handoff_to_agent

static void a_plan_is_written_logged_and_appended(void **state)
{
    struct guest_rig *rig = *state;
    CLEANUP_JSON json_t *first = guest_rig_tool(
        rig, "handoff_to_agent",
        parse("{\"plan\":\"1. Do it\\n\",\"agent\":\"OpenCode\",\"model\":\"m\\n1\",\"title\":\"  A   title "
              "\"}"));
    assert_string_equal(json_get_text(first, "agent"), "opencode");
    assert_string_equal(json_get_text(first, "agent_name"), "OpenCode");
    assert_string_equal(json_get_text(first, "model"), "m 1");
    assert_string_equal(json_get_text(first, "plan_path"), ".ai-bridge/current-plan.md");
    CLEANUP_FREE char *plan = get(rig, ".ai-bridge/current-plan.md");
    assert_ptr_equal(strstr(plan, "# A title\n"), plan);
    assert_non_null(strstr(plan, "\nTarget agent: OpenCode (opencode)\nModel: m 1\n"));
    assert_non_null(strstr(plan, "\n## Plan\n\n1. Do it\n"));
    static const char *const files[] = {"README.md",       "agent-status.md", "implementation-diff.patch",
                                        "codex-status.md", "decisions.md",    "open-questions.md"};
    for (size_t i = 0; i < ARRAY_LEN(files); i++) {
        CLEANUP_FREE char *path = mem_format(".ai-bridge/%s", files[i]);
        free(get(rig, path));
    }
    guest_rig_put_text(rig, ".ai-bridge/decisions.md", "mine\n");
    CLEANUP_JSON json_t *second =
        guest_rig_tool(rig, "handoff_to_agent", parse("{\"plan\":\"2. Go on\",\"append\":true}"));
    assert_int_equal(json_get_int(second, "deletions", -1), 0);
    assert_string_equal(json_get_text(second, "agent_name"), "custom");
    CLEANUP_FREE char *both = get(rig, ".ai-bridge/current-plan.md");
    assert_ptr_equal(strstr(both, plan), both);
    assert_non_null(strstr(both, "\n---\n\n# Agent implementation plan\n"));
    CLEANUP_FREE char *decisions = get(rig, ".ai-bridge/decisions.md");
    assert_string_equal(decisions, "mine\n");
}

static void both_logs_get_one_line_a_handoff(void **state)
{
    struct guest_rig *rig = *state;
    static const char *const logs[] = {".ai-bridge/execution-log.jsonl", ".ai-bridge/session-log.jsonl"};
    for (int i = 0; i < 3; i++)
        json_decref(guest_rig_tool(rig, "handoff_to_agent", parse("{\"plan\":\"x\",\"agent\":\"pi\"}")));
    for (size_t i = 0; i < ARRAY_LEN(logs); i++) {
        CLEANUP_FREE char *log = get(rig, logs[i]);
        int lines = 0;
        for (char *line = log, *end; (end = strchr(line, '\n')); line = end + 1, lines++) {
            *end = '\0';
            CLEANUP_JSON json_t *event = parse(line);
            assert_string_equal(json_get_text(event, "event"), "handoff_to_agent");
            assert_string_equal(json_get_text(event, "agent_name"), "Pi");
            assert_null(json_object_get(event, "model"));
        }
        assert_int_equal(lines, 3);
    }
}

static void secret_looking_plans_are_kept_byte_for_byte(void **state)
{
    json_decref(guest_rig_tool(*state, "handoff_to_agent",
                               parse("{\"plan\":\"API_KEY=sk-aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\"}")));
    CLEANUP_FREE char *plan = get(*state, ".ai-bridge/current-plan.md");
    assert_non_null(strstr(plan, "API_KEY=sk-aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\n"));
}

static void a_handoff_without_plan_or_with_a_strange_agent_is_refused(void **state)
{
    static const struct bad_call calls[] = {
        {"handoff_to_agent", "{\"plan\":\"\"}", "CodexProError: plan must not be empty."},
        {"handoff_to_agent", "{\"plan\":\" \\n\\t\"}", "CodexProError: plan must not be empty."},
        {"handoff_to_agent", "{\"plan\":\"x\",\"agent\":\"\"}", "CodexProError: agent must use only"},
        {"handoff_to_agent", "{\"plan\":\"x\",\"agent\":\"-x\"}", "CodexProError: agent must use only"},
        {"handoff_to_agent", "{\"plan\":\"x\",\"agent\":\"a b\"}", "CodexProError: agent must use only"},
        {"handoff_to_agent", "{\"plan\":\"x\",\"agent\":\"../x\"}", "CodexProError: agent must use only"},
        {"handoff_to_agent", "{\"plan\":\"x\",\"agent\":\"\xc3\xa9\"}", "CodexProError: agent must use only"},
        {"handoff_to_agent",
         "{\"plan\":\"x\",\"agent\":\"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\"}",
         "CodexProError: agent must use only"},
    };
    struct guest_rig *rig = *state;
    assert_all_fail(rig, calls, ARRAY_LEN(calls));
    json_t *long_plan = json_object();
    CLEANUP_FREE char *text = mem_alloc(1000001);
    memset(text, 'x', 1000000);
    json_set_text(long_plan, "plan", text);
    CLEANUP_FREE char *words = guest_rig_tool_error(rig, "handoff_to_agent", long_plan);
    assert_non_null(strstr(words, "plan is too large"));
    CLEANUP_FREE char *plan = get(rig, ".ai-bridge/current-plan.md");
    assert_non_null(strstr(plan, "No plan yet."));
}

static void symlinks_in_the_bridge_are_refused_and_their_targets_untouched(void **state)
{
    struct guest_rig *rig = *state;
    static const char *const names[] = {"current-plan.md", "execution-log.jsonl", "session-log.jsonl",
                                        "README.md"};
    guest_rig_put_text(rig, "target", "precious\n");
    guest_rig_put_text(rig, ".ai-bridge/x", "");
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        CLEANUP_FREE char *path = mem_format(".ai-bridge/%s", names[i]);
        CLEANUP_FREE char *full = path_of(rig, path);
        unlink(full);
        link_to(rig, "../target", path);
        assert_fails(rig, "handoff_to_agent", "{\"plan\":\"x\"}", "Refusing to use a symlink in .ai-bridge");
        assert_int_equal(unlink(full), 0);
    }
    CLEANUP_FREE char *log = path_of(rig, ".ai-bridge/session-log.jsonl");
    unlink(log);
    assert_int_equal(mkfifo(log, 0600), 0);
    assert_fails(rig, "handoff_to_agent", "{\"plan\":\"x\"}", "Not a file: .ai-bridge/session-log.jsonl");
    CLEANUP_FREE char *text = get(rig, "target");
    assert_string_equal(text, "precious\n");
}

static void a_bridge_that_is_a_link_or_a_file_is_refused(void **state)
{
    struct guest_rig *rig = *state;
    CLEANUP_FREE char *bridge = path_of(rig, ".ai-bridge");
    guest_rig_put_text(rig, "other/x", "");
    link_to(rig, "other", ".ai-bridge");
    assert_fails(rig, "handoff_to_agent", "{\"plan\":\"x\"}",
                 "Refusing to use a symlink in .ai-bridge: .ai-bridge");
    assert_int_equal(unlink(bridge), 0);
    guest_rig_put_text(rig, ".ai-bridge", "a file");
    assert_fails(rig, "handoff_to_agent", "{\"plan\":\"x\"}", "Error: ENOTDIR: ");
}

// --- wait_for_handoff

static json_t *wait_now(struct guest_rig *rig, const char *args)
{
    json_t *given = parse(args);
    json_object_set_new(given, "max_wait_seconds", json_integer(1));
    return guest_rig_tool(rig, "wait_for_handoff", given);
}

static void an_ended_run_is_told_at_once_with_its_reports(void **state)
{
    struct guest_rig *rig = *state;
    guest_rig_put_text(rig, STATE,
        "{\"state\":\"completed\",\"iteration\":3,\"plan_hash\":\"h\",\"exit_code\":0,\"timed_out\":false,"
        "\"started_at\":\"t\","
        "\"finished_at\":5,\"executor\":\"e\",\"model\":null,\"status_file\":\"../"
        "secret\",\"diff_file\":\"sub/my.diff\","
        "\"tests_file\":\".ai-bridge/tests.txt\",\"log_file\":\"/etc/passwd\"}");
    guest_rig_put_text(rig, ".ai-bridge/agent-status.md", "done\n");
    guest_rig_put_text(rig, ".ai-bridge/sub/my.diff", "+x\n");
    guest_rig_put_text(rig, ".ai-bridge/tests.txt", "3 passed\n");
    guest_rig_put_text(rig, ".ai-bridge/execution-log.jsonl",
        "1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11\n12\n13\n14\n15\n16\n17\n18\n19\n20\n21\n22\n");
    CLEANUP_JSON json_t *result =
        guest_rig_tool(rig, "wait_for_handoff",
                       parse("{\"max_wait_seconds\":60,\"plan_hash\":\"h\",\"since_iteration\":2}"));
    static const char *const texts[][2] = {
        {"state", "completed"},
        {"run_state", "completed"},
        {"state_file", STATE},
        {"plan_hash", "h"},
        {"expected_plan_hash", "h"},
        {"started_at", "t"},
        {"executor", "e"},
        {"status_file", ".ai-bridge/agent-status.md"},
        {"status_excerpt", "done\n"},
        {"diff_file", ".ai-bridge/sub/my.diff"},
        {"diff_excerpt", "+x\n"},
        {"log_file", ".ai-bridge/execution-log.jsonl"},
        {"log_excerpt", "3\n4\n5\n6\n7\n8\n9\n10\n11\n12\n13\n14\n15\n16\n17\n18\n19\n20\n21\n22\n"},
        {"tests_file", ".ai-bridge/tests.txt"},
        {"tests_excerpt", "3 passed\n"},
    };
    for (size_t i = 0; i < ARRAY_LEN(texts); i++)
        assert_string_equal(json_get_text(result, texts[i][0]), texts[i][1]);
    assert_true(json_get_bool(result, "awaited_completed", false) &&
                json_get_bool(result, "awaited_terminal", false) &&
                json_get_bool(result, "succeeded", false));
    assert_false(json_get_bool(result, "plan_hash_mismatch", true));
    assert_int_equal(json_get_int(result, "finished_at", 0), 5);
    assert_null(json_object_get(result, "next_poll_after_seconds"));
}

static void reports_are_cut_and_left_out_on_request(void **state)
{
    struct guest_rig *rig = *state;
    struct buffer text = BUFFER_INIT(100000);
    for (int i = 0; i < 13000; i++)
        buffer_append_text(&text, "\xc3\xa9");
    guest_rig_put_text(rig, STATE, "{\"state\":\"failed\"}");
    guest_rig_put_text(rig, ".ai-bridge/agent-status.md", buffer_text(&text));
    guest_rig_put_text(rig, ".ai-bridge/implementation-diff.patch", buffer_text(&text));
    guest_rig_put_text(rig, ".ai-bridge/execution-log.jsonl", buffer_text(&text));
    CLEANUP_JSON json_t *all = wait_now(rig, "{}");
    assert_int_equal(strlen(json_get_text(all, "status_excerpt")), 12000);
    assert_int_equal(strlen(json_get_text(all, "diff_excerpt")), 24000);
    assert_int_equal(strlen(json_get_text(all, "log_excerpt")), 12000);
    assert_false(json_get_bool(all, "awaited_completed", true) || json_get_bool(all, "succeeded", true));
    CLEANUP_JSON json_t *none =
        wait_now(rig, "{\"include_diff\":false,\"include_log_excerpt\":false,\"include_tests\":false}");
    assert_null(json_object_get(none, "diff_excerpt"));
    assert_null(json_object_get(none, "log_excerpt"));
    assert_string_equal(json_get_text(none, "diff_file"), ".ai-bridge/implementation-diff.patch");
    buffer_free(&text);
}

static void what_is_not_awaited_is_waited_out(void **state)
{
    struct guest_rig *rig = *state;
    static const struct {
        const char *file, *args, *shown;
    } cases[] = {
        {NULL, "{}", "unknown"},
        {"{\"state\":\"completed\"", "{}", "unknown"},
        {"[\"state\"]", "{}", "unknown"},
        {"{\"state\":7}", "{}", "unknown"},
        {"{\"state\":\"queued\"}", "{}", "queued"},
        {"{\"state\":\"running\"}", "{\"poll_ms\":2500}", "running"},
        {"{\"state\":\"completed\",\"plan_hash\":\"old\"}", "{\"plan_hash\":\"new\"}", "running"},
        {"{\"state\":\"completed\",\"iteration\":4}", "{\"since_iteration\":4}", "running"},
        {"{\"state\":\"completed\"}", "{\"since_iteration\":0}", "running"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        if (cases[i].file)
            guest_rig_put_text(rig, STATE, cases[i].file);
        CLEANUP_JSON json_t *result = wait_now(rig, cases[i].args);
        if (strcmp(json_get_text(result, "state"), cases[i].shown) != 0)
            fail_msg("case %zu: %s", i, json_get_text(result, "state"));
        assert_false(json_get_bool(result, "awaited_terminal", true));
        assert_true(json_get_int(result, "next_poll_after_seconds", 0) >= 1);
        assert_null(json_object_get(result, "status_file"));
        bool asks_hash = strstr(cases[i].args, "plan_hash") != NULL;
        assert_int_equal(json_get_bool(result, "plan_hash_mismatch", false), asks_hash);
        assert_int_equal(json_object_get(result, "plan_hash_mismatch") != NULL, asks_hash);
    }
}

static int64_t begin_wait(struct guest_rig *rig, const char *args)
{
    int64_t id = guest_rig_send(rig, "tools/call",
                                json_pack("{s:s s:o}", "name", "wait_for_handoff", "arguments", parse(args)));
    json_decref(guest_rig_tool(rig, "tree", json_object())); // others go through meanwhile
    return id;
}

static void assert_ended(struct guest_rig *rig, int64_t id, const char *word)
{
    CLEANUP_JSON json_t *answer = guest_rig_wait(rig, id);
    json_t *result = json_object_get(json_object_get(answer, "result"), "structuredContent");
    assert_string_equal(json_get_text(result, "state"), word);
}

static void a_wait_ends_when_the_state_changes(void **state)
{
    struct guest_rig *rig = *state;
    CLEANUP_FREE char *temp = path_of(rig, ".ai-bridge/temp");
    CLEANUP_FREE char *full = path_of(rig, STATE);
    int64_t id = begin_wait(rig, "{\"max_wait_seconds\":60}");
    guest_rig_put_text(rig, STATE, "{\"state\":\"running\"}"); // the directory itself is new
    json_decref(guest_rig_tool(rig, "tree", json_object()));
    guest_rig_put_text(rig, STATE, "{\"state\":\"timed_out\"}"); // written in place
    assert_ended(rig, id, "timed_out");
    guest_rig_put_text(rig, STATE, "{\"state\":\"running\"}");
    id = begin_wait(rig, "{\"max_wait_seconds\":60}");
    guest_rig_put_text(rig, ".ai-bridge/temp", "{\"state\":\"completed\"}");
    assert_int_equal(rename(temp, full), 0); // put in place at once
    assert_ended(rig, id, "completed");
}

static void a_wait_survives_the_directory_being_moved_away(void **state)
{
    struct guest_rig *rig = *state;
    CLEANUP_FREE char *bridge = path_of(rig, ".ai-bridge");
    CLEANUP_FREE char *away = path_of(rig, "away");
    guest_rig_put_text(rig, STATE, "{\"state\":\"running\"}");
    int64_t id = begin_wait(rig, "{\"max_wait_seconds\":60}");
    assert_int_equal(rename(bridge, away), 0);
    json_decref(guest_rig_tool(rig, "tree", json_object()));
    guest_rig_put_text(rig, STATE, "{\"state\":\"failed\"}");
    assert_ended(rig, id, "failed");
}

static void a_cancelled_wait_is_answered_and_many_waits_hold_no_worker(void **state)
{
    struct guest_rig *rig = *state;
    int64_t ids[100];
    for (size_t i = 0; i < ARRAY_LEN(ids); i++)
        ids[i] = begin_wait(rig, "{\"max_wait_seconds\":60}");
    for (size_t i = 0; i < ARRAY_LEN(ids); i++) {
        CLEANUP_FREE char *cancel = mem_format(
            "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":{\"requestId\":%lld}}\n",
            (long long)ids[i]);
        guest_rig_send_text(rig, cancel, strlen(cancel));
        CLEANUP_JSON json_t *answer = guest_rig_wait(rig, ids[i]);
        assert_int_equal(json_get_int(json_object_get(answer, "error"), "code", 0), GUEST_ERROR_CANCELLED);
    }
}

static void the_end_of_input_ends_a_wait(void **state)
{
    (void)state;
    struct guest_rig *rig = mem_alloc(sizeof(*rig));
    guest_rig_start(rig);
    int64_t id = begin_wait(rig, "{\"max_wait_seconds\":60}");
    close(rig->in);
    rig->in = -1;
    CLEANUP_JSON json_t *answer = guest_rig_wait(rig, id);
    assert_int_equal(json_get_int(json_object_get(answer, "error"), "code", 0), GUEST_ERROR_CANCELLED);
    assert_int_equal(guest_rig_stop(rig), 0);
    free(rig);
}

static void a_hostile_state_counts_as_none(void **state)
{
    struct guest_rig *rig = *state;
    CLEANUP_FREE char *full = path_of(rig, STATE);
    guest_rig_put_text(rig, "outside.json", "{\"state\":\"completed\"}");
    guest_rig_put_text(rig, ".ai-bridge/x", "");
    link_to(rig, "../outside.json", STATE);
    CLEANUP_JSON json_t *linked = wait_now(rig, "{}");
    assert_string_equal(json_get_text(linked, "state"), "unknown");
    assert_int_equal(unlink(full) | mkfifo(full, 0600), 0);
    CLEANUP_JSON json_t *fifo = wait_now(rig, "{}");
    assert_string_equal(json_get_text(fifo, "state"), "unknown");
    assert_int_equal(unlink(full), 0);
    CLEANUP_FREE char *huge = mem_alloc(200001);
    memset(huge, '[', 200000);
    guest_rig_put_text(rig, STATE, huge);
    CLEANUP_JSON json_t *large = wait_now(rig, "{}");
    assert_string_equal(json_get_text(large, "state"), "unknown");
    guest_rig_put_text(rig, STATE,
        "{\"state\":\"completed\",\"status_file\":\"fifo\",\"diff_file\":\"out\",\"log_file\":\"\",\"tests_"
        "file\":\"..\"}");
    CLEANUP_FREE char *pipe = path_of(rig, ".ai-bridge/fifo");
    assert_int_equal(mkfifo(pipe, 0600), 0);
    link_to(rig, "/etc/passwd", ".ai-bridge/out");
    CLEANUP_JSON json_t *named = wait_now(rig, "{}");
    assert_string_equal(json_get_text(named, "status_file"), ".ai-bridge/fifo");
    assert_null(json_object_get(named, "status_excerpt"));
    assert_null(json_object_get(named, "diff_excerpt"));
    assert_null(json_object_get(named, "tests_file"));
}

#define WITH_GUEST(test) cmocka_unit_test_setup_teardown(test, guest_rig_setup, guest_rig_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_GUEST(arguments_out_of_bounds_are_refused_by_name),
        WITH_GUEST(a_skill_is_found_by_name_source_and_path),
        WITH_GUEST(a_skill_that_is_not_there_is_named_with_similar_ones),
        WITH_GUEST(a_long_skill_is_cut_at_a_byte),
        WITH_GUEST(hostile_skill_directories_end_and_lead_nowhere),
        WITH_GUEST(a_plan_is_written_logged_and_appended),
        WITH_GUEST(both_logs_get_one_line_a_handoff),
        WITH_GUEST(secret_looking_plans_are_kept_byte_for_byte),
        WITH_GUEST(a_handoff_without_plan_or_with_a_strange_agent_is_refused),
        WITH_GUEST(symlinks_in_the_bridge_are_refused_and_their_targets_untouched),
        WITH_GUEST(a_bridge_that_is_a_link_or_a_file_is_refused),
        WITH_GUEST(an_ended_run_is_told_at_once_with_its_reports),
        WITH_GUEST(reports_are_cut_and_left_out_on_request),
        WITH_GUEST(what_is_not_awaited_is_waited_out),
        WITH_GUEST(a_wait_ends_when_the_state_changes),
        WITH_GUEST(a_wait_survives_the_directory_being_moved_away),
        WITH_GUEST(a_cancelled_wait_is_answered_and_many_waits_hold_no_worker),
        WITH_GUEST(a_hostile_state_counts_as_none),
        cmocka_unit_test(the_end_of_input_ends_a_wait),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
