"""Each default of the contract takes effect: the call without the argument answers as the call with the default, and not as one
with another value. On a workspace large enough to tell."""
import atexit
import json
import os
import shutil
import tempfile

import bench
import compare
import repository
from bench import named, put
from c2s import check, equal, test
from clients import Guest
from contract import TOOLS

# The call that shows the argument's effect, and a value with another effect (None: the default limits time only, and no answer
# tells it; the call must answer the same with it).
SHOWN = {
    "load_skill": {"max_skills": ({"name": "s450"}, 1), "max_bytes": ({"name": "long"}, 1000)},
    "open_current_workspace": {"include_tree": ({}, True), "max_depth": ({"include_tree": True}, 1), "include_skills": ({}, True), "include_global_skills": ({"include_skills": True}, True)},
    "inspect_workspace": {"max_files": ({}, 299), "include_symbols": ({}, False), "include_relationships": ({}, False), "max_symbols": ({}, 499), "max_relationships": ({}, 799)},
    "tree": {"path": ({}, "deep"), "max_depth": ({"path": "deep"}, 5), "include_hidden": ({}, True), "max_entries": ({}, 799)},
    "search": {"regex": ({"query": "a.c"}, True), "path": ({"query": "needle"}, "deep"), "include_hidden": ({"query": "hidden needle"}, True), "max_results": ({"query": "plenty"}, 199)},
    "read": {"start_line": ({"path": "lines.txt"}, 2), "max_bytes": ({"path": "lines.txt"}, 1000)},
    "view_image": {"max_bytes": ({"path": "image.gif"}, 4096)},
    "write": {"create_dirs": ({"path": "new/x", "content": "x"}, False), "overwrite": ({"path": "lines.txt", "content": "x"}, False)},
    "edit": {"replace_all": ({"path": "twice.txt", "old_text": "a", "new_text": "b"}, True)},
    "import_file": {"overwrite": (bench.GOOD["import_file"], None)},
    "bash": {"cwd": ({"command": "pwd"}, "deep"), "timeout_ms": ({"command": "true"}, None)},
    "show_changes": {"staged": ({}, True), "include_diff": ({}, False), "since": ({}, "workspace"), "mark_reviewed": ({}, False)},
    "wait_for_handoff": {"max_wait_seconds": ({}, None), "poll_ms": ({}, None), "include_diff": ({}, False), "include_log_excerpt": ({}, False), "include_tests": ({}, False)},
    "export_pro_context": {"title": ({}, "Other"), "selected_paths": ({}, ["twice.txt"]), "extra_globs": ({}, ["twice.*"]), "include_important_files": ({}, False), "include_changed_files": ({}, False),
                           "include_diff": ({}, False), "include_ai_bridge": ({}, False), "max_depth": ({}, 1), "max_files": ({"extra_globs": ["many/*"]}, 23), "max_file_bytes": ({"selected_paths": ["lines.txt"]}, 1000),
                           "max_total_bytes": ({"selected_paths": ["long.txt"]}, 20000)},
    "handoff_to_agent": {"agent": ({"plan": "x"}, "codex"), "title": ({"plan": "x"}, "Other"), "append": ({"plan": "x"}, True)},
}
VOLATILE = ("durationMs", "modifiedMs", "hit")
WRITERS = ("write", "edit", "import_file", "export_pro_context", "handoff_to_agent")
_made = {}


def fill_large(root, files):
    """A workspace on which the limits of the defaults are reached."""
    bench.fill(root)
    for number in range(files):
        put(root, f"many/f{number:03}.py", f"from .f{(number + 1) % files:03} import x\n\ndef function_{number}():\n    return 1\n")
    for number in (450, 451):
        put(root, f"skills/k{number}/SKILL.md", f"---\nname: s{number}\n---\n")
    put(root, "skills/long/SKILL.md", "long\n" * 20000)
    put(root, "deep/a/b/c/d/e/f.txt", "needle\n")
    put(root, ".hidden.txt", "hidden needle\n")
    put(root, "dots.txt", "abc\na.c\n")
    put(root, "plenty.txt", "plenty\n" * 300)
    put(root, "lines.txt", "line\n" * 2000)
    put(root, "long.txt", "line\n" * 8000)
    put(root, "twice.txt", "a\na\n")
    put(root, "image.gif", b"GIF89a\7\0\5\0\0\0\0;" + b"\0" * 9000)
    put(root, "README.md", "# R\n")
    for name in ("execution-log.jsonl", "implementation-diff.patch", "agent-status.md", "current-plan.md", "tests.log"):
        put(root, f".ai-bridge/{name}", f"{name}\n" * 3)
    put(root, ".ai-bridge/handoff-run-state.json", '{"state": "completed", "iteration": 3, "tests_file": ".ai-bridge/tests.log"}')
    repository.git(root, "init", "-q", "--template=")
    repository.git(root, "add", "-A", ":!many")
    repository.git(root, "commit", "-qm", "First")
    put(root, "plenty.txt", "plenty\n" * 301)


def place(files):
    """A directory with home and workspace of so many files, made once."""
    if files not in _made:
        _made[files] = tempfile.mkdtemp(prefix="c2s-contract-")
        atexit.register(shutil.rmtree, _made[files], True)
        for name in ("ws", "home", "copy"):
            os.mkdir(os.path.join(_made[files], name))
        repository.put_home(os.path.join(_made[files], "home"))
        fill_large(os.path.join(_made[files], "ws"), files)
    return _made[files]


def answer_of(tool, arguments):
    """What the call answers in a session of its own, as text; writers work on a copy, and its files belong to the answer."""
    top = place(40 if tool in WRITERS else 900)
    root, home = os.path.join(top, "copy" if tool in WRITERS else "ws"), os.path.join(top, "home")
    if tool in WRITERS:
        repository.copy(os.path.join(top, "ws"), root)
    with Guest(bench.GUEST, root, home) as guest:
        result = guest.call(tool, arguments)
        bench.check_result(guest.tools().get(tool), tool, result)
    left = compare.files(root, home) if tool in WRITERS else None
    shown = {"structured": result.get("structuredContent"), "failed": bool(result.get("isError")), "files": left}
    return json.dumps(without_volatile(compare.plain(shown, root, home)), sort_keys=True)


def without_volatile(value):
    if isinstance(value, list):
        return [without_volatile(item) for item in value]
    if isinstance(value, dict):
        return {key: without_volatile(item) for key, item in value.items() if key not in VOLATILE}
    return value


def register(tool, name, rule):
    arguments, other = SHOWN[tool][name]

    def takes_effect():
        absent = answer_of(tool, arguments)
        equal(answer_of(tool, {**arguments, name: rule["default"]}), absent, f"with {name}={rule['default']}")
        if other is not None:
            check(answer_of(tool, {**arguments, name: other}) != absent, f"{name}={other} answers as the default does: the test tells nothing")
    words = "".join(letter if letter.isalnum() else "_" for letter in str(rule["default"])).strip("_") or "nothing"
    test(named(f"{tool}_without_{name}_is_as_with_{words.lower()}", takes_effect))


for _tool, _row in TOOLS.items():
    for _name, _rule in _row["arguments"].items():
        if "default" in _rule:
            register(_tool, _name, _rule)
