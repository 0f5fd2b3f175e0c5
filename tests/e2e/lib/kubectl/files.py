"""Input from files and directories, kustomized input, and what is left of the forms in which kubectl asks and prints."""
import os
import sys
import threading

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from c2s import PATIENCE, test  # noqa: E402
from rig import check, each_promised, equal, until  # noqa: E402
from writing import manifest, name_for, says  # noqa: E402


def write(each, name, text):
    path = os.path.join(each.home, name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w") as file:
        file.write(text)
    return path


KUSTOMIZATION = """
apiVersion: kustomize.config.k8s.io/v1beta1
kind: Kustomization
namePrefix: PREFIX-
resources: [objects.yaml]
patches:
- target: {kind: Workspace}
  patch: '[{"op": "add", "path": "/metadata/labels/tier", "value": "patched"}]'
"""


@test
def kustomized_input_is_applied_compared_and_deleted():
    for each in each_promised():
        name = name_for(each, "kust")
        write(each, "kust/kustomization.yaml", KUSTOMIZATION.replace("PREFIX", name))
        write(each, "kust/objects.yaml", manifest("a", "team: a") + "---\n" + manifest("b", "team: b"))
        says(each.run("create", "-k", "kust", "--dry-run=server"), "(server dry run)", f"{each}: create")
        says(each.run("diff", "-k", "kust", code=1), "+    tier: patched", f"{each}: diff")
        says(each.run("apply", "-k", "kust"), f"workspace.chat2shell.dev/{name}-a created", f"{each}: apply")
        equal(each.run("get", "-k", "kust", "-o", "name").split(), [f"workspace.chat2shell.dev/{name}-{i}" for i in "ab"], f"{each}: get")
        equal(each.run("diff", "-k", "kust"), "", f"{each}: nothing differs")
        says(each.run("apply", "-f", "-", stdin=each.run("kustomize", "kust")), f"workspace.chat2shell.dev/{name}-b unchanged", f"{each}: what kustomize prints")
        says(each.run("describe", "-k", "kust"), "tier=patched", f"{each}: describe")
        each.run("delete", "-k", "kust")


@test
def a_sandbox_that_kustomize_puts_before_its_workspace_waits_for_it():
    for each in each_promised():
        name = name_for(each, "late")
        write(each, "late/kustomization.yaml", "resources: [objects.yaml]\n")
        write(each, "late/objects.yaml", manifest(name, kind="Exposure", spec=f"sandboxRef: {name}, port: 80") + "---\n"
              + manifest(name, kind="Sandbox", spec=f"workspaceRef: {name}") + "---\n" + manifest(name))
        warnings = rf"Warning: there is no sandbox named {name} yet; the exposure waits for it\n"
        warnings += rf"Warning: there is no workspace named {name} yet; the sandbox waits for it\n"
        equal(len(each.run("apply", "-k", "late", errors=warnings).splitlines()), 3, f"{each}: all of it at the first try")
        each.run("wait", "--for=jsonpath={.status.phase}=published", f"exposure/{name}", f"--timeout={PATIENCE}s")
        says(each.run("describe", "sandbox", name), "running", f"{each}: describe")
        equal(each.run("diff", "-k", "late"), "", f"{each}: nothing differs")
        each.run("delete", "sandbox", name)
        each.run("delete", "workspace", name)


@test
def a_directory_is_applied_and_its_objects_are_labelled():
    for each in each_promised():
        name = name_for(each, "dir")
        for i in "ab":
            write(each, f"set/{i}.yaml", manifest(f"{name}-{i}", f"set: {name}"))
        equal(len(each.run("apply", "-f", "set").splitlines()), 2, f"{each}: apply")
        says(each.run("label", "-f", "set", "tier=web", "--dry-run=server"), "(server dry run)", f"{each}: dry run")
        equal(each.run("get", "ws", "-l", "tier=web,set=" + name, errors="No resources found\n"), "", f"{each}: nothing was kept")
        each.run("label", "ws", "-l", f"set={name}", "tier=web")
        equal(len(each.run("get", "ws", "-l", "tier=web,set=" + name, "-o", "name").split()), 2, f"{each}: label")
        says(each.run("label", "--list", "ws", f"{name}-a"), "tier=web", f"{each}: --list")
        each.run("annotate", "-f", "set", "example.com/a=b")
        says(each.run("annotate", "--list", "ws", f"{name}-b"), "example.com/a=b", f"{each}: --list of annotations")
        each.run("delete", "-f", "set")


@test
def get_reads_paths_columns_and_templates_from_files():
    for each in each_promised():
        name = name_for(each, "forms")
        each.run("apply", "-f", write(each, "forms.yaml", manifest(name, "team: a")))
        equal(each.run("get", "-f", "forms.yaml", "-o", "jsonpath-file=" + write(each, "path", "{.metadata.labels.team}")), "a", f"{each}: jsonpath-file")
        equal(each.run("get", "ws", name, "-o", "go-template-file=" + write(each, "template", "{{.spec.mode}}")), "managed", f"{each}: go-template-file")
        columns = write(each, "columns", "NAME  MODE\nmetadata.name  spec.mode\n")
        equal(each.run("get", "ws", name, "-o", f"custom-columns-file={columns}").split(), ["NAME", "MODE", name, "managed"], f"{each}: custom-columns-file")
        says(each.run("get", "ws", name, "-o", "jsonpath-as-json={.metadata.name}"), f'"{name}"', f"{each}: jsonpath-as-json")
        says(each.run("get", "ws", name, "--show-kind", "--no-headers"), f"workspace.chat2shell.dev/{name}", f"{each}: --show-kind")
        order = each.run("get", "ws", "--sort-by={.metadata.creationTimestamp}", "-o", "name").split()
        equal(order[-1], f"workspace.chat2shell.dev/{name}", f"{each}: the newest is the last")
        each.run("delete", "-f", "forms.yaml")


@test
def watches_tell_what_kind_of_change_it_was():
    for each in each_promised():
        name = name_for(each, "told")
        process = each.start("get", "ws", "--watch-only", "--output-watch-events", "-l", f"told={name}", "-o", "jsonpath={.type} {.object.metadata.name}{\"\\n\"}")
        made, told = [], []
        # Whole lines: it is killed at the end, perhaps amid one.
        reader = threading.Thread(target=lambda: [told.append(line.split()) for line in process.stdout if line.endswith("\n")], daemon=True)
        reader.start()

        def whole_lives():  # until the watch has begun nothing is seen: each try is a new object
            made.append(f"{name}-{len(made)}")
            each.run("create", "-f", "-", stdin=manifest(made[-1], f"told: {name}"))
            each.run("delete", "ws", made[-1])
            return [which for kind, which in list(told) if kind == "DELETED" and ["ADDED", which] in told]
        one = until(f"{each} tells of a creation and its deletion", whole_lives)[0]
        process.kill()
        process.wait()
        reader.join(PATIENCE)
        life = [kind for kind, which in told if which == one]
        check(life[0] == "ADDED" and life[-1] == "DELETED" and set(life[1:-1]) <= {"MODIFIED"}, f"{each}: {told}")
        check({which for _, which in told} <= set(made), f"{each}: {told}")


@test
def what_is_waited_for_comes_or_goes():
    for each in each_promised():
        name = name_for(each, "come")
        if each.version >= (1, 31):  # the first one that has it
            process = each.start("wait", "--for=create", f"ws/{name}", f"--timeout={PATIENCE}s")
            each.run("create", "-f", "-", stdin=manifest(name))
            out, err = process.communicate(timeout=PATIENCE)
            equal((process.returncode, err), (0, ""), f"{each}: --for=create: {out!r}")
            each.run("wait", "--for=jsonpath={.status.phase}", f"ws/{name}", f"--timeout={PATIENCE}s")
        else:
            each.run("create", "-f", "-", stdin=manifest(name))
        process = each.start("wait", "--for=delete", f"ws/{name}", f"--timeout={PATIENCE}s")
        each.run("delete", "ws", name, "--wait=false")
        out, err = process.communicate(timeout=PATIENCE)
        equal((process.returncode, err), (0, ""), f"{each}: --for=delete: {out!r}")


@test
def every_kind_is_explained_and_described():
    for each in each_promised():
        for kind in ("workspaces", "sandboxes", "sessions", "approvals", "approvalrules", "exposures", "events", "namespaces"):
            says(each.run("explain", kind, "--recursive"), "FIELD", f"{each}: explain {kind}")
        says(each.run("explain", "sandboxes", "--output=plaintext-openapiv2"), "spec", f"{each}: from OpenAPI v2")
        says(each.run("describe", "sessions"), "Kind:", f"{each}: describe sessions")
        says(each.run("api-resources", "-o", "wide", "--namespaced=false", "--verbs=list,watch,patch"), "sandboxes", f"{each}: api-resources")
        each.run("events", "--types=Warning", errors="(No events found in default namespace\\.\n)?")
