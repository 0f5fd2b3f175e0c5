// Readiness: every look is read-only, all run at once, each with its own deadline. What is missing is told with the command that
// the operator may run; nothing is changed here.
#include "controller/base/cleanup.h"
#include "controller/base/memory.h"
#include "reconcilers/drivers/sbx/sbx.h"
#include <string.h>
#include <sys/stat.h>

#define LOOK_DEADLINE_MS 25000
#define SETTING_SSH_AGENT "ssh.agentForwardingEnabled"

struct look {
    const struct sbx *sbx;
    struct finding_list found;
};
typedef void (*judge_fn)(struct look *look, const struct call_result *result);

static void add_failure(struct look *look, const char *check, const struct call_result *result)
{
    struct error err = ERROR_INIT;
    sbx_call_fail(result, &err);
    finding_add(&look->found, FINDING_FAIL, check, err.hint[0] ? err.hint : NULL, "%s", err.message);
}

static bool has_succeeded(const struct call_result *result)
{
    return sbx_call_judge(result, NULL) == 0;
}

// ---- what must be there ------------------------------------------------------------------------------------------------

static void judge_version(struct look *look, const struct call_result *result)
{
    struct version version, other;
    const char *rest = "";
    char text[VERSION_TEXT_SIZE], other_text[VERSION_TEXT_SIZE];
    struct error err = ERROR_INIT;
    if (!has_succeeded(result)) {
        add_failure(look, "sbx", result);
        return;
    }
    if (sbx_version_parse(result->printed, &version, &rest) < 0) {
        finding_add(&look->found, FINDING_FAIL, "sbx", "run: sbx version", "`sbx version` tells no version");
        return;
    }
    sbx_version_format(&version, text);
    if (sbx_version_check(&version, &err) < 0)
        finding_add(&look->found, FINDING_FAIL, "sbx", err.hint, "%s", err.message);
    else
        finding_add(&look->found, FINDING_PASS, "sbx", NULL, "sbx %s answers", text);
    if (strstr(rest, "Server") && sbx_version_parse(rest, &other, NULL) == 0 && sbx_version_compare(&version, &other) != 0) {
        sbx_version_format(&other, other_text);
        finding_add(&look->found, FINDING_WARN, "sbx daemon version", "run: sbx daemon restart (it stops every running sandbox)",
                    "sbx is %s and its daemon still %s", text, other_text);
    }
}

static void judge_daemon(struct look *look, const struct call_result *result)
{
    if (has_succeeded(result) && strcasestr(result->printed, "running") && !strcasestr(result->printed, "not running"))
        finding_add(&look->found, FINDING_PASS, "sbx daemon", NULL, "the daemon of Docker Sandboxes runs");
    else if (result->end == CALL_EXITED) // the next command starts it
        finding_add(&look->found, FINDING_WARN, "sbx daemon", "run: sbx daemon start -d", "the daemon of Docker Sandboxes does not run; a command starts it");
    else if (result->end != CALL_NOT_STARTED)
        add_failure(look, "sbx daemon", result);
}

static void judge_login(struct look *look, const struct call_result *result)
{
    struct error err = ERROR_INIT;
    struct sandbox_row_list rows = {0};
    CLEANUP_JSON json_t *json = NULL;
    if (result->end == CALL_NOT_STARTED)
        return; // said already
    if (sbx_call_json(result, &json, &err) == 0 && sbx_sandbox_rows_read(json, &rows, &err) == 0)
        finding_add(&look->found, FINDING_PASS, "sbx login", NULL, "`sbx ls` answers: somebody is signed in");
    else
        finding_add(&look->found, FINDING_FAIL, "sbx login", err.hint[0] ? err.hint : "run: sbx login", "%s", err.message);
    sbx_sandbox_rows_free(&rows);
}

static void judge_templates(struct look *look, const struct call_result *result)
{
    CLEANUP_JSON json_t *json = NULL;
    if (result->end == CALL_NOT_STARTED)
        return;
    if (sbx_call_json(result, &json, NULL) < 0)
        add_failure(look, "template", result);
    else if (sbx_images_have(json, SBX_TEMPLATE_CODEXPRO))
        finding_add(&look->found, FINDING_PASS, "template", NULL, "the template " SBX_TEMPLATE_CODEXPRO " is there");
    else
        finding_add(&look->found, FINDING_FAIL, "template", "run: chat2shell setup",
                    "the template " SBX_TEMPLATE_CODEXPRO " is missing; without it only Sandboxes with session: guest start");
}

