"""Two ways to call a tool server of the contract: our own over its stdio, and any other over HTTP."""
import http.client
import itertools
import json
import os
import select
import subprocess
import tempfile
import time
import urllib.parse

VERSION = "2025-06-18"
CLIENT = {"protocolVersion": VERSION, "capabilities": {}, "clientInfo": {"name": "conformance", "version": "1"}}
MAX_ANSWER = 64 << 20


class Trouble(Exception):
    """The server cannot be talked to."""


class Guest:
    """chat2shell-guest on a directory; use it with `with`."""

    def __init__(self, program, root, home, seconds=90, environment=None, before=()):
        self.root, self.seconds, self.ids, self.rest = root, seconds, itertools.count(1), b""
        kept = {name: os.environ[name] for name in ("ASAN_OPTIONS", "UBSAN_OPTIONS") if name in os.environ}
        self.environment = {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": home, **kept, **(environment or {})}
        self.line = [*before, program, "--root", root, "--stdio"]

    def __enter__(self):
        self.errors = tempfile.TemporaryFile()
        self.child = subprocess.Popen(self.line, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.errors, env=self.environment)
        try:
            self.request("initialize", CLIENT)
        except Trouble:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        try:
            self.child.stdin.close()
        except OSError:
            pass
        try:
            self.child.wait(20)
        except subprocess.TimeoutExpired:
            self.child.kill()
            self.child.wait()
        self.child.stdout.close()
        self.errors.close()

    def stderr(self):
        self.errors.seek(0)
        return self.errors.read().decode(errors="replace")

    def _line(self, end):
        while b"\n" not in self.rest:
            if not select.select([self.child.stdout], [], [], max(0, end - time.monotonic()))[0]:
                raise Trouble(f"no answer within {self.seconds} s")
            piece = os.read(self.child.stdout.fileno(), 1 << 20)
            if not piece or len(self.rest) > MAX_ANSWER:
                raise Trouble(f"the guest ended or flooded: {self.stderr()[-500:]}")
            self.rest += piece
        line, self.rest = self.rest.split(b"\n", 1)
        return line

    def request(self, method, params=None):
        """The whole answer to one request; notifications on the way are dropped."""
        message = {"jsonrpc": "2.0", "id": next(self.ids), "method": method, **({} if params is None else {"params": params})}
        try:
            self.child.stdin.write(json.dumps(message).encode() + b"\n")
            self.child.stdin.flush()
        except OSError as why:
            raise Trouble(f"the guest does not read: {why}: {self.stderr()[-500:]}") from why
        end = time.monotonic() + self.seconds
        while True:
            answer = json.loads(self._line(end))
            if answer.get("id") == message["id"]:
                return answer

    def tools(self):
        return {tool["name"]: tool for tool in self.request("tools/list")["result"]["tools"]}

    def call(self, tool, arguments):
        """The result of one call."""
        answer = self.request("tools/call", {"name": tool, "arguments": arguments})
        if "result" not in answer:
            raise Trouble(f"{tool}: {answer}")
        return answer["result"]


class Remote:
    """One session with a server over Streamable HTTP; use it with `with`."""

    def __init__(self, url, token=None, seconds=90):
        self.url, self.token, self.seconds, self.ids, self.session = urllib.parse.urlsplit(url), token, seconds, itertools.count(1), None
        if self.url.scheme not in ("http", "https") or not self.url.hostname:
            raise Trouble(f"{url} is no http address: name the endpoint, such as http://127.0.0.1:8787/mcp")

    def __enter__(self):
        self.request("initialize", CLIENT)
        self._send("POST", {"jsonrpc": "2.0", "method": "notifications/initialized"})
        return self

    def __exit__(self, *_):
        if self.session:
            self._send("DELETE", None)

    def _headers(self):
        headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
        if self.token:
            headers["Authorization"] = f"Bearer {self.token}"
        if self.session:
            headers.update({"Mcp-Session-Id": self.session, "MCP-Protocol-Version": VERSION})
        return headers

    def _send(self, method, body):
        kind = http.client.HTTPSConnection if self.url.scheme == "https" else http.client.HTTPConnection
        connection = kind(self.url.hostname, self.url.port, timeout=self.seconds)
        try:
            path = (self.url.path or "/mcp") + (f"?{self.url.query}" if self.url.query else "")
            connection.request(method, path, None if body is None else json.dumps(body).encode(), self._headers())
            response = connection.getresponse()
            data = response.read(MAX_ANSWER)
        except (OSError, http.client.HTTPException) as why:
            raise Trouble(f"{self.url.geturl()}: {why}") from why
        finally:
            connection.close()
        if response.status >= 300:
            raise Trouble(f"{self.url.geturl()} answers {response.status}: {data[:200].decode(errors='replace')}")
        self.session = response.headers.get("Mcp-Session-Id") or self.session
        return response.headers.get_content_type(), data.decode()

    def request(self, method, params=None):
        """The whole answer to one request, sent as JSON or as events."""
        message = {"jsonrpc": "2.0", "id": next(self.ids), "method": method, **({} if params is None else {"params": params})}
        kind, text = self._send("POST", message)
        answers = [json.loads(text)] if kind == "application/json" else list(events(text))
        for answer in answers:
            if answer.get("id") == message["id"]:
                return answer
        raise Trouble(f"{method}: no answer in {text[:300]!r}")

    tools, call = Guest.tools, Guest.call


def events(text):
    """The JSON messages of an event stream."""
    for block in text.replace("\r\n", "\n").split("\n\n"):
        data = "\n".join(line[5:].removeprefix(" ") for line in block.split("\n") if line.startswith("data:"))
        if data:
            yield json.loads(data)
