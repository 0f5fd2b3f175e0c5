"""What the end-to-end tests share: a real daemon on a scratch data root, an MCP client over real HTTP, and the line
protocol of tests/run ("ok NAME", "not ok NAME: why", "skip NAME: why")."""
import atexit
import http.client
import json
import os
import pwd
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import traceback

import round_trip
from results import Results

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
BUILD = os.environ.get("CHAT2SHELL_BUILD_DIR", os.path.join(ROOT, "build/release"))
TESTS = []
DAEMONS = []
PORT_NAMES = []
# Seconds. A wait in a test guards against hanging, no more: a test fails because of what the product does, never because the machine
# is slow. Hence one number for all waits, far above what any of them takes. A shorter one stands only where it is meant to run out.
PATIENCE = 300
IDLE_SECONDS = 30  # the daemon closes a connection that was idle for 75 s; from then on tests do not count on theirs
# To look for leaks takes a command under ASan nearly as long as the command itself (80 of 200 ms), and other scripts than those on the
# commands start them by the hundred. The daemon looks in all of them.
COMMANDS = {}
if "ASAN_OPTIONS" in os.environ and not os.path.basename(sys.argv[0]).startswith("cli"):
    COMMANDS["ASAN_OPTIONS"] = f"{os.environ['ASAN_OPTIONS']}:detect_leaks=0"


class Failure(Exception):
    pass


class Skip(Exception):
    pass


class NotYet(Exception):
    """What a condition of until() saw while it was not met; the failure sentence ends with it."""


def test(function):
    """Registers a test; its name is a sentence. What it returns, if anything, is told beside the ok."""
    TESTS.append(function)
    return function


def check(condition, why):
    if not condition:
        raise Failure(why)


def equal(got, wanted, what=""):
    check(got == wanted, f"{what}: got {got!r}, wanted {wanted!r}")


def interrupted(*_):
    """A script that is stopped from outside ends as others do, but at once: what it began ends, too."""
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.SIG_IGN)
    Daemon.is_hurried = True
    sys.exit(1)


for each_signal in (signal.SIGTERM, signal.SIGINT):
    signal.signal(each_signal, interrupted)


def run_all():
    failed = 0
    for function in TESTS:
        name = function.__name__
        try:
            figures = function()
            print(f"ok {name}" + (f": {figures}" if figures else ""), flush=True)
        except Skip as why:
            print(f"skip {name}: {why}", flush=True)
        except Exception as why:  # noqa: BLE001 - a test must not end the others
            failed += 1
            print(f"not ok {name}: {type(why).__name__}: {why}".replace("\n", " "), flush=True)
            traceback.print_exc()
    sys.exit(1 if failed else 0)


def free_port():
    """One that is still free when it is used: from below those that the kernel gives to connections and to who asks for any, and,
    by a name that ends with this process, from no other script's."""
    while True:
        port = random.randrange(20000, 30000)
        name, probe = socket.socket(socket.AF_UNIX), socket.socket()
        with probe:
            try:
                name.bind(f"\0chat2shell-tests/{port}")
                probe.bind(("127.0.0.1", port))
            except OSError:
                name.close()
                continue
        PORT_NAMES.append(name)
        return port


def until(what, condition, seconds=PATIENCE):
    """Waits for the condition and returns its value. One that is not met gives what counts as false, or raises NotYet with what it
    saw; whatever else it raises ends the wait."""
    end = time.monotonic() + seconds
    while True:
        began = time.monotonic()
        try:
            seen = condition()
            if seen:
                return seen
        except NotYet as why:
            seen = why
        check(time.monotonic() < end, f"not within {seconds} s: {what}" + ("" if seen in (None, False) else f"; the last seen: {seen}"))
        time.sleep(min(max(0.02, 2 * (time.monotonic() - began)), 0.5))  # what is waited for needs the processor, too


def next_line(process):
    """Of what it prints. One that prints nothing for too long is killed."""
    guard = threading.Timer(PATIENCE, process.kill)
    guard.start()
    try:
        line = process.stdout.readline()
    finally:
        guard.cancel()
    check(line, f"{process.args} ended, or printed nothing for {PATIENCE} s")
    return line


