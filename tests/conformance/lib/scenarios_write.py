"""Calls that change files: write, edit, apply_patch, import_file."""
import hashlib

import repository
import scenarios as s

WRONG = "0" * 64
HASH = {name: hashlib.sha256(data).hexdigest() for name, data in repository.ODD.items()}
TARGETS = ("new.txt", "made/deep/er/new.txt", "a.txt", "d", "link-in", "link-dangling", "link-dir/made.txt", "link-out", "link-out-dir/x", "../x", ".", "", "a.txt/x", "dist/x", ".env", ".env.local", "x.pem", ".ai-bridge/x.md",
           "nul.bin", "fifo", "read only.txt", "..x", "d/..x", "...", "huge.txt", "ROOT/abs.txt", "/abs.txt", "~/x", "exec.sh", "trailing/", "x" * 256, "node_modules/x", "src/dist/x", "n\0l", "keys/id_rsa")
CONTENTS = ("", "hello\n", "hello", "\n", "a\n\n\n", "alpha\nbeta\ngamma\n", "alpha\nBETA\ngamma\n", "alpha\r\nbeta\r\ngamma\r\n", "alpha\nbeta\ngamma", "zero\nalpha\nbeta\ngamma\n", "größe 漢字 🎉\n", "with\0nul\n", "\ufeffbom\n",
            "many\n" * 3000, "x" * 70000, "y" * 1000000, "z" * 1000001, "é" * 500001, "tokenizer = some\n")


def write():
    s.alone("write", "write target", *({"path": path, "content": "text\n"} for path in TARGETS))
    s.alone("write", "write content", *({"path": "a.txt", "content": content} for content in CONTENTS))
    s.alone("write", "write new content", *({"path": "fresh.txt", "content": content} for content in CONTENTS))
    s.alone("write", "write options", {"path": "a.txt", "content": "x", "overwrite": False}, {"path": "fresh", "content": "x", "overwrite": False}, {"path": "p/q", "content": "x", "create_dirs": False},
            {"path": "a.txt", "content": "x", "create_dirs": False}, {"path": "a.txt", "content": "x", "expected_sha256": HASH["a.txt"]}, {"path": "a.txt", "content": "x", "expected_sha256": HASH["a.txt"].upper()},
            {"path": "a.txt", "content": "x", "expected_sha256": WRONG}, {"path": "fresh", "content": "x", "expected_sha256": WRONG}, {"path": "a.txt", "content": "x", "expected_sha256": HASH["a.txt"], "overwrite": False},
            {"path": "lines.txt", "content": "line 1\n"}, {"path": "bad.txt", "content": "x\n"}, {"path": "secret.txt", "content": "x\n"}, {"path": "crlf.txt", "content": "one\ntwo\nthree\n"}, {"path": "empty.txt", "content": ""})
    s.scenario("write twice", [("write", {"path": "t", "content": "1\n"}), ("read", {"path": "t"}), ("write", {"path": "t", "content": "2\n"}), ("edit", {"path": "t", "old_text": "2", "new_text": "3"}), ("read", {"path": "t"})])


EDITS = (
    ("a.txt", "beta", "BETA"), ("a.txt", "beta\n", ""), ("a.txt", "", "x"), ("a.txt", "nowhere", "x"), ("a.txt", "a", "o"), ("a.txt", "beta", "beta"), ("a.txt", "alpha\nbeta", "one"), ("a.txt", "gamma\n", "gamma"),
    ("aaaa.txt", "aa", "b"), ("crlf.txt", "one\ntwo", "x"), ("crlf.txt", "one\r\ntwo", "x\ny"), ("crlf.txt", "two", "TWO"), ("mixed.txt", "c\rd", "cd"), ("bom.txt", "first", "FIRST"), ("bom.txt", "\ufefffirst", "first"),
    ("nul.bin", "a", "b"), ("empty.txt", "x", "y"), ("one.txt", "one", "two"), ("wide.txt", "漢字", "kanji"), ("link-in", "beta", "x"), ("link-dir/x.txt", "two", "2"), ("d", "x", "y"), ("nowhere", "x", "y"), (".env", "needle", "x"),
    ("../x", "a", "b"), ("read only.txt", "mode", "MODE"), ("exec.sh", "exit 0", "exit 1"), ("lines.txt", "line 60\n", "sixty\n"), ("huge.txt", "abcdef", "x"), ("dollar.txt", "cost", "price"), ("a.txt", "beta", "x" * 1000000),
    ("link-out", "a", "b"), ("trailing.txt", "\n\n", "\n"),
)


