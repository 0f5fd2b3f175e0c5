"""Figures of the operator's API and command line: apply of 1,000 objects, lists of 10,000 against SQLite reading the same rows, watch
latency with 50 watchers, the first byte of `get`, and a daemon with 10,000 workspaces and 2,000 sandboxes at rest."""
import json
import os
import select
import shutil
import socket
import sqlite3
import subprocess
import time

from measure import Daemon, bench_program, cpu_ns, median, memory_kib, row
from records import data_root, seed, start_once

KINDS = "/apis/chat2shell.dev/v1"
TABLE = "Accept: application/json;as=Table;v=v1;g=meta.k8s.io\r\n"
APPLIED, WATCHERS, MANY_WATCHERS, CHANGES = 1000, 50, 500, 2000
FAILED, RETAINED = 2000, 8000
ROUNDS_MAX = 10
COLUMNS = "kind, uid, name, resource_version, generation, created_at, created_by, deletion_at, removed_at, meta, spec, status"


def connect(daemon):
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(os.path.join(data_root(daemon), "state/operator.sock"))  # without a time limit: with one a full backlog is an error
    connection.settimeout(120)
    return connection


ANSWER = bytearray(b"\0") * (64 << 20)  # where answers are received: with new memory for each the client takes longer than the daemon


def request(daemon, method, path, headers="", body=b""):
    """Receives one answer, over a connection of its own, into ANSWER; its length."""
    with connect(daemon) as connection:
        head = f"{method} {path} HTTP/1.1\r\nHost: bench\r\nConnection: close\r\n{headers}Content-Length: {len(body)}\r\n\r\n"
        connection.sendall(head.encode() + body)
        size, room = 0, memoryview(ANSWER)
        while got := connection.recv_into(room[size:]):
            size += got
    if b" 20" not in ANSWER[:16]:
        raise RuntimeError(f"{method} {path}: {bytes(ANSWER[:300])!r}")
    return size


def request_json(daemon, method, path, headers="", body=b""):
    size = request(daemon, method, path, headers, body)
    return json.loads(bytes(ANSWER[ANSWER.index(b"\r\n\r\n") + 4:size]))


def timed_ms(function):
    since = time.perf_counter()
    function()
    return (time.perf_counter() - since) * 1e3


def database(daemon):
    return sqlite3.connect(f"file:{data_root(daemon)}/state/chat2shell.sqlite?mode=ro", uri=True)


def wait_rest(daemon, seconds=300):
    """Until two seconds pass without work."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        before = cpu_ns(daemon.process.pid)
        time.sleep(2)
        if cpu_ns(daemon.process.pid) - before < 40e6:
            return
    raise RuntimeError("the daemon does not come to rest")


def run(argv, environment, stdin=None):
    done = subprocess.run(argv, input=stdin, capture_output=True, env=environment, timeout=300)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(argv)}: {done.stderr.decode(errors='replace')[:300]}")
    return done.stdout


# ---- peers -----------------------------------------------------------------------------------------------------------------------
def kubectl_of(daemon):
    """(argv, environment) of a kubectl on this server, or None."""
    found = [os.path.join(place, "kubectl") for place in os.environ.get("CHAT2SHELL_KUBECTL", "").split(":") if place]
    program = next((path for path in reversed(found) if os.access(path, os.X_OK)), shutil.which("kubectl"))
    config = os.path.join(daemon.dir, "kubeconfig")
    if not program or daemon.cli("kubeconfig", "--output-file", config).returncode != 0:
        return None
    return [program], {"PATH": os.environ["PATH"], "HOME": daemon.dir, "KUBECONFIG": config}


def bare_inserts_ms():
    """1,000 rows of a record's size, committed one by one by bare SQLite: what durable writes cost without grouping them."""
    out = subprocess.run([bench_program("bench_store"), "256", "json"], check=True, capture_output=True, text=True).stdout
    return APPLIED / json.loads(out)["bare"]["a_second"] * 1e3


# ---- apply -----------------------------------------------------------------------------------------------------------------------
def manifest(prefix):
    return "---\n".join(f"apiVersion: chat2shell.dev/v1\nkind: Workspace\nmetadata:\n  name: {prefix}-{i}\nspec:\n  mode: managed\n" for i in range(APPLIED)).encode()


