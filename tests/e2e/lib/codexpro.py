"""A CodexPro server for tests (the stand-in of tests/fakes, or a real one), a plain client for it, and the comparison of
what two servers answered."""
import atexit
import http.client
import itertools
import json
import os
import re
import shutil
import socket
import subprocess
import tempfile
import threading
import time

from c2s import BUILD, PATIENCE, ROOT, Failure, check, equal, free_port, until

STANDIN = os.path.join(ROOT, "tests/fakes/codexpro")
REAL = os.environ.get("CHAT2SHELL_E2E_CODEXPRO")
TOKEN = "0123456789abcdef-0123456789abcdef"
BOTH = "application/json, text/event-stream"
INITIALIZE = {"jsonrpc": "2.0", "id": 1, "method": "initialize",
              "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "e2e", "version": "1"}}}


def command_line(is_real):
    """The program's words; asked for a real one that is not there, fails."""
    if not is_real:
        return [STANDIN]
    program = os.path.join(REAL, "dist/http.js")
    check(os.path.isfile(program), f"CHAT2SHELL_E2E_CODEXPRO names {REAL}, which has no dist/http.js: build CodexPro there first")
    check(shutil.which("node"), "CHAT2SHELL_E2E_CODEXPRO is set, but there is no node in PATH")
    return [shutil.which("node"), program]


def environment_of(home, **more):
    kept = {name: os.environ[name] for name in ("ASAN_OPTIONS", "UBSAN_OPTIONS") if name in os.environ}
    return {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": home, "CODEXPRO_HTTP_TOKEN": TOKEN, **kept,
            "CODEXPRO_STANDIN_GUEST": os.path.join(BUILD, "chat2shell-guest"), **more}


class Answer:
    """What came back for one request."""

    def __init__(self, response, seconds):
        self.status = response.status
        self.headers = {name.lower(): text for name, text in response.getheaders()}
        self.body = b""
        end = time.monotonic() + seconds
        while piece := response.read1(1 << 20):
            self.body += piece
            check(time.monotonic() < end, f"the answer does not end: {self.body[:300]}")

    def events(self):
        """The messages of an event stream, in a fixed order."""
        text = self.body.decode()
        found = [json.loads(line[6:]) for line in text.split("\n") if line.startswith("data: ")]
        return sorted(found, key=lambda message: json.dumps(message.get("id")))

    def message(self):
        events = self.events()
        check(len(events) == 1, f"one message: {self.status} {self.body[:300]}")
        return events[0]

    def seen(self):
        """What of it counts for the comparison."""
        headers = {name: text for name, text in self.headers.items() if name in COMPARED_HEADERS}
        body = self.body.decode(errors="replace")
        if self.headers.get("content-type", "").startswith("application/json") and body:
            body = json.loads(body)
        elif self.headers.get("content-type") == "text/event-stream":
            body = self.events()
        if "mcp-session-id" in headers:
            headers["mcp-session-id"] = "SESSION"
        return {"status": self.status, "headers": headers, "body": body}


COMPARED_HEADERS = ("content-type", "cache-control", "mcp-session-id", "x-content-type-options", "retry-after", "allow", "x-accel-buffering",
                    "access-control-allow-origin", "access-control-expose-headers", "access-control-allow-methods", "access-control-allow-headers")


class Server:
    """One running server with a scratch home and workspace; use it with `with`."""

    def __init__(self, is_real, arguments=None, host="127.0.0.1", **environment):
        self.is_real = is_real
        self.dir = tempfile.mkdtemp(prefix="c2s-codexpro-")
        self.home, self.root = os.path.join(self.dir, "home"), os.path.join(self.dir, "ws")
        os.mkdir(self.home)
        os.mkdir(self.root)
        self.port = free_port()
        usual = ["--root", self.root, "--allow-root", self.root, "--host", host, "--port", str(self.port), "--bash", "full", "--write", "workspace",
                 "--tool-mode", "standard"]
        self.line = command_line(is_real) + (arguments or usual)
        self.environment = environment_of(self.home, **environment)
        self.sessions = {}
        self.ids = itertools.count(1)

    def __enter__(self):
        self.out, self.errors = (open(os.path.join(self.dir, name), "w+b") for name in ("out", "err"))
        self.process = subprocess.Popen(self.line, stdin=subprocess.DEVNULL, stdout=self.out, stderr=self.errors, env=self.environment,
                                        cwd=self.dir, start_new_session=True)
        try:
            until("the server is ready", self.is_ready)
        except Failure as why:
            self.__exit__()
            raise Failure(f"{why}: {self.stderr()[-300:]}") from why
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        self.last_words = self.stderr()
        for file in (self.out, self.errors):
            file.close()
        shutil.rmtree(self.dir, ignore_errors=True)

    def stderr(self):
        with open(os.path.join(self.dir, "err"), errors="replace") as file:
            return file.read()

    def is_ready(self):
        check(self.process.poll() is None, f"the server ended with {self.process.poll()}: {self.stderr()[-300:]}")
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0

    def request(self, method, path, body=None, token=TOKEN, timeout=PATIENCE, **headers):
        """One request on a connection of its own. Header names have _ for -; None leaves a usual one out."""
        usual = {"Authorization": f"Bearer {token}" if token else None, "Content-Type": "application/json", "Accept": BOTH}
        usual.update({name.replace("_", "-"): text for name, text in headers.items()})
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)
        try:
            data = body if isinstance(body, (bytes, type(None))) else json.dumps(body).encode()
            connection.request(method, path, data, {name: text for name, text in usual.items() if text is not None})
            return Answer(connection.getresponse(), timeout)
        finally:
            connection.close()

    def post(self, body, session=None, **more):
        return self.request("POST", "/mcp", body, **({"Mcp_Session_Id": session} if session else {}), **more)

    def open(self):
        """A new session's id."""
        answer = self.post(INITIALIZE)
        check(answer.status == 200, f"initialize: {answer.status} {answer.body[:300]}")
        return answer.headers["mcp-session-id"]

    def session(self):
        """A session that a probe's calls share, one a thread."""
        own = threading.get_ident()
        if own not in self.sessions:
            self.sessions[own] = self.open()
        return self.sessions[own]

    def rpc(self, method, params=None, session=None, **more):
        body = {"jsonrpc": "2.0", "id": next(self.ids), "method": method}
        if params is not None:
            body["params"] = params
        message = self.post(body, session or self.session(), **more).message()
        equal(message.pop("id"), body["id"], "the answer's id")
        return message

    def call(self, tool, session=None, **arguments):
        """The result of a call."""
        answer = self.rpc("tools/call", {"name": tool, "arguments": arguments}, session)
        check("result" in answer, f"{tool}: {answer}")
        return answer["result"]

    def bash(self, command, **arguments):
        """The structured content of a command that could be run."""
        result = self.call("bash", command=command, **arguments)
        check(not result.get("isError"), f"bash: {result['content']}")
        return result["structuredContent"]

    def plain(self, value):
        """The value without what differs from server to server: paths, ports, session and workspace ids, durations."""
        text = json.dumps(value, ensure_ascii=False)
        for found, name in ((self.root, "ROOT"), (self.home, "HOME"), (self.dir, "DIR"), (str(self.port), "PORT")):
            text = text.replace(found, name)
        text = re.sub(r"ws_[0-9a-f]{24}", "WORKSPACE", text)
        text = re.sub(r'"durationMs": \d+', '"durationMs": 0', text)
        return json.loads(re.sub(r"Duration: \d+ ms", "Duration: 0 ms", text))