static void judge_policy(struct look *look, const struct call_result *result)
{
    CLEANUP_JSON json_t *json = NULL;
    struct error err = ERROR_INIT;
    if (result->end == CALL_NOT_STARTED)
        return;
    if (sbx_call_json(result, &json, &err) < 0)
        finding_add(&look->found, FINDING_FAIL, "network policy", err.hint[0] ? err.hint : "run: sbx policy init balanced", "%s", err.message);
    else if (json_array_size(json_is_array(json) ? json : json_object_get(json, "rules")) > 0)
        finding_add(&look->found, FINDING_PASS, "network policy", NULL, "the network policy is initialized");
    else
        finding_add(&look->found, FINDING_WARN, "network policy", "run: sbx policy init balanced (or allow-all, deny-all)",
                    "the network policy has no rules: it was never initialized, or everything is denied");
}

// ---- what the operator should know -------------------------------------------------------------------------------------

static void judge_ssh_agent(struct look *look, const struct call_result *result)
{
    if (!has_succeeded(result))
        return; // an sbx without the setting forwards none
    if (strstr(result->printed, "true"))
        finding_add(&look->found, FINDING_WARN, "ssh agent", "run: sbx settings set " SETTING_SSH_AGENT " false, then: sbx daemon restart (it stops every running sandbox)",
                    "sandboxes may use the SSH agent of this user: they can sign in wherever its keys are accepted");
    else
        finding_add(&look->found, FINDING_PASS, "ssh agent", NULL, "the SSH agent is not forwarded into sandboxes");
}

static size_t count_entries(const json_t *json)
{
    static const char *const keys[] = {"secrets", "servers", "items"};
    if (json_is_array(json))
        return json_array_size(json);
    for (size_t i = 0; i < ARRAY_LEN(keys); i++)
        if (json_is_array(json_object_get(json, keys[i])))
            return json_array_size(json_object_get(json, keys[i]));
    return json_object_size(json);
}

static size_t count_printed(const struct call_result *result)
{
    CLEANUP_JSON json_t *json = NULL;
    return sbx_json_find(result->printed, result->printed_len, &json, NULL) == 0 ? count_entries(json) : 0;
}

static void judge_secrets(struct look *look, const struct call_result *result)
{
    if (has_succeeded(result) && count_printed(result) > 0)
        finding_add(&look->found, FINDING_WARN, "secrets", "look at: sbx secret ls", "Docker Sandboxes holds %zu secrets; those that are global reach every sandbox",
                    count_printed(result));
    else if (has_succeeded(result))
        finding_add(&look->found, FINDING_PASS, "secrets", NULL, "Docker Sandboxes holds no secrets");
}

static void judge_mcp(struct look *look, const struct call_result *result)
{
    if (has_succeeded(result) && count_printed(result) > 0)
        finding_add(&look->found, FINDING_WARN, "mcp gateway", "look at: sbx mcp ls",
                    "Docker's MCP gateway has %zu servers, and sandboxes reach it whatever the network policy says", count_printed(result));
    else if (has_succeeded(result))
        finding_add(&look->found, FINDING_PASS, "mcp gateway", NULL, "Docker's MCP gateway has no servers");
}

// ---- for auto ----------------------------------------------------------------------------------------------------------

#define CHECK_DEADLINE_MS 15000

struct check {
    int (*judge)(const struct call_result *result, struct error *err);
    int result;
    struct error err;
};

static int check_version(const struct call_result *result, struct error *err)
{
    struct version version;
    if (sbx_call_judge(result, err) < 0)
        return -1;
    if (sbx_version_parse(result->printed, &version, NULL) < 0)
        return error_set(err, ERROR_UNAVAILABLE, "run: sbx version", "`sbx version` tells no version");
    return sbx_version_check(&version, err);
}

static int check_list(const struct call_result *result, struct error *err)
{
    struct sandbox_row_list rows = {0};
    CLEANUP_JSON json_t *json = NULL;
    if (sbx_call_json(result, &json, err) < 0 || sbx_sandbox_rows_read(json, &rows, err) < 0)
        return -1;
    sbx_sandbox_rows_free(&rows);
    return 0;
}

static void on_checked(void *arg, const struct call_result *result)
{
    struct check *check = arg;
    check->result = check->judge(result, &check->err);
}