def edit():
    s.alone("edit", "edit", *({"path": path, "old_text": old, "new_text": new} for path, old, new in EDITS))
    s.alone("edit", "edit all", *({"path": path, "old_text": old, "new_text": new, "replace_all": True} for path, old, new in EDITS if old))
    s.alone("edit", "edit options", *({"path": "a.txt", "old_text": "a", "new_text": "o", **more} for more in (
        {"expected_replacements": 1}, {"expected_replacements": 5}, {"replace_all": True, "expected_replacements": 5}, {"replace_all": True, "expected_replacements": 4}, {"replace_all": True, "expected_sha256": WRONG},
        {"replace_all": True, "expected_sha256": HASH["a.txt"]}, {"expected_sha256": HASH["a.txt"]}, {"replace_all": False, "expected_replacements": 2})))
    s.alone("edit", "edit dollar", *({"path": "a.txt", "old_text": "beta", "new_text": text} for text in ("$&", "$$", "$`", "$'", "$1", "\\n", "\\1")))
    s.alone("edit", "edit bad bytes", {"path": "bad.txt", "old_text": "last", "new_text": "LAST"}, {"path": "latin.txt", "old_text": "na", "new_text": "NA"})
    s.alone("edit", "edit beside a secret", {"path": "secret.txt", "old_text": "plain", "new_text": "PLAIN"})


def hunk(old, new, name="a.txt", head="", prefix=("a/", "b/")):
    """A patch of one whole-file hunk."""
    left, right = old.splitlines(), new.splitlines()
    body = "".join(f"-{line}\n" for line in left) + "".join(f"+{line}\n" for line in right)
    return f"{head}--- {prefix[0]}{name}\n+++ {prefix[1]}{name}\n@@ -1,{len(left)} +1,{len(right)} @@\n{body}"


OLD = "alpha\nbeta\ngamma\n"
GOOD = hunk(OLD, "alpha\nBETA\ngamma\n")
PATCHES = {
    "plain": GOOD, "git": hunk(OLD, "x\n", head="diff --git a/a.txt b/a.txt\nindex 1..2 100644\n"), "wrong context": hunk("alpha\nBETA\ngamma\n", "x\n"), "empty": "", "blank": "  \n", "words": "just words\n",
    "begin patch": "*** Begin Patch\n*** Update File: a.txt\n@@\n-beta\n+BETA\n*** End Patch\n", "no final line end": GOOD.rstrip("\n"), "no prefix": hunk("one\ntwo\nthree\nfour\nfive\nsix\nseven\neight\nnine\nten\n", "x\n", "d/x.txt", prefix=("", "")),
    "create": "diff --git a/made/new.txt b/made/new.txt\nnew file mode 100644\n--- /dev/null\n+++ b/made/new.txt\n@@ -0,0 +1,2 @@\n+one\n+two\n", "create plain": "--- /dev/null\n+++ b/plain.txt\n@@ -0,0 +1 @@\n+one\n",
    "create executable": "diff --git a/run b/run\nnew file mode 100755\n--- /dev/null\n+++ b/run\n@@ -0,0 +1 @@\n+#!/bin/sh\n", "create existing": "--- /dev/null\n+++ b/a.txt\n@@ -0,0 +1 @@\n+one\n",
    "delete": "diff --git a/a.txt b/a.txt\ndeleted file mode 100644\n--- a/a.txt\n+++ /dev/null\n@@ -1,3 +0,0 @@\n-alpha\n-beta\n-gamma\n", "delete last of a directory": "diff --git a/deep/a/b/c/d/e/f/g.txt b/deep/a/b/c/d/e/f/g.txt\ndeleted file mode 100644\n"
    "--- a/deep/a/b/c/d/e/f/g.txt\n+++ /dev/null\n@@ -1 +0,0 @@\n-needle deep\n", "rename": "diff --git a/a.txt b/moved/a2.txt\nsimilarity index 100%\nrename from a.txt\nrename to moved/a2.txt\n",
    "rename and change": "diff --git a/a.txt b/r.txt\nsimilarity index 60%\nrename from a.txt\nrename to r.txt\n--- a/a.txt\n+++ b/r.txt\n@@ -1,3 +1,3 @@\n alpha\n-beta\n+BETA\n gamma\n",
    "copy": "diff --git a/a.txt b/copy.txt\nsimilarity index 100%\ncopy from a.txt\ncopy to copy.txt\n", "mode only": "diff --git a/a.txt b/a.txt\nold mode 100644\nnew mode 100755\n",
    "mode and change": "diff --git a/a.txt b/a.txt\nold mode 100644\nnew mode 100755\n--- a/a.txt\n+++ b/a.txt\n@@ -1,3 +1,3 @@\n alpha\n-beta\n+BETA\n gamma\n", "symlink": "diff --git a/l b/l\nnew file mode 120000\n--- /dev/null\n+++ b/l\n@@ -0,0 +1 @@\n+/etc\n\\ No newline at end of file\n",
    "two files": GOOD + hunk("one line\n", "ONE\n", "C-1.txt").replace("one line", "c"), "second fails": GOOD + hunk("zz\n", "ONE\n", "C-1.txt"), "escape": hunk(OLD, "x\n", "../a.txt"), "absolute": hunk(OLD, "x\n", "/etc/hostname", prefix=("", "")),
    "blocked": hunk("needle=blocked\n", "x\n", ".env"), "through link": hunk("one\n", "x\n", "link-dir/x.txt"), "link": hunk(OLD, "x\n", "link-in"), "crlf": "--- a/crlf.txt\n+++ b/crlf.txt\n@@ -1,3 +1,3 @@\n one\r\n-two\r\n+TWO\r\n three\r\n",
    "crlf given as lf": hunk("one\ntwo\nthree\n", "x\n", "crlf.txt"), "missing": hunk(OLD, "x\n", "nowhere.txt"), "spaces": hunk("mode 0444\n", "mode\n", "read only.txt"), "tab": GOOD.replace("a.txt\n", "a.txt\t2024-01-01 00:00:00\n"),
    "quoted": '--- "a/uml\\303\\244ut.txt"\n+++ "b/uml\\303\\244ut.txt"\n@@ -1 +1 @@\n-needle umlaut\n+x\n', "no newline": "--- a/one.txt\n+++ b/one.txt\n@@ -1 +1 @@\n-one line without end\n\\ No newline at end of file\n+ended\n",
    "trailing blanks": GOOD.replace("+BETA", "+BETA  ") + "\n\n", "corrupt": GOOD.replace("-beta", "?beta"), "count": GOOD.replace("1,3 +1,3", "1,4 +1,4"), "offset": "--- a/lines.txt\n+++ b/lines.txt\n@@ -10,3 +10,3 @@\n line 50\n-line 51\n+LINE\n line 52\n",
    "binary": "diff --git a/nul.bin b/nul.bin\nindex 1..2\nBinary files a/nul.bin and b/nul.bin differ\n", "directory": hunk("x\n", "y\n", "d"), "executable": hunk("#!/bin/sh\nexit 0\n", "#!/bin/sh\nexit 2\n", "exec.sh"),
    "dashes": "--- a/a.txt\n+++ b/a.txt\n@@ -1,3 +1,3 @@\n alpha\n beta\n-gamma\n+-- note\n", "too large": GOOD + "#" * 1000001, "commit text": "From x\nSubject: y\n\n---\n a.txt | 2\n\n" + GOOD, "in dist": hunk("needle blocked\n", "x\n", "dist/out.js"),
    "two hunks": "--- a/lines.txt\n+++ b/lines.txt\n@@ -1,2 +1,2 @@\n-line 1\n+LINE 1\n line 2\n@@ -119,2 +119,2 @@\n line 119\n-line 120\n+LINE 120\n",
}