def differences(standin, real, path=""):
    """Sentences: where two observations differ."""
    if isinstance(standin, dict) and isinstance(real, dict):
        for key in sorted(standin.keys() | real.keys(), key=str):
            if key not in real or key not in standin:
                yield f"{path}/{key}: only {'the stand-in' if key in standin else 'the real one'} has it"
            else:
                yield from differences(standin[key], real[key], f"{path}/{key}")
    elif isinstance(standin, list) and isinstance(real, list) and len(standin) == len(real):
        for index, (one, other) in enumerate(zip(standin, real)):
            yield from differences(one, other, f"{path}/{index}")
    elif standin != real or type(standin) is not type(real):
        yield f"{path}: stand-in {short(standin)}, real {short(real)}"


def short(value):
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) < 300 else f"{text[:200]} … {text[-80:]} ({len(text)} characters)"


SHARED = {}


def shared(is_real):
    """The server of the probes that need no settings, its workspace empty."""
    if is_real not in SHARED:
        SHARED[is_real] = Server(is_real).__enter__()
        atexit.register(SHARED[is_real].__exit__)
    server = SHARED[is_real]
    subprocess.run(["chmod", "-R", "u+rwX", server.root], check=True)
    for entry in os.scandir(server.root):
        shutil.rmtree(entry.path) if entry.is_dir(follow_symlinks=False) else os.unlink(entry.path)
    return server


def look(probe, is_real, settings):
    if settings is None:
        return probe(is_real)
    if not settings:
        server = shared(is_real)
        return server.plain(probe(server))
    with Server(is_real, **settings) as server:
        return server.plain(probe(server))


def same_on_both(probe, needs_server=True, **settings):
    """Runs the probe on the stand-in, and on the real one if there is one: the checks inside hold for both, and what it
    returns is the same."""
    settings = settings if needs_server else None
    standin = look(probe, False, settings)
    if REAL:
        found = list(differences(standin, look(probe, True, settings)))
        check(not found, f"{len(found)} differences from the real one: " + " | ".join(found[:40]))
