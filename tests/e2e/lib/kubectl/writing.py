"""The commands that write: apply of both sides, diff, edit, patch, label, annotate, replace, create, delete, prune."""
import json
import os
import stat
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from c2s import PATIENCE, test  # noqa: E402
from rig import check, each_promised, equal, rig, until  # noqa: E402

PATCHED = "workspace.chat2shell.dev/{} patched"


def manifest(name, labels="", kind="Workspace", annotations="", spec="mode: managed"):
    return (f"apiVersion: chat2shell.dev/v1\nkind: {kind}\nmetadata:\n  name: {name}\n  labels: {{{labels}}}\n"
            f"  annotations: {{{annotations}}}\nspec: {{{spec}}}\n")


def name_for(each, what):
    return f"{what}-{each.version[0]}-{each.version[1]}"


def metadata(each, name):
    return each.json("get", "workspace", name, "--show-managed-fields")["metadata"]


def says(out, words, what):
    check(words in out, f"{what}: {words!r} is not in {out!r}")


@test
def apply_of_the_client_creates_configures_and_leaves_alone():
    for each in each_promised():
        name = name_for(each, "csa")
        says(each.run("apply", "-f", "-", stdin=manifest(name, "team: a, tier: web")), "created", f"{each}: first")
        says(each.run("apply", "-f", "-", stdin=manifest(name, "team: a, tier: web")), "unchanged", f"{each}: again")
        says(each.run("apply", "-f", "-", stdin=manifest(name, "team: b")), "configured", f"{each}: changed")
        equal(metadata(each, name)["labels"], {"team": "b"}, f"labels by {each}")
        says(each.run("apply", "view-last-applied", "workspace", name), "team: b", f"{each}: view-last-applied")
        printed = each.run("get", "workspace", name, "-o", "yaml")
        before = each.json("get", "workspace", name)
        each.run("apply", "-f", "-", stdin=printed)  # kubectl notes all of it as applied, and that is all
        after = each.json("get", "workspace", name)
        equal([after[part] for part in ("spec", "status")], [before[part] for part in ("spec", "status")], f"{each}: what get printed")
        equal((after["metadata"]["generation"], after["metadata"]["labels"]), (1, {"team": "b"}), f"{each}: what get printed")
        each.run("delete", "workspace", name)


@test
def apply_of_the_server_merges_owns_and_names_conflicts():
    for each in each_promised():
        name = name_for(each, "ssa")
        apply = ["apply", "--server-side", "-f", "-"]
        says(each.run(*apply, stdin=manifest(name, "team: a, tier: web")), "serverside-applied", f"{each}: first")
        before = metadata(each, name)
        each.run(*apply, stdin=manifest(name, "team: a, tier: web"))
        equal(metadata(each, name), before, f"{each}: nothing was written the second time")
        each.run(*apply, "--field-manager=other", stdin=manifest(name, "zone: x"))
        each.run(*apply, stdin=manifest(name, "team: a"))
        equal(metadata(each, name)["labels"], {"team": "a", "zone": "x"}, f"labels by {each}")
        each.run(*apply, "--field-manager=other", code=1, stdin=manifest(name, "team: b"),
                 errors=r'error: Apply failed with 1 conflict: conflict with "kubectl": \.metadata\.labels\.team\n.*')
        each.run(*apply, "--field-manager=other", "--force-conflicts", stdin=manifest(name, "team: b"))
        equal(metadata(each, name)["labels"], {"team": "b"}, f"labels by force of {each}")
        each.run("delete", "workspace", name)


@test
def client_side_applies_become_server_side_ones_without_conflicts():
    for each in each_promised():
        name = name_for(each, "move")
        each.run("apply", "-f", "-", stdin=manifest(name, "team: a, tier: web"))
        says(each.run("apply", "--server-side", "-f", "-", stdin=manifest(name, "team: b")), "serverside-applied", f"{each}: moved")
        equal(metadata(each, name)["labels"], {"team": "b"}, f"labels by {each}")
        says(each.run("apply", "-f", "-", stdin=manifest(name, "team: c")), "configured", f"{each}: back")
        each.run("delete", "workspace", name)


@test
def dry_runs_and_diff_show_what_would_be_and_change_nothing():
    for each in each_promised():
        name = name_for(each, "dry")
        says(each.run("apply", "--dry-run=server", "-f", "-", stdin=manifest(name)), "(server dry run)", f"{each}: apply")
        says(each.run("create", "--dry-run=server", "-f", "-", stdin=manifest(name)), "(server dry run)", f"{each}: create")
        says(each.run("create", "--dry-run=client", "-f", "-", stdin=manifest(name)), "(dry run)", f"{each}: create")
        equal(each.run("get", "workspace", name, "--ignore-not-found"), "", f"{each}: nothing is there")
        says(each.run("diff", "-f", "-", code=1, stdin=manifest(name, "team: a")), "+    team: a", f"{each}: diff of a new one")
        each.run("apply", "-f", "-", stdin=manifest(name, "team: a"))
        equal(each.run("diff", "-f", "-", stdin=manifest(name, "team: a")), "", f"{each}: no difference")
        out = each.run("diff", "--server-side", "--force-conflicts", "-f", "-", code=1, stdin=manifest(name, "team: b"))
        says(out, "-    team: a", f"{each}: diff")
        says(out, "+    team: b", f"{each}: diff")
        says(each.run("delete", "workspace", name, "--dry-run=server"), "(server dry run)", f"{each}: delete")
        each.run("delete", "workspace", name)


