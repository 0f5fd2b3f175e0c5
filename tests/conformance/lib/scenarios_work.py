"""Calls around the work: bash, show_changes, the planning files, the bundle, and calls that do not fit."""
import os
import subprocess

import repository
import scenarios as s

COMMANDS = ("true", "exit 7", "echo out; echo err >&2", "printf 'no end'", "pwd", "kill -TERM $$", "kill -KILL $$", "cat a.txt", "printf 'a\\0b\\n'", "printf '\\xff\\xfe\\n'", "echo größe 漢字", "cat; echo stdin is empty", "echo $TERM $NO_COLOR $CI",
            "no-such-program", "exit 256", "shopt -q login_shell && echo login", "ls d", "echo $-", "false; true", "seq 1 2000", "printf '%0.sx' $(seq 1 120000)", "test -t 0 || echo no terminal", "echo $SHELL")


def bash():
    s.scenario("bash", s.each("bash", *({"command": command} for command in COMMANDS)))
    s.scenario("bash directories", s.each("bash", *({"command": "pwd", "cwd": cwd} for cwd in (".", "d", "link-dir", "nowhere", "a.txt", "..", "link-out-dir", ".git", "dist", "ROOT/d", "/", "", "d/..", "~"))))
    s.scenario("bash words", s.each("bash", {"command": ""}, {"command": "  \n"}, {"command": "true", "session_id": "abc"}, {"command": "sleep 30", "timeout_ms": 1000}, {"command": "echo begun; sleep 30", "timeout_ms": 1000}))
    s.scenario("bash that writes", s.each("bash", {"command": "echo made > made.txt; chmod 600 made.txt; mkdir -p q; ln -s a.txt q/l"}, {"command": "cat made.txt"}))


def review():
    everything = ({}, {"since": "workspace"}, {"include_diff": False}, {"staged": True}, {"path": "a.txt"}, {"path": "src", "since": "workspace"}, {"path": "nowhere"}, {"path": "../x"}, {"path": ".env"}, {"path": "new file.txt"},
                  {"mark_reviewed": False, "since": "workspace"}, {"path": "."}, {"path": "link-dir"}, {"path": "one.txt"})
    for number, given in enumerate(everything, 1):
        s.scenario(f"changes {number}", [("show_changes", given)], s.changed)
    s.scenario("changes of nothing", s.each("show_changes", {}, {}, {"staged": True}))
    s.scenario("changes once", s.each("show_changes", {}, {}, {"since": "workspace"}, {"path": "a.txt"}, {"path": "a.txt"}, {"staged": True}, {"include_diff": False}, {}), s.changed)
    s.scenario("changes unmarked", s.each("show_changes", {"mark_reviewed": False}, {}, {}), s.changed)
    s.scenario("changes, then another", [("show_changes", {}), ("write", {"path": "more.txt", "content": "more\n"}), ("show_changes", {}), ("show_changes", {}), ("write", {"path": "more.txt", "content": "else\n"}), ("show_changes", {})], s.changed)
    s.scenario("changes without a repository", s.each("show_changes", {}, {"staged": True}), s.without_git)
    s.scenario("changes staged", s.each("show_changes", {"staged": True}, {}, {"staged": True, "since": "workspace"}), staged)
    s.scenario("changes of odd names", s.each("show_changes", {}), odd_names)
    s.scenario("changes of a new repository", s.each("show_changes", {}, {"staged": True}) + s.each("open_current_workspace", {}), unborn)
    s.scenario("changes of everything risky", s.each("show_changes", {"since": "workspace"}), risky)


def staged(root):
    s.changed(root)
    repository.git(root, "add", "a.txt", "new file.txt")
    repository.git(root, "mv", "C-1.txt", "renamed.txt")


def odd_names(root):
    for name in ("quo\"te.txt", "tab\tx.txt", "ünter.txt", "back\\slash.txt"):
        s.put(name, b"x\n")(root)


def unborn(root):
    subprocess.run(["rm", "-rf", os.path.join(root, ".git")], check=True)
    repository.git(root, "init", "-q")
    repository.git(root, "add", "a.txt")


def risky(root):
    for name in ("src/api/session_token.ts", "package.json", "config/app.yaml", "src/alpha.ts", "go/main.go", "py/tools.py"):
        with open(os.path.join(root, name), "a") as file:
            file.write("\n")
    for name in ("db/migration_1.sql", "src/model.ts", "public/route.ts", "oauth/login.ts", "storage/x.py", "prisma/schema.prisma"):
        s.put(name, b"x\n")(root)


def state(text):
    return s.put(".ai-bridge/handoff-run-state.json", text)


