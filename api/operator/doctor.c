// What is wrong on this host, seen by the daemon.
#include "api/operator/internal.h"
#include "api/operator/listener.h"
#include "controller/base/memory.h"
#include <string.h>

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

static json_t *listener_finding(const struct call *call)
{
    struct listener_view view;
    listener_look(call->server->listener, &view);
    if (!view.is_on)
        return own_finding("pass", "kubernetes listener", "off; chat2shell kubeconfig opens it", NULL);
    if (!view.port)
        return own_finding("fail", "kubernetes listener", view.trouble.message, view.trouble.hint[0] ? view.trouble.hint : "chat2shell kubeconfig tries again");
    CLEANUP_FREE char *what = mem_format("https://" LISTENER_HOST ":%d, for who has its token; chat2shell kubeconfig --off closes it", view.port);
    return own_finding("pass", "kubernetes listener", what, NULL);
}

static json_t *tunnel_finding(const json_t *tunnel)
{
    static const struct {
        const char *state, *level, *fix;
    } rows[] = {
        {"off", "pass", NULL},
        {"ready", "pass", NULL},
        {"starting", "warn", "wait; a new tunnel takes half a minute"},
        {"not ready", "warn", "see to what it says; chat2shell status asks again"},
        {"ended", "fail", "see to what it says, or run its program by hand: it prints why it ends"},
    };
    const char *state = json_get_text(tunnel, "state"), *message = json_get_text(tunnel, "message");
    size_t row = 0;
    while (row + 1 < ARRAY_LEN(rows) && strcmp(rows[row].state, state) != 0)
        row++;
    bool is_open = json_is_false(json_object_get(tunnel, "isConfined")) && strcmp(rows[row].level, "pass") == 0;
    return own_finding(is_open ? "warn" : rows[row].level, "tunnel", message, is_open ? "make user namespaces possible: see the other findings" : rows[row].fix);
}

static void answer_findings(struct call *call, json_t *tunnel)
{
    json_t *list = call->state;
    json_array_append_new(list, tunnel_finding(tunnel));
    operator_answer(call, 200, json_pack("{s:o}", "findings", list));
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
    json_array_append_new(list, listener_finding(call));
    call->state = json_deep_copy(list); // goes to another thread
    json_decref(list);
    operator_ask_tunnel(call, answer_findings);
}

void doctor_show(struct call *call)
{
    request_findings(call->world, on_findings, call);
}
