"""The sbx driver's figures, over the stand-in for Docker Sandboxes: how many calls to sbx things take, how soon a death is seen, and
how well creates run side by side. The stand-in writes down every call."""
import concurrent.futures
import json
import os
import subprocess
import time

import measure
from c2s import BUILD, Mcp, until
from measure import median, row
from sbx_daemon import SbxDaemon, make_ready, sandboxes, sbx, standin

SLOTS = 8  # creates at once: the controller's own bound
MANY = 50
CREATE_MS = 1000
HINT = "stand-in for sbx"


def calls():
    """argv of every call so far."""
    return [record["argv"] for record in standin().calls() if record["event"] == "start"]


def during(function):
    """What was called meanwhile, and what the function returned."""
    before = len(calls())
    result = function()
    return [argv[0] for argv in calls()[before:]], result


def counts(rounds, session, daemon, mcp):
    made, exposed, destroyed = [], [], []
    for _ in range(rounds):
        words, sandbox = during(lambda: create(daemon, mcp, session))
        made.append(words)
        exposed.append(during(lambda: mcp.call("sandbox_expose", sandbox_id=sandbox, port=8000))[0])
        destroyed.append(during(lambda: mcp.call("sandbox_destroy", sandbox_id=sandbox))[0])
    for what, words, aim in (("one create", made, 6), ("one expose", exposed, 2), ("one destroy", destroyed, 2)):
        figure = median([len(one) for one in words])
        row(f"calls to sbx for {what}, {session}", figure, "calls", aim=f"at most {aim}", is_met=figure <= aim, note=" ".join(words[-1]))


def manifest(names, session):
    return "\n---\n".join(f"apiVersion: chat2shell.dev/v1\nkind: {kind}\nmetadata: {{name: {name}}}\nspec: {spec}" for name in names for kind, spec in (
        ("Workspace", "{mode: managed}"), ("Sandbox", f"{{workspaceRef: {name}, session: {session}}}"))).encode()


def create(daemon, mcp, session):
    if session == "codexpro":
        return mcp.call("sandbox_create")["sandbox"]["id"]
    name = f"b{time.monotonic_ns()}"
    apply(daemon, [name], session)
    return until("it runs", lambda: [found for found in running(daemon) if found["metadata"]["name"] == name], 60)[0]["metadata"]["uid"]


def apply(daemon, names, session):
    done = daemon.cli("apply", "-f", "-", stdin=manifest(names, session))
    if done.returncode != 0:
        raise RuntimeError(done.stderr.decode())


def running(daemon):
    found = json.loads(daemon.cli("get", "sandboxes", "-o", "json").stdout)["items"]
    return [record for record in found if record["status"].get("phase") == "running"]


def death(rounds, daemon, mcp):
    taken = []
    for _ in range(rounds):
        before = set(sandboxes())
        sandbox = create(daemon, mcp, "codexpro")
        name, = set(sandboxes()) - before
        kill = "for p in /proc/[0-9]*; do tr '\\0' ' ' <$p/cmdline 2>/dev/null | grep -q '[c]odexpro-mcp-http' && { date +%s%N; kill -9 ${p#/proc/}; }; done; true"
        since = int(sbx("exec", name, "sh", "-c", kill).stdout.split()[0])
        while mcp.call("sandbox_get", sandbox_id=sandbox)["status"] != "failed":
            pass
        taken.append(time.time_ns() / 1e6 - since / 1e6)
        mcp.call("sandbox_destroy", sandbox_id=sandbox)
    row("session's death to Failed", median(taken), "ms", aim="< 500 ms", is_met=median(taken) < 500, note=f"{HINT}; slowest of {rounds}: {max(taken):.0f} ms")


class Worker:
    """The calls that a guest sandbox takes, straight to sbx."""

    def __init__(self):
        self.held = []

    def make(self, name):
        sbx("create", "--name", name, "-q", "shell", standin().directory(name))
        sbx("ls", "--json")
        sbx("policy", "ls", name, "--json")
        sbx("exec", name, "sh", "-c", "pwd")
        sbx("cp", os.path.join(BUILD, "chat2shell-guest"), f"{name}:/usr/local/bin/chat2shell-guest")
        held = standin().start("exec", "-i", name, "sh", "-c", "echo ready; exec cat", stdin=subprocess.PIPE)
        held.stdout.readline()
        self.held.append(held)

    def end(self, names):
        sbx("rm", "-f", *names)
        for held in self.held:
            held.stdin.close()
            held.wait(30)


def straight():
    """Seconds for the same number of sandboxes by as many workers as the controller has slots."""
    worker, names = Worker(), [f"bare{i}" for i in range(MANY)]
    since = time.monotonic()
    with concurrent.futures.ThreadPoolExecutor(SLOTS) as pool:
        list(pool.map(worker.make, names))
    taken = time.monotonic() - since
    worker.end(names)
    return taken


def side_by_side(daemon):
    standin().faults({"on": "create", "do": "delay", "ms": CREATE_MS})
    bare = straight()
    names = [f"m{i}" for i in range(MANY)]
    since = time.monotonic()
    apply(daemon, names, "guest")
    until("all run", lambda: len(running(daemon)) == MANY, 300)
    taken = time.monotonic() - since
    standin().faults()
    ideal = -(-MANY // SLOTS) * CREATE_MS / 1000
    row(f"{MANY} sandboxes at once, each create {CREATE_MS / 1000:.0f} s", taken, "s", f"creates alone, {SLOTS} side by side: {ideal:.0f} s", taken / ideal,
        "<= 1.2x", taken <= 1.2 * ideal, HINT)
    row("the same, against the same calls straight to sbx", taken, "s", f"{SLOTS} workers: {bare:.1f} s", taken / bare, note=HINT)


def quiet_minute():
    words, _ = during(lambda: time.sleep(60))
    row(f"calls to sbx in a quiet minute, {MANY} running", len(words), "calls", aim="at most one ls", is_met=len(words) == 0 or words == ["ls"], note=" ".join(words))


def docker_sandboxes(rounds):
    rounds = min(rounds, 10)
    make_ready()
    with SbxDaemon() as daemon:
        mcp = Mcp(daemon)
        for session in ("codexpro", "guest"):
            counts(min(rounds, 3), session, daemon, mcp)
        death(rounds, daemon, mcp)
        side_by_side(daemon)
        quiet_minute()
    measure.until("nothing is left", lambda: not sandboxes(), 120)