def handoff():
    quick = {"max_wait_seconds": 1, "poll_ms": 250}
    s.scenario("handoff files", [("read_handoff", {})])
    s.scenario("no handoff files", [("read_handoff", {}), ("wait_for_handoff", quick)], lambda root: subprocess.run(["rm", "-rf", os.path.join(root, ".ai-bridge")], check=True))
    s.scenario("wait", s.each("wait_for_handoff", *({**quick, **given} for given in ({}, {"plan_hash": "abc"}, {"plan_hash": "other"}, {"since_iteration": 2}, {"since_iteration": 3}, {"include_diff": False}, {"include_log_excerpt": False}, {"include_tests": False},
                                                                                    {"plan_hash": ""}))))
    for number, text in enumerate((b"", b"{", b"[]", b'{"state": "running", "iteration": 1}', b'{"state": "failed", "exit_code": 2}', b'{"state": "timed_out", "timed_out": true}', b'{"state": "odd"}', b'{"state": 5}', b'{"iteration": "3", "state": "completed"}',
                                   b'{"state": "completed", "log_file": "../../etc/passwd", "diff_file": ".ai-bridge/decisions.md", "status_file": "/etc/hostname"}', b'{"state": "completed", "exit_code": 1}'), 1):
        s.scenario(f"wait state {number}", s.each("wait_for_handoff", quick), state(text))
    plans = ({"plan": "Do it.\n"}, {"plan": ""}, {"plan": " \n"}, {"plan": "x", "agent": "codex"}, {"plan": "x", "agent": "Codex"}, {"plan": "x", "agent": "opencode"}, {"plan": "x", "agent": "pi"}, {"plan": "x", "agent": "my.agent-1"}, {"plan": "x", "agent": "bad agent"},
             {"plan": "x", "agent": ""}, {"plan": "x", "agent_name": "Someone"}, {"plan": "x", "model": "m-1"}, {"plan": "x", "title": "A   title\nfolded"}, {"plan": "x", "title": "t" * 200}, {"plan": "x", "title": ""}, {"plan": "x", "append": True},
             {"plan": "# Head\n\n- a\n- b\n\n```\ncode\n```\n"}, {"plan": "x\r\ny"}, {"plan": "x", "agent": "-x"}, {"plan": "x", "agent": "a" * 65})
    s.alone("handoff_to_agent", "handoff", *plans)
    s.scenario("handoff from nothing", [("handoff_to_agent", {"plan": "one"}), ("handoff_to_agent", {"plan": "two", "append": True}), ("read_handoff", {})], lambda root: subprocess.run(["rm", "-rf", os.path.join(root, ".ai-bridge")], check=True))


def bundle():
    given = ({}, {"title": "T"}, {"title": ""}, {"selected_paths": ["a.txt", "lines.txt"]}, {"selected_paths": ["nowhere", "../x", ".env", "d", "nul.bin", "link-out", "link-in", "a.txt", "a.txt"]}, {"extra_globs": ["*.txt"]}, {"extra_globs": ["src/**/*.ts"]},
             {"include_important_files": False}, {"include_changed_files": False}, {"include_diff": False}, {"include_ai_bridge": False}, {"max_depth": 1}, {"max_depth": 6}, {"max_files": 1, "selected_paths": ["a.txt", "B.txt"]}, {"max_files": 3},
             {"max_file_bytes": 1000, "selected_paths": ["lines.txt", "a.txt"]}, {"max_total_bytes": 20000, "extra_globs": ["**/*"], "max_files": 80}, {"selected_paths": ["secret.txt", "bad.txt", "crlf.txt", "bom.txt"]})
    s.alone("export_pro_context", "bundle", *given)
    s.alone("export_pro_context", "bundle changed", {}, {"include_changed_files": False}, setup=s.changed)
    s.alone("export_pro_context", "bundle without a repository", {}, setup=s.without_git)


def misfits():
    """Arguments that do not fit, for every tool alike; the bounds are in tests/e2e/guest_contract."""
    calls = (("no_such_tool", {}), ("read", {}), ("read", {"path": 5}), ("read", {"path": None}), ("read", {"path": "a.txt", "start_line": "1"}), ("read", {"path": "a.txt", "start_line": 0}), ("read", {"path": "a.txt", "start_line": 1.5}),
             ("read", {"path": "a.txt", "extra": 1}), ("tree", {"max_depth": 13}), ("tree", {"include_hidden": "true"}), ("tree", {"path": None}), ("search", {"query": "x", "intent": "none"}), ("write", {"path": "x"}), ("write", {"content": "x"}),
             ("write", {"path": "x", "content": "y", "expected_sha256": "abc"}), ("import_file", {"file": {}, "destination": "x"}), ("import_file", {"file": "x", "destination": "x"}), ("bash", {"command": "true", "timeout_ms": 999}),
             ("export_pro_context", {"selected_paths": "a.txt"}), ("export_pro_context", {"selected_paths": [1]}), ("server_config", {"extra": True}), ("edit", {"path": "a.txt", "old_text": "a", "new_text": "b", "expected_replacements": 0}))
    s.scenario("misfits", calls)


def add():
    for table in (bash, review, handoff, bundle, misfits):
        table()
