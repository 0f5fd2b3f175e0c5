"""Figures about the MCP front: requests a second and their times for three methods over 1, 64 and 1,000 kept-alive connections, beside
a bare libmicrohttpd handler that answers as many bytes (the limit) and the TypeScript SDK's stateless server; memory of idle
connections; 1,000 calls that wait at once."""
import json
import os
import re
import shutil
import subprocess
import tempfile
import time

from measure import HERE, Daemon, Mcp, Peer, RawHttp, Skip, bench_program, median, memory_kib, p99, row
from records import seed

SDK = "@modelcontextprotocol/sdk"
SANDBOXES = 100
COUNTS = (1, 64, 1000)
ROUNDS_MAX = 5  # of each cell of the matrix: a second for every server
INITIALIZE = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}}
METHODS = {
    "initialize": {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": INITIALIZE},
    "tools/list": {"jsonrpc": "2.0", "id": 1, "method": "tools/list"},
    "sandbox_list": {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "sandbox_list", "arguments": {}}},
}
UNITS = {"us": 1e-3, "ms": 1.0, "s": 1e3}


class Load:
    """What one second of full load brought."""

    def __init__(self, port, method, connections):
        argv = ["wrk", "-t1", f"-c{connections}", "-d1s", "--timeout", "20s", "--latency", "-s", os.path.join(HERE, "post.lua"), f"http://127.0.0.1:{port}/mcp"]
        out = subprocess.run(argv, check=True, capture_output=True, text=True, env={**os.environ, "BENCH_BODY": json.dumps(METHODS[method])}).stdout
        if "Non-2xx" in out or "Socket errors" in out:
            raise RuntimeError(f"not every request was answered well: {out}")
        self.rate = float(re.search(r"Requests/sec:\s*([\d.]+)", out).group(1))
        self.p50_ms, self.p99_ms = self.time(out, 50), self.time(out, 99)

    @staticmethod
    def time(out, percent):
        value, unit = re.search(rf"^\s+{percent}%\s+([\d.]+)(us|ms|s)$", out, re.M).groups()
        return float(value) * UNITS[unit]


def rate(loads):
    return median([load.rate for load in loads])


def times(loads):
    return f"p50 {median([load.p50_ms for load in loads]):.2f} ms, p99 {median([load.p99_ms for load in loads]):.2f} ms"


# ---- the SDK's server ----------------------------------------------------------------------------------------------------------
def install_sdk(directory):
    """None, or why the SDK cannot be had."""
    if not shutil.which("node") or not shutil.which("npm"):
        return "node and npm are not installed"
    argv = ["npm", "install", "--no-audit", "--no-fund", "--prefix", directory, SDK]
    try:
        done = subprocess.run(argv, capture_output=True, text=True, timeout=300, cwd=directory)
    except subprocess.TimeoutExpired:
        return f"npm install {SDK} took longer than 5 minutes"
    return None if done.returncode == 0 else f"npm install {SDK} failed: {done.stderr.strip()[-200:]}"


class SdkServer(Peer):
    """Answers from results that are ready made: ours."""

    def __init__(self, directory, results):
        with open(os.path.join(directory, "results.json"), "w") as file:
            json.dump(results, file)
        shutil.copy(os.path.join(HERE, "sdk-server.mjs"), directory)
        with open(os.path.join(directory, "node_modules", SDK, "package.json")) as file:
            self.version = json.load(file)["version"]
        super().__init__(["node", "sdk-server.mjs", "results.json"], cwd=directory, env={**os.environ, "NODE_ENV": "production"})


# ---- the matrix ----------------------------------------------------------------------------------------------------------------
def cell(rounds, daemon, sdk, method, connections, size):
    with Peer([bench_program("bench_mhd"), str(size)]) as bare:
        ports = {"bare": bare.port, "ours": daemon.port, **({"sdk": sdk.port} if sdk else {})}
        loads = {name: [] for name in ports}
        for _ in range(rounds + 1):
            for name, port in ports.items():
                loads[name].append(Load(port, method, connections))
        loads = {name: taken[1:] for name, taken in loads.items()}
    ours, limit = rate(loads["ours"]), rate(loads["bare"])
    what = f"{method} a second, {connections:,} connection{'s' if connections > 1 else ''}"
    row(what, ours, "/s", f"bare libmicrohttpd {limit:,.0f}/s ({times(loads['bare'])})", ours / limit, ">= 0.5x", ours / limit >= 0.5,
        f"{times(loads['ours'])}; {size:,} bytes an answer")
    if sdk:
        theirs = rate(loads["sdk"])
        has_aim = connections == 64
        row("  against the TypeScript SDK", ours, "/s", f"SDK {sdk.version} {theirs:,.0f}/s ({times(loads['sdk'])})", ours / theirs,
            ">= 20x" if has_aim else "", ours / theirs >= 20 if has_aim else None)


