"""Calls that only look: server_config, tree, search, read, view_image, skills, inspect_workspace."""
import scenarios as s

PATHS = ("a.txt", "./a.txt", "d/../a.txt", "/a.txt", "ROOT/a.txt", "ROOT", "a.txt/", "nowhere.txt", "a.txt/x", "d", "..", "../outside.txt", "d/../../x", "link-in", "link-dir/x.txt",
         "link-out", "link-out-dir/hostname", "link-up", "link-dangling", "link-loop", "d/link-up-in", "link-blocked", "fifo", ".env", ".git/config", "node_modules/m/index.js", "dist/out.js",
         "keys/server.pem", "keys/id_rsa", ".ssh/config", ".ssh", ".envrc", ".gitignore", ".github/workflows/ci.yml", "build.gradle", "d/..a", "name [x].txt", "umläut.txt", "a\0b", "", ".",
         "~", "~/x", "deep//a///b", "x" * 300, "y/" * 100, "sub/.git.keep", "img/fake.png", ".ai-bridge/decisions.md", "A.TXT", "DIST/x", "nowhere/.env", "d/dist", "\\a.txt", "a.txt\n")
READABLE = ("lines.txt", "one.txt", "empty.txt", "crlf.txt", "mixed.txt", "bom.txt", "bad.txt", "nul.bin", "latin.txt", "wide.txt", "trailing.txt", "long.txt", "big.txt", "huge.txt", "secret.txt",
            "read only.txt", "tabs.txt", "debug.log", "ignored/x.txt")
RANGES = ((1, 1), (5, 9), (120, 120), (121, 121), (122, None), (119, 500), (9, 5), (None, 3), (118, None), (1, 99999999), (5000, 6000))


def read():
    s.scenario("read paths", s.each("read", *({"path": path} for path in PATHS)))
    s.scenario("read files", s.each("read", *({"path": path} for path in READABLE)))
    ranges = [{name: value for name, value in (("path", "lines.txt"), ("start_line", start), ("end_line", end)) if value is not None} for start, end in RANGES]
    s.scenario("read ranges", s.each("read", *ranges, *({"path": path, "start_line": 1, "end_line": 2} for path in READABLE), *({"path": path, "start_line": 2} for path in READABLE)))
    s.scenario("read limits", s.each("read", *({"path": path, "max_bytes": most} for path in ("lines.txt", "big.txt", "long.txt") for most in (1000, 1127, 1128, 180000, 200000, 2000000)),
                                     {"path": "big.txt", "start_line": 1, "end_line": 5000}, {"path": "big.txt", "start_line": 1, "end_line": 100, "max_bytes": 1000},
                                     {"path": "long.txt", "start_line": 1, "end_line": 1, "max_bytes": 1000}, {"path": "lines.txt", "start_line": 2.0}))


def tree():
    s.scenario("tree paths", s.each("tree", *({"path": path} for path in PATHS)))
    s.scenario("tree arguments", s.each("tree", {}, *({"max_depth": depth} for depth in (1, 2, 3, 5, 8, 12)), *({"include_hidden": True, "max_depth": depth} for depth in (1, 4, 12)),
                                        *({"max_entries": most} for most in (1, 2, 5, 10, 50, 3000)), {"include_hidden": True, "path": ".ai-bridge"}, {"path": "deep", "max_depth": 12},
                                        {"path": "void"}, {"path": "void/inner"}, {"path": "img", "max_entries": 12}, {"path": "img", "max_entries": 13}, {"path": "img", "max_entries": 14}))


def view_image():
    names = ("dot.png", "wide.png", "named.txt", "short.png", "a.gif", "old.gif", "a.jpg", "nosize.jpg", "progressive.jpg", "x.webp", "lossy.webp", "fake.png", "empty.png", "large.png")
    s.scenario("view_image files", s.each("view_image", *({"path": f"img/{name}"} for name in names), {"path": "img/large.png", "max_bytes": 2000000}, {"path": "img/wide.png", "max_bytes": 4096},
                                          {"path": "big.txt", "max_bytes": 4096}))
    s.scenario("view_image paths", s.each("view_image", *({"path": path} for path in PATHS)))


