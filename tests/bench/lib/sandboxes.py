"""Figures about sandboxes: create to the first answer, what the control plane adds to a call, memory."""
import json
import os
import shutil
import subprocess
import tempfile
import time

from measure import (BUILD, Daemon, Mcp, Peer, RawHttp, bare_bwrap, bench_program, descendants, median, memory_kib, name_of, p99, row, times_ms,
                     until)


def one_create(mcp):
    """(ms to the answer of sandbox_create, ms to the answer of the first bash), and the sandbox."""
    since = time.perf_counter()
    sandbox = mcp.call("sandbox_create")["sandbox"]["id"]
    created = time.perf_counter()
    answer = mcp.call("bash", sandbox_id=sandbox, command="echo ready")
    ready = time.perf_counter()
    if answer["output"] != "ready\n":
        raise RuntimeError(f"bash answered {answer}")
    return (created - since) * 1e3, (ready - since) * 1e3, sandbox


def bare_login():
    """The login shell that the first bash answer starts, without a sandbox: what no control plane can save."""
    return ["/bin/bash", "-lc", "echo ready"], {"HOME": "/nonexistent", "PATH": "/usr/bin:/bin", "LANG": "C.UTF-8", "TERM": "dumb"}


class Pace:
    """Waits where the daemon would refuse: it makes at most 30 sandboxes a minute for MCP clients."""

    def __init__(self):
        self.made = []

    def wait(self):
        if len(self.made) >= 29:
            time.sleep(max(0, self.made[-29] + 61 - time.monotonic()))
        self.made.append(time.monotonic())


def create(rounds):
    pace = Pace()
    bare, shell, created, ready = [], [], [], []
    argv = bare_bwrap("/usr/bin/true")
    login = bare_login()
    with Daemon() as daemon:
        mcp = Mcp(daemon)
        for _ in range(rounds + 1):  # the first one warms the page cache for both
            bare += times_ms(1, lambda: subprocess.run(argv, check=True))
            shell += times_ms(1, lambda: subprocess.run(login[0], check=True, env=login[1], stdout=subprocess.DEVNULL))
            pace.wait()
            to_created, to_ready, sandbox = one_create(mcp)
            created.append(to_created)
            ready.append(to_ready)
            mcp.call("sandbox_destroy", sandbox_id=sandbox)
            until("nothing of it is left", lambda: not descendants(daemon.process.pid), 20)
    bare, shell, created, ready = bare[1:], shell[1:], created[1:], ready[1:]
    ratio = median(ready) / median(bare)
    row("sandbox_create to the first bash answer, p50", median(ready), "ms", f"bwrap true {median(bare):.1f} ms", ratio, "< 50 ms and <= 3x",
        median(ready) < 50 and ratio <= 3, f"sandbox_create alone {median(created):.1f} ms, bash -lc on the host {median(shell):.1f} ms; "
        f"fastest {min(ready):.1f} ms, bwrap {min(bare):.1f} ms, bash {min(shell):.1f} ms")
    row("the same, p99", p99(ready), "ms", f"bwrap true {p99(bare):.1f} ms", p99(ready) / p99(bare), note=f"slowest of {rounds}" if rounds < 100 else "")


# ---- the same read, with and without the control plane ------------------------------------------------------------------------
CALLS = 50  # calls of a round


class Guest(Peer):
    """chat2shell-guest in bare bubblewrap: the same program, no control plane."""

    def __init__(self, workspace):
        program = "/run/chat2shell-guest"
        more = ["--ro-bind", os.path.join(BUILD, "chat2shell-guest"), program, "--bind", workspace, workspace, "--chdir", workspace]
        super().__init__(bare_bwrap(program, "--root", workspace, "--stdio", more=more), has_port=False, stderr=subprocess.DEVNULL)
        self.exchange(self.message("initialize", {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}}))

    @staticmethod
    def message(method, params):
        return json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode() + b"\n"

    def exchange(self, message):
        os.write(self.process.stdin.fileno(), message)
        data = b""
        while not data.endswith(b"\n"):
            data += os.read(self.process.stdout.fileno(), 262144)
        return data