def matrix(rounds, daemon):
    raw = RawHttp(daemon.port)
    results, sizes = {}, {}
    for method, message in METHODS.items():
        answer = raw.exchange(RawHttp.message(message["method"], message.get("params", {})))
        results[method], sizes[method] = json.loads(answer)["result"], len(answer)
    raw.socket.close()
    directory = tempfile.mkdtemp(prefix="c2s-bench-sdk-")
    try:
        why = install_sdk(directory)
        if why:
            row("against the TypeScript SDK's stateless server", "skipped", "", note=why)
        sdk = None if why else SdkServer(directory, results)
        for method in METHODS:
            for connections in COUNTS:
                cell(min(rounds, ROUNDS_MAX), daemon, sdk, method, connections, sizes[method])
        if sdk:
            sdk.__exit__()
    finally:
        shutil.rmtree(directory)


# ---- connections and calls that wait ----------------------------------------------------------------------------------------------
WAITING, SESSIONS, SHELLS = 1000, 4, 25
LIST = RawHttp.message("tools/list", {})


def connect(port, count):
    """Connections that each had one answer."""
    made = [RawHttp(port) for _ in range(count)]
    for connection in made:
        connection.exchange(RawHttp.message("ping", {}))
    return made


def running_shells(mcp):
    """(sandbox, session) of commands that print nothing."""
    made = []
    for _ in range(SESSIONS):
        sandbox = mcp.call("sandbox_create")["sandbox"]["id"]
        made += [(sandbox, mcp.call("bash", sandbox_id=sandbox, command="exec sleep 600", yield_time_ms=0)["session_id"]) for _ in range(SHELLS)]
    return made


def unrelated_ms(port, count):
    raw, taken = RawHttp(port), []
    for _ in range(count):
        since = time.perf_counter()
        raw.exchange(LIST)
        taken.append((time.perf_counter() - since) * 1e3)
    raw.socket.close()
    return taken


def waiting(rounds):
    with Daemon() as daemon:
        pid, shells = daemon.process.pid, running_shells(Mcp(daemon))
        unrelated_ms(daemon.port, 200)
        empty = memory_kib(pid)[0]
        connections = connect(daemon.port, WAITING)
        idle = memory_kib(pid)[0]
        row("memory of an idle connection", (idle - empty) / WAITING, "KiB", note=f"{WAITING:,} of them after one answer each; the daemon {empty / 1024:.1f} MiB before")
        quiet = unrelated_ms(daemon.port, 100 * rounds)
        for at, connection in enumerate(connections):
            sandbox, session = shells[at % len(shells)]
            arguments = {"sandbox_id": sandbox, "session_id": session, "yield_time_ms": 60000}
            connection.socket.sendall(RawHttp.message("tools/call", {"name": "bash_poll", "arguments": arguments}))
        time.sleep(2)
        each = (memory_kib(pid)[0] - idle) / WAITING
        early = sum(has_answer(connection) for connection in connections)
        note = f"{WAITING:,} on {len(shells)} sessions of {SESSIONS} sandboxes" + (f"; {early} were answered early" if early else "")
        row("memory of a waiting bash_poll", each, "KiB", aim="< 4 KiB", is_met=each < 4 and not early, note=note)
        taken = unrelated_ms(daemon.port, 100 * rounds)
        row("an unrelated tools/list meanwhile, p99", p99(taken), "ms", f"nobody waiting {p99(quiet):.2f} ms", p99(taken) / p99(quiet), "< 2 ms", p99(taken) < 2,
            f"p50 {median(taken):.2f} ms, nobody waiting {median(quiet):.2f} ms")
        for connection in connections:
            connection.socket.close()


def has_answer(connection):
    connection.socket.setblocking(False)
    try:
        return bool(connection.socket.recv(1))
    except BlockingIOError:
        return False


def front(rounds):
    if not shutil.which("wrk"):
        raise Skip("wrk is not installed: apt install wrk")
    daemon = Daemon()
    try:
        seed(daemon, failed=SANDBOXES)
        daemon.start()
        matrix(rounds, daemon)
    finally:
        daemon.close()
    waiting(rounds)