@test
def a_dry_run_takes_a_whole_file_whose_objects_refer_to_each_other():
    for each in each_promised():
        name = name_for(each, "set")
        text = (manifest(f"{name}-ws") + "---\n" + manifest(name, kind="Sandbox", spec=f"workspaceRef: {name}-ws") + "---\n" +
                manifest(name, kind="Exposure", spec=f"sandboxRef: {name}, port: 80"))
        out = each.run("apply", "--dry-run=server", "-f", "-", stdin=text, errors=r"Warning: there is no workspace .* yet; .*\nWarning: there is no sandbox .* yet; .*\n")
        equal(len(out.splitlines()), 3, f"{each}: {out!r}")


@test
def unknown_and_repeated_fields_are_named():
    for each in each_promised():
        name = name_for(each, "strict")
        text = manifest(name, spec="mdoe: managed")
        each.run("apply", "-f", "-", code=1, stdin=text, errors=r'.*strict decoding error: unknown field "spec\.mdoe".*')
        each.run("create", "-f", "-", code=1, stdin=text, errors=r'.*strict decoding error: unknown field "spec\.mdoe".*')
        each.run("apply", "--validate=warn", "-f", "-", stdin=text, errors=r'Warning: unknown field "spec\.mdoe"\n')
        each.run("apply", "--validate=false", "-f", "-", stdin=text)
        each.run("delete", "workspace", name)


@test
def patches_of_every_form_but_the_strategic_one():
    for each in each_promised():
        name = name_for(each, "patch")
        each.run("apply", "-f", "-", stdin=manifest(name, "a: '1', b: '2'"))
        merge = json.dumps({"metadata": {"labels": {"a": None, "c": "3"}}})
        says(each.run("patch", "workspace", name, "--type=merge", "-p", merge), PATCHED.format(name), f"{each}: merge")
        operations = [{"op": "test", "path": "/metadata/labels/b", "value": "2"}, {"op": "remove", "path": "/metadata/labels/b"}]
        says(each.run("patch", "workspace", name, "--type=json", "-p", json.dumps(operations)), PATCHED.format(name), f"{each}: json")
        equal(metadata(each, name)["labels"], {"c": "3"}, f"labels by {each}")
        says(each.run("patch", "workspace", name, "--type=merge", "-p", "{}"), "(no change)", f"{each}: nothing")
        each.run("patch", "workspace", name, "--type=json", "-p", json.dumps(operations), code=1, errors=r".*does not exist.*")
        each.run("patch", "workspace", name, "-p", merge, code=1, errors=r".*(application/merge-patch\+json|strategic).*")
        each.run("patch", "workspace", name, "--type=merge", "-p", '{"spec": {"mode": "direct"}}', code=1, errors=r'The Workspace "' + name + '" is invalid.*')
        each.run("delete", "workspace", name)


@test
def labels_and_annotations_are_set_changed_and_taken_away():
    for each in each_promised():
        name = name_for(each, "label")
        each.run("create", "-f", "-", stdin=manifest(name))
        each.run("create", "-f", "-", code=1, stdin=manifest(name), errors=r".*AlreadyExists.*")
        says(each.run("label", "workspace", name, "team=a"), "labeled", f"{each}: label")
        each.run("label", "workspace", name, "team=b", code=1, errors=r".*--overwrite.*")
        each.run("label", "workspace", name, "team=b", "--overwrite")
        each.run("annotate", "workspace", name, "example.com/note=two words")
        equal(metadata(each, name)["labels"], {"team": "b"}, f"labels by {each}")
        equal(metadata(each, name)["annotations"]["example.com/note"], "two words", f"annotation by {each}")
        each.run("label", "workspace", name, "team-")
        each.run("annotate", "workspace", name, "example.com/note-")
        check("labels" not in metadata(each, name), f"{each}: the label is gone")
        each.run("label", "workspace", name, "bad key=a", code=1, errors=r".*")
        each.run("delete", "workspace", name)