class Daemon:
    """chat2shell serve in a directory of its own. user: run it as that (unprivileged) user."""

    is_hurried = False  # all of them: the script was interrupted

    def __init__(self, user=None, environment=None, build=BUILD):
        self.build, self.user = build, user
        base = "/var/tmp" if user else tempfile.gettempdir()
        self.dir = tempfile.mkdtemp(prefix="c2s-e2e-", dir=base)
        DAEMONS.append(self)
        self.allowed = os.path.join(self.dir, "repositories")
        os.mkdir(self.allowed)
        self.port = free_port()
        self.environment = {
            "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME": self.dir,
            "CHAT2SHELL_DATA_ROOT": os.path.join(self.dir, "data"), "CHAT2SHELL_ALLOWED_HOST_ROOTS": self.allowed,
            "CHAT2SHELL_DRIVER": "bubblewrap", "CHAT2SHELL_ENABLE_TUNNEL": "0", "CHAT2SHELL_PORT": str(self.port), "CHAT2SHELL_KUBE_PORT": "0",
        }
        for name in ("ASAN_OPTIONS", "UBSAN_OPTIONS", "TSAN_OPTIONS"):
            if name in os.environ:
                self.environment[name] = os.environ[name]
        self.environment.update(environment or {})
        self.process = None
        self.takes_commands = True  # False: it lives where the command line cannot see it
        if user:
            entry = pwd.getpwnam(user)
            for path in (self.dir, self.allowed):
                os.chown(path, entry.pw_uid, entry.pw_gid)
            # The checkout may lie where that user cannot go.
            programs = os.path.join(self.dir, "bin")
            os.mkdir(programs)
            for name in ("chat2shell", "chat2shell-shim", "chat2shell-guest", "chat2shell-egress"):
                shutil.copy2(os.path.join(build, name), programs)
            self.build = programs

    def as_user(self, argv):
        return (["setpriv", "--reuid", self.user, "--regid", str(pwd.getpwnam(self.user).pw_gid), "--init-groups", "--"] if self.user else []) + argv

    def start(self, wait=True, environment=None):
        self.log = open(os.path.join(self.dir, "serve.log"), "ab")
        self.process = subprocess.Popen(self.as_user([os.path.join(self.build, "chat2shell"), "serve"]), stdin=subprocess.DEVNULL,
                                        stdout=self.log, stderr=self.log, env={**self.environment, **(environment or {})}, start_new_session=True)
        if wait:
            until("the daemon serves", self.is_serving)
        return self

    def is_serving(self):
        check(self.process.poll() is None, f"the daemon ended: {self.log_text()[-600:]}")
        try:
            connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
            connection.request("GET", "/healthz")
            return connection.getresponse().status == 200
        except OSError:
            return False

    def log_text(self):
        with open(os.path.join(self.dir, "serve.log"), errors="replace") as log:
            return log.read()

    def cli(self, *argv, stdin=b"", timeout=PATIENCE):
        return subprocess.run(self.as_user([os.path.join(self.build, "chat2shell"), *argv]), input=stdin, capture_output=True,
                              env={**self.environment, **COMMANDS}, timeout=timeout, cwd="/")

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def gaps(self):
        return round_trip.gaps(self) if self.takes_commands and self.process.poll() is None else []

    def stop(self):
        """A clean stop; returns the exit status. What is there until then can be applied as it was got."""
        gaps = self.gaps()
        check(not gaps, gaps)
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(PATIENCE)

    def close(self):
        gaps = []
        if self.process and self.process.poll() is None:
            gaps = [] if self.is_hurried else self.gaps()
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(5 if self.is_hurried else PATIENCE)
            except subprocess.TimeoutExpired:
                self.kill()
        shutil.rmtree(self.dir, ignore_errors=True)
        check(not gaps, gaps)

    def clear_away(self):
        """What a test left: this daemon and its directory."""
        if self.process and self.process.poll() is None:
            self.kill()
        shutil.rmtree(self.dir, ignore_errors=True)

    def __enter__(self):
        return self.start()

    def __exit__(self, *_):
        self.close()

    def leftovers(self):
        """Processes, mounts and runtime directories that belong to this daemon's sandboxes."""
        found = []
        is_mounted_in = {}  # by mount namespace: the kernel writes a process' mounts anew for every reader, and that takes long
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{pid}/cmdline", "rb") as file:
                    line = file.read().replace(b"\0", b" ").decode(errors="replace")
                namespace = os.readlink(f"/proc/{pid}/ns/mnt")
                if namespace not in is_mounted_in:
                    with open(f"/proc/{pid}/mountinfo") as file:
                        is_mounted_in[namespace] = self.dir in file.read()
            except OSError:
                continue
            if self.process and int(pid) == self.process.pid and self.process.poll() is None:
                continue
            if self.dir in line or is_mounted_in[namespace]:
                found.append(f"process {pid}: {line[:120]}")
        runtimes = os.path.join(self.dir, "data/state/runtimes")
        if os.path.isdir(runtimes):
            found += [f"directory {name}" for name in os.listdir(runtimes) if not name.startswith(".")]
        return found


@atexit.register
def clear_away_all():
    """What tests left: daemons, the commands that were started for them, directories."""
    marks = [f"CHAT2SHELL_DATA_ROOT={daemon.dir}/".encode() for daemon in DAEMONS]
    for pid in filter(str.isdigit, os.listdir("/proc") if DAEMONS else []):
        try:
            with open(f"/proc/{pid}/environ", "rb") as file:
                environment = file.read()
            if int(pid) != os.getpid() and any(mark in environment for mark in marks):
                os.kill(int(pid), signal.SIGKILL)
        except OSError:
            continue
    for daemon in DAEMONS:
        daemon.clear_away()