def apply(rounds, daemon, kubectl):
    first, unchanged, writes, theirs = [], [], [], ([], [])
    ours = [os.path.join(daemon.build, "chat2shell")]
    for number in range(rounds):
        text = manifest(f"ours-{number}")
        first.append(timed_ms(lambda: run([*ours, "apply", "-f", "-"], daemon.environment, text)))
        wait_rest(daemon)
        before = database(daemon).execute("SELECT max(revision) FROM feed").fetchone()[0]
        unchanged.append(timed_ms(lambda: run([*ours, "apply", "-f", "-"], daemon.environment, text)))
        writes.append(database(daemon).execute("SELECT max(revision) FROM feed").fetchone()[0] - before)
    if kubectl:
        text = manifest("theirs")
        for taken in theirs:  # once: kubectl takes long
            taken.append(timed_ms(lambda: run([*kubectl[0], "apply", "-f", "-"], kubectl[1], text)))
            wait_rest(daemon)
    bare = bare_inserts_ms()
    row(f"apply -f of {APPLIED:,} objects, first", median(first), "ms", f"bare SQLite, a commit each {bare:,.0f} ms", median(first) / bare, "< 1,000 ms",
        median(first) < 1000, f"kubectl {theirs[0][0]:,.0f} ms" if kubectl else "no kubectl found")
    row(f"apply -f of {APPLIED:,} objects, unchanged", median(unchanged), "ms", f"kubectl {theirs[1][0]:,.0f} ms" if kubectl else "",
        median(unchanged) / theirs[1][0] if kubectl else None, "< 300 ms", median(unchanged) < 300, "")
    row("  the same: writes to the store", float(max(writes)), "writes", aim="0", is_met=max(writes) == 0)


# ---- lists -----------------------------------------------------------------------------------------------------------------------
def read_rows(daemon):
    with database(daemon) as rows:
        for _ in rows.execute(f"SELECT {COLUMNS} FROM records WHERE kind = 'Workspace' AND removed_at IS NULL ORDER BY id"):
            pass


def in_pieces(daemon, headers=""):
    token = ""
    while True:
        size = request(daemon, "GET", f"{KINDS}/workspaces?limit=500" + (f"&continue={token}" if token else ""), headers)
        at = ANSWER.rfind(b'"continue":"', 0, size)
        if at < 0:
            return
        token = ANSWER[at + 12:ANSWER.index(b'"', at + 12, size)].decode().replace("+", "%2B").replace("/", "%2F").replace("=", "%3D")


def lists(rounds, daemon):
    ways = {"whole": lambda: request(daemon, "GET", f"{KINDS}/workspaces"), "in pieces of 500": lambda: in_pieces(daemon),
            "as a Table": lambda: request(daemon, "GET", f"{KINDS}/workspaces", TABLE)}
    taken, limit = {name: [] for name in ways}, []
    count = database(daemon).execute("SELECT count(*) FROM records WHERE kind = 'Workspace' AND removed_at IS NULL").fetchone()[0]
    for _ in range(rounds):
        limit.append(timed_ms(lambda: read_rows(daemon)))
        for name, way in ways.items():
            taken[name].append(timed_ms(way))
    for name in ways:
        row(f"list of {count:,} workspaces, {name}", median(taken[name]), "ms", f"sqlite3 reading the same rows {median(limit):.1f} ms",
            median(taken[name]) / median(limit), "<= 4x", median(taken[name]) / median(limit) <= 4)


# ---- watches ---------------------------------------------------------------------------------------------------------------------
class Watching:
    """One watch, read as bytes: when each label value arrives."""

    def __init__(self, daemon, since):
        self.connection, self.text, self.seen = connect(daemon), b"", {}
        self.connection.sendall(f"GET {KINDS}/workspaces?watch=true&resourceVersion={since} HTTP/1.1\r\nHost: bench\r\n\r\n".encode())

    def take(self, now):
        self.text += self.connection.recv(1 << 20)
        *lines, self.text = self.text.split(b"\n")
        for line in lines:
            at = line.find(b'"bench":"')
            if at >= 0:
                self.seen.setdefault(line[at + 9:line.index(b'"', at + 9)].decode(), now)


def collect(watchings, value, seconds=10):
    """Until each has seen the value."""
    waiting, end = {watching.connection: watching for watching in watchings if value not in watching.seen}, time.monotonic() + seconds
    while waiting:
        ready, _, _ = select.select(list(waiting), [], [], 1)
        now = time.perf_counter()
        for connection in ready:
            waiting[connection].take(now)
            if value in waiting[connection].seen:
                del waiting[connection]
        if time.monotonic() > end:
            raise RuntimeError(f"{len(waiting)} watches did not see the change {value}")