def checked(client, message):
    answer = json.loads(client.exchange(message))
    if "hello" not in json.dumps(answer["result"]["content"]) or answer["result"].get("isError"):
        raise RuntimeError(f"read answered {answer}")
    return lambda: client.exchange(message)


def read(rounds):
    through, straight, listed = [], [], []
    workspace = tempfile.mkdtemp(prefix="c2s-bench-")
    text = "hello\n" * 40
    try:
        with open(os.path.join(workspace, "hello.txt"), "w") as file:
            file.write(text)
        with Daemon() as daemon, Guest(workspace) as guest:
            mcp = Mcp(daemon)
            sandbox = mcp.call("sandbox_create")["sandbox"]["id"]
            mcp.call("write", sandbox_id=sandbox, path="hello.txt", content=text)
            http = RawHttp(daemon.port)
            call_through = checked(http, http.message("tools/call", {"name": "read", "arguments": {"sandbox_id": sandbox, "path": "hello.txt"}}))
            call_straight = checked(guest, guest.message("tools/call", {"name": "read", "arguments": {"path": "hello.txt"}}))
            ping = http.message("ping", {})
            for _ in range(rounds):
                straight.append(times_ms(CALLS, call_straight))
                through.append(times_ms(CALLS, call_through))
                listed.append(times_ms(CALLS, lambda: http.exchange(ping)))
    finally:
        shutil.rmtree(workspace)
    fastest = [min(map(min, rounds_of)) for rounds_of in (through, straight)]
    through, straight, listed = ([median(times) for times in rounds_of] for rounds_of in (through, straight, listed))
    added = median([a - b for a, b in zip(through, straight)])
    row("read through the control plane: added", added, "ms", f"straight to the guest {median(straight):.3f} ms", median(through) / median(straight),
        "< 0.5 ms", added < 0.5, f"HTTP alone (ping) {median(listed):.3f} ms; fastest {fastest[0]:.3f} ms, straight {fastest[1]:.3f} ms")


# ---- memory --------------------------------------------------------------------------------------------------------------------
def idle_bwrap():
    """(resident, proportional) KiB of a bare sandbox that sleeps."""
    with subprocess.Popen(bare_bwrap("/usr/bin/sleep", "1000", more=["--die-with-parent"])) as process:
        try:
            until("it sleeps", lambda: "sleep" in [name_of(pid) for pid in descendants(process.pid)])
            return sums([process.pid, *descendants(process.pid)])
        finally:
            process.kill()


def sums(pids):
    return tuple(sum(column) for column in zip(*(memory_kib(pid) for pid in pids)))


def memory(rounds):
    daemons, sandboxes, parts = [], [], []
    for _ in range(rounds):
        with Daemon() as daemon:
            mcp = Mcp(daemon)
            mcp.request("tools/list")
            time.sleep(0.5)
            daemons.append(memory_kib(daemon.process.pid))
            mcp.shell(mcp.call("sandbox_create")["sandbox"]["id"], "true")
            time.sleep(0.5)
            pids = descendants(daemon.process.pid)
            sandboxes.append(sums(pids))
            parts.append(" + ".join(f"{name_of(pid)} {memory_kib(pid)[1] / 1024:.1f}" for pid in pids))
            used = memory_kib(daemon.process.pid)
    with Peer([bench_program("bench_mhd"), "1000"]) as peer:
        bare = memory_kib(peer.process.pid)
    rss, pss = (median(column) / 1024 for column in zip(*daemons))
    row("idle daemon, resident", rss, "MiB", f"bare libmicrohttpd {bare[0] / 1024:.1f} MiB", rss / (bare[0] / 1024), "< 12 MiB", rss < 12,
        f"proportional {pss:.1f} MiB; after a sandbox was made {used[0] / 1024:.1f} MiB")
    rss, pss = (median(column) / 1024 for column in zip(*sandboxes))
    plain = idle_bwrap()
    row("idle sandbox's own processes, proportional", pss, "MiB", f"bwrap sleep {plain[1] / 1024:.1f} MiB", pss / (plain[1] / 1024), "< 8 MiB", pss < 8,
        f"resident (shared pages counted again) {rss:.1f} MiB")
    print("    " + parts[-1])
