"""A client that starts `chat2shell mcp` itself and speaks lines with it, and an endpoint that answers as it is told to."""
import http.server
import json
import os
import queue
import subprocess
import threading

from c2s import BUILD, PATIENCE, check, equal, until

META = {"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}}


class Bridge:
    """chat2shell mcp. Every line that it writes must be a JSON text."""

    def __init__(self, *arguments, environment=None):
        self.process = subprocess.Popen([os.path.join(BUILD, "chat2shell"), "mcp", *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, env={**os.environ, **(environment or {})}, cwd="/")
        self.lines = queue.Queue()
        self.errors = []
        self.readers = [threading.Thread(target=self.read_errors, daemon=True)]
        self.readers[0].start()
        self.kept = []

    def start_reading(self):
        self.readers.append(threading.Thread(target=self.read_lines, daemon=True))
        self.readers[-1].start()
        return self

    def read_lines(self):
        for line in self.process.stdout:
            self.lines.put(line)
        self.lines.put(None)

    def read_errors(self):
        for line in self.process.stderr:
            self.errors.append(line.decode(errors="replace"))

    def send(self, line):
        """A line of bytes as it is, or a message."""
        self.process.stdin.write(line if isinstance(line, bytes) else json.dumps(line).encode() + b"\n")
        self.process.stdin.flush()

    def ask(self, ident, method, **params):
        self.send({"jsonrpc": "2.0", "id": ident, "method": method, "params": params})

    def modern(self, ident, method, **params):
        self.ask(ident, method, _meta=META, **params)

    def line(self, seconds=PATIENCE):
        """The next line as bytes; None at the end."""
        try:
            return self.lines.get(timeout=seconds)
        except queue.Empty:
            raise AssertionError(f"no line within {seconds} s; standard error: {''.join(self.errors)[-500:]}") from None

    def message(self, seconds=PATIENCE):
        line = self.line(seconds)
        check(line is not None, f"it ended; standard error: {''.join(self.errors)[-500:]}")
        check(line.endswith(b"\n") and b"\r" not in line, f"not one line: {line[-100:]!r}")
        return json.loads(line)

    def answer(self, ident, seconds=PATIENCE):
        """The answer with that id; others are kept for their own turn."""
        for message in self.kept:
            if message.get("id", self) == ident:
                self.kept.remove(message)
                return message
        while True:
            message = self.message(seconds)
            if message.get("id", self) == ident:
                return message
            self.kept.append(message)

    def result(self, ident, method, **params):
        self.ask(ident, method, **params)
        answer = self.answer(ident)
        check("result" in answer, f"{method}: {answer}")
        return answer["result"]

    def call(self, ident, tool, **arguments):
        result = self.result(ident, "tools/call", name=tool, arguments=arguments)
        check(not result.get("isError"), f"{tool} failed: {result['content']}")
        content = result["structuredContent"]
        if tool == "sandbox_create" and content["status"] == "creating":  # which goes on
            until("it runs", lambda: self.call(ident, "sandbox_get", sandbox_id=content["sandbox"]["id"])["status"] == "running")
        return content

    def initialize(self, version="2025-11-25"):
        result = self.result("init", "initialize", protocolVersion=version, capabilities={}, clientInfo={"name": "e2e", "version": "1"})
        equal(result["protocolVersion"], version, "negotiated revision")
        self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        return self

    def end(self, code=0, seconds=PATIENCE):
        """Closes its input; it must end with that exit status."""
        self.process.stdin.close()
        equal(self.process.wait(seconds), code, f"exit status (standard error: {''.join(self.errors)[-500:]})")

    def __enter__(self):
        return self.start_reading()

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        for reader in self.readers:
            reader.join(PATIENCE)
        for stream in (self.process.stdout, self.process.stderr):
            stream.close()
        try:
            self.process.stdin.close()
        except OSError:
            pass


class Endpoint(http.server.ThreadingHTTPServer):
    """An MCP endpoint on a free port. answer(handler, body) writes the answer; requests holds (headers, body) of all."""
    daemon_threads = True

    def __init__(self, answer):
        super().__init__(("127.0.0.1", 0), Handler)
        self.answer, self.requests = answer, []
        self.url = f"http://127.0.0.1:{self.server_port}/mcp"

    def handle_error(self, *_):
        pass  # a client that has gone is part of the tests

    def __enter__(self):
        threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.shutdown()
        self.server_close()


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.requests.append((self.headers, body))
        self.server.answer(self, body)

    def log_message(self, *_):
        pass

    def reply(self, status, body=b"", content_type="application/json", length=None):
        self.send_response(status)
        if body or content_type == "text/event-stream":
            self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(body) if length is None else length))
        self.end_headers()
        self.wfile.write(body)

    def chunks(self, *pieces, content_type="text/event-stream", is_whole=True):
        self.send_response(200)
        self.send_header("Content-Type", content_type)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for piece in pieces:
            self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
            self.wfile.flush()
        if is_whole:
            self.wfile.write(b"0\r\n\r\n")
        self.close_connection = True
