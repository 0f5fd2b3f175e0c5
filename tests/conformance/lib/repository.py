"""The made repository on which two servers are compared: several languages, links, odd bytes, hidden, ignored and blocked
names, images, skills, planning files. The same bytes, modes, times and commits wherever it is made."""
import os
import shutil
import stat
import struct
import subprocess
import zlib

DATE = "2024-05-06T07:08:09+00:00"
MTIME = 1715000000
GIT = {"GIT_AUTHOR_NAME": "A", "GIT_AUTHOR_EMAIL": "a@example.org", "GIT_COMMITTER_NAME": "A", "GIT_COMMITTER_EMAIL": "a@example.org",
       "GIT_AUTHOR_DATE": DATE, "GIT_COMMITTER_DATE": DATE, "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_SYSTEM": "/dev/null",
       "PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": "/nonexistent"}


def png(width, height):
    def chunk(kind, data):
        body = kind + data
        return struct.pack(">I", len(data)) + body + struct.pack(">I", zlib.crc32(body))
    rows = b"".join(b"\0" + b"\x10\x20\x30" * width for _ in range(height))
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)) + chunk(b"IDAT", zlib.compress(rows, 9)) +
            chunk(b"IEND", b""))


IMAGES = {
    "img/dot.png": png(3, 2), "img/wide.png": png(300, 20), "img/named.txt": png(1, 1), "img/short.png": b"\x89PNG\r\n\x1a\n\0\0\0",
    "img/a.gif": b"GIF89a" + struct.pack("<HH", 7, 5) + b"\0\0\0;", "img/old.gif": b"GIF87a" + struct.pack("<HH", 9, 4) + b"\0\0\0;",
    "img/a.jpg": b"\xff\xd8\xff\xe0\0\4ab\xff\xc0\0\x0b\x08\0\x10\0\x20\1\1\x11\0\xff\xd9", "img/nosize.jpg": b"\xff\xd8\xff\xe0\0\4ab\xff\xd9",
    "img/progressive.jpg": b"\xff\xd8\xff\xfe\0\4hi\xff\xc2\0\x0b\x08\1\0\2\0\1\1\x11\0\xff\xd9",
    "img/x.webp": b"RIFF\x1e\0\0\0WEBPVP8X\x0a\0\0\0\0\0\0\0\x63\0\0\x31\0\0", "img/lossy.webp": b"RIFF\x10\0\0\0WEBPVP8 \4\0\0\0abcd",
    "img/fake.png": b"not a picture at all, only its name says so\n", "img/empty.png": b"", "img/large.png": png(2, 2) + b"\0" * 1100000,
}
SOURCES = {
    "package.json": '{\n  "name": "made",\n  "scripts": {"test": "node test.js", "lint": "eslint .", "build": "tsc"}\n}\n',
    "tsconfig.json": "{}\n", "pyproject.toml": "[project]\nname = 'made'\n", "go.mod": "module example.org/made\n", "Makefile": "all:\n\ttrue\n",
    "README.md": "# Made\n\nThe alpha function greets. See Greeter.\n", "AGENTS.md": "Be kind.\n", "docs/guide.md": "# Guide\n\nalpha is documented here.\n",
    "src/index.ts": "import { alpha } from './alpha';\nexport const beta = 1;\nexport function main() {\n  return alpha(beta);\n}\nmain();\n",
    "src/alpha.ts": "export function alpha(n: number) {\n  return n + 1;\n}\nexport interface Shape { side: number }\nexport class Greeter {\n  greet() { return alpha(2); }\n}\n",
    "src/alpha.test.ts": "import { alpha } from './alpha';\ntest('alpha', () => alpha(1));\n",
    "src/util/index.js": "const helper = require('./helper');\nmodule.exports = { helper };\n", "src/util/helper.js": "function helper() { return 'needle'; }\nmodule.exports = helper;\n",
    "src/api/session_token.ts": "export const route = '/session';\n", "src/model.g.dart": "class Made {}\n",
    "py/main.py": "import os\nfrom .tools import use\n\nclass Runner:\n    def run(self):\n        return use(os)\n\ndef alpha():\n    return Runner()\n",
    "py/tools.py": "def use(x):\n    return x\n\n\nasync def later():\n    return None\n", "py/test_tools.py": "from tools import use\n\ndef test_use():\n    assert use(1)\n",
    "go/main.go": "package main\n\ntype Box struct{}\n\nfunc main() {\n\talpha()\n}\n\nfunc (b *Box) Open() {}\n", "go/main_test.go": "package main\n\nfunc TestAlpha(t *T) {}\n",
    "c/main.c": '#include "./part.h"\n#include "part.h"\n#include <stdio.h>\n\nint main(void) {\n    return part();\n}\n', "c/part.h": "int part(void);\n",
    "c/part.c": '#include "./part.h"\n\nint part(void)\n{\n    return 3;\n}\n\nstatic int inner(int x) {\n    return x;\n}\n',
    "cpp/box.cpp": '#include "./box.hpp"\n\nclass Lid {};\nstruct Hinge {};\nint open_box() {\n    return 1;\n}\n', "cpp/box.hpp": "class Box {\n};\n",
    "rs/lib.rs": "pub fn alpha() {}\nstruct Inner;\npub enum Kind { A }\ntrait Speak {}\n", "sw/App.swift": "public class App {}\nfunc run() {}\nprotocol P {}\nstruct S {}\n",
    "jv/App.java": "public class App {\n  interface In {}\n  enum E { A }\n}\n", "cs/Program.cs": "public class Program {\n  interface I {}\n  struct S {}\n}\n",
    "run.sh": "#!/bin/bash\ngreet() {\n  echo needle\n}\ngreet\n", "config/app.yaml": "needle: 1\n", "deploy/main.tf": "resource {}\n", "Dockerfile": "FROM scratch\n",
    "vendor/lib.js": "export function vendored() {}\n", "third_party/x.py": "def third(): pass\n", ".github/workflows/ci.yml": "on: push\n", ".hidden/inner.txt": "needle hidden\n",
    ".envrc": "A=1\n", ".gitignore": "*.log\n/ignored/\n!keep.log\n", "debug.log": "needle in log\n", "keep.log": "needle kept\n", "ignored/x.txt": "needle ignored\n",
    "node_modules/m/index.js": "needle blocked\n", "dist/out.js": "needle blocked\n", ".env": "needle=blocked\n", "keys/server.pem": "needle blocked\n", "keys/id_rsa": "needle\n",
    ".ssh/config": "needle\n", "build.gradle": "needle\n", "sub/.git.keep": "x\n", "deep/a/b/c/d/e/f/g.txt": "needle deep\n",
    ".codex/skills/one/SKILL.md": "---\nname: first\ndescription: The first skill\n---\n\nDo this.\n", ".agents/skills/two/SKILL.md": "No front matter.\n",
    "skills/three/SKILL.md": "---\nname: \"first\"\ndescription: 'Same name'\n---\nOther.\n", "skills/long/SKILL.md": "---\nname: long\n---\n" + "é" * 3000 + "\n",
}
PLANNING = {
    "current-plan.md": "# Plan\n\n" + "".join(f"step {n}\n" for n in range(60)), "agent-status.md": "going well\n", "decisions.md": "- one\n", "open-questions.md": "",
    "implementation-diff.patch": "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n", "execution-log.jsonl": "".join(f'{{"n": {n}}}\n' for n in range(30)),
    "handoff-run-state.json": '{"state": "completed", "iteration": 3, "plan_hash": "abc", "exit_code": 0, "timed_out": false, "started_at": "2024-01-01T00:00:00Z", '
                              '"finished_at": "2024-01-01T00:01:00Z", "executor": "codex", "model": "m"}\n',
}
ODD = {
    "lines.txt": "".join(f"line {n}\n" for n in range(1, 121)).encode(), "one.txt": b"one line without end", "empty.txt": b"", "crlf.txt": b"one\r\ntwo\r\nthree\r\n",
    "mixed.txt": b"a\r\nb\nc\rd\n", "bom.txt": b"\xef\xbb\xbffirst\nsecond\n", "bad.txt": b"good\nb\xffd \xe2\x82 cut\n\xed\xa0\x80\nlast\n", "nul.bin": b"a\0b\n",
    "latin.txt": "größe\nnaïve\n".encode("latin-1"), "wide.txt": "größe 漢字 🎉 needle\n".encode(), "trailing.txt": b"a\n\n\n", "long.txt": b"x" * 500 + b"needle" + b"y" * 900 + b"\n",
    "big.txt": b"0123456789 plenty\n" * 12000, "huge.txt": b"0123456789 abcdef\n" * 45000, "many.txt": b"plenty\n" * 260, "aaaa.txt": b"aaaa\n", "dollar.txt": b"cost $1\n",
    "secret.txt": b"API_KEY=abcdefghijklmnopqrstuvwx\npassword: 'hunter2hunter2'\nplain\n", "read only.txt": b"mode 0444\n", "exec.sh": b"#!/bin/sh\nexit 0\n",
    "name [x].txt": b"needle brackets\n", "umläut.txt": b"needle umlaut\n", "B.txt": b"b\n", "a.txt": b"alpha\nbeta\ngamma\n", "_u.txt": b"u\n", "C-1.txt": b"c\n",
    "d/x.txt": b"one\ntwo\nthree\nfour\nfive\nsix\nseven\neight\nnine\nten\n", "d/..a": b"dots\n", "tabs.txt": b"\tone\n\ttwo\n",
}
LINKS = {"link-in": "a.txt", "link-dir": "d", "link-out": "/etc/hostname", "link-up": "../outside.txt", "link-dangling": "nowhere", "link-loop": "link-loop", "d/link-up-in": "../a.txt",
         "link-blocked": ".env", "link-out-dir": "/etc"}


