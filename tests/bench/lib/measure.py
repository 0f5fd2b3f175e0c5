"""What the figures share: medians, the table, what /proc tells, raw clients that cost little, programs that print a port."""
import glob
import json
import os
import socket
import statistics
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "e2e/lib"))
import round_trip  # noqa: E402
from c2s import BUILD, Daemon, Mcp, Skip, until  # noqa: E402, F401

round_trip.gaps = lambda daemon: []  # what the end-to-end tests do before a daemon ends is no part of a figure

ROWS = []
NAMESPACES = ["--unshare-pid", "--unshare-net", "--unshare-ipc", "--unshare-uts"]


def row(what, value, unit, against="", ratio=None, aim="", is_met=None, note=""):
    """One line of the table: printed at once, and kept for the end. is_met: True, False or None (no aim)."""
    ROWS.append((what, f"{figure(value)} {unit}".strip(), against, "" if ratio is None else f"{figure(ratio)}x", aim,
                 {True: "yes", False: "NO", None: ""}[is_met], note))
    print("  " + "   ".join(part for part in ROWS[-1] if part), flush=True)


def figure(value):
    if isinstance(value, str):
        return value
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}" if abs(value) < 1 else f"{value:.1f}"


def print_table():
    heads = ("figure", "measured", "against, in the same run", "ratio", "aim", "met", "note")
    widths = [max(len(line[i]) for line in [heads, *ROWS]) for i in range(len(heads))]
    for line in [heads, tuple("-" * width for width in widths), *ROWS]:
        print("| " + " | ".join(cell.ljust(width) for cell, width in zip(line, widths)) + " |")


def median(values):
    return statistics.median(values)


def p99(values):
    """Of fewer than 100 values: the greatest."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, -(-99 * len(ordered) // 100) - 1)]


def times_ms(count, function):
    taken = []
    for _ in range(count):
        since = time.perf_counter()
        function()
        taken.append((time.perf_counter() - since) * 1e3)
    return taken


# ---- /proc --------------------------------------------------------------------------------------------------------------
def memory_kib(pid):
    """(resident, proportional) of one process; (0, 0) when it is gone or not ours to look at."""
    found = {"Rss:": 0, "Pss:": 0}
    try:
        with open(f"/proc/{pid}/smaps_rollup") as file:
            for line in file:
                word, _, rest = line.partition(" ")
                if word in found:
                    found[word] = int(rest.split()[0])
    except OSError:
        pass
    return found["Rss:"], found["Pss:"]


def parents():
    """{pid: parent} of every process."""
    table = {}
    for path in glob.glob("/proc/[0-9]*/stat"):
        try:
            with open(path) as file:
                text = file.read()
        except OSError:
            continue
        table[int(path.split("/")[2])] = int(text.rpartition(")")[2].split()[1])
    return table


def descendants(pid):
    table, found = parents(), [pid]
    for at in found:
        found += [child for child, parent in table.items() if parent == at]
    return found[1:]


def name_of(pid):
    with open(f"/proc/{pid}/comm") as file:
        return file.read().strip()


def cpu_ns(pid):
    total = 0
    for path in glob.glob(f"/proc/{pid}/task/*/schedstat"):
        with open(path) as file:
            total += int(file.read().split()[0])
    return total


# ---- clients and peers ------------------------------------------------------------------------------------------------------
class RawHttp:
    """One kept-alive connection that posts ready bytes and reads one answer with Content-Length: as little client as possible."""

    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=60)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    @staticmethod
    def message(method, params):
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode()
        return (b"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\n"
                b"MCP-Protocol-Version: 2025-11-25\r\nContent-Length: %d\r\n\r\n" % len(body)) + body

    def exchange(self, message):
        self.socket.sendall(message)
        data = self.socket.recv(262144)
        while (end := data.find(b"\r\n\r\n")) < 0:
            data += self.socket.recv(262144)
        length = int(data[:end].lower().split(b"content-length:")[1].split(b"\r\n")[0])
        while len(data) < end + 4 + length:
            data += self.socket.recv(262144)
        return data[end + 4:]


class Peer:
    """A program that prints its port (or nothing, with port=False) and ends with its standard input."""

    def __init__(self, argv, has_port=True, **more):
        self.process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, **more)
        self.port = int(self.process.stdout.readline() or 0) if has_port else 0

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def bare_bwrap(*command, more=()):
    """bubblewrap as anybody would call it, with the namespaces that a sandbox has."""
    user = ["--unshare-user"] if os.getuid() != 0 else []
    links = [part for name in ("bin", "lib", "lib64", "sbin") if os.path.islink("/" + name) for part in ("--symlink", f"usr/{name}", f"/{name}")]
    return ["/usr/bin/bwrap", *user, *NAMESPACES, "--ro-bind", "/usr", "/usr", *links, "--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp", *more, *command]


def bench_program(name):
    return os.path.join(BUILD, "bench", name)


def wait_ready(daemon, seconds=60):
    """From now until the MCP listener answers: looked at every millisecond."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            with socket.create_connection(("127.0.0.1", daemon.port), timeout=5) as connection:
                connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n")
                if b" 200 " in connection.recv(4096):
                    return
        except OSError:
            pass
        if daemon.process.poll() is not None:
            raise RuntimeError(f"the daemon ended: {daemon.log_text()[-600:]}")
        time.sleep(0.001)
    raise RuntimeError("the daemon does not answer")