int driver_sbx_check(struct driver *driver, struct error *err)
{
    struct check checks[] = {{.judge = check_version}, {.judge = check_list}};
    void *args[] = {&checks[0], &checks[1]};
    struct call_options options[] = {{.deadline_ms = CHECK_DEADLINE_MS, .is_look = true}, {.deadline_ms = CHECK_DEADLINE_MS, .is_look = true}};
    sbx_words_add(&options[0].words, "version");
    sbx_words_add(&options[1].words, "ls");
    sbx_words_add(&options[1].words, "--json");
    sbx_call_wait_all(sbx_of(driver), options, ARRAY_LEN(checks), on_checked, args);
    for (size_t i = 0; i < ARRAY_LEN(checks); i++)
        if (checks[i].result < 0)
            return error_copy(err, &checks[i].err);
    return 0;
}

// ---- all of them -------------------------------------------------------------------------------------------------------

static const struct question {
    const char *words[5];
    judge_fn judge;
} questions[] = {
    {{"version"}, judge_version},
    {{"daemon", "status"}, judge_daemon},
    {{"ls", "--json"}, judge_login},
    {{"template", "ls", "--json"}, judge_templates},
    {{"policy", "ls", "--json"}, judge_policy},
    {{"settings", "get", SETTING_SSH_AGENT}, judge_ssh_agent},
    {{"secret", "ls", "--json"}, judge_secrets},
    {{"mcp", "ls", "--json"}, judge_mcp},
};
struct asked {
    const struct question *question;
    struct look look;
};

static void on_answer(void *arg, const struct call_result *result)
{
    struct asked *asked = arg;
    asked->question->judge(&asked->look, result);
}

static void probe_kvm(struct finding_list *ret)
{
    struct stat info;
    if (stat("/dev/kvm", &info) < 0)
        finding_add(ret, FINDING_FAIL, "kvm", "enable virtualization in the firmware, or nested virtualization; then: sudo modprobe kvm",
                    "/dev/kvm is not there: this machine runs no microVMs");
    else if (access("/dev/kvm", R_OK | W_OK) < 0)
        finding_add(ret, FINDING_FAIL, "kvm", "run: sudo usermod -aG kvm $USER, and sign in to the system again", "/dev/kvm cannot be opened by this user");
    else
        finding_add(ret, FINDING_PASS, "kvm", NULL, "/dev/kvm can be used");
}

static void probe_guest(const struct sbx *sbx, struct finding_list *ret)
{
    CLEANUP_FREE char *path = mem_format("%s/chat2shell-guest", sbx->program_dir);
    bool is_there = access(path, X_OK) == 0;
    finding_add(ret, is_there ? FINDING_PASS : FINDING_FAIL, "chat2shell-guest", is_there ? NULL : "build or install chat2shell whole",
                is_there ? "%s can be copied into sandboxes" : "%s is missing or cannot be run", path);
}

static void move_findings(struct finding_list *to, struct finding_list *from)
{
    for (size_t i = 0; i < from->count; i++)
        finding_add(to, from->items[i].level, from->items[i].check, from->items[i].fix, "%s", from->items[i].what);
    finding_list_free(from);
}

void sbx_findings_probe(struct driver *driver, struct finding_list *ret)
{
    struct sbx *sbx = sbx_of(driver);
    struct call_options options[ARRAY_LEN(questions)] = {0};
    struct asked asked[ARRAY_LEN(questions)] = {0};
    void *args[ARRAY_LEN(questions)];
    for (size_t i = 0; i < ARRAY_LEN(questions); i++) {
        options[i].deadline_ms = LOOK_DEADLINE_MS;
        options[i].is_look = true;
        sbx_words_add_all(&options[i].words, questions[i].words);
        asked[i] = (struct asked){&questions[i], {.sbx = sbx}};
        args[i] = &asked[i];
    }
    sbx_call_wait_all(sbx, options, ARRAY_LEN(questions), on_answer, args);
    bool is_cut_short = sbx_call_is_interrupted(sbx);
    for (size_t i = 0; i < ARRAY_LEN(questions); i++)
        if (is_cut_short)
            finding_list_free(&asked[i].look.found);
        else
            move_findings(ret, &asked[i].look.found);
    if (is_cut_short)
        finding_add(ret, FINDING_WARN, "sbx", NULL, "looking was cut short: chat2shell stops");
    probe_kvm(ret);
    probe_guest(sbx, ret);
}
