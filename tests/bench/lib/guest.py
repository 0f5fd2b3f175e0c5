"""Figures about the tools of chat2shell-guest, spoken to over its stdio, each beside the program that one would call for the same in a shell. The
peers' times include starting them; the guest's include JSON both ways. Files are in TMPDIR: what flushing costs depends on that file system."""
import json
import os
import shutil
import subprocess
import tempfile

from measure import BUILD, Skip, median, row, times_ms

DIRECTORIES, FILES_EACH = 500, 100
MEMORY_AIM_MIB = 64
NEEDLE = "needle_in_the_haystack"
PATCHED = 50
TREE_ENTRIES = 3000  # the most that one call of tree gives


class Guest:
    """The program itself, without a sandbox, with HOME empty so that the login shells read no profile of the user's."""

    def __init__(self, workspace):
        self.environment = {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": "/nonexistent", "LANG": "C.UTF-8", "TMPDIR": tempfile.gettempdir()}
        self.process = subprocess.Popen([os.path.join(BUILD, "chat2shell-guest"), "--root", workspace, "--stdio"], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=self.environment)
        self.request("initialize", {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}})

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        self.process.stdout.close()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def exchange(self, message):
        """Sends one ready line, gives the answer's line."""
        while message:
            message = message[os.write(self.process.stdin.fileno(), message):]
        parts = [b""]
        while not parts[-1].endswith(b"\n"):
            parts.append(os.read(self.process.stdout.fileno(), 1 << 20))
            if not parts[-1]:
                raise RuntimeError("the guest ended")
        return b"".join(parts)

    @staticmethod
    def message(method, params):
        return json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode() + b"\n"

    @classmethod
    def tool(cls, name, **arguments):
        return cls.message("tools/call", {"name": name, "arguments": arguments})

    def request(self, method, params):
        return self.checked(self.exchange(self.message(method, params)))

    @staticmethod
    def checked(line):
        """The structured result of a tool, or the plain result of a method."""
        answer = json.loads(line)
        result = answer.get("result")
        if result is None or result.get("isError"):
            raise RuntimeError(f"the guest answered {str(answer)[:300]}")
        return result.get("structuredContent", result)

    def call(self, name, **arguments):
        return self.checked(self.exchange(self.tool(name, **arguments)))

    def peak_mib(self):
        with open(f"/proc/{self.process.pid}/status") as file:
            return next(int(line.split()[1]) for line in file if line.startswith("VmHWM:")) / 1024


# ---- what they work on ------------------------------------------------------------------------------------------------------
def source_text(number):
    """About 1,700 bytes of C; one file in 500 holds the needle."""
    body = "".join(f"static int step_{number}_{i}(int value)\n{{\n    return value * {i + 3} + {number % 97}; // step {i} of {number}\n}}\n\n"
                   for i in range(16))
    return f'#include "module_{number % 50}.h"\n\n' + (f"// {NEEDLE}\n" if number % 500 == 7 else "") + body


def make_tree(top):
    """50,000 files in 500 directories, two levels deep, in a repository's clothes: .gitignore counts there for all programs."""
    os.mkdir(os.path.join(top, ".git"))
    with open(os.path.join(top, ".gitignore"), "w") as file:
        file.write("*.o\n/out/\n")
    for i in range(DIRECTORIES):
        path = os.path.join(top, f"part{i // 25:02}", f"module{i:03}")
        os.makedirs(path)
        for j in range(FILES_EACH):
            with open(os.path.join(path, f"file{j:02}.c"), "w") as file:
                file.write(source_text(i * FILES_EACH + j))


def small_file(top):
    with open(os.path.join(top, "hundred.txt"), "w") as file:
        file.write("".join(f"line {i} of a file with a hundred lines, each of a usual length\n" for i in range(1, 101)))


def patched_text(number, is_changed):
    lines = [f"line {i} of file {number}\n" for i in range(60)]
    if is_changed:
        lines[30] = f"another line 30 of file {number}\n"
    return "".join(lines)