SEARCHES = (
    {"query": "needle"}, {"query": "NEEDLE"}, {"query": "alpha"}, {"query": "nothing like it"}, {"query": ""}, {"query": " "}, {"query": "needle", "include_hidden": True},
    {"query": "needle", "glob": "*.txt"}, {"query": "needle", "glob": "**/*.txt"}, {"query": "alpha", "glob": "src/**"}, {"query": "alpha", "glob": "src/*.ts"}, {"query": "alpha", "glob": "*.{ts,py}"},
    {"query": "alpha", "glob": "!*.ts"}, {"query": "alpha", "glob": "/src/alpha.ts"}, {"query": "alpha", "glob": "nothing*"}, {"query": "alpha", "path": "src"}, {"query": "alpha", "path": "src/alpha.ts"},
    {"query": "alpha", "path": "nowhere"}, {"query": "needle", "path": ".hidden/inner.txt"}, {"query": "needle", "path": ".hidden"}, {"query": "needle", "path": "debug.log"}, {"query": "needle", "path": "ignored"},
    {"query": "needle", "path": "dist/out.js"}, {"query": "needle", "path": "link-out"}, {"query": "alpha", "path": "link-in"}, {"query": "three", "path": "link-dir"}, {"query": "abcdef", "path": "huge.txt"},
    {"query": "needle", "path": "nul.bin"}, {"query": "b", "path": "nul.bin"}, {"query": "cut", "path": "bad.txt"}, {"query": "漢字"}, {"query": "größe"}, {"query": "needle", "max_results": 1},
    {"query": "needle", "max_results": 3, "path": "run.sh"}, {"query": "line 1", "path": "lines.txt", "max_results": 10}, {"query": "line", "path": "lines.txt", "max_results": 49}, {"query": "a.b"}, {"query": "$1"}, {"query": "[x]"},
    {"query": "-e"}, {"query": "--files"}, {"query": "needle\nx"}, {"query": "two\r", "path": "crlf.txt"}, {"query": "first", "path": "bom.txt"}, {"query": "cost $", "path": "dollar.txt"},
    {"query": "plenty"}, {"query": "plenty", "path": "many.txt"}, {"query": "plenty", "path": "many.txt", "max_results": 7}, {"query": "one"}, {"query": "import"}, {"query": "test"},
)
REGEXES = (r"al.ha", r"^alpha$", r"line \d+5$", r"(alpha|beta)\b", r"[A-Z]\w+er\b", r"(unclosed", r"a{2,3}", r"\bneedle\b.*$", r"^$", r"^\s+return", r"(?i)NEEDLE", r"größ.", r"\p{Lu}", r"x*", r"two$", r"^first")
ANALYSES = (
    {"query": "alpha", "intent": "auto"}, {"query": "alpha", "intent": "text"}, {"query": "alpha", "intent": "symbol"}, {"query": "alpha", "intent": "references"}, {"query": "alpha", "intent": "impact"},
    {"query": "x", "symbol": "alpha"}, {"query": "", "symbol": "Greeter"}, {"query": "alpha", "include_tests": True}, {"query": "alpha", "include_tests": False}, {"query": "alpha", "intent": "symbol", "include_tests": True},
    {"query": "return alpha", "intent": "auto"}, {"query": "helper", "intent": "impact", "include_tests": True}, {"query": "al.ha", "regex": True, "intent": "symbol"}, {"query": "nothinglikeit", "intent": "symbol"},
    {"query": "needle", "intent": "text", "max_results": 2}, {"query": "alpha", "intent": "symbol", "path": "src"}, {"query": "Runner", "intent": "references"}, {"query": "part", "intent": "impact"},
    {"query": "Box", "intent": "symbol"}, {"query": "main", "intent": "symbol"}, {"query": "alpha", "intent": "symbol", "glob": "*.py"},
)


def search():
    s.scenario("search", s.each("search", *SEARCHES))
    s.scenario("search regex", s.each("search", *({"query": query, "regex": True, "path": "src"} for query in REGEXES), *({"query": query, "regex": True, "path": "lines.txt"} for query in REGEXES),
                                      *({"query": query, "regex": True, "glob": "[a-c]*.txt"} for query in REGEXES if query not in ("x*", "^$"))))
    for given in ANALYSES:
        s.scenario(f"search analysis {' '.join(f'{name}={value}' for name, value in given.items())}", [("search", given)])


def skills():
    local = {"include_global_skills": False}
    s.scenario("skills", s.each("load_skill", *({**given, **local} for given in (
        {"name": "first"}, {"name": "two"}, {"name": "First"}, {"name": ""}, {"name": "none"}, {"name": "long"}, {"name": "long", "max_bytes": 1000}, {"name": "long", "max_bytes": 1001}, {"name": "first", "source": "workspace"},
        {"name": "first", "source": "user"}, {"name": "first", "path": "$WORKSPACE/skills/three/SKILL.md"}, {"name": "first", "path": "skills/three/SKILL.md"}, {"name": "two", "max_skills": 1},
        {"name": "two", "max_skills": 2}))) + s.each("load_skill", {"name": "first", "source": "workspace"}, {"name": "first", "path": "$WORKSPACE/.codex/skills/one/SKILL.md"}))
    everywhere = {"include_global_skills": True}
    s.scenario("skills of the home", s.each("load_skill", *({**given, **everywhere} for given in ({"name": "mine"}, {"name": "first"}, {"name": "first", "source": "user"}, {"name": "plugged"}, {"name": "plugged", "source": "plugin"},
                                                                                                   {"name": "mine", "path": "~/.codex/skills/mine/SKILL.md"}, {"name": "mine", "source": "other"}, {"name": "min"}))) +
               s.each("load_skill", {"name": "mine"}) + s.each("open_current_workspace", {"include_skills": True, "include_global_skills": True}), needs_home=True)


def workspace():
    s.scenario("server_config", [("server_config", {})])
    s.scenario("open", s.each("open_current_workspace", {}, {"include_tree": True}, {"include_tree": True, "max_depth": 1}, {"include_tree": True, "max_depth": 8}, {"max_depth": 8}, {"include_skills": True},
                              {"include_global_skills": True}))
    s.scenario("open changed", [("open_current_workspace", {})], s.changed)
    s.scenario("open without a repository", [("open_current_workspace", {})], s.without_git)
    s.scenario("open with an override", [("open_current_workspace", {})], s.put("AGENTS.override.md", b"x"))
    s.scenario("inspect", s.each("inspect_workspace", {}))
    s.scenario("inspect again", s.each("inspect_workspace", {}, {}))
    for path in ("src", "c", "py/main.py", "nowhere", ".", "..", "link-dir", ".git", "src/", "./src", "img"):
        s.scenario(f"inspect {path}", [("inspect_workspace", {"path": path})])
    for given in ({"include_symbols": False}, {"include_relationships": False}, {"max_files": 1}, {"max_files": 5}, {"max_symbols": 3}, {"max_relationships": 1}, {"include_symbols": False, "include_relationships": False}):
        s.scenario(f"inspect with {given}", [("inspect_workspace", {"path": "src", **given})])


def add():
    for table in (read, tree, view_image, search, skills, workspace):
        table()
