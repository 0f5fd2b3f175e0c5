"""Figure about the MCP front: tools/list requests a second over 64 kept-alive connections."""
import json
import os
import re
import shutil
import subprocess
import tempfile

from measure import HERE, Daemon, Mcp, Peer, RawHttp, Skip, bench_program, cpu_ns, median, memory_kib, row

CONNECTIONS = 64
SDK = "@modelcontextprotocol/sdk"


def load(port):
    """Requests a second during one second of full load."""
    argv = ["wrk", "-t1", f"-c{CONNECTIONS}", "-d1s", "-s", os.path.join(HERE, "post.lua"), f"http://127.0.0.1:{port}/mcp"]
    out = subprocess.run(argv, check=True, capture_output=True, text=True).stdout
    if "Non-2xx" in out or "Socket errors" in out:
        raise RuntimeError(f"not every request was answered well: {out}")
    return float(re.search(r"Requests/sec:\s*([\d.]+)", out).group(1))


def load_and_cpu(port, pid):
    """The same, and the server's CPU time a request in microseconds: what other work on the machine blurs less."""
    before = cpu_ns(pid)
    rate = load(port)
    return rate, (cpu_ns(pid) - before) / 1e3 / rate


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
    def __init__(self, directory, tools):
        with open(os.path.join(directory, "tools.json"), "w") as file:
            json.dump(tools, file)
        shutil.copy(os.path.join(HERE, "sdk-server.mjs"), directory)
        with open(os.path.join(directory, "node_modules", SDK, "package.json")) as file:
            self.version = json.load(file)["version"]
        super().__init__(["node", "sdk-server.mjs", "tools.json"], cwd=directory, env={**os.environ, "NODE_ENV": "production"})


def against_mhd(rounds, daemon, size):
    ours, bare = [], []
    with Peer([bench_program("bench_mhd"), str(size)]) as peer:
        for _ in range(rounds + 1):
            bare.append(load_and_cpu(peer.port, peer.process.pid))
            ours.append(load_and_cpu(daemon.port, daemon.process.pid))
    (ours, our_cpu), (bare, bare_cpu) = zip(*ours[1:]), zip(*bare[1:])
    ratio = median([a / b for a, b in zip(ours, bare)])
    row("tools/list a second, 64 connections", median(ours), "/s", f"bare libmicrohttpd {median(bare):,.0f}/s", ratio, ">= 0.5x", ratio >= 0.5,
        f"{size:,} bytes an answer; CPU a request {median(our_cpu):.1f} us, bare {median(bare_cpu):.1f} us; "
        f"the daemon is then at {memory_kib(daemon.process.pid)[0] / 1024:.1f} MiB")


def against_sdk(rounds, daemon, tools):
    directory = tempfile.mkdtemp(prefix="c2s-bench-sdk-")
    try:
        why = install_sdk(directory)
        if why:
            row("the same against the TypeScript SDK's stateless server", "skipped", "", note=why)
            return
        with SdkServer(directory, tools) as peer:
            ours, theirs = [], []
            for _ in range(rounds + 1):
                theirs.append(load(peer.port))
                ours.append(load(daemon.port))
            ratio = median([a / b for a, b in zip(ours[1:], theirs[1:])])
            row("the same against the TypeScript SDK", median(ours[1:]), "/s", f"its stateless server {median(theirs[1:]):,.0f}/s", ratio, ">= 20x",
                ratio >= 20, f"SDK {peer.version}, tool list ready made")
    finally:
        shutil.rmtree(directory)


def front(rounds):
    if not shutil.which("wrk"):
        raise Skip("wrk is not installed: apt install wrk")
    with Daemon() as daemon:
        tools = Mcp(daemon).request("tools/list")["result"]["tools"]
        size = len(RawHttp(daemon.port).exchange(RawHttp.message("tools/list", {})))
        against_mhd(rounds, daemon, size)
        against_sdk(rounds, daemon, tools)
