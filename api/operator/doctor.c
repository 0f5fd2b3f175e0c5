// What is wrong on this host, seen by the daemon.
#include "api/operator/internal.h"
#include "controller/base/memory.h"

static json_t *finding_to_json(const struct finding *finding)
{
    static const char *const levels[] = {
        [FINDING_PASS] = "pass", [FINDING_WARN] = "warn", [FINDING_FAIL] = "fail"};
    json_t *json = json_pack("{s:s, s:o, s:o}", "level", levels[finding->level], "check",
                             json_from_text(finding->check), "what", json_from_text(finding->what));
    if (finding->fix)
        json_object_set_new(json, "fix", json_from_text(finding->fix));
    return json;
}

static json_t *own_finding(const char *level, const char *check, const char *what, const char *fix)
{
    json_t *json = json_pack("{s:s, s:s, s:o}", "level", level, "check", check, "what", json_from_text(what));
    json_set_text(json, "fix", fix);
    return json;
}

static json_t *port_finding(const struct call *call)
{
    int port = atomic_load(&call->server->mcp_port);
    const struct config *config = call->world->config;
    if (!port)
        return own_finding("fail", "port", "the MCP endpoint is not served",
                           "look into the daemon's log and start it again");
    CLEANUP_FREE char *what = mem_format("MCP is served on http://%s:%d/mcp", config->host, port);
    return own_finding("pass", "port", what, NULL);
}

static void on_findings(void *arg, int result, const struct finding_list *findings, const struct error *err)
{
    struct call *call = arg;
    if (result < 0) {
        operator_fail(call, err);
        return;
    }
    json_t *list = json_array();
    for (size_t i = 0; i < findings->count; i++)
        json_array_append_new(list, finding_to_json(&findings->items[i]));
    json_array_append_new(list, port_finding(call));
    json_array_append_new(list, own_finding("pass", "operator socket", "this answer came over it", NULL));
    operator_answer(call, 200, json_pack("{s:o}", "findings", list));
}

void doctor_show(struct call *call)
{
    request_findings(call->world, on_findings, call);
}