def make_patched(top):
    for i in range(PATCHED):
        with open(os.path.join(top, f"p{i:02}.txt"), "w") as file:
            file.write(patched_text(i, False))


def patch_text(is_back):
    out = []
    for i in range(PATCHED):
        old, new = (patched_text(i, flag).splitlines(True) for flag in (is_back, not is_back))
        hunk = [" " + line for line in old[27:30]] + ["-" + old[30], "+" + new[30]] + [" " + line for line in old[31:34]]
        out.append(f"diff --git a/p{i:02}.txt b/p{i:02}.txt\n--- a/p{i:02}.txt\n+++ b/p{i:02}.txt\n@@ -28,7 +28,7 @@\n" + "".join(hunk))
    return "".join(out)


# ---- peers ------------------------------------------------------------------------------------------------------------------
def program(*names):
    """The first of them that is installed."""
    found = next((path for path in map(shutil.which, names) if path), None)
    if not found:
        raise Skip(f"{names[0]} is not installed: deploy/install-packages bench")
    return found


def run(argv, cwd, environment=None, codes=(0,)):
    done = subprocess.run(argv, cwd=cwd, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    if done.returncode not in codes:
        raise RuntimeError(f"{' '.join(argv)}: {done.stderr.decode(errors='replace')[:300]}")
    return done.stdout


def both(rounds, ours, theirs):
    """Two functions take turns, after one round of each that warms the caches. (median, the other's median, median of the ratios, a note with the
    fastest of each: what other work on the machine blurs least)"""
    mine, other = [], []
    for _ in range(rounds + 1):
        other += times_ms(1, theirs)
        mine += times_ms(1, ours)
    mine, other = mine[1:], other[1:]
    return median(mine), median(other), median([a / b for a, b in zip(mine, other)]), f"fastest {min(mine):.1f} ms, the other's {min(other):.1f} ms"


# ---- figures ----------------------------------------------------------------------------------------------------------------
def read_and_edit(rounds, top):
    small_file(top)
    path = os.path.join(top, "hundred.txt")
    with Guest(top) as guest:
        def read_file():
            with open(path) as file:
                return file.read()

        message, ping = guest.tool("read", path="hundred.txt"), guest.message("ping", {})
        guest.checked(guest.exchange(message))
        mine = median(times_ms(rounds * 20, lambda: guest.exchange(message)))
        pings = median(times_ms(rounds * 20, lambda: guest.exchange(ping)))
        cat = median(times_ms(rounds, lambda: run(["/bin/cat", path], top)))
        row("read of a 100-line file", mine, "ms", f"cat {cat:.2f} ms", mine / cat, note=f"ping {pings:.3f} ms")
        words = "line 50 of", "line fifty of"
        edits = [guest.tool("edit", path="hundred.txt", old_text=old, new_text=new) for old, new in (words, words[::-1])]
        for message in edits:
            guest.checked(guest.exchange(message))
        times = iter(edits * rounds)
        mine = times_ms(rounds * 2, lambda: guest.exchange(next(times)))
        theirs = times_ms(rounds, lambda: run(["sed", "-i", "s/line 50 of/line 50 of/", path], top))
        row("edit of one line in it", median(mine), "ms", f"sed -i {median(theirs):.2f} ms", median(mine) / median(theirs),
            note=f"sed flushes nothing; write and fsync alone {flushed_write_ms(top, rounds):.2f} ms")


def flushed_write_ms(top, rounds):
    path = os.path.join(top, "flushed")

    def write():
        with open(path, "w") as file:
            file.write("x" * 6000)
            file.flush()
            os.fsync(file.fileno())

    return median(times_ms(rounds, write))


def search(rounds, top):
    rg = program("rg")
    with Guest(top) as guest:
        message = guest.tool("search", query=NEEDLE)
        expected = sorted(line.split(":", 1)[0] for line in run([rg, "--fixed-strings", NEEDLE], top).decode().splitlines())
        found = guest.checked(guest.exchange(message))
        if sorted(match["path"] for match in found["matches"]) != expected or found["truncated"]:
            raise RuntimeError(f"search found {len(found['matches'])} lines, rg {len(expected)}")
        mine, theirs, ratio, fastest = both(rounds, lambda: guest.exchange(message), lambda: run([rg, "--fixed-strings", "-n", NEEDLE], top))
        in_order = median(times_ms(rounds, lambda: run([rg, "--fixed-strings", "-n", "--sort", "path", NEEDLE], top)))
        row(f"search of a literal over {DIRECTORIES * FILES_EACH:,} files", mine, "ms", f"rg {theirs:.0f} ms", ratio, "<= 1.5x", ratio <= 1.5,
            f"{fastest}; in order of path, as search does it, rg takes {in_order:.0f} ms: {mine / in_order:.2f}x")
        message = guest.tool("search", query="step_\\d+_1[23]\\(int valued", regex=True)
        guest.checked(guest.exchange(message))
        mine, theirs, ratio, fastest = both(rounds, lambda: guest.exchange(message), lambda: run([rg, "-n", "step_\\d+_1[23]\\(int valued"], top, codes=(0, 1)))
        row("search of a regular expression over the same", mine, "ms", f"rg {theirs:.0f} ms", ratio, note=fastest)


def tree(rounds, top):
    """One part of the tree, which one call draws whole, against the faster of the two that list it."""
    fd, path = program("fdfind", "fd"), "part00"
    with Guest(top) as guest:
        message = guest.tool("tree", path=path, max_entries=TREE_ENTRIES, max_depth=12)
        drawn = guest.checked(guest.exchange(message))
        listed = len(run([fd, ".", path], top).splitlines())
        if drawn["truncated"] or drawn["entries"] != listed:
            raise RuntimeError(f"tree drew {drawn['entries']} entries, fdfind listed {listed}")
        peers = {"fdfind": [fd, ".", path], "find": ["find", path]}
        times = {name: both(rounds, lambda: guest.exchange(message), lambda: run(argv, top)) for name, argv in peers.items()}
        name = min(times, key=lambda each: times[each][1])
        mine, theirs, ratio, fastest = times[name]
        row(f"tree of {listed:,} entries", mine, "ms", f"{name} {theirs:.1f} ms", ratio, "<= 2x", ratio <= 2,
            "; ".join([fastest, *(f"{each} {times[each][1]:.1f} ms" for each in peers if each != name)]))


def patch(rounds, _):
    top = tempfile.mkdtemp(prefix="c2s-bench-patch-")
    git = program("git")
    try:
        for name in ("ours", "theirs"):
            os.mkdir(os.path.join(top, name))
            make_patched(os.path.join(top, name))
        for name in ("there", "back"):
            with open(os.path.join(top, name), "w") as file:
                file.write(patch_text(name == "back"))
        with Guest(os.path.join(top, "ours")) as guest:
            messages = [guest.tool("apply_patch", patch=patch_text(is_back)) for is_back in (False, True)]
            mine_turn, their_turn = Turns(), Turns()
            mine, theirs, ratio, fastest = both(rounds, lambda: guest.checked(guest.exchange(messages[mine_turn.next()])),
                                       lambda: run([git, "apply", ("../there", "../back")[their_turn.next()]], os.path.join(top, "theirs")))
            row(f"apply_patch of {PATCHED} files", mine, "ms", f"git apply {theirs:.1f} ms", ratio, "<= 1.2x", ratio <= 1.2,
                f"{fastest}; git apply flushes nothing, with sync after it {median(times_ms(rounds, lambda: flushed_apply(git, top, their_turn))):.1f} ms")
    finally:
        shutil.rmtree(top)


def flushed_apply(git, top, turn):
    run([git, "apply", ("../there", "../back")[turn.next()]], os.path.join(top, "theirs"))
    run(["sync", *(f"p{i:02}.txt" for i in range(PATCHED)), "."], os.path.join(top, "theirs"))


class Turns:
    def __init__(self):
        self.count = 0

    def next(self):
        self.count += 1
        return (self.count - 1) % 2


def spawned(argv, environment):
    """fork, exec and the end of a program whose output goes to a pipe."""
    reading, writing = os.pipe()
    pid = os.posix_spawn(argv[0], argv, environment, file_actions=[(os.POSIX_SPAWN_DUP2, writing, 1), (os.POSIX_SPAWN_DUP2, writing, 2)])
    os.close(writing)
    while os.read(reading, 4096):
        pass
    os.close(reading)
    os.waitpid(pid, 0)


def bash(rounds, top):
    with Guest(top) as guest:
        message = guest.tool("bash", command="true")
        guest.checked(guest.exchange(message))
        rounds *= 5
        mine, theirs, ratio, fastest = both(rounds, lambda: guest.exchange(message), lambda: spawned(["/bin/bash", "-lc", "true"], guest.environment))
        row("bash true: added to fork and exec", mine - theirs, "ms", f"bash -lc true {theirs:.2f} ms", ratio, "< 1 ms", mine - theirs < 1,
            fastest)
        numbers = iter(range(rounds + 1))
        mine, theirs, ratio, fastest = both(rounds, lambda: session(guest, next(numbers)), lambda: spawned(["/bin/bash", "-lc", "true"], guest.environment))
        row("the same as a Bash session, start to exit code: added", mine - theirs, "ms", f"bash -lc true {theirs:.2f} ms", ratio, "< 1 ms",
            mine - theirs < 1, fastest)


def session(guest, number):
    guest.exchange(guest.message("chat2shell/bash_start", {"session_id": f"bench_{number}", "command": "true"}))
    answer = guest.request("chat2shell/bash_read", {"session_id": f"bench_{number}", "wait": "exit", "wait_ms": 60000, "max_bytes": 60000})
    if answer["exit_code"] != 0:
        raise RuntimeError(f"the session ended with {answer}")


def inspect(rounds, top):
    cold, warm = [], []
    for _ in range(max(1, rounds // 4)):
        with Guest(top) as guest:
            cold += times_ms(1, lambda: guest.call("inspect_workspace"))
            warm += times_ms(3, lambda: guest.call("inspect_workspace"))
    row("inspect_workspace, cold", median(cold), "ms", f"find over all of it {median(times_ms(rounds, lambda: run(['find', '.'], top))):.0f} ms",
        note="universal-ctags is used" if shutil.which("ctags") else "with the built-in scanner")
    row("inspect_workspace, warm", median(warm), "ms", f"cold {median(cold):.0f} ms", median(warm) / median(cold))


CALLS = {"read": {"path": "hundred.txt"}, "search": {"query": NEEDLE}, "search with analysis": {"query": NEEDLE, "intent": "impact"},
         "tree": {"max_entries": TREE_ENTRIES, "max_depth": 12}, "inspect_workspace": {}, "open_current_workspace": {"include_tree": True},
         "edit": {"path": "hundred.txt", "old_text": "line 7 of", "new_text": "line 7 of"}, "bash": {"command": "cat */*/*.c | head -c 10000000"},
         "export_pro_context": {}}


def peaks(_, top):
    """A fresh guest for each, so that none is given another's peak."""
    for words, arguments in CALLS.items():
        with Guest(top) as guest:
            idle = guest.peak_mib()
            guest.call(words.split()[0], **arguments)
            peak = guest.peak_mib()
        row(f"peak memory of {words}", peak, "MiB", f"idle {idle:.1f} MiB", peak / idle, f"<= {MEMORY_AIM_MIB} MiB", peak <= MEMORY_AIM_MIB)


def guest_tools(rounds):
    top = tempfile.mkdtemp(prefix="c2s-bench-guest-")
    try:
        make_tree(top)
        for figure in (read_and_edit, search, tree, patch, bash, inspect, peaks):
            try:
                figure(rounds, top)
            except Skip as why:
                row(figure.__name__, "skipped", "", note=str(why))
    finally:
        shutil.rmtree(top)
