"""The commands that read."""
import json
import os
import signal
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from c2s import PATIENCE, next_line, test  # noqa: E402
from rig import check, each_promised, equal, rig, until  # noqa: E402

KINDS = {"approvals": "appr", "approvalrules": "rule", "exposures": "exp", "sandboxes": "sbx", "sessions": "sess", "workspaces": "ws"}
OBJECTS = """
apiVersion: chat2shell.dev/v1
kind: Workspace
metadata: {name: read-a, labels: {team: a, tier: "1"}}
spec: {mode: managed}
---
apiVersion: chat2shell.dev/v1
kind: Workspace
metadata: {name: read-b, labels: {team: b}}
spec: {mode: managed}
---
apiVersion: chat2shell.dev/v1
kind: Sandbox
metadata: {name: reader}
spec: {workspaceRef: read-a}
"""
MADE = []


def programs():
    chosen = each_promised()
    if not MADE:
        for text in OBJECTS.split("---\n"):  # apply makes several at a time, and lists are in the order in which they were made
            rig().apply(text)
        until("the sandbox runs", lambda: chosen[-1].json("get", "sandbox", "reader")["status"]["phase"] == "running")
        MADE.append(True)
    return chosen


def lines(text):
    return [line.split() for line in text.splitlines() if line.strip()]


@test
def these_programs_are_tried():
    print("    " + ", ".join(f"{each} ({each.path})" for each in programs()), flush=True)


@test
def all_resources_are_discovered_with_their_short_names_and_categories():
    for each in programs():
        rows = {row[0]: row for row in lines(each.run("api-resources", "--api-group=chat2shell.dev"))[1:]}
        equal({plural: row[1] for plural, row in rows.items()}, KINDS, f"short names of {each}")
        check(all(row[3] == "false" for row in rows.values()), f"{each}: a kind has namespaces: {rows}")
        check("chat2shell.dev/v1" in each.run("api-versions").split(), f"{each}: api-versions")
        equal(set(each.run("api-resources", "--categories=all", "-o", "name").split()), {f"{plural}.chat2shell.dev" for plural in KINDS}, "category all")


@test
def get_prints_tables_of_one_kind_and_of_several():
    for each in programs():
        table = lines(each.run("get", "sandboxes"))
        equal(table[0][:2] + table[0][-1:], ["NAME", "STATUS", "AGE"], f"columns of {each}")
        equal(table[1][:2], ["reader", "running"], f"row of {each}")
        wide = lines(each.run("get", "sbx", "reader", "-o", "wide"))
        check("RUNTIME" in wide[0] and "RUNTIME" not in table[0], f"{each}: wide columns: {wide[0]}")
        out = each.run("get", "ws,sbx")
        check("workspace.chat2shell.dev/read-a" in out and "sandbox.chat2shell.dev/reader" in out, f"{each}: several kinds: {out!r}")
        check("\n\n" in out, f"{each}: groups are apart")
        check("session.chat2shell.dev/" in each.run("get", "all"), f"{each}: get all")
        equal(each.run("get", "exposures", errors="No resources found\n"), "", "nothing there")


@test
def get_prints_every_output_form():
    for each in programs():
        whole = each.json("get", "workspace", "read-a")
        equal((whole["kind"], whole["metadata"]["name"]), ("Workspace", "read-a"), f"json of {each}")
        check("name: read-a" in each.run("get", "workspace", "read-a", "-o", "yaml"), f"{each}: yaml")
        equal(each.run("get", "ws", "-o", "name").split(), ["workspace.chat2shell.dev/read-a", "workspace.chat2shell.dev/read-b"], f"name of {each}")
        equal(each.run("get", "ws", "read-a", "-o", "jsonpath={.spec.mode}"), "managed", f"jsonpath of {each}")
        equal(lines(each.run("get", "ws", "-o", "custom-columns=N:.metadata.name,T:.metadata.labels.team")), [["N", "T"], ["read-a", "a"], ["read-b", "b"]], "columns")
        equal(each.run("get", "ws", "read-a", "-o", "go-template={{.metadata.name}}"), "read-a", f"template of {each}")
        listed = each.json("get", "ws,sbx")
        equal(len(listed["items"]), 3, f"items of {each}")


@test
def selectors_and_order_choose_and_sort():
    for each in programs():
        equal(each.run("get", "ws", "-l", "team=a", "-o", "name").split(), ["workspace.chat2shell.dev/read-a"], "-l")
        equal(len(each.run("get", "ws", "-l", "team in (a,b),!gone", "-o", "name").split()), 2, "-l in")
        equal(each.run("get", "sbx", "--field-selector", "status.phase=running", "-o", "name").split(), ["sandbox.chat2shell.dev/reader"], "status.phase")
        equal(each.run("get", "ws", "--field-selector", "metadata.name!=read-a,spec.mode=managed", "-o", "name").split(), ["workspace.chat2shell.dev/read-b"], "!=")
        each.run("get", "ws", "--field-selector", "spec.colour=red", code=1, errors="Error from server \\(BadRequest\\): .*spec.colour.*")
        names = [row[0] for row in lines(each.run("get", "ws", "--sort-by=.metadata.name", "--no-headers"))]
        equal(names, ["read-a", "read-b"], f"order of {each}")
        names = [row[0] for row in lines(each.run("get", "ws", "--show-labels", "-L", "team", "--no-headers", "--chunk-size=1"))]
        equal(names, ["read-a", "read-b"], f"pieces of {each}")