class Mcp:
    """An MCP client: one HTTP connection, JSON answers."""

    def __init__(self, daemon, version="2025-11-25"):
        self.daemon, self.version, self.id = daemon, version, 0
        self.results = None  # made by the first call
        self.connection, self.used_at = http.client.HTTPConnection("127.0.0.1", daemon.port, timeout=PATIENCE), time.monotonic()
        answer = self.request("initialize", {"protocolVersion": version, "capabilities": {}, "clientInfo": {"name": "e2e", "version": "1"}})
        equal(answer["result"]["protocolVersion"], version, "negotiated revision")

    def post(self, body, headers=None):
        if time.monotonic() > self.used_at + IDLE_SECONDS:
            self.connection.close()  # the next request opens it again
        self.connection.request("POST", "/mcp", body if isinstance(body, bytes) else json.dumps(body).encode(),
                                {"Content-Type": "application/json", "Accept": "application/json, text/event-stream", **(headers or {})})
        response = self.connection.getresponse()
        answer = response.status, response.read()
        self.used_at = time.monotonic()
        return answer

    def request(self, method, params=None):
        self.id += 1
        status, body = self.post({"jsonrpc": "2.0", "id": self.id, "method": method, "params": params or {}})
        answer = json.loads(body)
        equal((status, answer.get("id")), (200, self.id), f"{method} {body[:300]}")
        return answer

    def call(self, tool, **arguments):
        """The structured content of a call that must succeed. One that answers that it goes on is waited for, as its answer says."""
        return until(f"{tool} has ended", lambda: self.ended(tool, arguments))

    def ended(self, tool, arguments):
        result = self.result(tool, **arguments)
        if tool == "sandbox_expose" and "is not published yet" in str(result["content"]):
            raise NotYet(result["content"])
        check(not result.get("isError"), f"{tool} failed: {result['content']}")
        content = result["structuredContent"]
        if tool == "sandbox_destroy" and content["status"] == "destroying":
            raise NotYet("it is being removed")
        if tool == "sandbox_create" and content["status"] == "creating":
            return {**content, "status": "created", "sandbox": self.sandbox_that_is("running", content["sandbox"]["id"])}
        return content

    def sandbox_that_is(self, status, sandbox):
        """Waits until it is at that status; another failure than one that is waited for ends the wait by its reason."""
        def look():
            box = self.result("sandbox_get", sandbox_id=sandbox)["structuredContent"]
            check(box["status"] == status or box["status"] != "failed", f"{sandbox} failed: {box.get('error')}")
            if box["status"] != status:
                raise NotYet(box["status"])
            return box
        return until(f"{sandbox} is {status}", look)

    def result(self, tool, **arguments):
        """The result of a call, whichever way it went, checked against what tools/list says of the tool."""
        answer = self.request("tools/call", {"name": tool, "arguments": arguments})
        check("result" in answer, f"{tool}: {answer}")
        if not self.results:
            self.results = Results(self.request("tools/list")["result"]["tools"])
        gaps = self.results.gaps(tool, answer["result"])
        check(not gaps, f"{tool} {json.dumps(arguments)[:200]}: the result is not what tools/list promises: {gaps[:5]}")
        return answer["result"]

    def error(self, tool, **arguments):
        """The sentence of a call that must fail."""
        result = self.result(tool, **arguments)
        check(result.get("isError"), f"{tool} succeeded: {result}")
        return result["content"][0]["text"]

    def begin(self, sandbox, command, word="ready"):
        """Starts a command that goes on, and waits until it has said that word; its session."""
        answer = self.call("bash", sandbox_id=sandbox, command=command, yield_time_ms=0)
        output, end = answer["output"], time.monotonic() + PATIENCE
        while word not in output:
            check(answer["status"] == "running" and time.monotonic() < end, f"{command} does not say {word}: {output[-300:]!r}, {answer['status']}")
            answer = self.call("bash_poll", sandbox_id=sandbox, session_id=answer["session_id"], yield_time_ms=100)
            output += answer["output"]
        return answer["session_id"]

    def shell(self, sandbox, command, wait_ms=60000, **more):
        """Runs the command to its end: (exit code, output)."""
        answer = self.call("bash", sandbox_id=sandbox, command=command, yield_time_ms=wait_ms, **more)
        output = answer["output"]
        end = time.monotonic() + PATIENCE
        while answer["status"] == "running" or answer["has_more_output"]:
            check(time.monotonic() < end, f"still running: {command}")
            answer = self.call("bash_poll", sandbox_id=sandbox, session_id=answer["session_id"], yield_time_ms=wait_ms)
            output += answer["output"]
        return answer["exit_code"], output


def unprivileged_user():
    """A user to run the daemon as; makes one where this test is root."""
    if os.getuid() != 0:
        raise Skip("needs root to become another user")
    name = "c2s-test"
    try:
        pwd.getpwnam(name)
    except KeyError:
        subprocess.run(["useradd", "--system", "--no-create-home", "--shell", "/bin/bash", name], check=True)
    return name