def watches(daemon):
    """By bench_watch, in C: 50 readers in Python would be a large part of what is measured."""
    watched = {"apiVersion": "chat2shell.dev/v1", "kind": "Workspace", "metadata": {"name": "watched"}, "spec": {"mode": "managed"}}
    body = request_json(daemon, "POST", f"{KINDS}/workspaces", "Content-Type: application/json\r\n", json.dumps(watched).encode())
    wait_rest(daemon)
    pid, state = daemon.process.pid, os.path.join(data_root(daemon), "state")
    since_cpu = cpu_ns(pid)
    out = subprocess.run([bench_program("bench_watch"), os.path.join(state, "operator.sock"), "watched", body["metadata"]["resourceVersion"], daemon.dir,
                          str(CHANGES), "json"], check=True, capture_output=True, text=True).stdout
    cpu = (cpu_ns(pid) - since_cpu) / (CHANGES + 1)
    ours, limit = json.loads(out)["server"], json.loads(out)["limit"]

    def latency(what, clock, aim, note):
        row(what, ours[clock]["p99_ms"], "ms", f"bare SQLite and 50 sockets {limit[clock]['p99_ms']:.2f} ms", aim=aim,
            is_met=ours[clock]["p99_ms"] < 5 if aim else None, note=f"p50 {ours[clock]['p50_ms']:.2f} ms, against {limit[clock]['p50_ms']:.2f} ms" + (f"; {note}" if note else ""))

    # The commit is between the two: the answer leaves behind it.
    latency(f"from the sending of a change to its arrival at {WATCHERS} watchers, p99", "sent", "< 5 ms", f"the write and its commit counted; {CHANGES:,} changes")
    latency("  the same, to the last of the watchers, p99", "last", "", "")
    latency("  the same, from the answer of the change, p99", "answered", "", "below 0: before the answer")
    row("  from the sending of a change to its answer, p99", ours["write"]["p99_ms"], "ms", f"bare SQLite {limit['write']['p99_ms']:.2f} ms",
        note=f"p50 {ours['write']['p50_ms']:.2f} ms, against {limit['write']['p50_ms']:.2f} ms")
    row("  CPU of a change, its write and all its watchers", cpu / 1e6, "ms", note=f"{cpu / WATCHERS / 1e3:.0f} µs a watcher")


def watch_memory(daemon):
    """Of many watches, because the first ones find memory that was freed before."""
    pid = daemon.process.pid
    before_kib = memory_kib(pid)[0]
    body = request_json(daemon, "GET", f"{KINDS}/workspaces?limit=1")
    watchings = [Watching(daemon, body["metadata"]["resourceVersion"]) for _ in range(MANY_WATCHERS)]
    patch = json.dumps({"metadata": {"labels": {"bench": "many"}}}).encode()
    request(daemon, "PATCH", f"{KINDS}/workspaces/watched", "Content-Type: application/merge-patch+json\r\n", patch)
    collect(watchings, "many")
    row(f"  resident memory of a watch, of {MANY_WATCHERS}", (memory_kib(pid)[0] - before_kib) / MANY_WATCHERS, "KiB", note="its connection with it")
    for watching in watchings:
        watching.connection.close()


# ---- the command line --------------------------------------------------------------------------------------------------------------
def first_byte_ms(argv, environment):
    since = time.perf_counter()
    process = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment)
    process.stdout.read(1)
    taken = (time.perf_counter() - since) * 1e3
    process.stdout.read()
    process.wait()
    return taken


def first_bytes(rounds, daemon, kubectl):
    words = ["get", "workspace", "watched"]
    ours = [first_byte_ms([os.path.join(daemon.build, "chat2shell"), *words], daemon.environment) for _ in range(10 * rounds)]
    theirs = [first_byte_ms([*kubectl[0], *words], kubectl[1]) for _ in range(rounds)] if kubectl else []
    started = [first_byte_ms(["/bin/echo", "x"], daemon.environment) for _ in range(10 * rounds)]
    row("start to first byte of `get`", median(ours), "ms", f"kubectl get {median(theirs):.0f} ms" if theirs else "no kubectl found",
        median(ours) / median(theirs) if theirs else None, "< 10 ms", median(ours) < 10, f"/bin/echo {median(started):.1f} ms")


# ---- at rest -----------------------------------------------------------------------------------------------------------------------
def rest(daemon, started_ms):
    pid = daemon.process.pid
    wait_rest(daemon)
    row("start to ready with 10,000 workspaces and 2,000 failed sandboxes", started_ms, "ms", note="the first start after they were made")
    since, at = cpu_ns(pid), time.monotonic()
    time.sleep(65)
    share = (cpu_ns(pid) - since) / ((time.monotonic() - at) * 1e9) * 100
    row("the same at rest: CPU", share, "%", "one core", aim="< 1 %", is_met=share < 1, note="65 s, a whole resync among them")
    row("the same at rest: resident memory", memory_kib(pid)[0] / 1024, "MiB")
    row("the same: size of the store", os.path.getsize(os.path.join(data_root(daemon), "state/chat2shell.sqlite")) / (1 << 20), "MiB")


def operator(rounds):
    rounds = min(rounds, ROUNDS_MAX)
    daemon = Daemon(environment={"CHAT2SHELL_MAX_SANDBOXES": "4096", "CHAT2SHELL_KUBE_PORT": "0"})
    try:
        seed(daemon, failed=FAILED, retained=RETAINED)
        started_ms = start_once(daemon)
        rest(daemon, started_ms)
        lists(rounds, daemon)
        watches(daemon)
        watch_memory(daemon)
        kubectl = kubectl_of(daemon)
        first_bytes(rounds, daemon, kubectl)
        apply(rounds, daemon, kubectl)
    finally:
        daemon.close()