def patches():
    for name, patch in PATCHES.items():
        s.scenario(f"patch {name}", [("apply_patch", {"patch": patch})])
    s.scenario("patch without a repository", [("apply_patch", {"patch": PATCHES[name]}) for name in ("plain", "create", "wrong context", "git", "rename")], s.without_git)
    s.scenario("patch again", [("apply_patch", {"patch": GOOD}), ("apply_patch", {"patch": GOOD}), ("read", {"path": "a.txt"})])
    s.scenario("patch with removed dashes", [("apply_patch", {"patch": "--- a/q.sql\n+++ b/q.sql\n@@ -1,2 +1 @@\n--- note\n x\n"})], s.put("q.sql", b"-- note\nx\n"))


URLS = ("http://chatgpt.com/x", "https://example.org/x", "https://user:pw@chatgpt.com/x", "https://chatgpt.com.example.org/x", "file:///etc/passwd", "not a url", "", "https://localhost/x", "https://127.0.0.1/x", "https://[::1]/x",
        "https://169.254.169.254/x", "ftp://chatgpt.com/x", "sandbox:/mnt/data/x.png", "https://notchatgpt.com/x", "https:///x", "//chatgpt.com/x", "https://10.0.0.1/x")


def imports():
    attachment = {"download_url": URLS[1], "file_id": "file_1"}
    s.scenario("import addresses", s.each("import_file", *({"file": {"download_url": url, "file_id": "file_1"}, "destination": "in.bin"} for url in URLS)))
    s.scenario("import destinations", s.each("import_file", *({"file": attachment, "destination": path} for path in ("a.txt", "../x", ".env", "link-in", "d", "dist/x", "", "link-out-dir/x", "a.txt/x")),
                                             {"file": attachment, "destination": "a.txt", "overwrite": True}))


def add():
    for table in (write, edit, patches, imports):
        table()
