"""A guest on a made workspace, each of whose results is checked on the way: against the advertised outputSchema, the contract's
fields, and what the daemon's catalogue promises."""
import atexit
import json
import os
import shutil
import tempfile

from c2s import BUILD, ROOT, check, equal
from clients import Guest
from contract import CONTRACT, TOOLS, fields_of, mismatches, violations

GUEST = os.path.join(BUILD, "chat2shell-guest")
PROGRESS = {"state": "completed", "iteration": 3, "plan_hash": "abc", "exit_code": 0}
# A call of each tool that does what the tool is for.
GOOD = {
    "server_config": {}, "load_skill": {"name": "one"}, "open_current_workspace": {}, "inspect_workspace": {}, "tree": {}, "search": {"query": "needle"},
    "read": {"path": "a.txt"}, "view_image": {"path": "dot.gif"}, "write": {"path": "made.txt", "content": "made\n"},
    "edit": {"path": "a.txt", "old_text": "alpha", "new_text": "ALPHA"},
    "apply_patch": {"patch": "--- a/a.txt\n+++ b/a.txt\n@@ -1,2 +1,2 @@\n-alpha\n+ALPHA\n needle\n"},
    "import_file": {"file": {"download_url": "https://example.org/x", "file_id": "file_1"}, "destination": "in.bin"}, "bash": {"command": "true"},
    "show_changes": {}, "read_handoff": {}, "wait_for_handoff": {"max_wait_seconds": 1}, "export_pro_context": {}, "handoff_to_agent": {"plan": "Do it.\n"},
}
NEEDS_NETWORK = ("import_file",)  # without it: a failure, after the arguments were found good
CATALOGUE = os.path.join(ROOT, "schemas/tools")
REWRITTEN = ("bash",)  # the daemon serves a form of its own
_kept = {}


def put(root, name, data):
    path = os.path.join(root, name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as file:
        file.write(data if isinstance(data, bytes) else data.encode())


def fill(root):
    put(root, "a.txt", "alpha\nneedle\n")
    put(root, "dot.gif", b"GIF89a\7\0\5\0\0\0\0;" + b"\0" * 5000)
    put(root, ".codex/skills/one/SKILL.md", "---\nname: one\ndescription: d\n---\n" + "text\n" * 400)
    put(root, ".ai-bridge/handoff-run-state.json", json.dumps(PROGRESS))
    put(root, "src/index.ts", "import { x } from './x';\nexport function main() { return x; }\n")
    put(root, "src/x.ts", "export const x = 1;\n")


class Bench:
    """A workspace with a guest; results are checked as they come."""

    def __init__(self, fill_with=fill, **more):
        self.dir = tempfile.mkdtemp(prefix="c2s-contract-")
        self.root, self.home = os.path.join(self.dir, "ws"), os.path.join(self.dir, "home")
        os.mkdir(self.root)
        os.mkdir(self.home)
        fill_with(self.root)
        self.guest = Guest(GUEST, self.root, self.home, **more)

    def __enter__(self):
        self.guest.__enter__()
        self.tools = self.guest.tools()
        return self

    def __exit__(self, *_):
        self.guest.__exit__()
        shutil.rmtree(self.dir, ignore_errors=True)

    def result(self, tool, arguments):
        """The checked result of a call, whichever way it went."""
        result = self.guest.call(tool, arguments)
        check_result(self.tools.get(tool), tool, result)
        return result

    def good(self, tool, arguments):
        result = self.result(tool, arguments)
        check(not result.get("isError"), f"{tool} {arguments} failed: {result['content'][0]['text'][:200]}")
        return result

    def bad(self, tool, arguments):
        """The text of a call that must fail."""
        result = self.result(tool, arguments)
        check(result.get("isError"), f"{tool} {json.dumps(arguments)[:200]} succeeded")
        return result["content"][0]["text"]


def shared():
    """The bench of the calls that leave the workspace as it is, or as good."""
    if "bench" not in _kept:
        _kept["bench"] = Bench().__enter__()
        atexit.register(_kept["bench"].__exit__)
    return _kept["bench"]


def catalogue(tool):
    with open(os.path.join(CATALOGUE, f"{tool}.json")) as file:
        return json.load(file)


def nothing(found, what):
    found = list(found)
    check(not found, f"{what}: " + " | ".join(found[:10]))


def check_result(advertised, tool, result):
    nothing(mismatches(result.get("content"), [{"type": "string", "text?": "string"}]), f"{tool}: content")
    check(result["content"] and result["content"][0]["type"] == "text", f"{tool}: the first item is no text")
    if result.get("isError"):
        check_failure(tool, result)
        return
    structured = result["structuredContent"]
    equal(structured.get("codexpro_tool"), tool, "codexpro_tool")
    nothing(violations(advertised["outputSchema"], structured), f"{tool}: the result against the advertised outputSchema")
    nothing(mismatches(structured, fields_of(tool)), f"{tool}: the result against the contract")
    if tool not in REWRITTEN:
        nothing(violations(catalogue(tool)["outputSchema"], structured), f"{tool}: the result against the daemon's catalogue")


def check_failure(tool, result):
    text, structured = result["content"][0]["text"], result.get("structuredContent")
    equal(len(result["content"]), 1, f"{tool}: items of a failure")
    if text.startswith("MCP error -32602: "):
        check(structured is None, f"{tool}: a misfit has structuredContent")
        return
    check(text.split(":")[0] in ("CodexProError", "Error", "TypeError"), f"{tool}: the class of {text[:80]!r}")
    nothing(mismatches(structured, CONTRACT["every_failure"]), f"{tool}: a failure against the contract")
    equal(structured["error"], text, f"{tool}: error and text")
    check("workspace_id" not in structured, f"{tool}: a failure has a workspace_id")


def named(name, function):
    function.__name__ = name
    return function


ALL = tuple(TOOLS)
