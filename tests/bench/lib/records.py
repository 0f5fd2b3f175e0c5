"""Figures about stored records: durable writes, start with many of them, an idle minute."""
import json
import os
import shutil
import sqlite3
import subprocess
import time

from measure import Daemon, Mcp, bench_program, cpu_ns, median, row, until, wait_ready

STORED = {"destroyed": 500, "failed": 450, "running": 50}  # sandboxes
IDLE_S = 60


# ---- durable writes ----------------------------------------------------------------------------------------------------------
def writes(rounds):
    runs = []
    for _ in range(rounds):
        out = subprocess.run([bench_program("bench_store"), "256", "json"], check=True, capture_output=True, text=True).stdout
        runs.append(json.loads(out))

    def of(who, what):
        return median([run[who][what] for run in runs])

    def ratio(who):
        return median([run[who]["a_second"] / run["bare"]["a_second"] for run in runs])

    against = f"bare SQLite {of('bare', 'a_second'):,.0f}/s"
    row("durable writes a second, 1 client", of("one", "a_second"), "/s", against, ratio("one"), note="a record, its feed row, its completion")
    row("durable writes a second, 64 clients", of("many", "a_second"), "/s", against, ratio("many"), note="group commit")
    slow = f"bare SQLite {of('bare', 'p99_ms'):.2f} ms"
    row("durable write p99, 1 client", of("one", "p99_ms"), "ms", slow, median([run["one"]["p99_ms"] / run["bare"]["p99_ms"] for run in runs]))
    row("durable write p99, 64 clients", of("many", "p99_ms"), "ms", slow, median([run["many"]["p99_ms"] / run["bare"]["p99_ms"] for run in runs]))


# ---- start --------------------------------------------------------------------------------------------------------------------
def data_root(daemon):
    return os.path.join(daemon.dir, "data")


def seed(daemon, destroyed=0, failed=0, running=0, retained=0):
    os.makedirs(data_root(daemon), mode=0o700)
    subprocess.run([bench_program("bench_seed"), os.path.join(data_root(daemon), "state"), os.path.join(data_root(daemon), "workspaces"),
                    str(destroyed), str(failed), str(running), str(retained)], check=True)


def start_once(daemon):
    since = time.perf_counter()
    daemon.start(wait=False)
    wait_ready(daemon)
    return (time.perf_counter() - since) * 1e3


def starts(rounds, **stored):
    """ms of each start from exactly these records."""
    daemon, taken = Daemon(), []
    try:
        seed(daemon, **stored)
        state, kept = os.path.join(data_root(daemon), "state"), os.path.join(daemon.dir, "state.kept")
        shutil.copytree(state, kept)
        for _ in range(rounds + 1):
            taken.append(start_once(daemon))
            daemon.stop()
            shutil.rmtree(state)
            shutil.copytree(kept, state)
    finally:
        daemon.close()
    return taken[1:]


def start(rounds):
    full, empty = starts(rounds, **STORED), starts(rounds)
    row("start to ready with 1,000 stored sandboxes", median(full), "ms", f"an empty store {median(empty):.0f} ms", median(full) / median(empty), "< 500 ms",
        median(full) < 500, ", ".join(f"{count} {word}" for word, count in STORED.items()) + f"; slowest {max(full):.0f} ms")


# ---- an idle minute --------------------------------------------------------------------------------------------------------------
class Watch:
    """Another connection to the database: its data version changes with every commit of the daemon."""

    def __init__(self, daemon):
        path = os.path.join(data_root(daemon), "state/chat2shell.sqlite")
        self.database = sqlite3.connect(f"file:{path}?mode=ro", uri=True, isolation_level=None)

    def ask(self, sql):
        return self.database.execute(sql).fetchone()[0]

    def version(self):
        return self.ask("PRAGMA data_version")

    def wait_quiet(self, seconds, within):
        """Until nothing was committed for so long."""
        end, since, last = time.monotonic() + within, time.monotonic(), self.version()
        while time.monotonic() - since < seconds:
            if time.monotonic() > end:
                raise RuntimeError(f"the store does not come to rest within {within} s")
            time.sleep(0.5)
            if (version := self.version()) != last:
                since, last = time.monotonic(), version


def idle(rounds):
    del rounds  # one minute is long: it is taken once
    daemon = Daemon()
    try:
        seed(daemon, failed=49, retained=98)  # with their workspaces 196 records; the running sandbox below makes it 200
        daemon.start(wait=False)
        wait_ready(daemon)
        mcp = Mcp(daemon)
        sandbox = mcp.call("sandbox_create")["sandbox"]["id"]
        mcp.call("sandbox_expose", sandbox_id=sandbox, port=8000)
        watch = Watch(daemon)
        records = watch.ask("SELECT count(*) FROM records WHERE removed_at IS NULL")
        watch.wait_quiet(35, 300)  # longer than the side table of activity waits before it is flushed
        version, revision, cpu = watch.version(), watch.ask("SELECT max(revision) FROM feed"), cpu_ns(daemon.process.pid)
        commits = 0
        for _ in range(IDLE_S):
            time.sleep(1)
            commits += (now := watch.version()) != version
            version = now
        written = watch.ask("SELECT max(revision) FROM feed") - revision
        share = (cpu_ns(daemon.process.pid) - cpu) / (IDLE_S * 1e9) * 100
    finally:
        daemon.close()
    row(f"an idle minute with {records} records: writes", float(commits), "commits", "none", aim="0", is_met=commits == 0 and written == 0,
        note=f"{written} new revisions; one sandbox runs with an exposed port; taken once")
    row("the same: CPU of the daemon", share, "%", "one core", aim="< 1 %", is_met=share < 1)