def put(root, name, data):
    path = os.path.join(root, name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as file:
        file.write(data if isinstance(data, bytes) else data.encode())


def git(root, *words):
    subprocess.run(["git", "-C", root, "-c", "init.defaultBranch=main", *words], env=GIT, check=True, stdout=subprocess.DEVNULL)


def stamp(root):
    """The same times everywhere."""
    for base, directories, files in os.walk(root):
        for name in directories + files:
            os.utime(os.path.join(base, name), (MTIME, MTIME), follow_symlinks=False)


def make(root):
    """Makes the repository in an empty directory."""
    for table in (SOURCES, ODD, IMAGES, {f".ai-bridge/{name}": text for name, text in PLANNING.items()}):
        for name, data in table.items():
            put(root, name, data)
    os.chmod(os.path.join(root, "read only.txt"), 0o444)
    for name in ("exec.sh", "run.sh"):
        os.chmod(os.path.join(root, name), 0o755)
    for name, target in LINKS.items():
        os.symlink(target, os.path.join(root, name))
    os.mkfifo(os.path.join(root, "fifo"))
    os.makedirs(os.path.join(root, "void/inner"))
    stamp(root)
    git(root, "init", "-q", "--template=")
    git(root, "config", "core.fileMode", "true")
    git(root, "add", "-A")
    git(root, "reset", "-q", "--", "img")
    git(root, "commit", "-qm", "First")
    put(root, "README.md", SOURCES["README.md"] + "More.\n")
    git(root, "commit", "-qam", "Second")
    git(root, "repack", "-qad")
    os.utime(os.path.join(root, "README.md"), (MTIME, MTIME))


def clear(root):
    """Empties the directory; it stays itself."""
    for entry in os.scandir(root):
        remove(entry.path)


def copy(template, root):
    """root becomes a copy of the template, times, modes and links included."""
    clear(root)
    subprocess.run(["cp", "-a", f"{template}/.", root], check=True)
    refresh(root)


def refresh(root):
    """The stat data of a copied index belong to the template."""
    subprocess.run(["git", "-C", root, "update-index", "-q", "--refresh"], env=GIT, check=False, stdout=subprocess.DEVNULL)


def shapes(root):
    """{name: what a change of it shows} of everything below the root but git's own files."""
    found = {}
    for base, directories, names in os.walk(root):
        if base == root and ".git" in directories:
            directories.remove(".git")
        for name in directories + names:
            path = os.path.join(base, name)
            entry = os.lstat(path)
            content = None if stat.S_ISDIR(entry.st_mode) else (entry.st_size, entry.st_mtime_ns)
            found[os.path.relpath(path, root)] = (entry.st_mode, content)
    return found


def restore(template, root, with_git):
    """Makes root a copy of the template again after calls changed some of it: the quick way."""
    wanted, found = shapes(template), shapes(root)
    for name in sorted(found, reverse=True):
        if found[name] != wanted.get(name):
            path = os.path.join(root, name)
            (os.rmdir if stat.S_ISDIR(found[name][0]) and not os.listdir(path) else remove)(path)
    left = shapes(root)
    missing = [name for name in wanted if name not in left and os.path.dirname(name) not in wanted.keys() - left.keys()]
    if with_git:
        shutil.rmtree(os.path.join(root, ".git"), ignore_errors=True)
        missing.append(".git")
    if missing:
        subprocess.run(["cp", "-a", "--parents", *(f"./{name}" for name in missing), root], cwd=template, check=True)
    if with_git:
        refresh(root)


def remove(path):
    if os.path.isdir(path) and not os.path.islink(path):
        shutil.rmtree(path)
    else:
        os.unlink(path)


def put_home(home):
    """Skills of a person, for the calls that look there."""
    put(home, ".codex/skills/mine/SKILL.md", "---\nname: mine\ndescription: Of the home\n---\nMine.\n")
    put(home, ".agents/skills/first/SKILL.md", "---\nname: first\n---\nThe home's first.\n")
    put(home, ".codex/plugins/cache/p/q/r/skills/deep/SKILL.md", "---\nname: plugged\n---\nPlugin.\n")