@test
def get_watch_prints_changes_as_they_come():
    for number, each in enumerate(programs()):
        process = each.start("get", "ws", "-l", f"watched=v{number}", "-w", "-o", "jsonpath={.metadata.name} {.metadata.labels.step}{\"\\n\"}")
        # What was there before the watch began is printed too: the order of the two does not matter.
        manifest = "apiVersion: chat2shell.dev/v1\nkind: Workspace\nmetadata: {name: seen-%d, labels: {watched: v%d, step: '%d'}}\nspec: {mode: managed}\n"
        rig().apply(manifest % (number, number, 1))
        equal(next_line(process).split(), [f"seen-{number}", "1"], f"{each}: the new object")
        rig().apply(manifest % (number, number, 2))
        until(f"{each} prints the change", lambda: next_line(process).split() == [f"seen-{number}", "2"])
        process.send_signal(signal.SIGINT)
        process.wait(PATIENCE)
        equal(process.stderr.read(), "", f"stderr of {each}")
        rig().daemon.cli("delete", "workspace", f"seen-{number}")


@test
def a_missing_object_is_not_found():
    for each in programs():
        each.run("get", "sandbox", "nothing", code=1, errors="Error from server \\(NotFound\\): .*nothing.*\n")
        equal(each.run("get", "sandbox", "nothing", "--ignore-not-found"), "", "ignored")


@test
def describe_shows_the_object_and_its_events():
    for each in programs():
        out = each.run("describe", "sandbox", "reader")
        check("Workspace Ref:" in out and "Conditions:" in out, f"{each}: {out[:400]!r}")
        events = out[out.index("Events:"):]
        check("Running" in events and "chat2shell" in events, f"{each}: events: {events!r}")


@test
def events_are_listed_and_watched():
    for each in programs():
        check("Running" in each.run("events", "--for", "sandbox/reader"), f"{each}: events --for")
        check("sandbox/reader" in each.run("get", "events"), f"{each}: get events")
        check("reader" in each.run("get", "events", "-A", "--field-selector", "involvedObject.kind=Sandbox", "-o", "wide"), f"{each}: -A")
        name = each.json("get", "events")["items"][0]["metadata"]["name"]
        equal(each.json("get", "event", name)["metadata"]["name"], name, f"{each}: one event")
        process = each.start("events", "--for", "sandbox/reader", "-w")
        until(f"{each} shows it", lambda: "Running" in next_line(process))
        process.kill()
        process.communicate()


@test
def explain_says_what_the_field_tables_say():
    for each in programs():
        out = each.run("explain", "sandbox", "--recursive")
        for field in ("workspaceRef", "memory", "conditions", "lastTransitionTime", "creationTimestamp"):
            check(field in out, f"{each}: {field} is missing")
        out = each.run("explain", "sbx.spec.workspaceRef")
        check("Name of the workspace" in out, f"{each}: {out!r}")
        check("Something that happened" in each.run("explain", "events"), f"{each}: core kinds")


@test
def wait_waits_for_conditions_and_fields():
    for each in programs():
        check("condition met" in each.run("wait", "--for=condition=Ready", "sandbox/reader", f"--timeout={PATIENCE}s"), f"{each}: condition")
        check("condition met" in each.run("wait", "--for=jsonpath={.status.phase}=running", "sandbox/reader", f"--timeout={PATIENCE}s"), f"{each}: jsonpath")
        each.run("wait", "--for=condition=Nothing", "sandbox/reader", "--timeout=1s", code=1, errors=".*timed out waiting.*")


@test
def auth_can_i_answers():
    note = "Warning: resource '[a-z]+' is not namespace scoped in group 'chat2shell.dev'\n\n?"  # kubectl's own for every such kind, without -A
    for each in programs():
        equal(each.run("auth", "can-i", "delete", "workspaces", "-A").strip(), "yes", f"{each}: -A")
        equal(each.run("auth", "can-i", "get", "/livez").strip(), "yes", f"{each}: a path")
        equal(each.run("auth", "can-i", "get", "sandboxes", errors=note).strip(), "yes", f"{each}")
        equal(each.run("auth", "can-i", "get", "sandboxes", "--subresource=status", errors=note).strip(), "yes", f"{each}: status")
        for question in (["patch", "sandboxes", "--subresource=status"], ["get", "sandboxes", "--subresource=scale"]):
            check(each.run("auth", "can-i", *question, code=1, errors=note).startswith("no"), f"{each}: {question}")
        check(each.run("auth", "can-i", "create", "sessions", code=1, errors=note).startswith("no"), f"{each}: sessions are not made")
        check("sandboxes.chat2shell.dev" in each.run("auth", "can-i", "--list"), f"{each}: --list")


@test
def raw_paths_and_versions_answer():
    for each in programs():
        check("[+]store ok" in each.run("get", "--raw", "/readyz?verbose"), f"{each}: readyz")
        equal(each.run("get", "--raw", "/livez"), "ok", f"{each}: livez")
        skew = "(WARNING: version difference .*\n)?"  # kubectl's own, about every server that is older or newer than it
        check(json.loads(each.run("version", "-o", "json", errors=skew))["serverVersion"]["major"] == "1", f"{each}: version")
        equal(each.json("get", "namespace", "default")["status"]["phase"], "Active", f"{each}: namespace")
        check("chat2shell_watches" in each.run("get", "--raw", "/metrics"), f"{each}: metrics")