@test
def edit_and_replace_write_what_they_are_given():
    for each in each_promised():
        name = name_for(each, "edit")
        each.run("apply", "-f", "-", stdin=manifest(name, "team: a"))
        editor = os.path.join(each.home, "editor")
        with open(editor, "w") as file:
            file.write("#!/bin/sh\nsed -i 's/team: a/team: edited/' \"$1\"\n")
        os.chmod(editor, stat.S_IRWXU)
        each.environment["KUBE_EDITOR"] = editor
        says(each.run("edit", "workspace", name), "edited", f"{each}: edit")
        equal(metadata(each, name)["labels"], {"team": "edited"}, f"labels by {each}")
        equal(each.run("edit", "workspace", name, errors="Edit cancelled, no changes made\\.\n"), "", f"{each}: no change")
        says(each.run("replace", "-f", "-", stdin=manifest(name, "team: c")), "replaced", f"{each}: replace")
        equal(metadata(each, name)["labels"], {"team": "c"}, f"labels by {each}")
        stale = manifest(name).replace("metadata:\n", "metadata:\n  resourceVersion: '1'\n")
        each.run("replace", "-f", "-", code=1, stdin=stale, errors=r".*Conflict.*the object has been modified; please apply your changes to the latest version.*")
        each.run("delete", "workspace", name)


@test
def delete_waits_selects_and_cascades():
    for each in each_promised():
        name = name_for(each, "del")
        for i in "ab":
            each.run("apply", "-f", "-", stdin=manifest(f"{name}-{i}", f"group: {name}"))
        each.run("delete", "workspace", "-l", f"group={name}", "--wait")
        equal(each.run("get", "workspace", "-l", f"group={name}", errors="No resources found\n"), "", f"{each}: all are gone")
        each.run("delete", "workspace", f"{name}-a", code=1, errors=r".*NotFound.*")
        equal(each.run("delete", "workspace", f"{name}-a", "--ignore-not-found"), "", f"{each}: ignored")
        each.run("apply", "-f", "-", stdin=manifest(f"{name}-ws") + "---\n" + manifest(name, kind="Sandbox", spec=f"workspaceRef: {name}-ws"))
        until("it runs", lambda: each.json("get", "sandbox", name)["status"]["phase"] == "running")
        each.run("delete", "workspace", f"{name}-ws", code=1, errors=r".*bound to the sandbox.*")
        each.run("delete", "sandbox", name, "--cascade=orphan", code=1, errors=r".*propagationPolicy.*")
        each.run("delete", "sandbox", name, "--cascade=foreground")
        each.run("delete", "workspace", f"{name}-ws", "--now")


@test
def prune_deletes_what_the_files_name_no_more():
    for each in each_promised():
        name = name_for(each, "prune")
        both = manifest(f"{name}-a", f"set: {name}") + "---\n" + manifest(f"{name}-b", f"set: {name}")
        each.run("apply", "-f", "-", stdin=both)
        out = each.run("apply", "--prune", "-l", f"set={name}", "--prune-allowlist=chat2shell.dev/v1/Workspace", "-f", "-",
                       stdin=manifest(f"{name}-a", f"set: {name}"))
        says(out, "pruned", f"{each}: prune")
        until("it is gone", lambda: each.run("get", "workspace", "-l", f"set={name}", "-o", "name") == f"workspace.chat2shell.dev/{name}-a\n")
        each.run("delete", "workspace", f"{name}-a")


@test
def an_approval_rule_is_written_by_every_command():
    for each in each_promised():
        name = name_for(each, "rule")
        text = manifest(name, "team: a", kind="ApprovalRule", spec=f'decision: rejected, paths: ["{rig().daemon.allowed}/{name}"]')
        says(each.run("apply", "-f", "-", stdin=text), "created", f"{each}: apply")
        says(each.run("apply", "-f", "-", stdin=text), "unchanged", f"{each}: again")
        says(each.run("wait", "--for=condition=Ready", f"rule/{name}", f"--timeout={PATIENCE}s"), "condition met", f"{each}: wait")
        more = text.replace("decision:", "maxCount: 3, decision:")
        says(each.run("diff", "-f", "-", stdin=more, code=1), "+  maxCount: 3", f"{each}: diff")
        says(each.run("apply", "-f", "-", stdin=more), "configured", f"{each}: a field more")
        each.run("patch", "rule", name, "--type=merge", "-p", '{"spec": {"reason": "no"}}')
        each.run("patch", "rule", name, "--type=json", "-p", '[{"op": "add", "path": "/spec/modes/-", "value": "direct"}]')
        each.run("patch", "rule", name, "--type=merge", "-p", '{"spec": {"decision": "approved"}}', code=1, errors=r".*spec\.decision.*immutable.*")
        each.run("label", "rule", name, "tier=web")
        each.run("annotate", "rule", name, "example.com/a=b")
        made = each.json("get", "rule", name)
        equal([made["spec"][key] for key in ("maxCount", "reason", "modes")], [3, "no", ["clone", "direct"]], f"{each}: spec")
        says(each.run("apply", "--server-side", "--force-conflicts", "-f", "-", stdin=text), "serverside-applied", f"{each}: of the server")
        says(each.run("describe", "rule", name), "tier=web", f"{each}: describe")
        says(each.run("delete", "rule", name), "deleted", f"{each}: delete")
